//! The broker's word on one message, before it is said over a link or over HTTP.

use std::time::Duration;

use ledger::{Admission, Outcome, Refusal, StorageError};
use model::admission::LookUp;
use model::outbox::BrokerReceipt;
use model::{Class, ErrorCode, Fingerprint};
use wire::Refused;

use super::Item;
use crate::metrics::Metrics;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    /// Committed.
    Accepted {
        /// What.
        fingerprint: Fingerprint,
        /// Where.
        receipt: BrokerReceipt,
        /// By which copy.
        admission: Admission,
    },
    /// Refused.
    Refused(Refused),
    /// A message before it ended the lane.
    NotTried,
}

impl Word {
    /// What the dedupe row alone says.
    pub(super) fn of_look_up(item: &Item, found: LookUp) -> Option<Word> {
        match found {
            LookUp::Absent => None,
            LookUp::Duplicate { receipt, history_available } => Some(Word::Accepted {
                fingerprint: item.fingerprint,
                receipt,
                admission: Admission::Duplicate { history_available },
            }),
            LookUp::Mismatch { held } => Some(Word::Refused(reused(item, Some(held)))),
            LookUp::Retired => Some(Word::Refused(Refused::plain(ErrorCode::IdRetired))),
        }
    }

    /// What the ledger's transaction says.
    pub(super) fn of_outcome(item: &Item, outcome: Outcome) -> Word {
        match outcome {
            Outcome::Admitted { receipt, admission } => {
                Word::Accepted { fingerprint: item.fingerprint, receipt, admission }
            }
            Outcome::Refused(refusal) => Word::Refused(refused(item, refusal)),
            Outcome::NotTried => Word::NotTried,
        }
    }

    pub(super) fn rate_limited(retry_after: Duration) -> Word {
        let wait_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        Word::Refused(Refused::plain(ErrorCode::RateLimited).with("retry_after_ms", wait_ms))
    }

    pub(super) fn storage(error: &StorageError) -> Word {
        tracing::error!(%error, "the ledger could not take a lane");
        Word::Refused(crate::broker::refused_by_store(error))
    }

    /// Whether what follows in the lane must wait.
    pub(crate) fn ends_lane(&self) -> bool {
        match self {
            Word::Accepted { .. } => false,
            Word::Refused(refused) => refused.code.class() != Class::Permanent,
            Word::NotTried => true,
        }
    }

    pub(super) fn count(&self, item: Option<&Item>, metrics: &Metrics) {
        match self {
            Word::Accepted { admission: Admission::New { .. }, .. } => {
                if let Some(item) = item {
                    metrics.messages_routed.of(item.draft.priority).add_one();
                }
            }
            Word::Accepted { admission: Admission::Duplicate { .. }, .. } => {
                metrics.messages_duplicate.add_one()
            }
            Word::Refused(refused) => {
                metrics.messages_rejected.of(refused.code).add_one();
                match refused.code {
                    ErrorCode::IdempotencyKeyReused => metrics.dedupe_fingerprint_mismatch.add_one(),
                    ErrorCode::RateLimited => metrics.rate_limit_rejection.add_one(),
                    _ => {}
                }
            }
            Word::NotTried => {}
        }
    }
}

fn refused(item: &Item, refusal: Refusal) -> Refused {
    if refusal.code == ErrorCode::IdempotencyKeyReused {
        return reused(item, refusal.held);
    }
    match refusal.detail {
        Some(detail) => {
            let message = format!("{} ({detail})", refusal.code.meaning());
            Refused::new(refusal.code, message).with("detail", detail)
        }
        None => Refused::plain(refusal.code),
    }
}

fn reused(item: &Item, held: Option<Fingerprint>) -> Refused {
    let refused = Refused::plain(ErrorCode::IdempotencyKeyReused)
        .with("client_message_id", item.draft.client_message_id.as_str())
        .with("conflict", "request_fingerprint_mismatch");
    match held {
        Some(held) => refused.with("broker_fingerprint_prefix", held.prefix()),
        None => refused,
    }
}
