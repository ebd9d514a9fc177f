//! `clock_ahead`: the store's clock jumped ahead of running time. Whatever ends by age waits until it is set right, or
//! has stood so for a day (`model::ageing`).
//!
//! `clock_regressed`: the store's clock stands behind what it said before. Logs keep their order without it; ages,
//! deadlines and windows do not, so somebody has to look at the machine.

use std::sync::Arc;
use std::time::Duration;

use ledger::ClockLook;

use model::ageing::ForgottenRecord;
use model::{Timestamp, limits};
use tokio::time::Instant;

use crate::audit::Event;
use crate::broker::Shared;
use crate::problems::ProblemKind;

/// Tells of a clock that stands ahead: what ends by age waits meanwhile.
pub(crate) fn tell_ahead(shared: &Shared, look: &ClockLook) {
    shared.metrics.clock_ahead.set(i64::try_from(look.ahead.as_secs()).unwrap_or(i64::MAX));
    if let Some(by) = look.jumped {
        shared.metrics.clock_jumped.add_one();
        tracing::warn!(ahead_s = by.as_secs(), "clock_ahead: the store's clock jumped ahead of running time");
        Event::ClockAhead { by }.record();
    }
    shared.problems.note(ProblemKind::ClockAhead, ahead(look.ahead));
    let forgotten = shared.ledger.forgotten_upto(look.wall).record;
    shared.problems.note(ProblemKind::ForgottenAhead, forgotten_ahead(&forgotten, look.wall));
}

fn forgotten_ahead(forgotten: &ForgottenRecord, now: Timestamp) -> Option<String> {
    let (ids, keys) = (forgotten.ids_tried_upto, forgotten.keys_made_upto);
    let refused = match (ids > now, keys > now) {
        (false, false) => return None,
        (true, false) => format!("messages first tried before {ids} are refused with send_deadline_passed"),
        (false, true) => format!("hub writes made before {keys} are refused with idempotency_key_expired"),
        (true, true) => format!(
            "messages first tried before {ids} are refused with send_deadline_passed, and hub writes made before {keys} with \
             idempotency_key_expired"
        ),
    };
    Some(format!(
        "the store's date lay ahead for so long that ids of that span were forgotten, and was set back since: {refused}. It ends \
         by itself when the clock passes that instant"
    ))
}

fn ahead(ahead: Duration) -> Option<String> {
    (ahead > limits::CLOCK_AHEAD_SHOWN).then(|| {
        format!(
            "the store's clock stands {} days ahead of the time this broker saw pass, so nothing of that span is forgotten or \
             expired; a machine that was off or asleep so long needs nothing, any other a right date (timedatectl set-ntp \
             true)",
            ahead.as_secs() / (24 * 3_600)
        )
    })
}

/// Counts what the ledger has seen, and says so now and then.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let mut regressed = shared.ledger.clock_regressed();
    let (mut counted, mut told_at) = (0, None::<Instant>);
    loop {
        let seen = *regressed.borrow_and_update();
        if seen.messages > counted {
            shared.metrics.clock_regressed.add(seen.messages - counted);
            counted = seen.messages;
            // Each message meets the same clock: one record says as much as thousands.
            if told_at.is_none_or(|at| at.elapsed() >= limits::CLOCK_REGRESSED_TOLD_EVERY) {
                told_at = Some(Instant::now());
                tracing::warn!(
                    behind_ms = seen.by.as_millis(),
                    "clock_regressed: the store's clock went back"
                );
                Event::ClockRegressed { by: seen.by }.record();
            }
        }
        tokio::select! {
            changed = regressed.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = shared.stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_under_a_date_that_lay_ahead_is_told_until_the_clock_passes_it() {
        let at = |second: i64| Timestamp::from_micros(1_800_000_000_000_000 + second * 1_000_000);
        let record = |ids, keys| ForgottenRecord {
            ids_tried_upto: at(ids),
            keys_made_upto: at(keys),
            ..ForgottenRecord::EMPTY
        };
        for (ids, keys, told) in [
            (10, 10, [false, false]),
            (11, 10, [true, false]),
            (10, 11, [false, true]),
            (12, 11, [true, true]),
        ] {
            let message = forgotten_ahead(&record(ids, keys), at(10)).unwrap_or_default();
            let codes = ["send_deadline_passed", "idempotency_key_expired"];
            assert_eq!(codes.map(|code| message.contains(code)), told, "{message}");
            assert!(!told[0] || message.contains(&at(ids).to_string()), "{message}");
        }
        assert_eq!(forgotten_ahead(&ForgottenRecord::EMPTY, at(0)), None);
    }
}
