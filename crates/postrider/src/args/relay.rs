//! Words of the relay.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use super::seconds;

/// The edge relay of this host.
#[derive(Debug, Subcommand)]
pub enum Relay {
    /// Pass requests on, and keep writes while the upstream is away
    Serve(Box<RelayServe>),
    /// What waits, and what a person may do about it
    #[command(subcommand)]
    Outbox(RelayOutbox),
    /// Go through the checklist after an outage; exit 1 when a person must act
    Doctor,
}

/// What becomes of callers' own credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RelayAuth {
    /// Forwarded; such requests never wait
    Strict,
    /// Dropped; the relay asks with its own token
    Relay,
}

/// The relay beside broker and daemon; the rest is as it comes, `relay serve` has every choice.
#[derive(Debug, clap::Args)]
pub struct RelayBeside {
    /// Run the relay in the same process, before this API [default: as for relay serve]
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub relay: Option<Option<String>>,
    /// Where callers reach the relay [default: 127.0.0.1:18080]
    #[arg(long, value_name = "ADDR", requires = "relay")]
    pub relay_listen: Option<SocketAddr>,
    /// Which writes may wait, for an API that is not the hub (TOML)
    #[arg(long, value_name = "FILE", requires = "relay")]
    pub relay_routes: Option<PathBuf>,
    /// What becomes of callers' own credentials [default: strict]
    #[arg(long, value_enum, requires = "relay")]
    pub relay_auth_mode: Option<RelayAuth>,
    /// A file with the relay's own token at the upstream
    #[arg(long, value_name = "FILE", requires = "relay")]
    pub relay_token_file: Option<PathBuf>,
}

/// See [`Relay::Serve`].
#[derive(Debug, clap::Args)]
pub struct RelayServe {
    /// Where requests go [default: STATEHUB_UPSTREAM_URL, API_BASE, else http://127.0.0.1:8000]
    #[arg(long, value_name = "URL", env = "POSTRIDER_UPSTREAM_URL")]
    pub upstream: Option<String>,
    /// Where callers reach the relay
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:18080")]
    pub listen: SocketAddr,
    /// Which writes may wait, for an API that is not the hub (TOML)
    #[arg(long, value_name = "FILE")]
    pub routes: Option<PathBuf>,
    /// The outbox's file [default: STATEHUB_OUTBOX_PATH, else the home's]
    #[arg(long, value_name = "FILE", env = "POSTRIDER_RELAY_OUTBOX")]
    pub outbox: Option<PathBuf>,
    /// What becomes of callers' own credentials
    #[arg(long, value_enum, default_value = "strict")]
    pub auth_mode: RelayAuth,
    /// A file with the relay's own token at the upstream
    #[arg(long, value_name = "FILE")]
    pub upstream_token_file: Option<PathBuf>,
    /// Below the upstream's address: where it says that it lives
    #[arg(long, value_name = "PATH", default_value = "/health")]
    pub health: String,
    /// Waiting writes sent in a second
    #[arg(long, value_name = "N", default_value_t = model::limits::RELAY_DRAIN_PER_SECOND)]
    pub drain_rate: u32,
    /// Writes that may wait
    #[arg(long, value_name = "N", default_value_t = model::limits::RELAY_ROWS_MAX)]
    pub rows_max: u64,
    /// How long the upstream's answer to a write is awaited
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    pub answer_timeout: Duration,
}

