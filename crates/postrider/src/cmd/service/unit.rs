//! The text of a systemd unit. A pure function of what it is for.
//!
//! - The first line marks the unit as ours; a file without it is never changed or removed.
//! - A crash, a kill and a store that stopped (exit 5) are followed by a start; wrong usage (exit 2) is not, because it
//!   would be wrong again.
//! - The role may write to its own folders and nowhere else.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::args::ServiceRole;

/// The first line of every unit of ours.
pub const MARKER: &str =
    "# Written by postrider service install. Do not edit: the next install writes it anew.";
/// Before the home, on the second line.
const HOME_LINE: &str = "# home: ";

/// Between an end and the next start.
const RESTART_SECONDS: u32 = 5;
/// Starts within the interval before systemd gives up: at 5 s each, a disk may be away for some minutes.
const STARTS_MAX: u32 = 60;
const STARTS_SECONDS: u32 = 900;
/// Answers in flight get 10 s at each of two listeners, the files some more.
const STOP_SECONDS: u32 = 40;
/// Listeners, links and files of the stores.
const FILES_MAX: u32 = 65_536;

/// Who runs the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The service manager of this account.
    User,
    /// The machine's, as this account and, where it is known, this group.
    System { account: String, group: Option<String> },
}

/// Everything a unit says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub role: ServiceRole,
    pub scope: Scope,
    pub program: PathBuf,
    pub home: PathBuf,
    /// After the role's own words.
    pub arguments: Vec<String>,
    pub env_file: Option<PathBuf>,
    /// Folders outside of the home that the role writes to.
    pub writes: Vec<PathBuf>,
    /// Whether it listens on a port that only root may take.
    pub low_port: bool,
}

/// What a file holds where a unit is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    Nothing,
    /// A unit of ours, for this home.
    Ours {
        home: String,
    },
    /// Anything else.
    Foreign,
}

impl Existing {
    pub fn of(text: Option<&str>) -> Self {
        let Some(text) = text else { return Existing::Nothing };
        let mut lines = text.lines();
        match (lines.next(), lines.next().and_then(|line| line.strip_prefix(HOME_LINE))) {
            (Some(MARKER), Some(home)) => Existing::Ours { home: home.to_owned() },
            (_, _) => Existing::Foreign,
        }
    }
}

impl ServiceRole {
    /// The words of its command line.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            ServiceRole::Up => &["up"],
            ServiceRole::Daemon => &["daemon", "up"],
            ServiceRole::Broker => &["broker", "serve"],
            ServiceRole::Relay => &["relay", "serve"],
        }
    }

    const fn is_for(self) -> &'static str {
        match self {
            ServiceRole::Up => "Postrider broker and daemon",
            ServiceRole::Daemon => "Postrider daemon",
            ServiceRole::Broker => "Postrider broker",
            ServiceRole::Relay => "Postrider edge relay",
        }
    }

    /// The unit's file name.
    pub fn unit_name(self, suffix: Option<&str>) -> String {
        let role = match self {
            ServiceRole::Up => "up",
            ServiceRole::Daemon => "daemon",
            ServiceRole::Broker => "broker",
            ServiceRole::Relay => "relay",
        };
        match suffix {
            Some(suffix) => format!("postrider-{role}-{suffix}.service"),
            None => format!("postrider-{role}.service"),
        }
    }
}

impl Unit {
    /// The unit file.
    pub fn text(&self) -> String {
        let mut text = format!("{MARKER}\n{HOME_LINE}{}\n", self.home.display());
        self.write(&mut text).expect("a String takes every text");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\n[Unit]\nDescription={} ({})", self.role.is_for(), escaped(&self.home))?;
        if let Scope::System { .. } = self.scope {
            writeln!(out, "Wants=network-online.target\nAfter=network-online.target")?;
        }
        writeln!(out, "StartLimitIntervalSec={STARTS_SECONDS}\nStartLimitBurst={STARTS_MAX}")?;
        writeln!(out, "\n[Service]\nType=exec\nExecStart={}", self.command_line())?;
        writeln!(out, "WorkingDirectory={}", escaped(&self.home))?;
        if let Some(file) = &self.env_file {
            writeln!(out, "EnvironmentFile={}", escaped(file))?;
        }
        if let Scope::System { account, group } = &self.scope {
            writeln!(out, "User={account}")?;
            if let Some(group) = group {
                writeln!(out, "Group={group}")?;
            }
        }
        writeln!(out, "Restart=on-failure\nRestartSec={RESTART_SECONDS}s\nRestartPreventExitStatus=2")?;
        writeln!(out, "TimeoutStopSec={STOP_SECONDS}s\nLimitNOFILE={FILES_MAX}\nUMask=0077")?;
        self.write_confinement(out)?;
        let target = match self.scope {
            Scope::User => "default.target",
            Scope::System { .. } => "multi-user.target",
        };
        writeln!(out, "\n[Install]\nWantedBy={target}")
    }

