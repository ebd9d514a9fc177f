//! Everything there is to know of such a world at one moment.

use std::fmt;

use model::DeliveryRung;

use super::Bounds;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// What the broker's delivery row says.
    pub(super) rung: DeliveryRung,
    /// How far the sender's node has confirmed it.
    pub(super) told: DeliveryRung,
    /// What the sender's outbox row says.
    pub(super) sender: DeliveryRung,
    /// Whether it stands unacked in the link's window.
    pub(super) pushed: bool,
    /// The push on its way, and whether it is marked.
    pub(super) mail: Option<Mail>,
    pub(super) inbox: Option<Inbox>,
    /// On their way from the recipient's node, and back.
    pub(super) acks: Rungs,
    pub(super) acked: Rungs,
    /// On their way to the sender's node, and back.
    pub(super) receipts: Rungs,
    pub(super) receipt_acks: Rungs,
    /// Whether the message's deadline has passed.
    pub(super) late: bool,
    /// Whether the inbox is a new one.
    pub(super) new_inbox: bool,
    pub(super) left: Left,
    /// Times the recipient was woken without a mark.
    pub(super) wakes: u8,
    /// Whether some rung fell.
    pub(super) fell: bool,
}

/// A push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mail {
    pub(super) redelivered: bool,
}

/// A row of the inbox; pruned, only its id and rung stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inbox {
    pub(super) rung: DeliveryRung,
    pub(super) confirmed: DeliveryRung,
    pub(super) redelivered: bool,
    pub(super) pruned: bool,
}

/// A set of rungs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Rungs(u8);

/// Faults not yet used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) breaks: u8,
    pub(super) resets: u8,
}

impl State {
    pub(super) fn start(bounds: &Bounds) -> State {
        State {
            rung: DeliveryRung::Accepted,
            told: DeliveryRung::Accepted,
            sender: DeliveryRung::Accepted,
            pushed: false,
            mail: None,
            inbox: None,
            acks: Rungs::default(),
            acked: Rungs::default(),
            receipts: Rungs::default(),
            receipt_acks: Rungs::default(),
            late: false,
            new_inbox: false,
            left: Left { breaks: bounds.breaks, resets: bounds.resets },
            wakes: 0,
            fell: false,
        }
    }

    /// The recipient's link is gone, with all that was on it.
    pub(super) fn drop_recipient_link(&mut self) {
        self.mail = None;
        self.pushed = false;
        self.acks = Rungs::default();
        self.acked = Rungs::default();
    }
}

impl Rungs {
    pub(super) fn put(&mut self, rung: DeliveryRung) {
        self.0 |= 1 << rung.code();
    }

    pub(super) fn has(self, rung: DeliveryRung) -> bool {
        self.0 & (1 << rung.code()) != 0
    }

    pub(super) fn without(self, rung: DeliveryRung) -> Rungs {
        Rungs(self.0 & !(1 << rung.code()))
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = DeliveryRung> {
        DeliveryRung::ALL.iter().copied().filter(move |rung| self.has(*rung))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broker: {}; sender: {}; inbox: ", self.rung, self.sender)?;
        match self.inbox {
            None => f.write_str("nothing")?,
            Some(row) => write!(f, "{}, confirmed {}", row.rung, row.confirmed)?,
        }
        write!(f, "; woken {} times", self.wakes)
    }
}
