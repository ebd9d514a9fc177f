//! A disk that notes everything done to it.

use std::ffi::c_int;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi::SQLITE_OK;

use crate::disk::{Act, Portion, Watcher};

/// One note. Files are named without their folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The file was opened, and exists from here on.
    Opened {
        /// The file.
        file: String,
    },
    /// Bytes were written.
    Written {
        /// The file.
        file: String,
        /// Position of the first one.
        at: u64,
        /// What was written.
        bytes: Vec<u8>,
    },
    /// The file was cut or extended.
    Truncated {
        /// The file.
        file: String,
        /// Its size from here on.
        size: u64,
    },
    /// Everything written to the file so far is durable.
    Synced {
        /// The file.
        file: String,
    },
    /// The file's name was removed.
    Deleted {
        /// The file.
        file: String,
        /// Whether that is durable already.
        folder_synced: bool,
    },
    /// The folder was synced: every name made or removed so far is durable.
    FolderSynced,
    /// The owner of the recorder saw something: here, the answer to commit number `n`.
    Answered {
        /// Which one.
        n: u64,
    },
}

/// Notes every act that succeeded, in the order in which they happened.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// Notes that commit `n` has been answered.
    pub fn answered(&self, n: u64) {
        self.events().push(Event::Answered { n });
    }

    /// Notes that the folder has been synced, which happens outside SQLite.
    pub fn folder_synced(&self) {
        self.events().push(Event::FolderSynced);
    }

    /// All notes so far; the recorder starts anew.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events())
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Recorder {
    fn around(&self, act: Act<'_>, perform: &mut dyn FnMut(Portion) -> c_int) -> c_int {
        let Some(event) = noted(act) else { return perform(Portion::Whole) };
        // Held while the act runs: two threads cannot note in another order than they acted.
        let mut events = self.events();
        let code = perform(Portion::Whole);
        if code == SQLITE_OK {
            events.push(event);
        }
        code
    }
}

fn noted(act: Act<'_>) -> Option<Event> {
    Some(match act {
        Act::Read { .. } | Act::Map { .. } | Act::Lock { .. } => return None,
        Act::Open { file } => Event::Opened { file: name(file) },
        Act::Write { file, at, bytes } => Event::Written { file: name(file), at, bytes: bytes.to_vec() },
        Act::Truncate { file, size } => Event::Truncated { file: name(file), size },
        Act::Sync { file } => Event::Synced { file: name(file) },
        Act::Delete { file, folder_synced } => Event::Deleted { file: name(file), folder_synced },
    })
}

fn name(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
