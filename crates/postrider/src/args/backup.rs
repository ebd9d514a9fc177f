//! Words of `postrider backup` and `postrider restore`.

use std::path::PathBuf;

use clap::Subcommand;

/// See [`super::Command::Backup`].
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Backup {
    /// Where to; must not exist yet
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// What else to do with a backup
    #[command(subcommand)]
    pub command: Option<BackupCommand>,
}

/// See [`Backup::command`].
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Read a whole backup and say whether it is what it was
    Verify {
        /// The backup
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// See [`super::Command::Restore`].
#[derive(Debug, clap::Args)]
pub struct Restore {
    /// The backup
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Keep a home that is there under another name
    #[arg(long)]
    pub replace: bool,
}
