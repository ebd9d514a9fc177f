//! The words of the command line.

mod assist;
mod backup;
mod manage;
mod operate;
mod relay;
mod service;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use model::Rung;

use crate::output::Form;

pub use assist::{Client, Doctor, Install, Mcp, McpCommand};
pub use backup::{Backup, BackupCommand, Restore};
pub use manage::{Agent, Invite, Join, KeepProgram, Mesh, RunAgent, Scope, Token, Webhook};
pub use operate::{Broker, Daemon, Outbox, Requeue, Serve};
pub use relay::{Relay, RelayAuth, RelayBeside, RelayOutbox, RelayServe};
pub use service::{InstallService, NamedService, Service, ServiceRole};

/// What scripts and supervisors rely on; a supervisor starts anew after everything but 0 and 2.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused, or it went wrong
  2  wrong usage
  3  the needed process does not answer
  4  waiting ended before the asked receipt
  5  a store of this process has stopped after a disk error: start it anew";

/// The messaging fabric that agents and the people who run them trust.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, propagate_version = true, max_term_width = 80, after_help = EXIT_CODES)]
pub struct Args {
    /// Folder that holds this home's keys, outbox and inbox
    #[arg(long, global = true, env = "POSTRIDER_HOME", value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Which mesh, when this home is in several
    #[arg(long, global = true, value_name = "NAME")]
    pub mesh: Option<String>,
    /// Act as another member of this home
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub act_as: Option<String>,
    /// Act as the agent whose token this file holds
    #[arg(long = "token-file", global = true, env = "POSTRIDER_AGENT_TOKEN_FILE", value_name = "FILE")]
    pub agent_token_file: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long, global = true)]
    pub json: bool,
    /// Print ids only
    #[arg(long, global = true, conflicts_with = "json")]
    pub quiet: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start broker and daemon in one process; makes a home on the first run
    Up(Up),
    /// Stop the process of this home; queued work stays on disk
    Down,
    /// Show the link, the outbox and the inbox of this home
    Status,
    /// Hand a message over; returns when it is durable on this host
    Send(Send),
    /// List received messages; listing marks nothing as read
    Inbox(Inbox),
    /// Print messages as they arrive
    Watch(Watch),
    /// Answer a received message
    Reply(Reply),
    /// Say where a message is and why; takes any id and changes nothing
    Explain {
        /// A client id, a message's id or an outbox row, or its last six or more characters
        id: String,
    },
    /// Look for what is wrong with this home and say what fixes it; changes nothing
    Doctor(Doctor),
    /// Copy this home while it runs: databases, keys, config and tokens
    Backup(Backup),
    /// Put a backup in the place of this home
    Restore(Restore),
    /// Three agents, a kill -9 in the middle, receipts climbing; leaves nothing behind
    Demo,
    /// Topics: logs that every member may read
    #[command(subcommand)]
    Topic(Topic),
    /// Agents with their home here
    #[command(subcommand)]
    Agent(Agent),
    /// Tools for coding agents (MCP): serve them on stdin and stdout, or install them in a client
    Mcp(Mcp),
    /// Make an invite for one more home
    Invite(Invite),
    /// Join a mesh by invite
    Join(Join),
    /// The meshes of this home
    #[command(subcommand)]
    Mesh(Mesh),
    /// Print a link with which your browser signs in, once
    Signin,
    /// Tokens for direct HTTP callers
    #[command(subcommand)]
    Token(Token),
    /// Push a topic's messages to an HTTP address
    #[command(subcommand)]
    Webhook(Webhook),
    /// The daemon of this home, and its outbox
    #[command(subcommand)]
    Daemon(Daemon),
    /// A broker alone, and the audit of its books
    #[command(subcommand)]
    Broker(Broker),
    /// The edge relay: writes wait here while their upstream is away
    #[command(subcommand)]
    Relay(Relay),
    /// Have systemd run a role: started with the machine, and again after a crash
    #[command(subcommand)]
    Service(Service),
}

