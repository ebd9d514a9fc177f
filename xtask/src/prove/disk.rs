//! `prove disk`: every act of every file fails once, under the stores of node, broker and relay and under the whole binary.

mod ledger;
mod mailbox;
mod relay;

use super::{Control, Findings, Request};
use anyhow::anyhow;
use std::collections::BTreeMap;
use testkit::bin::Binary;
use testkit::disk::campaign::{self, BrokenPromise, Campaign, Outcome, RowsDriver, StoreDriver};
use testkit::fleet::disk::{self as whole, RestartedStore, TracedRestart, syncs_before_first_answer};

/// Faults that a control is given to be found.
const CONTROL_FAULTS: u64 = 400;
/// Of so many faults, one is injected into the whole binary: its life takes as long as many trials in this process.
const BINARY_SHARE: u64 = 16;
/// Homes of the whole binary side by side: a life is mostly waiting.
const HOMES: u64 = 2;
/// Sentences about findings of one kind on the page.
const SENTENCES_MAX: usize = 4;

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let drivers = all()?;
    let in_binary = (request.scale / BINARY_SHARE).max(1);
    let faults = (request.scale - in_binary).div_ceil(drivers.len() as u64);
    let campaign = Campaign { faults, seed: request.seed, control: campaign::Control::Nothing };
    let stores = run_all(&drivers, &campaign)?;
    let whole = run_binary(&binary, in_binary, request.seed)?;
    let restart = syncs_before_first_answer(&binary)?;
    let mut findings = findings(&stores, &whole);
    findings.figures.push(restart_figure(&restart));
    if !restart.holds() {
        findings.broken.push(format!("a restart answers before it has synced file and log: {restart:?}"));
    }
    findings.controls = controls(request.seed)?;
    Ok(findings)
}

fn run_binary(binary: &Binary, faults: u64, seed: u64) -> anyhow::Result<whole::Outcome> {
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let homes: Vec<_> = (0..HOMES)
            .map(|home| {
                let plan = whole::Plan {
                    binary: binary.clone(),
                    faults: faults.div_ceil(HOMES),
                    seed: seed * HOMES + home,
                };
                scope.spawn(move || whole::run(&plan))
            })
            .collect();
        let ended = "a run ends with an error, not with a panic";
        homes.into_iter().map(|home| home.join().expect(ended)).collect()
    });
    let mut all = whole::Outcome::default();
    for outcome in outcomes {
        all = all.and(outcome?);
    }
    Ok(all)
}

fn restart_figure(restart: &TracedRestart) -> (String, String) {
    let syncs = |store: &RestartedStore| format!("{} {} + {}", store.file, store.file_syncs, store.log_syncs);
    let syncs: Vec<String> = restart.stores.iter().map(syncs).collect();
    ("syncs of file + log before the first answer of a restart (strace)".to_owned(), syncs.join(", "))
}

type AllDrivers = Vec<Box<dyn StoreDriver>>;

fn all() -> anyhow::Result<AllDrivers> {
    Ok(vec![
        Box::new(RowsDriver),
        Box::new(mailbox::MailboxDriver::default()),
        Box::new(ledger::LedgerDriver::new()?),
        Box::new(relay::RelayDriver),
    ])
}

/// One store beside the other: they wait for their own threads most of the time.
fn run_all(drivers: &AllDrivers, campaign: &Campaign) -> anyhow::Result<Outcome> {
    let outcomes: Vec<Result<Outcome, String>> = std::thread::scope(|scope| {
        let running: Vec<_> =
            drivers.iter().map(|driver| scope.spawn(|| campaign::run(&**driver, campaign))).collect();
        let ended = "a campaign ends with an error, not with a panic";
        running.into_iter().map(|campaign| campaign.join().expect(ended)).collect()
    });
    outcomes.into_iter().try_fold(Outcome::default(), |all, outcome| {
        Ok(all.and(outcome.map_err(|words| anyhow!("a store on a sound disk: {words}"))?))
    })
}

fn findings(outcome: &Outcome, whole: &whole::Outcome) -> Findings {
    let figure = |name: &str, value: u64| (name.to_owned(), value.to_string());
    let mut broken = sentences(outcome);
    broken.extend(whole.findings());
    Findings {
        faults: outcome.faults.clone().into_iter().chain(whole.faults.clone()).collect(),
        acked: outcome.acknowledged + whole.acknowledged,
        indeterminate: outcome.unknown + whole.unknown,
        lost: outcome.count(BrokenPromise::Lost) + whole.lost.len() as u64,
        doubled: 0,
        broken,
        controls: Vec::new(),
        figures: vec![
            figure("faults met by the engine and by the stores on it", outcome.met()),
            figure("faults met by the whole binary", whole.met()),
            figure("trials in this process", outcome.trials),
            figure("starts of the whole binary", whole.lives),
            figure("refused in words that deny storage", outcome.denied + whole.denied),
            figure(
                "of these, stored all the same",
                outcome.count(BrokenPromise::Kept) + whole.kept.len() as u64,
            ),
            figure("outcome said to be unknown, or no answer", outcome.unknown + whole.unknown),
            figure("of these, stored", outcome.unknown_and_stored + whole.unknown_and_stored),
            figure("stores damaged", outcome.count(BrokenPromise::Damaged)),
            figure("stores stopped for lack of room", outcome.count(BrokenPromise::StoppedForRoom)),
        ],
    }
}

/// The first of each kind: one fault may show at many requests.
fn sentences(outcome: &Outcome) -> Vec<String> {
    let mut shown: BTreeMap<BrokenPromise, usize> = BTreeMap::new();
    let few = outcome.findings.iter().filter(|finding| {
        let times = shown.entry(finding.broken).or_default();
        *times += 1;
        *times <= SENTENCES_MAX
    });
    few.map(ToString::to_string).collect()
}

fn controls(seed: u64) -> anyhow::Result<Vec<Control>> {
    let planted = [
        (
            campaign::Control::GroupGoesOn,
            "a group that SQLite rolled back goes on one by one, each in a transaction of its own",
        ),
        (campaign::Control::DroppedBytes, "bytes of the log are held back and dropped when a write fails"),
        (
            campaign::Control::FullBehindCommit,
            "a commit whose frames are whole is refused for lack of room behind it",
        ),
    ];
    planted
        .into_iter()
        .map(|(control, words)| {
            let campaign = Campaign { faults: CONTROL_FAULTS, seed, control };
            let outcome = campaign::run(&RowsDriver, &campaign).map_err(|words| anyhow!(words))?;
            let first = outcome.findings.first().map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let seen = format!(
                "{} findings in the first of {} faults that shows it; {first}",
                outcome.findings.len(),
                outcome.met()
            );
            Ok(Control { planted: words.to_owned(), caught: !outcome.holds(), seen })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults for each store: what a gate can wait for.
    const FAULTS: u64 = 40;

    #[test]
    fn of_each_store_on_a_failing_disk_nothing_acknowledged_is_lost_and_nothing_refused_is_kept() {
        let campaign = Campaign { faults: FAULTS, seed: 1, control: campaign::Control::Nothing };
        let outcome = run_all(&all().unwrap(), &campaign).unwrap();
        assert!(outcome.holds(), "{}", outcome.summary());
        assert!(outcome.met() >= 4 * FAULTS && outcome.denied > FAULTS, "{outcome:?}");
    }
}
