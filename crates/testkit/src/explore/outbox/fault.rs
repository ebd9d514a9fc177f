//! What goes wrong, and what time does.

use model::admission::days_long;
use model::outbox::DedupeWindow;

use super::Outbox;
use super::row::{Life, Row};
use super::state::{Desk, GuestStage, Limiter, NOBODYS, State, Ways};
use super::time::{At, WINDOW, instant};
use crate::explore::Step;

impl Outbox {
    pub(super) fn fault_steps(&self, s: &State, edges: &mut Ways) {
        if s.rows[0].life == Life::Absent && s.left.wipes == self.bounds.wipes {
            // Nothing that happens before the first send makes a difference to it.
            return;
        }
        self.tick(s, edges);
        self.sweep(s, edges);
        self.crash(s, edges);
        self.broker_crash(s, edges);
        self.vanish(s, edges);
        self.wipe(s, edges);
        self.restore(s, edges);
    }

    fn tick(&self, s: &State, edges: &mut Ways) {
        if s.t + self.bounds.stride <= self.bounds.days {
            let mut n = *s;
            n.t += self.bounds.stride;
            n.limiter = Limiter::default();
            edges.protocol(Step::of("days pass"), n);
        }
    }

    fn sweep(&self, s: &State, edges: &mut Ways) {
        for (key, entry) in s.books.iter().enumerate() {
            if entry.is_some_and(|entry| is_over(entry.kept_from, s.t)) {
                let mut n = *s;
                n.books[key] = None;
                edges.fault(Step::to("the broker forgets the id", key), n);
            }
        }
    }

    fn crash(&self, s: &State, edges: &mut Ways) {
        if s.left.crashes == 0 {
            return;
        }
        let mut n = *s;
        n.left.crashes -= 1;
        n.drop_links();
        n.desk = Desk::Idle;
        for row in &mut n.rows {
            row.held = false;
            if let Life::Inflight { .. } = row.life {
                let lease = NOBODYS;
                row.life = if self.rules.habits.recovers { Life::Pending } else { Life::Inflight { lease } };
            }
        }
        edges.fault(Step::of("the daemon CRASHES and starts again"), n);
    }

    fn broker_crash(&self, s: &State, edges: &mut Ways) {
        let busy = s.workers.iter().any(Option::is_some);
        let answering = s.answers.iter().flatten().any(|answers| !answers.is_empty());
        if s.left.broker_crashes > 0 && (busy || answering) {
            let mut n = *s;
            n.left.broker_crashes -= 1;
            n.stop_workers();
            n.drop_links();
            edges.fault(Step::of("the broker CRASHES"), n);
        }
    }

    fn vanish(&self, s: &State, edges: &mut Ways) {
        if s.reachable && s.left.vanishings > 0 {
            let mut n = *s;
            n.left.vanishings -= 1;
            n.reachable = false;
            edges.fault(Step::of("the destination vanishes"), n);
        }
        if !s.reachable {
            let n = State { reachable: true, ..*s };
            edges.fault(Step::of("the destination is back"), n);
        }
    }

    fn wipe(&self, s: &State, edges: &mut Ways) {
        let sent = s.rows[0].life != Life::Absent && s.rows[1].life == Life::Absent;
        if s.left.wipes > 0 && sent {
            let mut n = *s;
            n.left.wipes -= 1;
            n.rows[0] = Row::ABSENT;
            n.drop_links();
            n.desk = Desk::Idle;
            edges.fault(Step::of("the daemon's file is LOST; its caller uses the id for other words"), n);
        }
    }

    /// Nothing that was on a link outlives it, and a backup is of one moment: what it lacks is younger than what
    /// it has.
    fn restore(&self, s: &State, edges: &mut Ways) {
        if s.left.restores == 0 {
            return;
        }
        for lost in [[true, false], [false, true], [true, true]] {
            let at = |id: usize| s.books[id].map(|entry| entry.at);
            let has_all = (0..2).all(|id| !lost[id] || at(id).is_some());
            let of_one_moment = match (at(0), at(1), lost) {
                (Some(zero), Some(one), [true, false]) => zero >= one,
                (Some(zero), Some(one), [false, true]) => one >= zero,
                _ => true,
            };
            if has_all && of_one_moment {
                edges.fault(Step::of("the broker is RESTORED from an older backup"), restored(s, lost));
            }
        }
    }
}

fn restored(s: &State, lost: [bool; 2]) -> State {
    let mut n = *s;
    n.left.restores -= 1;
    for (id, _) in lost.iter().enumerate().filter(|(_, lost)| **lost) {
        n.books[id] = None;
        n.truth.accepted[id] = 0;
    }
    n.workers = [None; 2];
    n.copies = [[None; 2]; 2];
    n.drop_links();
    n
}

/// Whether an id first seen at `at` may be forgotten.
pub(super) fn is_over(at: At, now: u8) -> bool {
    match WINDOW {
        DedupeWindow::Days(days) => instant(now) >= at.instant() + days_long(days),
        DedupeWindow::Permanent => false,
    }
}

impl State {
    /// Processes die with what they were at; a guest that hears nothing gives up.
    fn stop_workers(&mut self) {
        self.workers = [None; 2];
        if self.guest.stage == GuestStage::AtWork {
            self.guest.stage = GuestStage::Refused;
        }
    }
}
