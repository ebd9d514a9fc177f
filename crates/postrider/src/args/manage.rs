//! Words about members, meshes and their tokens.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

/// Agents with their home here.
#[derive(Debug, Subcommand)]
pub enum Agent {
    /// Give an agent an address with its home here; prints its token once
    Add {
        /// The agent's name
        name: String,
    },
    /// List the mesh's members
    List,
    /// Answer an agent's messages with a program: one process a message
    Run(RunAgent),
    /// Run a message once more whose turns were given up, at the agent's next turn
    Retry {
        /// The agent's name
        name: String,
        /// The message's id, the sender's id, or the last six or more characters of one
        id: String,
    },
    /// Started by `agent run` between itself and the program
    #[command(hide = true)]
    Keep(KeepProgram),
}

/// See [`Agent::Run`].
#[derive(Debug, clap::Args)]
pub struct RunAgent {
    /// The agent's name; made when it is new
    pub name: String,
    /// How long one message may take
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = super::seconds)]
    pub timeout: Duration,
    /// End when nothing waits any more
    #[arg(long)]
    pub drain: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// See [`Agent::Keep`].
#[derive(Debug, clap::Args)]
pub struct KeepProgram {
    /// Held while the program runs
    #[arg(long)]
    pub lock: PathBuf,
    /// The process that asked for it
    #[arg(long)]
    pub parent: u32,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub program: Vec<OsString>,
}

/// An invite for one join.
#[derive(Debug, clap::Args)]
pub struct Invite {
    /// The only node that may use it
    pub node: Option<String>,
}

/// A join.
#[derive(Debug, clap::Args)]
pub struct Join {
    /// As `postrider invite` printed it, in quotes; - reads it from stdin
    pub url: String,
    /// What this home calls the mesh
    #[arg(long, value_name = "NAME")]
    pub mesh_as: Option<String>,
    /// What the mesh calls this home [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// What the mesh calls you [default: the account's name]
    #[arg(long, value_name = "NAME")]
    pub person: Option<String>,
    /// The authority that signed the broker's certificate (PEM), when this system does not know it
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Accept that words cross the network in the clear
    #[arg(long)]
    pub insecure_lan: bool,
}

/// The meshes of this home.
#[derive(Debug, Subcommand)]
pub enum Mesh {
    /// List them
    List,
    /// Leave one; its files stay
    Leave {
        /// Its name here
        name: String,
    },
    /// Try a parked one again
    Resume {
        /// Its name here
        name: String,
    },
    /// Show or change what the owner decides
    Policy {
        /// open or declared
        #[arg(long)]
        topics: Option<String>,
        /// Days an accepted id is remembered, or permanent
        #[arg(long, value_name = "DAYS")]
        dedupe: Option<String>,
        /// prefer_newest or prefer_oldest
        #[arg(long)]
        connections: Option<String>,
    },
}

/// Tokens for direct HTTP callers.
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make one for the member --as names (a new name becomes a service); it is shown once
    Create {
        /// What it may do
        #[arg(long, value_delimiter = ',', default_value = "send,read")]
        scope: Vec<Scope>,
    },
    /// List them, without their secrets
    List,
    /// Take one back
    Revoke {
        /// As the list shows it
        id: u64,
    },
}

/// What a token's bearer may do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Scope {
    /// Send messages
    Send,
    /// Read conversations
    Read,
    /// Use the hub
    Hub,
}

/// Webhooks.
#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// Make a member whose messages are pushed to an address; prints its secret once
    Add {
        /// The member's name
        name: String,
        /// Where to push
        url: String,
        /// Topics delivered to it, beside direct messages and mentions
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        topic: Vec<String>,
    },
    /// List them
    List,
    /// Give one a new secret; the old one signs beside it for a while
    Rotate {
        /// The member's name
        name: String,
    },
    /// Start a disabled one again
    Enable {
        /// The member's name
        name: String,
    },
    /// Remove one with what waits for it
    Remove {
        /// The member's name
        name: String,
    },
}
