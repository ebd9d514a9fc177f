//! One folder, one fault, and the comparison of answers with what is there.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlite::fault::{self, Disk};
use sqlite::{Bounds, StorageError};
use tempfile::TempDir;

use super::gate::{ask_alone, ask_together};
use super::{
    BrokenPromise, Control, OpenStore, Outcome, PlannedFault, Request, StoreAnswer, StoreDriver,
    SurveyedActs, TrialDisk, TrialFinding,
};
use crate::disk::{ActPlace, FileRole, Kind, Repeat, Trouble};
use crate::seeded::Seeded;

/// Waves of the opening in which an act fails.
const WAVES: u64 = 6;
/// Requests of one wave.
const WAVE_MAX: u64 = 10;
/// A body that fills many pages, so that a wave with some of them is larger than a small page cache.
const LARGE_BYTES: usize = 60_000;
const SMALL_BYTES: usize = 90;
/// Pages of the log that one region of its index covers.
const REGION_PAGES: usize = 4_096;
const PAGE_BYTES: usize = 4_096;

/// How a trial asks, and with which bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TrialLoad {
    /// Requests together, a page cache of ten pages, a log that is copied and begun anew all the time.
    TogetherInSmallCache,
    /// Requests together under the product's own bounds.
    Together,
    /// One request after the other.
    Alone,
    /// A log that grows past the first region of its index.
    LongLog,
}

impl TrialLoad {
    pub(super) const ALL: [Self; 4] =
        [Self::TogetherInSmallCache, Self::Together, Self::Alone, Self::LongLog];

    fn draw(seeded: &mut Seeded) -> Self {
        match seeded.below(100) {
            0..60 => Self::TogetherInSmallCache,
            60..80 => Self::Together,
            80..97 => Self::Alone,
            _ => Self::LongLog,
        }
    }

    fn adjusted(self, product: Bounds) -> Bounds {
        // A lock that was told to be taken is waited for; nobody holds it for longer.
        let product = Bounds {
            busy_wait: Duration::from_millis(400),
            read_max: Duration::from_secs(20),
            // What the log's index reserves at each opening is enough for the longest log of a trial.
            log_pages_max: 20_000,
            ..product
        };
        let together = Bounds { lone_commit_max: Duration::ZERO, ..product };
        let short_log = |bounds| Bounds {
            checkpoint_step_pages: 40,
            wal_budget_pages: 120,
            wal_pages_max: 400,
            ..bounds
        };
        match self {
            Self::TogetherInSmallCache => Bounds { writer_cache_kib: 40, ..short_log(together) },
            Self::Together | Self::LongLog => together,
            Self::Alone => Bounds { writer_cache_kib: 80, ..short_log(product) },
        }
    }

    fn ask(self, store: &dyn OpenStore, wave: &[Request]) -> Vec<(Request, Option<StoreAnswer>)> {
        match self {
            Self::TogetherInSmallCache | Self::Together | Self::LongLog => ask_together(store, wave),
            Self::Alone => ask_alone(store, wave),
        }
    }
}

/// Counts the acts of a trial without a fault.
pub(super) fn survey(
    driver: &dyn StoreDriver,
    control: Control,
    load: TrialLoad,
) -> Result<BTreeMap<ActPlace, u64>, String> {
    let folder = scratch()?;
    let mut seeded = Seeded::new(load as u64);
    let mut history = TrialHistory::new(driver);
    first_opening(driver, &folder, load, &mut seeded, &mut history)?;
    let disk = TrialDisk::new(control);
    let open = driver.open(folder.path(), &move |bounds| load.adjusted(bounds), disk.as_option())?;
    for wave in 0..WAVES {
        let wave = history.wave(load, wave, &mut seeded);
        history.note(load.ask(&*open, &wave));
    }
    open.db().abandon();
    let denied = history
        .answers
        .iter()
        .find(|(_, word)| !matches!(word, Some(StoreAnswer::Stored | StoreAnswer::NotPut)));
    match denied {
        None => Ok(disk.faults.asked_by_place()),
        Some((request, word)) => Err(format!("{}: {request:?} on a sound disk: {word:?}", driver.name())),
    }
}

