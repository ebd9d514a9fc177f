//! systemd as a program: `systemctl`, for the machine or for this account.

use std::process::{Command, Output};

use model::ErrorCode;

use crate::failure::Failure;

/// The service manager a unit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// This account's.
    User,
    /// The machine's.
    System,
}

/// What systemd says of a unit.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct UnitState {
    /// `enabled`, `disabled`; empty for one that systemd does not know.
    pub enabled: String,
    /// `active`, `activating`, `failed`, `inactive`.
    pub active: String,
    /// The process, while there is one.
    pub pid: Option<u32>,
    /// Starts after an end by itself.
    pub restarts: u32,
    /// The last exit code.
    pub exit: Option<i32>,
}

impl Manager {
    /// The arguments that select it.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Manager::User => &["--user"],
            Manager::System => &[],
        }
    }

    /// Refuses where no such manager runs.
    pub fn check(self, by_hand: &str) -> Result<(), Failure> {
        let asked = self.systemctl(&["show", "--property=Version"]);
        let why = match asked {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("systemctl: {error}"),
        };
        let whose = match self {
            Manager::User => "no systemd manages this account's services",
            Manager::System => "no systemd manages this machine's services",
        };
        Err(Failure::refused(ErrorCode::Unavailable, format!("{whose}: {why}"))
            .line("Nothing was changed. Any other supervisor can run the same command: restart on every exit but 0 and 2.")
            .fix(by_hand))
    }

    /// Has systemd do something, or says why it did not.
    pub fn act(self, words: &[&str]) -> Result<(), Failure> {
        let output = self.systemctl(words).map_err(anyhow::Error::from)?;
        if output.status.success() {
            return Ok(());
        }
        let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Failure::refused(ErrorCode::Unavailable, format!("systemctl {}: {told}", words.join(" "))))
    }

    /// How a unit stands.
    pub fn state(self, unit: &str) -> Result<UnitState, Failure> {
        let properties = "--property=UnitFileState,ActiveState,MainPID,NRestarts,ExecMainStatus,ExecMainExitTimestampMonotonic";
        let output = self.systemctl(&["show", unit, properties]).map_err(anyhow::Error::from)?;
        Ok(state_of(&String::from_utf8_lossy(&output.stdout)))
    }

    fn systemctl(self, words: &[&str]) -> std::io::Result<Output> {
        Command::new("systemctl").args(self.words()).args(words).output()
    }
}

fn state_of(text: &str) -> UnitState {
    let of = |key: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_default()
    };
    let has_ended = !matches!(of("ExecMainExitTimestampMonotonic"), "" | "0");
    UnitState {
        enabled: of("UnitFileState").to_owned(),
        active: of("ActiveState").to_owned(),
        pid: of("MainPID").parse().ok().filter(|pid| *pid != 0),
        restarts: of("NRestarts").parse().unwrap_or(0),
        exit: of("ExecMainStatus").parse().ok().filter(|_| has_ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_failed_shows_its_last_exit_and_one_that_runs_its_process() {
        let failed = "MainPID=0\nNRestarts=3\nExecMainStatus=5\nExecMainExitTimestampMonotonic=77\n\
                      ActiveState=failed\nUnitFileState=enabled\n";
        let state = state_of(failed);
        assert_eq!((state.active.as_str(), state.enabled.as_str()), ("failed", "enabled"));
        assert_eq!((state.pid, state.restarts, state.exit), (None, 3, Some(5)));
        let runs = "MainPID=41\nExecMainStatus=0\nExecMainExitTimestampMonotonic=0\nActiveState=active\n";
        assert_eq!((state_of(runs).pid, state_of(runs).exit), (Some(41), None));
        assert_eq!(state_of(""), UnitState::default());
    }
}
