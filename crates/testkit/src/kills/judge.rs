//! The verdict over what clients saw.

use super::KillsError;
use super::closing::Counts;
use super::stage::Stage;
use crate::history::{Verdict, check, read_folder};

pub(super) struct Judged {
    pub verdict: Verdict,
    /// Receipts that the logs do not bear out.
    pub gone: Vec<String>,
    pub amiss: Vec<String>,
    pub receipts: u64,
}

pub(super) fn judge(stage: &Stage<'_>, counts: Counts) -> Result<Judged, KillsError> {
    let verdict = check(&read_folder(stage.history())?);
    let (receipts, gone) = stage.told.compare(&counts.logs);
    let mut amiss = stage.amiss();
    amiss.extend(outbox_sentences(&counts));
    Ok(Judged { verdict, gone, amiss, receipts })
}

/// Every row of the outbox is done, and what is done is in a log: the two are as many.
fn outbox_sentences(counts: &Counts) -> Vec<String> {
    let mut sentences = Vec::new();
    for (state, rows) in &counts.outbox {
        let expected = if state == "done" { counts.logs.len() as u64 } else { 0 };
        if *rows != expected {
            sentences
                .push(format!("the outbox holds {rows} rows in state {state}; {expected} were expected"));
        }
    }
    sentences
}