/// See [`Relay::Outbox`].
#[derive(Debug, Subcommand)]
pub enum RelayOutbox {
    /// Show the upstream and what waits for it
    Status,
    /// List envelopes, oldest first
    List {
        /// queued, inflight, done, conflict, rejected, expired, cancelled or superseded [default: all but done]
        #[arg(long)]
        status: Option<String>,
        /// At most so many
        #[arg(long, default_value = "50", value_name = "N")]
        limit: usize,
    },
    /// Show one envelope with its body; a conflict with both sides
    Inspect {
        /// The envelope, or its last six or more characters
        id: String,
    },
    /// Send what waits now; exit 0 nothing waits, 2 a person must decide, 3 some still waits
    Replay {
        /// The upstream it must be
        #[arg(long, value_name = "URL")]
        upstream_url: Option<String>,
        /// A file with the relay's own token there, for when no relay runs
        #[arg(long, value_name = "FILE")]
        upstream_token_file: Option<PathBuf>,
        /// Take the upstream as the right one although it says to be another
        #[arg(long)]
        force_upstream: bool,
        /// How long to look on
        #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
        timeout: Duration,
    },
    /// Write every envelope to a file only you can read
    Export {
        /// The file
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Give an envelope another try; asks the upstream first when it may have left
    Retry {
        /// The envelope, or its last six or more characters
        id: String,
        /// Go on although nobody can say whether the upstream has it
        #[arg(long)]
        force_duplicate: bool,
    },
    /// Withdraw an envelope
    Cancel {
        /// The envelope, or its last six or more characters
        id: String,
    },
    /// Decide about a conflict
    Resolve {
        /// The envelope, or its last six or more characters
        id: String,
        /// Send mine, on the version that was shown
        #[arg(long, group = "choice")]
        keep: bool,
        /// Leave theirs
        #[arg(long, group = "choice")]
        drop: bool,
        /// Send this body instead
        #[arg(long, value_name = "FILE", group = "choice")]
        edit: Option<PathBuf>,
    },
}

impl RelayBeside {
    /// What `relay serve` would be told, when the relay is wanted.
    pub fn serve(&self) -> Option<RelayServe> {
        let upstream = self.relay.clone()?;
        // Defaults have one owner, the words of `relay serve`.
        let Served { mut relay } = Served::parse_from(["relay"]);
        relay.upstream = upstream.or(relay.upstream);
        relay.listen = self.relay_listen.unwrap_or(relay.listen);
        relay.routes.clone_from(&self.relay_routes);
        relay.auth_mode = self.relay_auth_mode.unwrap_or(relay.auth_mode);
        relay.upstream_token_file.clone_from(&self.relay_token_file);
        Some(relay)
    }

    /// The same as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let Some(upstream) = &self.relay else { return Vec::new() };
        let mut words = vec![upstream.as_ref().map_or("--relay".to_owned(), |url| format!("--relay={url}"))];
        words.extend(self.relay_listen.map(|listen| format!("--relay-listen={listen}")));
        let file = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!("--relay-{name}={}", path.display()))
        };
        words.extend(file("routes", &self.relay_routes));
        words.extend(file("token-file", &self.relay_token_file));
        words.extend(self.relay_auth_mode.and_then(|mode| {
            mode.to_possible_value().map(|mode| format!("--relay-auth-mode={}", mode.get_name()))
        }));
        words
    }
}

#[derive(Parser)]
struct Served {
    #[command(flatten)]
    relay: RelayServe,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser)]
    struct Beside {
        #[command(flatten)]
        beside: RelayBeside,
    }

    fn beside(words: &[&str]) -> RelayBeside {
        Beside::parse_from(["up"].iter().chain(words)).beside
    }

    #[test]
    fn a_relay_beside_is_told_what_relay_serve_would_be() {
        assert!(beside(&[]).serve().is_none());
        let plain = beside(&["--relay", "http://hub.lan/hub"]).serve().unwrap();
        assert_eq!(plain.upstream.as_deref(), Some("http://hub.lan/hub"));
        assert_eq!((plain.listen.port(), plain.auth_mode), (18080, RelayAuth::Strict));
        let bare = beside(&["--relay", "--relay-listen", "127.0.0.1:0"]).serve().unwrap();
        assert_eq!((bare.listen.port(), bare.health.as_str()), (0, "/health"));
    }

    #[test]
    fn its_words_say_the_same_again() {
        let words = [
            "--relay=http://h/hub",
            "--relay-listen=127.0.0.1:1",
            "--relay-routes=r.toml",
            "--relay-token-file=t",
            "--relay-auth-mode=relay",
        ];
        assert_eq!(beside(&words).words(), words);
        assert_eq!(beside(&["--relay"]).words(), ["--relay"]);
        assert!(beside(&[]).words().is_empty());
    }

    #[test]
    fn a_choice_about_no_relay_is_wrong_usage() {
        assert!(Beside::try_parse_from(["up", "--relay-listen", "127.0.0.1:0"]).is_err());
    }
}
