//! A disk that fails on purpose, at a chosen act, once or from then on.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

use crate::disk::{Act, Portion, Watcher};

/// What can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Reading.
    Read,
    /// Writing and truncating.
    Write,
    /// Syncing.
    Sync,
    /// Mapping a region of the log's index, and making its file longer for that.
    Map,
    /// Taking a lock.
    Lock,
    /// Reading, writing and syncing.
    Any,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// `EIO`: the act is not done and may never be. A lock of the index is told to be taken.
    Error,
    /// `ENOSPC`, for writes and for an index that must grow.
    NoSpace,
    /// `EIO` after a part of the bytes.
    ShortError,
    /// `ENOSPC` after a part of the bytes.
    ShortNoSpace,
    /// No system answers so: `ENOSPC` for a sync, after every byte was written. What is written behind a whole commit
    /// and fails looks like this to SQLite; the control that a campaign must catch.
    FullBehindCommit,
}

/// Which of a database's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileRole {
    /// The database file itself.
    Data,
    /// The write-ahead log (`-wal`).
    Log,
    /// The log's index (`-shm`).
    Index,
    /// The rollback journal, which is there until the switch to the log.
    Journal,
}

/// Acts of one kind on one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActPlace {
    /// The file.
    pub file: FileRole,
    /// The kind; never [`Kind::Any`].
    pub kind: Kind,
}

/// How often it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repeat {
    /// Once.
    Once,
    /// Until healed.
    FromThenOn,
}

/// Fails the acts its plan names and counts all others.
#[derive(Debug, Default)]
pub struct FaultyDisk {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    counts: BTreeMap<ActPlace, u64>,
    hits: u64,
}

#[derive(Debug)]
struct Plan {
    acts: PlannedActs,
    trouble: Trouble,
    /// Matching acts that still pass.
    spare: u64,
    repeat: Repeat,
}

#[derive(Debug)]
enum PlannedActs {
    /// Of a kind, on files whose name ends so; an empty ending is any file's.
    Ending(Kind, String),
    At(ActPlace),
}

impl FaultyDisk {
    /// Fails the act of `kind` after `spare` more of them, once.
    pub fn fail_once(&self, kind: Kind, trouble: Trouble, spare: u64) {
        let acts = PlannedActs::Ending(kind, String::new());
        self.set(Plan { acts, trouble, spare, repeat: Repeat::Once });
    }

    /// Fails every act of `kind` on files whose name ends so, until healed.
    pub fn fail(&self, kind: Kind, trouble: Trouble, ending: &str) {
        let acts = PlannedActs::Ending(kind, ending.into());
        self.set(Plan { acts, trouble, spare: 0, repeat: Repeat::FromThenOn });
    }

    /// Fails an act at `place` after `spare` more of them.
    pub fn fail_at(&self, place: ActPlace, trouble: Trouble, spare: u64, repeat: Repeat) {
        self.set(Plan { acts: PlannedActs::At(place), trouble, spare, repeat });
    }

    /// Works again.
    pub fn heal(&self) {
        self.state().plan = None;
    }

    /// Acts that were made to fail.
    pub fn hits(&self) -> u64 {
        self.state().hits
    }

    /// Acts of `kind` asked for so far, failed ones included.
    pub fn asked(&self, kind: Kind) -> u64 {
        self.state().counts.iter().filter(|(place, _)| kind.includes(place.kind)).map(|(_, acts)| acts).sum()
    }

    /// Acts asked for so far by place, failed ones included.
    pub fn asked_by_place(&self) -> BTreeMap<ActPlace, u64> {
        self.state().counts.clone()
    }

