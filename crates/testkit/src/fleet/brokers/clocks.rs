//! The brokers' clocks, which stand apart from the machine's, from each other's and from the database's.

use std::io::Result;
use std::path::PathBuf;
use tempfile::TempDir;

const DAY_S: i64 = 86_400;
/// How far a broker's date is ahead of the machine's, in turn: past the time that ids are remembered, too. Neighbours are
/// far apart.
const AHEAD_S: [i64; 6] = [180, 9 * DAY_S, -180, 40 * DAY_S, -DAY_S, 7_200];

pub(super) struct Clocks {
    folder: TempDir,
    sets: usize,
}

impl Clocks {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { folder: TempDir::new()?, sets: 0 })
    }

    /// Sets the date of a broker; what its next life is told.
    pub(super) fn set(&mut self, which: usize) -> Result<String> {
        let ahead_us = AHEAD_S[self.sets % AHEAD_S.len()] * 1_000_000;
        self.sets += 1;
        let (file, fresh) = (self.file(which, "clock"), self.file(which, "new"));
        std::fs::write(&fresh, format!("0 {ahead_us}"))?;
        // Renamed into place: a clock read half-written would be no clock.
        std::fs::rename(fresh, &file)?;
        Ok(format!("clock:{}", file.display()))
    }

    fn file(&self, which: usize, name: &str) -> PathBuf {
        self.folder.path().join(format!("{which}.{name}"))
    }
}