/// Draws a fault, lives, judges.
pub(super) fn run(driver: &dyn StoreDriver, ground: &SurveyedActs, seed: u64) -> Result<Outcome, String> {
    let folder = scratch()?;
    let mut seeded = Seeded::new(seed);
    let load = match ground.control {
        Control::DroppedBytes => TrialLoad::TogetherInSmallCache,
        Control::Nothing | Control::FullBehindCommit | Control::GroupGoesOn => TrialLoad::draw(&mut seeded),
    };
    let drawn = draw_fault(&ground.acts[&load], ground.control, load, &mut seeded);
    let mut history = TrialHistory { draw: RequestDraw::of(ground.control), ..TrialHistory::new(driver) };
    // Some folders are empty when the fault comes.
    if seeded.chance(85) {
        first_opening(driver, &folder, load, &mut seeded, &mut history)?;
    }
    let planted =
        (ground.control == Control::GroupGoesOn).then(|| fault::plant(fault::GROUP_GOES_ON, folder.path()));
    let mut met = second_opening(driver, &folder, load, ground.control, &drawn, &mut seeded, &mut history);
    drop(planted);
    let place = format!("{}, trial {seed}, {load:?}, {drawn} after {} of them", driver.name(), drawn.spare);
    let mut judge = TrialJudge { place, outcome: Outcome { trials: 1, ..Outcome::default() } };
    if met.is_some() {
        judge.outcome.faults.insert(format!("{}: {drawn}", driver.name()), 1);
    }
    if let Some(stopped) = met.take().flatten()
        && drawn.is_lack_of_room()
    {
        judge.find(BrokenPromise::StoppedForRoom, &stopped);
    }
    third_opening(driver, &folder, load, &mut seeded, &mut history, &mut judge)?;
    Ok(judge.outcome)
}

/// Sound and abandoned: what the next opening finds is a log to recover.
fn first_opening(
    driver: &dyn StoreDriver,
    folder: &TempDir,
    load: TrialLoad,
    seeded: &mut Seeded,
    history: &mut TrialHistory,
) -> Result<(), String> {
    let open = driver.open(folder.path(), &move |bounds| load.adjusted(bounds), Disk::default())?;
    for wave in 0..1 + seeded.below(3) {
        let wave = history.wave(TrialLoad::Together, wave + 1, seeded);
        history.note(ask_together(&*open, &wave));
    }
    open.db().abandon();
    Ok(())
}

/// Nothing when the fault was not met; inside, why writing has stopped, if it has.
fn second_opening(
    driver: &dyn StoreDriver,
    folder: &TempDir,
    load: TrialLoad,
    control: Control,
    fault: &PlannedFault,
    seeded: &mut Seeded,
    history: &mut TrialHistory,
) -> Option<Option<String>> {
    let disk = TrialDisk::new(control);
    disk.faults.fail_at(fault.place, fault.trouble, fault.spare, fault.repeat);
    let met = |disk: &TrialDisk| disk.faults.hits() > 0;
    let open = match driver.open(folder.path(), &move |bounds| load.adjusted(bounds), disk.as_option()) {
        Ok(open) => open,
        Err(_) => return met(&disk).then_some(None),
    };
    // Kept for long enough that SQLite reuses what it kept, or killed at once.
    let mut waves_after = seeded.below(4);
    let mut stopped = None;
    for wave in 0..WAVES + 3 {
        let requests = history.wave(load, wave, seeded);
        let answers = load.ask(&*open, &requests);
        stopped = answers.iter().find_map(|(_, word)| match word {
            Some(StoreAnswer::Unknown(words)) => Some(words.clone()),
            _ => None,
        });
        history.note(answers);
        if met(&disk) {
            if waves_after == 0 {
                break;
            }
            waves_after -= 1;
            // There is room again.
            disk.faults.heal();
        } else if wave >= WAVES {
            break;
        }
    }
    open.db().abandon();
    met(&disk).then_some(stopped)
}

