//! One recipient's copy of a message, from all who know of it.

use model::receipt::Standing;
use model::turn::TurnState;
use model::{DeliveryRung, Timestamp};
use wire::ask::ExplainedRecipient;
use wire::local::ExplainedCopy;

use super::find::Received;

/// One recipient's copy, from all who know of it.
pub(super) struct Copy {
    pub(super) name: String,
    pub(super) home: Option<String>,
    pub(super) rung: DeliveryRung,
    pub(super) code: Option<String>,
    pub(super) at: [Option<Timestamp>; 4],
}

impl Copy {
    pub(super) fn told(recipient: &ExplainedRecipient) -> Self {
        Self {
            name: recipient.name.to_string(),
            home: recipient.home.clone(),
            rung: recipient.rung,
            code: recipient.ended_code.clone(),
            at: [recipient.delivered_at, recipient.notified_at, recipient.engaged_at, recipient.processed_at],
        }
    }

    pub(super) fn here(received: &Received, node: &str) -> Self {
        let mut copy = Self {
            name: received.recipient.clone(),
            home: Some(node.to_owned()),
            rung: DeliveryRung::Accepted,
            code: None,
            at: [None; 4],
        };
        copy.learn(received);
        copy
    }

    /// What the recipient's own node knows, when that is more.
    pub(super) fn learn(&mut self, received: &Received) {
        let ended = received.turns.iter().find_map(|turn| match turn.state {
            TurnState::Ended { at, .. } => Some(at),
            TurnState::Open { .. } | TurnState::Interrupted { .. } => None,
        });
        let began = received.turns.first().map(|turn| turn.began_at);
        self.climb(
            received.row.rung,
            [Some(received.row.received_at), received.row.notified_at, began, ended],
        );
    }

    pub(super) fn climb(&mut self, rung: DeliveryRung, at: [Option<Timestamp>; 4]) {
        self.rung = self.rung.max(rung);
        for (held, told) in self.at.iter_mut().zip(at) {
            *held = held.or(told);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.rung.standing(), Standing::Ended(_))
    }

    pub(super) fn shown(&self) -> ExplainedCopy {
        ExplainedCopy {
            name: self.name.clone(),
            home: self.home.clone(),
            rung: self.rung.standing().to_string(),
            code: self.code.clone(),
        }
    }
}
