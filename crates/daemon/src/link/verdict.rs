//! What the end of a link, or of an attempt to open one, means: try again, or stop until something changes.
//!
//! - A refusal that will be repeated parks the mesh; hammering a broker that said no helps nobody.
//! - A link taken over by a newer connection of the same node stays parked: probing would evict the winner.

use std::time::Duration;

use model::{Class, ErrorCode, limits};
use sqlite::StorageError;
use wire::link::{CLOSE_ALREADY_CONNECTED, CLOSE_REPLACED, CLOSE_REVOKED};

use super::terms::TermsRefused;

/// A broker's mind may change while nobody looks, but not often.
const PROBE_EVERY: Duration = Duration::from_secs(15 * 60);
/// An operator of the broker closed the link.
const CLOSE_KICKED: u16 = 4001;
/// Feature codes, ours and those to come.
const CLOSE_FEATURES: std::ops::RangeInclusive<u16> = 4010..=4019;

/// How a link, or the way to one, ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LinkEnd {
    /// Nobody answered, or the connection broke.
    Lost(String),
    /// The way in was refused; the broker may have said when to come back.
    Refused { code: ErrorCode, message: String, retry_after: Option<Duration> },
    /// The broker closed.
    Closed { code: u16, reason: String },
    /// An answer to `send` did not come in time; what was sent may have been accepted.
    AnswerLate,
    /// Another key signed than the one trusted at the join.
    IssuerChanged,
    /// The broker offers too little.
    Terms(TermsRefused),
    /// The store could not take something, so nothing that arrives could be kept for now.
    Storage(String),
    /// The store takes nothing any more until the process starts anew.
    StorageStopped(String),
    /// This process stops.
    Stopped,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Again, after a pause.
    Retry,
    /// Not until an operator acts, or the probe is due.
    Park { reason: &'static str, probe: Option<Duration> },
    /// Nothing.
    Stop,
}

impl LinkEnd {
    /// The rule.
    pub(crate) fn next(&self) -> Next {
        let park = |reason| Next::Park { reason, probe: Some(PROBE_EVERY) };
        match self {
            LinkEnd::Lost(_) | LinkEnd::AnswerLate | LinkEnd::Storage(_) => Next::Retry,
            LinkEnd::StorageStopped(_) => {
                Next::Park { reason: ErrorCode::StorageStopped.code(), probe: None }
            }
            LinkEnd::Stopped => Next::Stop,
            LinkEnd::IssuerChanged => Next::Park { reason: "issuer_changed", probe: None },
            LinkEnd::Terms(TermsRefused::Unavailable { .. }) => park("feature_unavailable"),
            LinkEnd::Terms(TermsRefused::ParamInvalid { .. }) => park("feature_param_invalid"),
            LinkEnd::Terms(TermsRefused::BelowFloor { .. }) => park("feature_param_below_floor"),
            LinkEnd::Refused { code, .. } => match code.class() {
                Class::Transient => Next::Retry,
                // A nonce or a challenge was used up on the way; the next attempt brings new ones.
                Class::Permanent | Class::Conditional if *code == ErrorCode::ReplayDetected => Next::Retry,
                Class::Permanent | Class::Conditional => park(code.code()),
            },
            LinkEnd::Closed { code, .. } => match *code {
                CLOSE_REPLACED => Next::Park { reason: "replaced_by_newer_connection", probe: None },
                CLOSE_ALREADY_CONNECTED => park("member_already_connected"),
                CLOSE_REVOKED => park("revoked"),
                CLOSE_KICKED => park("kicked"),
                code if CLOSE_FEATURES.contains(&code) => park("feature_unavailable"),
                _ => Next::Retry,
            },
        }
    }
}

impl LinkEnd {
    /// How long the broker wants to be left alone; bounded, or a mistake of it would cut this node off.
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            LinkEnd::Refused { retry_after, .. } => {
                retry_after.unwrap_or_default().min(limits::RETRY_AFTER_MAX)
            }
            LinkEnd::Lost(_)
            | LinkEnd::Closed { .. }
            | LinkEnd::AnswerLate
            | LinkEnd::IssuerChanged
            | LinkEnd::Terms(_)
            | LinkEnd::Storage(_)
            | LinkEnd::StorageStopped(_)
            | LinkEnd::Stopped => Duration::ZERO,
        }
    }

    /// One word for counters.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            LinkEnd::Lost(_) => "lost",
            LinkEnd::Refused { .. } => "refused",
            LinkEnd::Closed { .. } => "closed",
            LinkEnd::AnswerLate => "answer_late",
            LinkEnd::IssuerChanged => "issuer_changed",
            LinkEnd::Terms(_) => "terms",
            LinkEnd::Storage(_) => "storage",
            LinkEnd::StorageStopped(_) => "storage_stopped",
            LinkEnd::Stopped => "stopped",
        }
    }
}

