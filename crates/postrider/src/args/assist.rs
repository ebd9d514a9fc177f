//! Words about coding agents, and about a home that is looked at.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// See [`super::Command::Mcp`].
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    /// Without a word after it, tools are served on stdin and stdout
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

/// What else there is about MCP.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Write the settings of a coding agent, after showing the change
    Install(Install),
}

/// See [`McpCommand::Install`].
#[derive(Debug, clap::Args)]
pub struct Install {
    /// Whose settings
    #[arg(long, value_name = "NAME")]
    pub client: Client,
    /// The client acts as this agent, which is made when it is new [default: as you]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Settings of the project in this folder instead of your own
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub print: bool,
    /// Write without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// Whose settings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    GeminiCli,
    /// Visual Studio Code
    Vscode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
}

/// See [`super::Command::Doctor`].
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Print every check on a line of its own, the fine ones too
    #[arg(long)]
    pub all: bool,
}
