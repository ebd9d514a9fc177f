//! What a command said and how it ended.

use crate::process::{Channel, Process};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A finished command.
#[derive(Clone, Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    pub(super) fn of(process: &Process, status: ExitStatus) -> Self {
        Self { status, stdout: process.text(Channel::Stdout), stderr: process.text(Channel::Stderr) }
    }

    /// The exit code; a command killed by a signal has none.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that killed it, 6 for an abort at a crash point.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// The objects of a `--json` answer, one a line.
    ///
    /// # Panics
    /// When a line is no JSON: `--json` promises that none is.
    pub fn json(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("a line is no JSON ({error}): {line}\n{self:?}"))
        };
        self.stdout.lines().filter(|line| !line.trim().is_empty()).map(parse).collect()
    }

    /// The output when it ended with 0.
    ///
    /// # Panics
    /// Otherwise, with everything it said.
    pub fn done(self) -> Self {
        assert_eq!(self.code(), Some(0), "a command that had to succeed did not: {self:?}");
        self
    }
}
