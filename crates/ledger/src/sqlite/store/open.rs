//! The way to the file, and what jobs take along.

use std::path::Path;
use std::sync::Arc;

use ::sqlite::{Bounds, Db, OpenError, Options};
use model::{Clock, Entropy, Timestamp};
use tokio::sync::watch;

use super::super::schema::SCHEMA;
use super::tokens::Tokens;
use super::{SqliteLedger, run};
use crate::regressed::Regressions;

/// Whose token it is, whether an id is known, what came after the last row: a few rows each, asked for by every call.
/// As many at once as there are threads that ask.
const READERS_HERE: usize = 2;

/// Time and randomness, as jobs take them along.
#[derive(Clone)]
pub(in super::super) struct World {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub regressions: Regressions,
}

impl World {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl SqliteLedger {
    /// Opens the file, or makes it.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Result<Self, OpenError> {
        let bounds = Bounds { readers_here: READERS_HERE, ..Bounds::default() };
        let db = Db::open(Options::new(path, SCHEMA).bounds(bounds))?;
        Ok(Self::with(db, clock, entropy))
    }

    /// A ledger over an engine opened with [`SCHEMA`]: for simulations and other bounds.
    pub fn with(db: Db, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let world = World { clock, entropy, regressions: Regressions::new() };
        let (accepts, look_ups) = (run::accepts(&world), run::look_ups());
        let (committed, stirred) = (watch::Sender::new(()), watch::Sender::new(()));
        Self { db, world, committed, stirred, accepts, look_ups, tokens: Tokens::default() }
    }

    /// The engine, for its counters and for closing it.
    pub fn db(&self) -> &Db {
        &self.db
    }
}