impl From<StorageError> for LinkEnd {
    fn from(error: StorageError) -> Self {
        let why = error.to_string();
        match error {
            StorageError::Corrupt { .. }
            | StorageError::OutcomeUnknown { .. }
            | StorageError::Stopped { .. }
            | StorageError::Closed { .. } => LinkEnd::StorageStopped(why),
            StorageError::QueueFull { .. }
            | StorageError::Full { .. }
            | StorageError::LogFull { .. }
            | StorageError::Io { .. }
            | StorageError::Busy { .. }
            | StorageError::ReadTooLong { .. }
            | StorageError::Panicked { .. }
            | StorageError::RolledBack { .. }
            | StorageError::Sql { .. } => LinkEnd::Storage(why),
        }
    }
}

impl std::fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LinkEnd::Lost(why) => f.write_str(why),
            LinkEnd::Refused { code, message, .. } => write!(f, "{code}: {message}"),
            LinkEnd::Closed { code, reason } if reason.is_empty() => write!(f, "closed with {code}"),
            LinkEnd::Closed { code, reason } => write!(f, "closed with {code}: {reason}"),
            LinkEnd::AnswerLate => f.write_str("the answer to a send did not come in time"),
            LinkEnd::IssuerChanged => {
                f.write_str("another key signed than the one trusted at the join; nothing was sent to it")
            }
            LinkEnd::Terms(refused) => refused.fmt(f),
            LinkEnd::Storage(why) | LinkEnd::StorageStopped(why) => f.write_str(why),
            LinkEnd::Stopped => f.write_str("stopping"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: ErrorCode) -> LinkEnd {
        LinkEnd::Refused { code, message: String::new(), retry_after: None }
    }

    fn closed(code: u16) -> LinkEnd {
        LinkEnd::Closed { code, reason: String::new() }
    }

    #[test]
    fn what_will_be_refused_again_parks_and_the_rest_is_tried_again() {
        let probed = |reason| Next::Park { reason, probe: Some(PROBE_EVERY) };
        for (end, next) in [
            (LinkEnd::Lost("refused".into()), Next::Retry),
            (LinkEnd::AnswerLate, Next::Retry),
            (LinkEnd::Storage("full".into()), Next::Retry),
            (
                LinkEnd::StorageStopped("damaged".into()),
                Next::Park { reason: "storage_stopped", probe: None },
            ),
            (LinkEnd::Stopped, Next::Stop),
            (LinkEnd::IssuerChanged, Next::Park { reason: "issuer_changed", probe: None }),
            (refused(ErrorCode::UnknownNode), probed("unknown_node")),
            (refused(ErrorCode::NodeProofInvalid), probed("node_proof_invalid")),
            (refused(ErrorCode::Unauthorized), probed("unauthorized")),
            (refused(ErrorCode::Forbidden), probed("forbidden")),
            (refused(ErrorCode::Revoked), probed("revoked")),
            (refused(ErrorCode::TicketAlreadyUsed), Next::Retry),
            (refused(ErrorCode::ExpiredTicket), Next::Retry),
            (refused(ErrorCode::ReplayDetected), Next::Retry),
            (refused(ErrorCode::RateLimited), Next::Retry),
            (refused(ErrorCode::Internal), Next::Retry),
            (closed(1000), Next::Retry),
            (closed(1007), Next::Retry),
            (closed(4408), Next::Retry),
            (closed(4001), probed("kicked")),
            (closed(4002), probed("revoked")),
            (closed(4003), Next::Park { reason: "replaced_by_newer_connection", probe: None }),
            (closed(4004), probed("member_already_connected")),
            (closed(4010), probed("feature_unavailable")),
            (closed(4012), probed("feature_unavailable")),
        ] {
            assert_eq!(end.next(), next, "{end:?}");
        }
    }
}
