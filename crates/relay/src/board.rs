//! Who stands before whom: the unfinished writes of each order key, counted in memory.
//!
//! The file is the truth and this process its only writer, so the board is read once at the start and kept in step
//! afterwards. A write takes its place here before it is stored, so that two at once cannot both be first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::route_class::{OrderKey, RouteClass};
use tokio::sync::Notify;

/// The counts.
#[derive(Default)]
pub(crate) struct Board {
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    keys: HashMap<OrderKey, u64>,
    scopes: HashMap<String, Scope>,
    conflicts: HashMap<OrderKey, u64>,
    rows: u64,
    bytes: u64,
}

#[derive(Default, Clone, Copy)]
struct Scope {
    total: u64,
    barriers: u64,
}

/// What a write that wants to go live finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nobody is before it; it holds its key now.
    First,
    /// So many are.
    Behind(u64),
    /// A conflict is, and a person decides about it.
    Blocked(u64),
    /// The outbox is full.
    NoRoom,
}

/// The most that may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) rows_max: u64,
    pub(crate) bytes_max: u64,
}

impl Board {
    /// Takes the first place of `key`, if it is free.
    pub(crate) fn try_first(&self, key: &OrderKey, class: RouteClass, bytes: u64, room: Room) -> Place {
        let mut state = self.state();
        if !state.has_room(bytes, room) {
            return Place::NoRoom;
        }
        let conflicts = state.conflicts_over(key);
        if class == RouteClass::Replace && conflicts > 0 {
            return Place::Blocked(state.before(key) + conflicts);
        }
        match state.before(key) {
            0 => {
                state.enter(key, bytes);
                Place::First
            }
            before => Place::Behind(before),
        }
    }

    /// Takes the last place of `key`; says how many are before it.
    pub(crate) fn enter_last(&self, key: &OrderKey, bytes: u64, room: Room) -> Place {
        let mut state = self.state();
        if !state.has_room(bytes, room) {
            return Place::NoRoom;
        }
        let before = state.before(key);
        state.enter(key, bytes);
        Place::Behind(before)
    }

    /// Puts what the file held at the start on the board.
    pub(crate) fn load(&self, key: &OrderKey, rows: u64, bytes: u64) {
        let mut state = self.state();
        state.enter(key, bytes);
        for _ in 1..rows {
            state.enter(key, 0);
        }
    }

    /// A write of `key` is finished.
    pub(crate) fn leave(&self, key: &OrderKey, bytes: u64) {
        self.state().leave(key, bytes);
        self.left.notify_waiters();
    }

    /// A write of `key` ended in a conflict, or a person decided about one.
    pub(crate) fn conflict(&self, key: &OrderKey, change: Change) {
        let mut state = self.state();
        let count = state.conflicts.entry(key.clone()).or_default();
        *count = match change {
            Change::Begun => *count + 1,
            Change::Resolved => count.saturating_sub(1),
        };
        if *count == 0 {
            state.conflicts.remove(key);
        }
    }

    /// Unfinished writes that overlap with `key`.
    pub(crate) fn pending(&self, key: &OrderKey) -> u64 {
        self.state().before(key)
    }

    /// Rows on the board.
    pub(crate) fn rows(&self) -> u64 {
        self.state().rows
    }

    /// Ends when some write finished after this was called.
    pub(crate) fn someone_left(&self) -> impl Future<Output = ()> + '_ {
        self.left.notified()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole after every line; a panic between two of them cannot happen.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened to a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Begun,
    Resolved,
}

impl State {
    fn before(&self, key: &OrderKey) -> u64 {
        let scope = self.scopes.get(key.scope()).copied().unwrap_or_default();
        if key.is_barrier() { scope.total } else { self.keys.get(key).copied().unwrap_or(0) + scope.barriers }
    }

    fn conflicts_over(&self, key: &OrderKey) -> u64 {
        if self.conflicts.is_empty() {
            return 0;
        }
        self.conflicts.iter().filter(|(other, _)| other.overlaps(key)).map(|(_, count)| count).sum()
    }

    fn has_room(&self, bytes: u64, room: Room) -> bool {
        self.rows < room.rows_max && self.bytes + bytes <= room.bytes_max
    }

    fn enter(&mut self, key: &OrderKey, bytes: u64) {
        *self.keys.entry(key.clone()).or_default() += 1;
        let scope = self.scopes.entry(key.scope().to_owned()).or_default();
        scope.total += 1;
        scope.barriers += u64::from(key.is_barrier());
        self.rows += 1;
        self.bytes += bytes;
    }

    fn leave(&mut self, key: &OrderKey, bytes: u64) {
        if let Some(count) = self.keys.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.keys.remove(key);
            }
        }
        if let Some(scope) = self.scopes.get_mut(key.scope()) {
            scope.total -= 1;
            scope.barriers -= u64::from(key.is_barrier());
            if scope.total == 0 {
                self.scopes.remove(key.scope());
            }
        }
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { rows_max: 4, bytes_max: 100 };

    fn key(text: &str) -> OrderKey {
        OrderKey::parse(text).unwrap()
    }

    #[test]
    fn one_write_of_a_key_is_first_and_the_next_is_behind_it_until_it_left() {
        let board = Board::default();
        let first = |text| board.try_first(&key(text), RouteClass::Append, 1, ROOM);
        assert_eq!(first("task:1"), Place::First);
        assert_eq!(first("task:1"), Place::Behind(1));
        assert_eq!(first("task:2"), Place::First);
        assert_eq!(first("task:*"), Place::Behind(2));
        assert_eq!(board.enter_last(&key("task:*"), 1, ROOM), Place::Behind(2));
        assert_eq!(first("task:3"), Place::Behind(1), "behind the barrier");
        board.leave(&key("task:1"), 1);
        board.leave(&key("task:2"), 1);
        board.leave(&key("task:*"), 1);
        assert_eq!((first("task:1"), board.rows()), (Place::First, 1));
    }

    #[test]
    fn a_conflict_blocks_replaces_of_what_it_overlaps_and_appends_go_on() {
        let board = Board::default();
        board.conflict(&key("task:1"), Change::Begun);
        assert_eq!(board.try_first(&key("task:1"), RouteClass::Replace, 1, ROOM), Place::Blocked(1));
        assert_eq!(board.try_first(&key("task:*"), RouteClass::Replace, 1, ROOM), Place::Blocked(1));
        assert_eq!(board.try_first(&key("task:2"), RouteClass::Replace, 1, ROOM), Place::First);
        assert_eq!(board.try_first(&key("task:1"), RouteClass::Append, 1, ROOM), Place::First);
        board.leave(&key("task:1"), 1);
        board.conflict(&key("task:1"), Change::Resolved);
        assert_eq!(board.try_first(&key("task:1"), RouteClass::Replace, 1, ROOM), Place::First);
    }

    #[test]
    fn rows_and_bytes_have_a_bound() {
        let board = Board::default();
        assert_eq!(board.enter_last(&key("a:1"), 101, ROOM), Place::NoRoom);
        for _ in 0..4 {
            board.enter_last(&key("a:1"), 25, ROOM);
        }
        assert_eq!(board.try_first(&key("b:1"), RouteClass::Append, 0, ROOM), Place::NoRoom);
        board.leave(&key("a:1"), 25);
        assert_eq!(board.try_first(&key("b:1"), RouteClass::Append, 26, ROOM), Place::NoRoom);
        assert_eq!(board.try_first(&key("b:1"), RouteClass::Append, 25, ROOM), Place::First);
    }
}
