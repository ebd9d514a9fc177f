//! A disk that fails on purpose, at a chosen act, once or from then on.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

use crate::disk::{Act, Watcher};

/// What can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reading.
    Read,
    /// Writing and truncating.
    Write,
    /// Syncing.
    Sync,
    /// Any of the three.
    Any,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// `EIO`: the act is not done and may never be.
    Error,
    /// `ENOSPC`, for writes.
    NoSpace,
}

/// Fails the acts its plan names and counts all others.
#[derive(Debug, Default)]
pub struct FaultyDisk {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    counts: Counts,
    hits: u64,
}

#[derive(Debug)]
struct Plan {
    kind: Kind,
    trouble: Trouble,
    /// Part of the name a file must end with; empty: any file.
    ending: String,
    /// Matching acts that still pass.
    spare: u64,
    repeat: Repeat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Once,
    FromThenOn,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    reads: u64,
    writes: u64,
    syncs: u64,
}

impl FaultyDisk {
    /// Fails the act of `kind` after `spare` more of them, once.
    pub fn fail_once(&self, kind: Kind, trouble: Trouble, spare: u64) {
        self.set(Plan { kind, trouble, ending: String::new(), spare, repeat: Repeat::Once });
    }

    /// Fails every act of `kind` on files whose name ends so, until healed.
    pub fn fail(&self, kind: Kind, trouble: Trouble, ending: &str) {
        self.set(Plan { kind, trouble, ending: ending.into(), spare: 0, repeat: Repeat::FromThenOn });
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
        let Counts { reads, writes, syncs } = self.state().counts;
        match kind {
            Kind::Read => reads,
            Kind::Write => writes,
            Kind::Sync => syncs,
            Kind::Any => reads + writes + syncs,
        }
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
    fn around(&self, act: Act<'_>, perform: &mut dyn FnMut() -> c_int) -> c_int {
        let (kind, file) = match act {
            Act::Read { file } => (Kind::Read, file),
            Act::Write { file, .. } | Act::Truncate { file, .. } => (Kind::Write, file),
            Act::Sync { file } => (Kind::Sync, file),
            Act::Open { .. } | Act::Delete { .. } => return perform(),
        };
        let trouble = self.state().next(kind, &file.to_string_lossy());
        match trouble {
            None => perform(),
            Some(trouble) => code(kind, trouble),
        }
    }
}

impl State {
    fn next(&mut self, kind: Kind, file: &str) -> Option<Trouble> {
        match kind {
            Kind::Read => self.counts.reads += 1,
            Kind::Write => self.counts.writes += 1,
            Kind::Sync => self.counts.syncs += 1,
            Kind::Any => unreachable!("an act is of one kind"),
        }
        let plan = self.plan.as_mut()?;
        if !(plan.kind == kind || plan.kind == Kind::Any) || !file.ends_with(&plan.ending) {
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

/// What the unix VFS answers in that case.
fn code(kind: Kind, trouble: Trouble) -> c_int {
    match (kind, trouble) {
        (Kind::Write, Trouble::NoSpace) => ffi::SQLITE_FULL,
        (Kind::Write, Trouble::Error) => ffi::SQLITE_IOERR_WRITE,
        (Kind::Read, _) => ffi::SQLITE_IOERR_READ,
        // A sync that finds no room for delayed writes is a failed sync like any other.
        (Kind::Sync | Kind::Any, _) => ffi::SQLITE_IOERR_FSYNC,
    }
}
