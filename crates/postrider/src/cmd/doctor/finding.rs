//! What a check found.

use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// It works, and may not for long.
    Warn,
    /// Somebody has to do something.
    Act,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which check; scripts match it.
    pub check: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What was found.
    pub message: String,
    /// What it means; a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// Commands to paste.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fix: Vec<String>,
}

impl Level {
    /// The word in the gutter.
    pub const fn word(self) -> &'static str {
        match self {
            Level::Fine => "fine",
            Level::Warn => "warn",
            Level::Act => "act",
        }
    }
}

impl Finding {
    /// As it should be.
    pub fn fine(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Fine, message)
    }

    /// It works, and may not for long.
    pub fn warn(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Warn, message)
    }

    /// Somebody has to do something.
    pub fn act(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Act, message)
    }

    /// With what it means.
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.more.push(line.into());
        self
    }

    /// With a command that helps.
    pub fn fix(mut self, command: impl Into<String>) -> Self {
        self.fix.push(command.into());
        self
    }

    fn new(check: &'static str, level: Level, message: impl Into<String>) -> Self {
        Self { check, level, message: message.into(), more: Vec::new(), fix: Vec::new() }
    }
}