/// Sound: compares, then asks what was not stored once more, closes, opens again and compares again.
fn third_opening(
    driver: &dyn StoreDriver,
    folder: &TempDir,
    load: TrialLoad,
    seeded: &mut Seeded,
    history: &mut TrialHistory,
    judge: &mut TrialJudge,
) -> Result<(), String> {
    let adjusted = move |bounds| load.adjusted(bounds);
    let open = match driver.open(folder.path(), &adjusted, Disk::default()) {
        Ok(open) => open,
        Err(words) => {
            judge.find(BrokenPromise::Damaged, &format!("the store does not open: {words}"));
            return Ok(());
        }
    };
    judge.check_integrity(&*open);
    for (request, word) in &history.answers {
        judge.judge(&*open, *request, word.as_ref());
    }
    if !judge.outcome.findings.is_empty() {
        open.db().abandon();
        return Ok(());
    }
    let again: Vec<Request> = history
        .answers
        .iter()
        .filter(|(_, word)| matches!(word, Some(StoreAnswer::Denied(_) | StoreAnswer::Unknown(_))))
        .map(|(request, _)| *request)
        .collect();
    let mut later = ask_together(&*open, &again);
    let wave = history.wave(TrialLoad::Together, 1, seeded);
    later.extend(ask_together(&*open, &wave));
    open.db().close_blocking();
    drop(open);
    let open = driver.open(folder.path(), &adjusted, Disk::default())?;
    for (request, word) in later {
        match word {
            Some(StoreAnswer::Stored) => history.answers.push((request, word)),
            Some(StoreAnswer::NotPut) => {}
            other => judge.find(
                BrokenPromise::Unanswered,
                &format!("asked on a sound disk, {request:?} got {other:?}"),
            ),
        }
    }
    judge.check_integrity(&*open);
    for (request, word) in &history.answers {
        if matches!(word, Some(StoreAnswer::Stored)) {
            judge.judge(&*open, *request, word.as_ref());
        }
    }
    open.db().abandon();
    Ok(())
}

fn draw_fault(
    acts: &BTreeMap<ActPlace, u64>,
    control: Control,
    load: TrialLoad,
    seeded: &mut Seeded,
) -> PlannedFault {
    let mut places: Vec<(ActPlace, u64)> = acts.iter().map(|(place, acts)| (*place, *acts)).collect();
    match (control, load) {
        (Control::Nothing, TrialLoad::LongLog) => {
            let grows = |place: &ActPlace| place.kind == Kind::Map || place.file == FileRole::Log;
            places.retain(|(place, _)| grows(place));
        }
        (Control::Nothing, _) => {}
        (Control::DroppedBytes, _) => {
            places.retain(|(place, _)| *place == ActPlace { file: FileRole::Log, kind: Kind::Write });
        }
        (Control::GroupGoesOn, _) => {
            places.retain(|(place, _)| *place == ActPlace { file: FileRole::Data, kind: Kind::Read });
        }
        (Control::FullBehindCommit, _) => {
            places.retain(|(place, _)| *place == ActPlace { file: FileRole::Log, kind: Kind::Sync });
        }
    }
    let weights: u64 = places.iter().map(|(place, _)| weight(*place)).sum();
    let mut left = seeded.below(weights.max(1));
    let drawn = places.iter().find(|(place, _)| {
        let is_drawn = left < weight(*place);
        left = left.saturating_sub(weight(*place));
        is_drawn
    });
    let (place, count) = *drawn.unwrap_or(&places[0]);
    let troubles: &[Trouble] = match (control, place.kind) {
        (Control::FullBehindCommit, _) => &[Trouble::FullBehindCommit],
        (Control::DroppedBytes, _) => &[Trouble::NoSpace],
        (Control::GroupGoesOn, _) => &[Trouble::Error],
        (Control::Nothing, Kind::Write) => {
            &[Trouble::Error, Trouble::NoSpace, Trouble::NoSpace, Trouble::ShortError, Trouble::ShortNoSpace]
        }
        (Control::Nothing, Kind::Map) => &[Trouble::Error, Trouble::NoSpace],
        (Control::Nothing, _) => &[Trouble::Error],
    };
    let trouble = troubles[seeded.index(troubles.len())];
    // A full disk stays full for a while; of the other troubles a second one adds little.
    let lasts = matches!(trouble, Trouble::NoSpace | Trouble::ShortNoSpace) && seeded.chance(40);
    let repeat = if lasts && control == Control::Nothing { Repeat::FromThenOn } else { Repeat::Once };
    PlannedFault { place, trouble, spare: seeded.below(count.max(1)), repeat }
}

/// Which requests are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestDraw {
    /// Each kind as often as any other.
    Any,
    /// Every second one is of the last kind. Dropped bytes show where a statement that failed is undone alone, which SQLite
    /// does with statements of several rows.
    MostlyLastKind,
}

