//! The way to the file, and what jobs take along.

mod mark;

use std::path::Path;
use std::sync::Arc;

use ::sqlite::{Bounds, Db, OpenError, Options};
use model::{Clock, Entropy, Timestamp};
use tokio::sync::watch;

use super::super::ageing;
use super::super::received;
use super::super::schema::SCHEMA;
use super::tokens::Tokens;
use super::{SqliteLedger, run};
use crate::ageing::ClockWatch;
use crate::regressed::Regressions;
use crate::rules::IdRetention;
use model::ageing::ForgottenUpto;
use model::outbox::DedupeWindow;

/// Whose token it is, whether an id is known, what came after the last row: a few rows each, asked for by every call.
/// As many at once as there are threads that ask.
const READERS_HERE: usize = 2;

/// Time and randomness, as jobs take them along.
#[derive(Clone)]
pub(in super::super) struct World {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub regressions: Regressions,
    pub watch: Arc<ClockWatch>,
    pub opened: Opened,
}

/// The books as this process found them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Opened {
    /// When it opened them.
    pub at: Timestamp,
    /// The newest instant they held then.
    pub books_end: Timestamp,
}

impl World {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Which ids may be forgotten by now.
    pub fn forgotten_upto(&self) -> ForgottenUpto {
        self.watch.forgotten_upto(self.clock.now(), self.clock.monotonic())
    }

    /// How long ids are kept.
    pub fn id_retention(&self, window: DedupeWindow) -> IdRetention {
        IdRetention { window, counted_from: self.watch.reached() }
    }
}

impl SqliteLedger {
    /// Opens the file, or makes it.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Result<Self, OpenError> {
        let bounds = Bounds { readers_here: READERS_HERE, ..Bounds::default() };
        let db = Db::open(Options::new(path, SCHEMA).bounds(bounds))?;
        let ledger = Self::with(db, clock, entropy);
        ledger.compare_with_mark(path);
        Ok(ledger)
    }

    /// A ledger over an engine opened with [`SCHEMA`]: for simulations and other bounds.
    pub fn with(db: Db, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        // Books that cannot be read say so at the first door.
        let books_end = db.read_blocking("ledger.books_end", received::books_end);
        let at = clock.now();
        let opened = Opened { at, books_end: books_end.unwrap_or(at) };
        let watch = Arc::new(ClockWatch::new());
        if let Ok(Some((record, forgotten))) = db.read_blocking("ledger.ageing", ageing::stored) {
            watch.found(record, forgotten, clock.monotonic());
        }
        let world = World { clock, entropy, regressions: Regressions::new(), watch, opened };
        let (accepts, look_ups) = (run::accepts(&world), run::look_ups());
        let (committed, stirred) = (watch::Sender::new(()), watch::Sender::new(()));
        Self { db, world, committed, stirred, accepts, look_ups, tokens: Tokens::default() }
    }

    /// The engine, for its counters and for closing it.
    pub fn db(&self) -> &Db {
        &self.db
    }
}
