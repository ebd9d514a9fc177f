//! Whether Redis is asked, and over which connection.
//!
//! - While it is away at most one ask per interval tries it; all others are decided at once by this process.
//! - A try that is abandoned midway leaves nothing to undo: the next one is due an interval later.
//! - A refusal of an old connection never closes a newer one.

use std::time::Duration;

use model::limits::LIMITER_RETRY_EVERY;

/// The way to Redis. `C` is a connection that many asks share.
pub(super) struct Line<C> {
    state: State<C>,
    generation: Generation,
}

/// Which connection an ask went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(u64);

/// What one ask shall do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<C> {
    /// Use this connection, and tell [`Line::lost`] if it gives no answer.
    Ask(C, Generation),
    /// Connect; tell [`Line::established`] if it works.
    Probe,
    /// Do without Redis.
    Local,
}

/// Whether a report changed anything, so that each change is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Changed,
    Unchanged,
}

enum State<C> {
    Up(C),
    Away { retry_at: Duration },
}

impl<C: Clone> Line<C> {
    /// Not connected; the first ask tries.
    pub(super) fn new() -> Self {
        Self { state: State::Away { retry_at: Duration::ZERO }, generation: Generation(0) }
    }

    pub(super) fn route(&mut self, now: Duration) -> Route<C> {
        match &mut self.state {
            State::Up(connection) => Route::Ask(connection.clone(), self.generation),
            State::Away { retry_at } if now >= *retry_at => {
                *retry_at = now + LIMITER_RETRY_EVERY;
                Route::Probe
            }
            State::Away { .. } => Route::Local,
        }
    }

    pub(super) fn established(&mut self, connection: C) -> Change {
        match self.state {
            State::Up(_) => Change::Unchanged,
            State::Away { .. } => {
                self.state = State::Up(connection);
                self.generation.0 += 1;
                Change::Changed
            }
        }
    }

    pub(super) fn lost(&mut self, generation: Generation, now: Duration) -> Change {
        match self.state {
            State::Up(_) if generation == self.generation => {
                self.state = State::Away { retry_at: now + LIMITER_RETRY_EVERY };
                Change::Changed
            }
            State::Up(_) | State::Away { .. } => Change::Unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn up(line: &mut Line<&'static str>) -> Generation {
        match line.route(NOW) {
            Route::Ask(_, generation) => generation,
            other @ (Route::Probe | Route::Local) => panic!("{other:?}"),
        }
    }

    #[test]
    fn while_away_one_ask_per_interval_tries_and_the_others_do_not_wait() {
        let mut line = Line::<&str>::new();
        assert_eq!(line.route(NOW), Route::Probe);
        assert_eq!(line.route(NOW), Route::Local);
        assert_eq!(line.route(NOW + LIMITER_RETRY_EVERY - Duration::from_nanos(1)), Route::Local);
        assert_eq!(line.route(NOW + LIMITER_RETRY_EVERY), Route::Probe);
    }

    #[test]
    fn the_first_lost_answer_closes_the_line_and_the_others_change_nothing() {
        let mut line = Line::new();
        assert_eq!(line.established("first"), Change::Changed);
        let generation = up(&mut line);
        assert_eq!(line.lost(generation, NOW), Change::Changed);
        assert_eq!(line.lost(generation, NOW), Change::Unchanged);
        assert_eq!(line.route(NOW), Route::Local);
    }

    #[test]
    fn a_late_refusal_of_an_old_connection_does_not_close_the_new_one() {
        let mut line = Line::new();
        line.established("first");
        let old = up(&mut line);
        line.lost(old, NOW);
        assert_eq!(line.established("second"), Change::Changed);
        assert_eq!(line.established("third"), Change::Unchanged);
        assert_eq!(line.lost(old, NOW), Change::Unchanged);
        assert!(matches!(line.route(NOW), Route::Ask("second", _)));
    }
}