impl RequestDraw {
    fn of(control: Control) -> Self {
        match control {
            Control::DroppedBytes => Self::MostlyLastKind,
            Control::Nothing | Control::FullBehindCommit | Control::GroupGoesOn => Self::Any,
        }
    }
}

/// Where most of what a commit does is done, most faults are.
fn weight(place: ActPlace) -> u64 {
    match (place.file, place.kind) {
        (FileRole::Log, Kind::Write) => 8,
        (FileRole::Data, Kind::Read) => 4,
        (FileRole::Log, _) | (FileRole::Data, Kind::Write) => 2,
        _ => 1,
    }
}

/// Requests and what was said of them.
struct TrialHistory {
    kinds: u64,
    draw: RequestDraw,
    next: u64,
    answers: Vec<(Request, Option<StoreAnswer>)>,
}

impl TrialHistory {
    fn new(driver: &dyn StoreDriver) -> Self {
        Self { kinds: driver.kinds(), draw: RequestDraw::Any, next: 0, answers: Vec::new() }
    }

    /// The requests of a wave: some large, some small, of all kinds.
    fn wave(&mut self, load: TrialLoad, wave: u64, seeded: &mut Seeded) -> Vec<Request> {
        let (many, large) = match (load, wave) {
            // Once, as much as takes the log past the first region of its index.
            (TrialLoad::LongLog, 0) => (REGION_PAGES * PAGE_BYTES / LARGE_BYTES + 20, 100),
            _ => (usize::try_from(2 + seeded.below(WAVE_MAX)).unwrap_or(2), 30),
        };
        let request = |_| {
            let bytes = if seeded.chance(large) { LARGE_BYTES } else { SMALL_BYTES };
            self.next += 1;
            let kind = match self.draw {
                RequestDraw::MostlyLastKind if seeded.chance(50) => self.kinds - 1,
                RequestDraw::Any | RequestDraw::MostlyLastKind => seeded.below(self.kinds),
            };
            Request { number: self.next, kind, bytes }
        };
        (0..many).map(request).collect()
    }

    fn note(&mut self, answers: Vec<(Request, Option<StoreAnswer>)>) {
        self.answers.extend(answers);
    }
}

struct TrialJudge {
    place: String,
    outcome: Outcome,
}

impl TrialJudge {
    fn find(&mut self, broken: BrokenPromise, words: &str) {
        self.outcome.findings.push(TrialFinding { broken, sentence: format!("{}: {words}", self.place) });
    }

    fn judge(&mut self, open: &dyn OpenStore, request: Request, word: Option<&StoreAnswer>) {
        let Some(word) = word else {
            return self.find(BrokenPromise::Unanswered, &format!("{request:?}"));
        };
        if *word == StoreAnswer::NotPut {
            return;
        }
        let is_there = match open.holds(request) {
            Ok(is_there) => is_there,
            Err(words) => {
                return self.find(BrokenPromise::Damaged, &format!("{request:?} cannot be read: {words}"));
            }
        };
        match word {
            StoreAnswer::Stored => {
                self.outcome.acknowledged += 1;
                if !is_there {
                    self.find(BrokenPromise::Lost, &format!("{request:?}"));
                }
            }
            StoreAnswer::Denied(words) => {
                self.outcome.denied += 1;
                if is_there {
                    self.find(BrokenPromise::Kept, &format!("{request:?} was told `{words}`"));
                }
            }
            StoreAnswer::Unknown(_) => {
                self.outcome.unknown += 1;
                self.outcome.unknown_and_stored += u64::from(is_there);
            }
            StoreAnswer::NotPut => {}
        }
    }

    fn check_integrity(&mut self, open: &dyn OpenStore) {
        let check = open.db().read_blocking("campaign.check", |conn| {
            Ok::<String, StorageError>(conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?)
        });
        match check {
            Ok(verdict) if verdict == "ok" => {}
            Ok(verdict) => {
                let lines: Vec<&str> = verdict.lines().take(2).collect();
                self.find(BrokenPromise::Damaged, &format!("the integrity check says {}", lines.join(" ")));
            }
            Err(error) => self.find(BrokenPromise::Damaged, &error.to_string()),
        }
    }
}

/// In memory where there is such a folder: what fails here fails on purpose.
fn scratch() -> Result<TempDir, String> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).map_err(|error| error.to_string())
}