    fn write_confinement(&self, out: &mut String) -> std::fmt::Result {
        for line in [
            "NoNewPrivileges=yes",
            "LockPersonality=yes",
            "MemoryDenyWriteExecute=yes",
            "RestrictNamespaces=yes",
            "RestrictRealtime=yes",
            "RestrictSUIDSGID=yes",
            // Netlink: how the C library finds out which addresses this machine has.
            "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
            "SystemCallArchitectures=native",
            "SystemCallFilter=@system-service",
            "SystemCallErrorNumber=EPERM",
        ] {
            writeln!(out, "{line}")?;
        }
        // What follows needs a mount namespace, which a user's manager may not make everywhere.
        let Scope::System { .. } = self.scope else { return Ok(()) };
        for line in [
            "ProtectSystem=strict",
            // The home and the program may lie there.
            "ProtectHome=read-only",
            "PrivateDevices=yes",
            "ProtectClock=yes",
            "ProtectControlGroups=yes",
            "ProtectHostname=yes",
            "ProtectKernelLogs=yes",
            "ProtectKernelModules=yes",
            "ProtectKernelTunables=yes",
        ] {
            writeln!(out, "{line}")?;
        }
        let temporary = |path: &Path| path.starts_with("/tmp") || path.starts_with("/var/tmp");
        if !self.writes.iter().chain([&self.home, &self.program]).any(|path| temporary(path)) {
            writeln!(out, "PrivateTmp=yes")?;
        }
        for folder in [&self.home].into_iter().chain(&self.writes) {
            writeln!(out, "ReadWritePaths={}", quoted(&escaped(folder)))?;
        }
        let capability = if self.low_port { "CAP_NET_BIND_SERVICE" } else { "" };
        writeln!(out, "CapabilityBoundingSet={capability}\nAmbientCapabilities={capability}")
    }

    fn command_line(&self) -> String {
        let home = ["--home".to_owned(), self.home.display().to_string()];
        let role = self.role.words().iter().map(|word| (*word).to_owned());
        let words = [self.program.display().to_string()].into_iter().chain(home).chain(role);
        let words = words.chain(self.arguments.iter().cloned());
        words.map(|word| argument(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// A path as systemd reads it outside of a command line: `%` begins a specifier.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace('%', "%%")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// One word of a command line: quoted, without specifiers and variables.
fn argument(word: &str) -> String {
    quoted(&word.replace('%', "%%").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(scope: Scope) -> Unit {
        Unit {
            role: ServiceRole::Broker,
            scope,
            program: "/opt/postrider".into(),
            home: "/srv/50% \"x\"".into(),
            arguments: vec!["--public-url".to_owned(), "https://a/$b".to_owned()],
            env_file: None,
            writes: vec!["/srv/db".into()],
            low_port: false,
        }
    }

    fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
        text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
    }

    #[test]
    fn a_command_line_keeps_blanks_quotes_percents_and_dollars() {
        let text = unit(Scope::User).text();
        let expected =
            r#""/opt/postrider" "--home" "/srv/50%% \"x\"" "broker" "serve" "--public-url" "https://a/$$b""#;
        assert_eq!(values(&text, "ExecStart"), [expected]);
    }

    #[test]
    fn every_unit_is_restarted_after_failures_but_not_after_wrong_usage() {
        let system = Scope::System { account: "1000".to_owned(), group: Some("1000".to_owned()) };
        for scope in [Scope::User, system] {
            let text = unit(scope).text();
            assert_eq!(values(&text, "Restart"), ["on-failure"]);
            assert_eq!(values(&text, "RestartPreventExitStatus"), ["2"]);
            assert_eq!(values(&text, "StartLimitBurst"), ["60"]);
        }
    }

    #[test]
    fn a_system_unit_writes_to_its_own_folders_as_its_account_and_has_a_capability_for_a_low_port_alone() {
        let scope = Scope::System { account: "mail".to_owned(), group: None };
        let text = unit(scope.clone()).text();
        assert_eq!(values(&text, "User"), ["mail"]);
        assert_eq!(values(&text, "ReadWritePaths"), [r#""/srv/50%% \"x\"""#, r#""/srv/db""#]);
        assert_eq!(values(&text, "CapabilityBoundingSet"), [""]);
        let low = Unit { low_port: true, ..unit(scope) }.text();
        assert_eq!(values(&low, "AmbientCapabilities"), ["CAP_NET_BIND_SERVICE"]);
        let user = unit(Scope::User).text();
        assert!(values(&user, "User").is_empty() && values(&user, "ProtectSystem").is_empty(), "{user}");
    }

    #[test]
    fn only_a_file_with_the_marker_is_ours() {
        assert_eq!(Existing::of(None), Existing::Nothing);
        assert_eq!(Existing::of(Some("[Unit]\nDescription=mine\n")), Existing::Foreign);
        assert_eq!(Existing::of(Some(&format!("\n{MARKER}\n# home: /h\n"))), Existing::Foreign);
        let ours = unit(Scope::User).text();
        assert_eq!(Existing::of(Some(&ours)), Existing::Ours { home: "/srv/50% \"x\"".to_owned() });
    }

    #[test]
    fn several_homes_have_several_units() {
        assert_eq!(ServiceRole::Up.unit_name(None), "postrider-up.service");
        assert_eq!(ServiceRole::Relay.unit_name(Some("lab")), "postrider-relay-lab.service");
    }
}