    fn set(&self, plan: Plan) {
        let mut state = self.state();
        state.plan = Some(plan);
        state.hits = 0;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for FaultyDisk {
    fn around(&self, act: Act<'_>, perform: &mut dyn FnMut(Portion) -> c_int) -> c_int {
        let (kind, file) = match act {
            Act::Read { file } => (Kind::Read, file),
            Act::Write { file, .. } | Act::Truncate { file, .. } => (Kind::Write, file),
            Act::Sync { file } => (Kind::Sync, file),
            Act::Map { file } => (Kind::Map, file),
            Act::Lock { file, .. } => (Kind::Lock, file),
            Act::Open { .. } | Act::Delete { .. } => return perform(Portion::Whole),
        };
        let name = file.to_string_lossy();
        let of_index = matches!(act, Act::Map { .. } | Act::Lock { of_index: true, .. });
        let place = ActPlace { file: if of_index { FileRole::Index } else { FileRole::of(&name) }, kind };
        let trouble = self.state().next(place, &name);
        match trouble {
            None => perform(Portion::Whole),
            Some(trouble) => {
                if let (Act::Write { bytes, .. }, Trouble::ShortError | Trouble::ShortNoSpace) =
                    (act, trouble)
                {
                    // Not at a sector's edge, and never nothing: a header of 24 bytes is torn too.
                    perform(Portion::Bytes((bytes.len() / 2).max(1)));
                }
                code(place, trouble)
            }
        }
    }
}

impl State {
    fn next(&mut self, place: ActPlace, name: &str) -> Option<Trouble> {
        *self.counts.entry(place).or_default() += 1;
        let plan = self.plan.as_mut()?;
        let planned = match &plan.acts {
            PlannedActs::Ending(kind, ending) => kind.includes(place.kind) && name.ends_with(ending),
            PlannedActs::At(planned) => *planned == place,
        };
        if !planned {
            return None;
        }
        if plan.spare > 0 {
            plan.spare -= 1;
            return None;
        }
        let trouble = plan.trouble;
        self.hits += 1;
        if plan.repeat == Repeat::Once {
            self.plan = None;
        }
        Some(trouble)
    }
}

impl Kind {
    fn includes(self, kind: Kind) -> bool {
        self == kind || (self == Kind::Any && matches!(kind, Kind::Read | Kind::Write | Kind::Sync))
    }
}

impl FileRole {
    fn of(name: &str) -> Self {
        if name.ends_with("-wal") {
            Self::Log
        } else if name.ends_with("-journal") {
            Self::Journal
        } else {
            Self::Data
        }
    }
}

/// What the unix VFS answers in that case.
fn code(place: ActPlace, trouble: Trouble) -> c_int {
    match (place.kind, trouble) {
        (_, Trouble::FullBehindCommit) => ffi::SQLITE_FULL,
        (Kind::Write, Trouble::NoSpace | Trouble::ShortNoSpace) => ffi::SQLITE_FULL,
        (Kind::Write, Trouble::Error | Trouble::ShortError) => ffi::SQLITE_IOERR_WRITE,
        (Kind::Read, _) => ffi::SQLITE_IOERR_READ,
        (Kind::Map, Trouble::NoSpace | Trouble::ShortNoSpace) => ffi::SQLITE_IOERR_SHMSIZE,
        (Kind::Map, _) => ffi::SQLITE_IOERR_SHMMAP,
        (Kind::Lock, _) if place.file == FileRole::Index => ffi::SQLITE_BUSY,
        (Kind::Lock, _) => ffi::SQLITE_IOERR_LOCK,
        // A sync that finds no room for delayed writes is a failed sync like any other.
        (Kind::Sync | Kind::Any, _) => ffi::SQLITE_IOERR_FSYNC,
    }
}

impl fmt::Display for ActPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let act = match self.kind {
            Kind::Read => "read of",
            Kind::Write => "write of",
            Kind::Sync => "sync of",
            Kind::Map => "mapping of",
            Kind::Lock => "lock on",
            Kind::Any => "any act on",
        };
        let file = match self.file {
            FileRole::Data => "the file",
            FileRole::Log => "the log",
            FileRole::Index => "the log's index",
            FileRole::Journal => "the journal",
        };
        write!(f, "{act} {file}")
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "EIO",
            Self::NoSpace => "ENOSPC",
            Self::ShortError => "a part, then EIO",
            Self::ShortNoSpace => "a part, then ENOSPC",
            Self::FullBehindCommit => "ENOSPC behind a whole commit",
        })
    }
}
