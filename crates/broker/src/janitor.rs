//! What ends by itself: ids past their window, mail past its time, tokens of the way in, old messages. And the audit
//! that looks for books which contradict each other.
//!
//! - Every round is bounded; a round that was cut short goes on at once, so a backlog never holds the writer for long.
//! - A round may run in several broker processes at the same time: each change is one transaction that states what
//!   it expects.

use std::sync::Arc;
use std::time::Duration;

use ledger::{IdPlace, Ledger, Orphan, StorageError};
use model::{Timestamp, limits};
use tokio::time::{MissedTickBehavior, interval};

use crate::broker::Shared;
use crate::clock;
use crate::problems::ProblemKind;

/// Sweeps until the broker stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let mut rounds = interval(limits::JANITOR_EVERY);
    let mut walks = interval(limits::DEDUPE_WALK_EVERY);
    let mut audits = interval(limits::ORPHAN_CHECK_EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    walks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    audits.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            _ = rounds.tick() => {
                if let Err(error) = round(&shared).await {
                    tracing::error!(%error, "a round of the janitor ended early; the next one goes on");
                }
            }
            _ = walks.tick() => {
                if let Err(error) = forget_ids(&shared).await {
                    tracing::error!(%error, "a walk over all ids ended early; the next one starts anew");
                }
            }
            _ = audits.tick() => {
                if let Err(error) = audit(&shared).await {
                    tracing::error!(%error, "the books could not be audited");
                }
            }
        }
    }
}

/// Rows of the books that contradict each other, except the youngest: they may be about to be written.
pub async fn check(ledger: &dyn Ledger) -> Result<Vec<Orphan>, StorageError> {
    let before = earlier(ledger.now().await?, limits::ORPHAN_AGE_MIN);
    ledger.orphans(before, limits::ORPHANS_NAMED_MAX).await
}

async fn round(shared: &Shared) -> Result<(), StorageError> {
    let ledger = shared.ledger.as_ref();
    let limit = limits::SWEEP_ROWS_MAX;
    clock::tell_ahead(shared, &ledger.look_at_clock().await?);
    note_durability(shared).await?;
    let swept = ledger.sweep_way_in().await?;
    let mut expired = 0;
    while !shared.stop.is_cancelled() {
        let changed = ledger.expire_undelivered(limit).await?;
        expired += changed;
        if changed < limit as u64 {
            break;
        }
    }
    let forgotten = forget_hub_keys(shared).await?;
    let pruned = prune(shared).await?;
    shared.metrics.ttl_sweeps.add_one();
    if swept + expired + forgotten + pruned > 0 {
        tracing::info!(swept, expired, forgotten, pruned, "janitor");
    }
    Ok(())
}

/// Looks at every id once.
async fn forget_ids(shared: &Shared) -> Result<(), StorageError> {
    let (mut forgotten, mut from) = (0, Some(IdPlace::default()));
    while let Some(place) = from.take_if(|_| !shared.stop.is_cancelled()) {
        let step = shared.ledger.expire_dedupe(place, limits::SWEEP_ROWS_MAX).await?;
        (forgotten, from) = (forgotten + step.ids, step.next);
    }
    shared.metrics.dedupe_walks.add_one();
    if forgotten > 0 {
        tracing::info!(forgotten, "janitor: ids past their window");
    }
    Ok(())
}

async fn forget_hub_keys(shared: &Shared) -> Result<u64, StorageError> {
    let (mut forgotten, limit) = (0, limits::SWEEP_ROWS_MAX);
    while !shared.stop.is_cancelled() {
        let changed = shared.ledger.expire_hub_keys(limit).await?;
        forgotten += changed;
        if changed < limit as u64 {
            break;
        }
    }
    shared.metrics.hub_keys_forgotten.add(forgotten);
    Ok(forgotten)
}

async fn prune(shared: &Shared) -> Result<u64, StorageError> {
    let Some(retention) = shared.config.message_retention else { return Ok(0) };
    let before = earlier(shared.ledger.look_at_clock().await?.borne_out, retention);
    let mut pruned = 0;
    while !shared.stop.is_cancelled() {
        let round = shared.ledger.prune_messages(before, limits::SWEEP_ROWS_MAX).await?;
        pruned += round.messages;
        if !round.more {
            break;
        }
    }
    Ok(pruned)
}

async fn audit(shared: &Shared) -> Result<(), StorageError> {
    let orphans = check(shared.ledger.as_ref()).await?;
    shared.metrics.dedupe_orphan_check.add_one();
    shared.metrics.dedupe_orphan_found.set(i64::try_from(orphans.len()).unwrap_or(i64::MAX));
    shared.metrics.atomicity_violation_found.set(i64::from(!orphans.is_empty()));
    shared.problems.note(ProblemKind::BooksContradict, contradiction(orphans.len()));
    for orphan in &orphans {
        tracing::error!(?orphan, "the books contradict each other: an accept was not written whole");
    }
    Ok(())
}

/// Logged when it changes; a standby may come and go.
async fn note_durability(shared: &Shared) -> Result<(), StorageError> {
    let warnings = shared.ledger.durability().await?;
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let message =
        (!told.is_empty()).then(|| format!("the store may lose what it acknowledged: {}", told.join("; ")));
    if shared.problems.note(ProblemKind::StoreNotDurable, message) {
        warnings.iter().for_each(|warning| {
            tracing::warn!(setting = warning.setting, value = warning.value, "{}", warning.message);
        });
    }
    Ok(())
}

fn contradiction(orphans: usize) -> Option<String> {
    let count = match orphans {
        0 => return None,
        limits::ORPHANS_NAMED_MAX.. => format!("{orphans} rows or more"),
        few => format!("{few} rows"),
    };
    Some(format!(
        "the daily audit found {count} of the books that contradict each other; stop the broker, keep a copy of its store, \
         and let postrider broker check name them"
    ))
}

fn earlier(now: Timestamp, span: Duration) -> Timestamp {
    let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_instant_is_never_past_the_calendar() {
        let now = Timestamp::from_micros(5_000_000);
        assert_eq!(earlier(now, Duration::from_secs(2)), Timestamp::from_micros(3_000_000));
        assert!(earlier(now, Duration::MAX) < now);
    }
}
