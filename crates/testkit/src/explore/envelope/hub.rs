//! What the hub does with a copy, and with a question about a key.

use model::Fingerprint;
use model::hub::{Held, KeyAnswer, KeyVerdict, KnownKey, Precondition, Standing, key_expires_at};
use model::relay::{Fenced, Status};

use super::state::{Condition, Copy, FIRST, Key, Passing, Reply, SECOND, SUCCESSOR, Says, State, Writer};
use super::{Envelope, Writes};
use crate::explore::{Edges, Step};

type Ways = Edges<State>;

impl Envelope {
    pub(super) fn hub_steps(&self, s: &State, row: usize, edges: &mut Ways) {
        if let Some(copy) = s.live[row] {
            let mut n = *s;
            n.live[row] = None;
            self.arrive(n, row, copy, "the hub gets the live copy", edges);
        }
        if let Some(copy) = s.replay[row] {
            let mut n = *s;
            n.replay[row] = None;
            self.arrive(n, row, copy, "the hub gets a replay", edges);
        }
        let forgotten = match s.hub.keys[row] {
            Key::Stored { at, .. } | Key::Retired { at } => s.now() >= key_expires_at(State::instant(at)),
            Key::Free => false,
        };
        if forgotten {
            let mut n = *s;
            n.hub.keys[row] = Key::Free;
            edges.fault(Step::to("the hub forgets the key", row), n);
        }
    }

    fn arrive(&self, mut n: State, row: usize, copy: Copy, words: &'static str, edges: &mut Ways) {
        let lease = copy.lease;
        let mut says = |mut n: State, says| {
            n.replies[row] = Some(Reply { says, lease });
            edges.protocol(Step::to(words, row), n);
        };
        let known = known(n.hub.keys[row]);
        let born = n.rows[row].map(|row| State::instant(row.born));
        match (self.rules.look_up)(known.as_ref(), &REQUEST) {
            KeyVerdict::Replay => {
                let Key::Stored { version, .. } = n.hub.keys[row] else { return };
                return says(n, Says::Committed { version });
            }
            KeyVerdict::Reused | KeyVerdict::Retired => return says(n, Says::Refused),
            KeyVerdict::Fresh if (self.rules.is_too_old)(born, n.now()) || n.hub.refuses => {
                return says(n, Says::Refused);
            }
            KeyVerdict::Fresh => {}
        }
        if !fits(copy.condition, &n) {
            return says(n, Says::Conflict);
        }
        self.apply(&mut n, row);
        if !self.rules.key_with_effect {
            edges.fault(Step::to("the hub applies it and CRASHES before the key is recorded", row), n);
        }
        n.hub.keys[row] = Key::Stored { at: n.tick, version: n.hub.version };
        let version = n.hub.version;
        n.replies[row] = Some(Reply { says: Says::Committed { version }, lease });
        edges.protocol(Step::to(words, row), n);
    }

    fn apply(&self, n: &mut State, row: usize) {
        let envelope = n.rows[row];
        n.hub.applied[row] = (n.hub.applied[row] + 1).min(2);
        n.wrong.overtaken |= row == FIRST && n.hub.applied[SECOND] > 0;
        let third_known = envelope.is_some_and(|envelope| envelope.third_known >= n.hub.third);
        n.wrong.overwritten |=
            self.bounds.writes == Writes::Replace && n.hub.last == Writer::Third && !third_known;
        let cancelled = envelope.is_some_and(|envelope| envelope.status == Status::Cancelled);
        n.wrong.resurrected |= row == FIRST && n.withdrawn && !cancelled;
        n.hub.version += 1;
        n.hub.made[row] = n.hub.version;
        n.hub.last = Writer::Row(u8::try_from(row).unwrap_or(u8::MAX));
        if let Passing::UnderWay { condition, over_waiting, sent, .. } = n.passing {
            n.passing = Passing::UnderWay { condition, over_waiting, later_applied: row != SUCCESSOR, sent };
        }
    }

    /// The hub's word on a key, asked with a fence.
    pub(super) fn fenced(&self, n: &mut State, row: usize) -> Fenced {
        let known = known(n.hub.keys[row]);
        let born = n.rows[row].map(|row| State::instant(row.born));
        match (self.rules.key_status)(known.as_ref(), born, n.now()) {
            KeyAnswer::Committed => Fenced::Committed,
            KeyAnswer::Retired => Fenced::Retired,
            KeyAnswer::Unknown => Fenced::Unknown,
            KeyAnswer::Absent => {
                if self.rules.fence {
                    n.hub.keys[row] = Key::Retired { at: n.tick };
                }
                Fenced::Retired
            }
        }
    }

    /// The write that could not be parked arrives.
    pub(super) fn passing_arrives(&self, s: &State, edges: &mut Ways) {
        let Passing::UnderWay { condition, over_waiting, later_applied, .. } = s.passing else { return };
        let mut n = State { passing: Passing::Over, ..*s };
        if !fits(condition, s) {
            return edges.protocol(Step::of("the hub refuses the passing write: something changed"), n);
        }
        let waits = |row: usize| {
            let unfinished = s.rows[row].is_some_and(|row| row.status.is_unfinished());
            unfinished && s.hub.applied[row] == 0
        };
        n.wrong.passed_by |= over_waiting && (waits(FIRST) || waits(SECOND));
        n.wrong.passing_overwrote |= later_applied;
        n.hub.version += 1;
        n.hub.last = Writer::Passing;
        edges.protocol(Step::of("the hub applies the passing write"), n);
    }
}

/// Each write has its own key, and all copies under it are the same request.
const REQUEST: Fingerprint = Fingerprint::from_bytes([7; 32]);

fn known(key: Key) -> Option<KnownKey> {
    match key {
        Key::Free => None,
        Key::Stored { .. } => Some(KnownKey::Stored { fingerprint: REQUEST }),
        Key::Retired { .. } => Some(KnownKey::Retired),
    }
}

fn fits(condition: Condition, s: &State) -> bool {
    let Some(version) = condition else { return true };
    let held = Held { version: u64::from(s.hub.version), updated_at: s.now(), body: Vec::new() };
    Precondition::Versions(vec![u64::from(version)]).check(&Standing::Present(held)).is_ok()
}
