//! The proof that an answer which rests on what a killed process left survives a power loss.
//!
//! A process is killed between the write and the sync of a commit. The system keeps what it wrote, so the next process
//! finds the commit and says so: a duplicate, an ack repeated. If the power goes then, what no sync had covered goes too,
//! and with it what the answer spoke of.
//!
//! For each moment of a recording that leaves something unsynced, the folder is laid out as a kill would leave it, opened
//! by the engine on a recording disk, read, and written to once more. Then the power goes, right after the answer and at
//! the end; what the first process had left unsynced is still unsynced, unless the second one synced it.

use std::fmt;
use std::sync::Arc;

use sqlite::{Bounds, Db, Options, StorageError};

use super::power_loss::{self, Control, PowerLoss, PowerLossError, SCHEMA};
use super::{Event, Image, Recorder, Survivors};
use crate::seeded::Seeded;

/// Moments that are tried of a recording that has more.
const MOMENTS_MAX: u64 = 600;

/// What the second crashes showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecondCrashReport {
    /// Moments at which a process was killed with something unsynced.
    pub kills: u64,
    /// Folders that a power loss after the next process's answer could leave, opened and read.
    pub power_losses: u64,
    /// Kills after which an answer was taken back by the power loss.
    pub kills_with_loss: u64,
    /// Folders that did not open, or failed the integrity check.
    pub corrupt: u64,
}

impl SecondCrashReport {
    /// No answer was taken back, nothing was damaged, and something was tried.
    pub fn is_clean(&self) -> bool {
        self.kills_with_loss == 0 && self.corrupt == 0 && self.power_losses > 0
    }
}

impl fmt::Display for SecondCrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills, {} power losses after the next answer: {} kills with loss, {} corrupt",
            self.kills, self.power_losses, self.kills_with_loss, self.corrupt
        )
    }
}

/// Records, kills, answers, loses the power, counts.
///
/// # Errors
/// When a recording itself fails; losses are no error but figures of the report.
pub fn second_crash(config: &PowerLoss) -> Result<SecondCrashReport, PowerLossError> {
    let events = power_loss::record(config)?;
    let unsettled = {
        let mut image = Image::default();
        events
            .iter()
            .filter(|event| {
                image.apply(event);
                image.is_unsettled()
            })
            .count() as u64
    };
    let mut seeded = Seeded::new(config.seed);
    let (mut image, mut report) = (Image::default(), SecondCrashReport::default());
    for event in &events {
        image.apply(event);
        if image.is_unsettled() && seeded.below(unsettled.max(1)) < MOMENTS_MAX {
            kill_here(&image, config, seeded.next_u64(), &mut report)?;
        }
    }
    Ok(report)
}

fn kill_here(
    image: &Image<'_>,
    config: &PowerLoss,
    seed: u64,
    report: &mut SecondCrashReport,
) -> Result<(), PowerLossError> {
    let folder = power_loss::scratch()?;
    for (name, content) in image.after_power_loss(Survivors::Everything) {
        std::fs::write(folder.path().join(name), content)?;
    }
    report.kills += 1;
    let events = second_life(&folder, config.control)?;
    let (mut both, mut answered, mut lost) = (image.clone(), None, false);
    for (place, event) in events.iter().enumerate() {
        both.apply(event);
        if let Event::Answered { n } = event {
            answered = Some(*n);
        }
        let is_moment = matches!(event, Event::Answered { .. }) || place + 1 == events.len();
        let Some(answered) = answered.filter(|_| is_moment) else { continue };
        for survivors in power_loss::variants(&both, seed) {
            report.power_losses += 1;
            match rows_after(&both, survivors)? {
                Some(rows) => lost |= rows < answered,
                None => report.corrupt += 1,
            }
        }
    }
    report.kills_with_loss += u64::from(lost);
    Ok(())
}

/// Opens, answers what it finds, commits one more row and answers it, is killed.
fn second_life(folder: &tempfile::TempDir, control: Control) -> Result<Vec<Event>, PowerLossError> {
    let recorder = Arc::new(Recorder::default());
    let disk = power_loss::disk(control, &recorder);
    let bounds = Bounds { readers: 1, ..Bounds::default() };
    let options = Options::new(folder.path().join(power_loss::FILE), SCHEMA).bounds(bounds).fault(disk);
    let db = Db::open_inline(options)?;
    let found = db.read_blocking("rows", |conn| Ok::<_, StorageError>(power_loss::sound_rows(conn)?))?;
    let found = found.unwrap_or(0);
    if control == Control::OpeningUnsynced {
        // The engine as it would be without those syncs: they are not among the notes.
        let notes = recorder.take().into_iter().filter(|event| !matches!(event, Event::Synced { .. }));
        let mut notes: Vec<Event> = notes.collect();
        notes.push(Event::Answered { n: found });
        db.abandon();
        return Ok(notes);
    }
    recorder.answered(found);
    db.write_blocking("row", move |conn| power_loss::add(conn, found + 1))?;
    recorder.answered(found + 1);
    db.abandon();
    Ok(recorder.take())
}

fn rows_after(image: &Image<'_>, survivors: Survivors) -> std::io::Result<Option<u64>> {
    let folder = power_loss::scratch()?;
    for (name, content) in image.after_power_loss(survivors) {
        std::fs::write(folder.path().join(name), content)?;
    }
    Ok(power_loss::rows_in(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(control: Control) -> SecondCrashReport {
        second_crash(&PowerLoss { commits: 30, control, seed: 1 }).unwrap()
    }

    #[test]
    fn an_answer_that_rests_on_what_a_killed_process_left_survives_a_power_loss() {
        let report = crash(Control::Nothing);
        assert!(report.is_clean(), "{report}");
        assert!(report.kills > 30, "{report}");
    }

    #[test]
    fn the_same_crashes_find_an_opening_that_syncs_nothing() {
        let report = crash(Control::OpeningUnsynced);
        assert!(report.kills_with_loss > 0, "{report}");
    }
}
