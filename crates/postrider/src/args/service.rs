//! Words of a role that systemd runs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// A role that systemd starts with the machine, and again after a crash.
#[derive(Debug, Subcommand)]
pub enum Service {
    /// Write a role's unit, enable it and start it
    Install(InstallService),
    /// Stop a role's unit and remove it; queued work stays on disk
    Uninstall(NamedService),
    /// Show whether a role's unit is installed and runs; exit 1 when it does not run
    Status(NamedService),
}

/// See [`Service::Install`].
#[derive(Debug, clap::Args)]
pub struct InstallService {
    /// The role and its unit
    #[command(flatten)]
    pub named: NamedService,
    /// System units: the account it runs as [default: the owner of the home]
    #[arg(long, value_name = "ACCOUNT", requires = "system")]
    pub run_as: Option<String>,
    /// A file of NAME=VALUE lines for its environment, such as a store's address with its password
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// Print the unit, and write and start nothing; needs no systemd
    #[arg(long, visible_alias = "dry-run")]
    pub print: bool,
    /// The role's own arguments, such as -- --listen 127.0.0.1:7440
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
}

/// Which unit is meant.
#[derive(Debug, clap::Args)]
pub struct NamedService {
    /// What it runs
    #[arg(value_enum, default_value = "up")]
    pub role: ServiceRole,
    /// A unit of the machine, which needs root, instead of one of this account
    #[arg(long)]
    pub system: bool,
    /// Appended to the unit's name, to run a role for several homes
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// What a unit runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServiceRole {
    /// postrider up: broker and daemon
    Up,
    /// postrider daemon up: the daemon alone
    Daemon,
    /// postrider broker serve: a broker alone
    Broker,
    /// postrider relay serve: the edge relay
    Relay,
}
