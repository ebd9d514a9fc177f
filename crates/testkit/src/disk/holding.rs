//! A disk that keeps back what is written to a log and forgets it when it cannot be written: the control of a campaign.
//!
//! A layer that holds frames back must write them before a read. SQLite takes lack of room at a read for the error of one
//! statement: it undoes that alone, goes on with the transaction, and counts the frames it had handed over before. A layer
//! that drops them then leaves a hole that every later commit chains on. The faults of this disk are at those writes.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

use crate::disk::{Act, FaultyDisk, Portion, Watcher};

/// The most that is held back: more than most commits write.
const HELD_BYTES_MAX: usize = 256 * 1024;

/// See the module.
#[derive(Debug)]
pub struct HoldingDisk {
    disk: Arc<FaultyDisk>,
    held: Mutex<BTreeMap<PathBuf, Held>>,
}

/// One stretch of bytes without gaps.
#[derive(Debug, Default)]
struct Held {
    at: u64,
    bytes: Vec<u8>,
}

impl HoldingDisk {
    /// Before a disk that fails.
    pub fn before(disk: Arc<FaultyDisk>) -> Self {
        Self { disk, held: Mutex::default() }
    }

    /// Writes what is held back for `file`; whether or not that works, it is held no more.
    fn write_out(&self, file: &Path, may_fail: bool) -> c_int {
        let Some(Held { at, bytes }) = self.held().remove(file) else { return ffi::SQLITE_OK };
        let mut write = |_: Portion| {
            let log = OpenOptions::new().write(true).open(file);
            match log.and_then(|log| log.write_all_at(&bytes, at)) {
                Ok(()) => ffi::SQLITE_OK,
                Err(_) => ffi::SQLITE_IOERR_WRITE,
            }
        };
        if may_fail {
            self.disk.around(Act::Write { file, at, bytes: &bytes }, &mut write)
        } else {
            write(Portion::Whole)
        }
    }

    /// True when the bytes were taken in.
    fn hold(&self, file: &Path, at: u64, bytes: &[u8]) -> bool {
        let mut all = self.held();
        let held = all.entry(file.to_owned()).or_default();
        let end = held.at + held.bytes.len() as u64;
        let continues =
            held.bytes.is_empty() || at == end && held.bytes.len() + bytes.len() <= HELD_BYTES_MAX;
        if continues {
            if held.bytes.is_empty() {
                held.at = at;
            }
            held.bytes.extend_from_slice(bytes);
        }
        continues
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for HoldingDisk {
    fn around(&self, act: Act<'_>, perform: &mut dyn FnMut(Portion) -> c_int) -> c_int {
        match act {
            Act::Write { file, at, bytes } if is_log(file) => {
                if self.hold(file, at, bytes) {
                    return ffi::SQLITE_OK;
                }
                let code = self.write_out(file, false);
                if code == ffi::SQLITE_OK {
                    self.hold(file, at, bytes);
                }
                return code;
            }
            Act::Read { file } | Act::Truncate { file, .. } | Act::Sync { file } if is_log(file) => {
                let code = self.write_out(file, matches!(act, Act::Read { .. }));
                if code != ffi::SQLITE_OK {
                    return code;
                }
            }
            _ => {}
        }
        self.disk.around(act, perform)
    }
}

fn is_log(file: &Path) -> bool {
    file.to_string_lossy().ends_with("-wal")
}
