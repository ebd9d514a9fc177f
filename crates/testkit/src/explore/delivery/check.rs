//! What must hold in every state, and what counts as an end.

use model::DeliveryRung;

use super::Delivery;
use super::state::State;

/// Delivered means: in the inbox.
pub const DELIVERED_ABSENT: &str = "delivered, but not in the inbox";
/// The broker never knows more than the recipient's node.
pub const AHEAD: &str = "the broker claims a rung the recipient has not reached";
/// The sender never knows more than the broker.
pub const SENDER_AHEAD: &str = "the sender claims a rung the broker does not know";
/// A message wakes its recipient once, unless it is marked.
pub const WOKEN_TWICE: &str = "woken twice for one message, without a mark";
/// Rungs only rise.
pub const FELL: &str = "a rung fell";

/// All of them.
pub const INVARIANTS: &[&str] = &[DELIVERED_ABSENT, AHEAD, SENDER_AHEAD, WOKEN_TWICE, FELL];

impl Delivery {
    pub(super) fn check(&self, s: &State, names: &mut Vec<&'static str>) {
        let delivered = s.rung >= DeliveryRung::Delivered;
        let mut must_not = |broken: bool, name| names.extend(broken.then_some(name));
        must_not(delivered && s.inbox.is_none() && !s.new_inbox, DELIVERED_ABSENT);
        must_not(delivered && s.inbox.is_some_and(|row| row.rung < s.rung), AHEAD);
        must_not(s.sender > s.rung, SENDER_AHEAD);
        must_not(s.wakes > 1, WOKEN_TWICE);
        must_not(s.fell, FELL);
    }
}

impl State {
    /// Whether all three know the same, and that is the truth.
    pub(super) fn has_ended(&self) -> bool {
        let settled = match self.inbox {
            Some(row) => self.rung == row.rung && row.confirmed == row.rung,
            None => self.rung != DeliveryRung::Accepted,
        };
        settled && self.sender == self.rung && self.told == self.rung
    }
}
