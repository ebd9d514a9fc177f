//! Words of an operator.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;

/// The daemon of this home.
#[derive(Debug, Subcommand)]
pub enum Daemon {
    /// Start the daemon alone, without a broker
    Up {
        /// Hand the prompt back once it runs
        #[arg(long)]
        detach: bool,
    },
    /// Stop it; queued work stays on disk
    Down,
    /// Show the link, the outbox and the inbox
    Status,
    /// Print the log of a detached process
    Logs {
        /// At most so many lines, the last
        #[arg(long, default_value = "100", value_name = "N")]
        lines: usize,
    },
    /// What was handed over and where it is
    #[command(subcommand)]
    Outbox(Outbox),
    /// Replace the loopback door's token; the old one is taken for 60 s more
    RotateToken,
    /// Carry what can be read of a damaged mailbox into a new file
    Recover,
    /// Keep this home's keys although the machine looks like another
    AcceptHost,
    /// Give this home new keys: it must join its meshes again
    Remint,
}

/// The outbox.
#[derive(Debug, Subcommand)]
pub enum Outbox {
    /// List rows, newest last
    List {
        /// pending, inflight, done, dead or aborted [default: all but done]
        #[arg(long)]
        status: Option<String>,
        /// At most so many
        #[arg(long, default_value = "50", value_name = "N")]
        limit: usize,
    },
    /// Show one row with its chain of successors
    Inspect {
        /// The row, or its last six or more characters
        id: String,
    },
    /// Give a row another try under a new id; asks the broker first
    Requeue(Requeue),
    /// Retire a row; its id stays used
    Abort {
        /// The row, or its last six or more characters
        id: String,
    },
    /// Make room: free the words of rows that have ended; ids stay used
    Prune {
        /// Free them; without it, say what would be freed
        #[arg(long)]
        confirm: bool,
        /// done, dead or aborted [default: all three]
        #[arg(long)]
        status: Option<String>,
    },
}

/// See [`Outbox::Requeue`].
#[derive(Debug, clap::Args)]
pub struct Requeue {
    /// The row, or its last six or more characters
    #[arg(long)]
    pub id: String,
    /// The new id
    #[arg(long, value_name = "ID", conflicts_with = "auto")]
    pub new_client_id: Option<String>,
    /// Mint the new id (the default)
    #[arg(long)]
    pub auto: bool,
    /// A file with other words
    #[arg(long, value_name = "FILE")]
    pub patch_payload: Option<PathBuf>,
    /// Go on although nobody can say whether the broker has it
    #[arg(long)]
    pub force_duplicate: bool,
}

/// A broker alone.
#[derive(Debug, Subcommand)]
pub enum Broker {
    /// Serve a mesh
    Serve(Box<Serve>),
    /// Audit the books of a broker that is not running; exit 1 when they disagree
    Check {
        /// sqlite:PATH or postgres://…
        #[arg(long, value_name = "STORE", env = "POSTRIDER_STORE", hide_env_values = true)]
        store: Option<String>,
    },
}

/// See [`Broker::Serve`].
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7440")]
    pub listen: SocketAddr,
    /// sqlite:PATH or postgres://… [default: the home's ledger]
    #[arg(long, value_name = "STORE", env = "POSTRIDER_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// memory or redis://…
    #[arg(
        long,
        value_name = "LIMITER",
        default_value = "memory",
        env = "POSTRIDER_LIMITER",
        hide_env_values = true
    )]
    pub limiter: String,
    /// Where nodes elsewhere reach this broker, through a proxy that speaks TLS
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Accept that words cross the network in the clear
    #[arg(long)]
    pub insecure_lan: bool,
    /// The door's certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Messages a second and burst of one member (RATE or RATE:BURST)
    #[arg(long, value_name = "QUOTA")]
    pub limit_member: Option<String>,
    /// Messages a second and burst of the whole mesh
    #[arg(long, value_name = "QUOTA")]
    pub limit_mesh: Option<String>,
    /// Days messages are kept, at least 90 [default: for ever]
    #[arg(long, value_name = "DAYS")]
    pub message_retention: Option<u32>,
    /// A private host that webhooks may reach; may be given several times
    #[arg(long, value_name = "HOST")]
    pub webhook_allow_host: Vec<String>,
}