/// See [`Command::Up`].
#[derive(Debug, clap::Args)]
pub struct Up {
    /// Where the broker listens [default: 127.0.0.1:7440, else a free port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// A private host that webhooks may reach; may be given several times
    #[arg(long, value_name = "HOST")]
    pub webhook_allow_host: Vec<String>,
    /// The relay, when this process runs it too
    #[command(flatten)]
    pub relay: RelayBeside,
    /// Hand the prompt back once everything runs
    #[arg(long)]
    pub detach: bool,
}

/// See [`Command::Send`].
#[derive(Debug, clap::Args)]
pub struct Send {
    /// name, @name, me, '#topic', topic:NAME or a key
    pub to: String,
    /// The text; - reads it from stdin
    pub text: String,
    /// Your own id for it: asking again with it can never double the message
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// A JSON object to carry beside the text
    #[arg(long, value_name = "JSON")]
    pub meta: Option<String>,
    /// Members to mention
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub mention: Vec<String>,
    /// now, next or low
    #[arg(long)]
    pub priority: Option<String>,
    /// The message this one answers
    #[arg(long, value_name = "ID")]
    pub reply_to: Option<String>,
    /// Do not deliver after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub deliver_by: Option<String>,
    /// Return only when every recipient reached this rung
    #[arg(long, value_name = "RUNG", value_parser = rung)]
    pub wait: Option<Rung>,
    /// How long --wait waits
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,
}

/// See [`Command::Inbox`].
#[derive(Debug, clap::Args)]
pub struct Inbox {
    /// At most so many, the newest
    #[arg(long, default_value = "50", value_name = "N")]
    pub limit: usize,
    /// Only what was not read yet
    #[arg(long)]
    pub unread: bool,
    /// Mark what is listed as read
    #[arg(long)]
    pub seen: bool,
    /// Wait so many seconds for the next message when there is none
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wait: Option<Duration>,
}

/// See [`Command::Watch`].
#[derive(Debug, clap::Args)]
pub struct Watch {
    /// Only this topic or this member
    pub to: Option<String>,
}

/// See [`Command::Reply`].
#[derive(Debug, clap::Args)]
pub struct Reply {
    /// The message's id, or its last six or more characters
    pub id: String,
    /// The text; - reads it from stdin
    pub text: String,
}

/// See [`Command::Topic`].
#[derive(Debug, Subcommand)]
pub enum Topic {
    /// Print a topic's messages, oldest first
    History {
        /// The topic's name
        name: String,
        /// At most so many, the newest
        #[arg(long, default_value = "50", value_name = "N", conflicts_with = "all")]
        limit: usize,
        /// The whole log
        #[arg(long)]
        all: bool,
    },
    /// List topics
    List,
    /// Make a topic and subscribe to it
    Create {
        /// The topic's name
        name: String,
    },
    /// Have a topic's messages delivered to your inbox
    Subscribe {
        /// The topic's name
        name: String,
    },
    /// Stop that
    Unsubscribe {
        /// The topic's name
        name: String,
    },
}

impl Args {
    /// How to print.
    pub fn style(&self) -> Form {
        match (self.json, self.quiet) {
            (true, _) => Form::Json,
            (false, true) => Form::Quiet,
            (false, false) => Form::Text,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<u64>().map(Duration::from_secs).map_err(|_| "a whole number of seconds".to_owned())
}

fn rung(word: &str) -> Result<Rung, String> {
    word.parse().map_err(|malformed: model::error::Malformed| malformed.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_rung_that_does_not_exist_is_wrong_usage() {
        assert!(Args::try_parse_from(["postrider", "send", "me", "x", "--wait", "sent"]).is_err());
        assert!(Args::try_parse_from(["postrider", "send", "me", "x", "--wait", "delivered"]).is_ok());
    }
}
