//! What the broker, the two nodes and misfortune do.

use model::DeliveryRung;

use super::Delivery;
use super::state::{Inbox, Mail, Rungs, State};
use crate::explore::{Edges, Step};

type Ways = Edges<State>;

impl Delivery {
    pub(super) fn broker_steps(&self, s: &State, edges: &mut Ways) {
        if s.rung == DeliveryRung::Accepted && !s.pushed {
            let redelivered = s.new_inbox && self.rules.marks_redelivered;
            let n = State { pushed: true, mail: Some(Mail { redelivered }), ..*s };
            edges.protocol(Step::of("the broker pushes it"), n);
        }
        if s.rung == DeliveryRung::Accepted && s.late {
            let mut n = *s;
            self.climb(&mut n, DeliveryRung::Expired);
            edges.protocol(Step::of("the broker gives it up as expired"), n);
        }
        for told in s.acks.iter() {
            let mut n = *s;
            n.acks = s.acks.without(told);
            n.pushed = false;
            self.climb(&mut n, told);
            n.acked.put(told);
            edges.protocol(Step::of(ack_words(told)), n);
        }
        if s.rung > s.told && s.receipts.is_empty() && s.receipt_acks.is_empty() {
            let mut n = *s;
            n.receipts.put(s.rung);
            edges.protocol(Step::of("the broker tells the sender's node"), n);
        }
        for told in s.receipt_acks.iter() {
            let mut n = *s;
            n.receipt_acks = s.receipt_acks.without(told);
            n.told = self.heard(&mut n, s.told, told);
            edges.protocol(Step::of("the broker hears that the sender's node knows"), n);
        }
    }

    fn climb(&self, n: &mut State, told: DeliveryRung) {
        let held = n.rung;
        n.rung = self.heard(n, held, told);
    }

    /// The rung held after hearing `told`.
    fn heard(&self, n: &mut State, held: DeliveryRung, told: DeliveryRung) -> DeliveryRung {
        let rung = (self.rules.rise)(held, told).unwrap_or(held);
        n.fell |= rung < held;
        rung
    }

    pub(super) fn recipient_steps(&self, s: &State, edges: &mut Ways) {
        self.arrive(s, edges);
        let Some(row) = s.inbox else { return };
        for told in s.acked.iter() {
            let mut n = *s;
            n.acked = s.acked.without(told);
            let confirmed = self.heard(&mut n, row.confirmed, told);
            n.inbox = Some(Inbox { confirmed, ..row });
            edges.protocol(Step::of("the recipient's node hears that the broker knows"), n);
        }
        let silent = s.acks.is_empty() && s.acked.is_empty();
        if row.rung > row.confirmed && silent && self.rules.repeats_acks {
            let mut n = *s;
            n.acks.put(row.rung);
            edges.protocol(Step::of("connected: the ack is repeated"), n);
        }
        if !row.pruned {
            self.hand_on(s, row, edges);
            let pruned = Inbox { pruned: true, ..row };
            let n = State { inbox: self.rules.keeps_tombstones.then_some(pruned), ..*s };
            edges.fault(Step::of("the inbox is pruned"), n);
        }
    }

    /// The recipient reads it, begins a turn, ends it.
    fn hand_on(&self, s: &State, row: Inbox, edges: &mut Ways) {
        let next = match row.rung {
            DeliveryRung::Delivered => DeliveryRung::Notified,
            DeliveryRung::Notified => DeliveryRung::Engaged,
            DeliveryRung::Engaged => DeliveryRung::Processed,
            DeliveryRung::Accepted
            | DeliveryRung::Expired
            | DeliveryRung::DeadLetter
            | DeliveryRung::Processed => return,
        };
        let mut n = *s;
        let rung = self.heard(&mut n, row.rung, next);
        n.inbox = Some(Inbox { rung, ..row });
        n.acks.put(rung);
        if next == DeliveryRung::Notified && !row.redelivered {
            n.wakes = (s.wakes + 1).min(2);
        }
        edges.protocol(Step::of("the recipient goes on with it"), n);
    }

    fn arrive(&self, s: &State, edges: &mut Ways) {
        let Some(mail) = s.mail else { return };
        let mut n = *s;
        n.mail = None;
        if let Some(row) = s.inbox {
            if self.rules.acks_duplicates {
                n.acks.put(row.rung);
            }
            edges.protocol(Step::of("it is there already: acked again"), n);
            return;
        }
        if s.late {
            let mut n = n;
            n.acks.put(DeliveryRung::Expired);
            edges.protocol(Step::of("it comes too late: acked as expired"), n);
        }
        if self.bounds.poison {
            let mut n = n;
            n.acks.put(DeliveryRung::DeadLetter);
            edges.fault(Step::of("it cannot be stored: refused by name"), n);
        }
        // Also when it is late: the node's idea of broker time may be a little behind.
        self.record(n, mail, edges);
    }

    fn record(&self, mut n: State, mail: Mail, edges: &mut Ways) {
        let rung = DeliveryRung::Delivered;
        let row =
            Inbox { rung, confirmed: DeliveryRung::Accepted, redelivered: mail.redelivered, pruned: false };
        if n.left.breaks > 0 {
            let mut n = n;
            n.left.breaks -= 1;
            n.drop_recipient_link();
            if self.rules.ack_after_commit {
                n.inbox = Some(row);
                edges.fault(Step::of("recorded; the node CRASHES before the ack"), n);
            } else {
                n.acks.put(rung);
                edges.fault(Step::of("acked; the node CRASHES before it is recorded"), n);
            }
        }
        n.inbox = Some(row);
        n.acks.put(rung);
        edges.protocol(Step::of("recorded and acked"), n);
    }

    pub(super) fn sender_steps(&self, s: &State, edges: &mut Ways) {
        for told in s.receipts.iter() {
            let mut n = *s;
            n.receipts = s.receipts.without(told);
            n.receipt_acks.put(told);
            if !self.rules.receipt_after_commit && s.left.breaks > 0 {
                let mut n = n;
                n.left.breaks -= 1;
                edges.fault(
                    Step::of("the sender's node acks the receipt and CRASHES before it is recorded"),
                    n,
                );
            }
            n.sender = self.heard(&mut n, s.sender, told);
            edges.protocol(Step::of("the sender's node records the receipt and acks it"), n);
        }
    }

    pub(super) fn fault_steps(&self, s: &State, edges: &mut Ways) {
        if self.bounds.deadline && !s.late {
            edges.protocol(Step::of("the message's deadline passes"), State { late: true, ..*s });
        }
        if s.left.breaks > 0 {
            let mut n = *s;
            n.left.breaks -= 1;
            let mut other = n;
            n.drop_recipient_link();
            edges.fault(Step::of("the recipient's link BREAKS"), n);
            other.receipts = Rungs::default();
            other.receipt_acks = Rungs::default();
            edges.fault(Step::of("the sender's link BREAKS"), other);
        }
        if s.left.resets > 0 && s.inbox.is_some() {
            let mut n = *s;
            n.left.resets -= 1;
            n.inbox = None;
            n.new_inbox = true;
            n.drop_recipient_link();
            edges.fault(Step::of("the inbox is corrupt: SET ASIDE for a new one"), n);
        }
    }
}

fn ack_words(told: DeliveryRung) -> &'static str {
    match told {
        DeliveryRung::Expired => "the broker hears: expired",
        DeliveryRung::DeadLetter => "the broker hears: cannot be stored",
        DeliveryRung::Accepted
        | DeliveryRung::Delivered
        | DeliveryRung::Notified
        | DeliveryRung::Engaged
        | DeliveryRung::Processed => "the broker hears an ack",
    }
}
