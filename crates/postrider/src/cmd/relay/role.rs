//! The relay as a role of a process: alone in `relay serve`, or beside broker and daemon in `up`.

use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use daemon::home::Home;
use model::{Clock, Entropy, ErrorCode, OsEntropy, limits};
use net::Secret;
use net::client::Target;
use net::local::{Lock, LockError};
use net::serve::{Door, serve};
use relay::{AuthMode, Config, Relay};
use sqlite::Stores;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::door::{folder, socket};
use crate::args;
use crate::failure::Failure;

/// Where the seed's users keep an upstream's address, after our own name for it.
const UPSTREAM_NAMES: [&str; 2] = ["STATEHUB_UPSTREAM_URL", "API_BASE"];
pub(super) const UPSTREAM_DEFAULT: &str = "http://127.0.0.1:8000";

/// A relay with its doors bound and its outbox open; nothing is served before [`Role::run`].
pub struct Role {
    /// Where requests go.
    pub upstream: String,
    /// The file of what waits.
    pub outbox: PathBuf,
    /// The relay itself, for the page.
    pub relay: Relay,
    address: SocketAddr,
    listener: TcpListener,
    operator: UnixListener,
    lock: Lock,
}

impl Role {
    /// Takes the relay's lock of `home`, binds its doors and opens its outbox.
    pub async fn open(
        asked: &args::RelayServe,
        home: &Home,
        clock: Arc<dyn Clock>,
        stores: &Stores,
    ) -> Result<Self, Failure> {
        if !asked.listen.ip().is_loopback() {
            return Err(Failure::usage(format!(
                "{} is open to other machines, and this door trusts its host",
                asked.listen
            ))
            .fix("postrider relay serve --listen 127.0.0.1:18080"));
        }
        let place = folder(home);
        net::local::private_folder(&place).with_context(|| place.display().to_string())?;
        let lock = net::local::lock_exclusive(&place.join("lock")).map_err(held)?;
        let operator = net::local::bind_unix(&socket(home)?, &lock)
            .map_err(|error| Failure::refused(ErrorCode::Unavailable, error.to_string()))?;
        let listener = TcpListener::bind(asked.listen).await.map_err(|error| {
            Failure::refused(
                ErrorCode::Unavailable,
                format!("{} cannot be listened at: {error}", asked.listen),
            )
        })?;
        let address = listener.local_addr().context("a bound listener has an address")?;
        let config = Config { stores: stores.clone(), ..config(asked, &place, address)? };
        let (upstream, outbox) = (config.upstream.to_string(), config.outbox.clone());
        let relay = Relay::open(config, clock, Arc::new(OsEntropy)).await.map_err(anyhow::Error::from)?;
        Ok(Self { upstream, outbox, relay, address, listener, operator, lock })
    }

    /// Serves callers and the operator and replays what waits, until `stop`; then closes the file.
    pub async fn run(self, stop: CancellationToken) {
        let Self { relay, listener, operator, lock, .. } = self;
        tokio::join!(
            serve(Door::tcp(listener).with_bounds(bounds()), relay.callers(), stop.clone()),
            serve(
                Door::unix(operator).with_bounds(stopping(net::serve::Bounds::default())),
                relay::operator_router(&relay),
                stop.clone(),
            ),
            relay.drain(stop.clone()),
        );
        relay.close().await;
        // Only now: whoever takes it may open the file.
        drop(lock);
    }

    /// Where callers reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Callers of this host never prove who they are on the connection, and a host may have many agents.
fn bounds() -> net::serve::Bounds {
    let bounds = stopping(net::serve::Bounds::default());
    net::serve::Bounds { unauthenticated_per_address_max: bounds.connections_max, ..bounds }
}

/// A relay ends sooner than a broker: whatever is cut was stored before it was sent.
fn stopping(bounds: net::serve::Bounds) -> net::serve::Bounds {
    net::serve::Bounds { drain_timeout: limits::RELAY_STOP_TIMEOUT, ..bounds }
}

fn config(asked: &args::RelayServe, place: &Path, address: SocketAddr) -> Result<Config, Failure> {
    let url =
        asked.upstream.clone().or_else(|| UPSTREAM_NAMES.iter().find_map(|name| std::env::var(name).ok()));
    let url = url.unwrap_or_else(|| UPSTREAM_DEFAULT.to_owned());
    let upstream = Target::of_url(&url).map_err(|error| Failure::usage(error.to_string()))?;
    if is_itself(&upstream, address) {
        return Err(
            Failure::usage("the upstream is this relay itself").fix("postrider relay serve --upstream URL")
        );
    }
    let outbox = asked.outbox.clone().or_else(|| std::env::var_os("STATEHUB_OUTBOX_PATH").map(PathBuf::from));
    let mut config = Config::new(upstream, outbox.unwrap_or_else(|| place.join("outbox.db")));
    if let Some(file) = &asked.routes {
        config.routes = relay::parse_routes(&read(file)?)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    }
    config.auth_mode = match asked.auth_mode {
        args::RelayAuth::Strict => AuthMode::Strict,
        args::RelayAuth::Relay => AuthMode::Relay,
    };
    if let Some(file) = &asked.upstream_token_file {
        config.upstream_token = Some(Secret::from(read(file)?.trim().to_owned()));
    } else if config.auth_mode == AuthMode::Relay {
        return Err(Failure::usage("--auth-mode relay needs the relay's own token")
            .fix("postrider relay serve --auth-mode relay --upstream-token-file FILE"));
    }
    config.local_token = Some(local_token(&place.join("token"), &OsEntropy)?);
    config.health_path.clone_from(&asked.health);
    (config.drain_per_second, config.rows_max) = (asked.drain_rate, asked.rows_max);
    config.answer_timeout = asked.answer_timeout;
    Ok(config)
}

/// Whether requests would come straight back.
fn is_itself(upstream: &Target, own: SocketAddr) -> bool {
    match upstream {
        Target::Unix(_) => false,
        Target::Tcp { host, port, .. } => {
            let local =
                host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
            *port == own.port() && local
        }
    }
}

/// The token callers show; made at the first start, for this account alone.
fn local_token(path: &Path, entropy: &dyn Entropy) -> Result<Secret, Failure> {
    if path.exists() {
        return Ok(Secret::from(read(path)?.trim().to_owned()));
    }
    let token = Secret::mint(entropy);
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, token.reveal().as_bytes()));
    written.with_context(|| path.display().to_string())?;
    Ok(token)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))
}

fn held(error: LockError) -> Failure {
    let shown = error.to_string();
    match error {
        LockError::Held { .. } => {
            Failure::refused(ErrorCode::Unavailable, "a relay of this home runs already")
                .line("Nothing was changed.")
                .fix("postrider relay outbox status")
        }
        LockError::Unusable { .. } => Failure::refused(ErrorCode::Unavailable, shown),
    }
}
