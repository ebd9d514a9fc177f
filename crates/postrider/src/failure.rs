//! How a command ends when it does not end well: what, why, what is still true, and the command that fixes it.

use std::process::ExitCode;

use model::ErrorCode;
use serde_json::{Map, Value};

/// The exit codes scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Refused, or it went wrong.
    Refused = 1,
    /// Wrong usage.
    Usage = 2,
    /// The needed process does not answer.
    Unreachable = 3,
    /// Waiting ended before the asked rung.
    Waited = 4,
    /// A store of this process has stopped: a supervisor should start it anew.
    StoreStopped = 5,
}

/// Everything a refusal says.
#[derive(Clone, Debug)]
pub struct Failure {
    /// First word of the line: `refused`, `stopped`, `waiting` or `wrong`.
    pub word: &'static str,
    /// The code scripts match.
    pub code: String,
    /// What and why, and what is still true; one line each.
    pub lines: Vec<String>,
    /// Commands to paste.
    pub fix: Vec<String>,
    /// Further fields of the JSON.
    pub more: Map<String, Value>,
    /// How the process ends.
    pub exit: Exit,
}

impl Failure {
    /// A refusal by `code`.
    pub fn refused(code: ErrorCode, line: impl Into<String>) -> Self {
        Self {
            word: "refused",
            code: code.code().to_owned(),
            lines: vec![line.into()],
            fix: Vec::new(),
            more: Map::new(),
            exit: Exit::Refused,
        }
    }

    /// Wrong usage.
    pub fn usage(line: impl Into<String>) -> Self {
        Self { word: "wrong", exit: Exit::Usage, ..Self::refused(ErrorCode::InvalidRequest, line) }
    }

    /// The needed process does not answer.
    pub fn unreachable(code: ErrorCode, line: impl Into<String>) -> Self {
        Self { word: "stopped", exit: Exit::Unreachable, ..Self::refused(code, line) }
    }

    /// Waiting ended early.
    pub fn waited(code: &str, line: impl Into<String>) -> Self {
        Self {
            word: "waiting",
            code: code.to_owned(),
            exit: Exit::Waited,
            ..Self::refused(ErrorCode::Unavailable, line)
        }
    }

    /// Adds a line.
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Adds a command that helps.
    pub fn fix(mut self, command: impl Into<String>) -> Self {
        self.fix.push(command.into());
        self
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::refused(ErrorCode::Internal, format!("{error:#}"))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
