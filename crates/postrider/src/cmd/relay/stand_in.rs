//! A stand-in for a relay that does not run: the operator's door on the outbox's file, under the relay's lock, for as
//! long as one command needs it. Callers are not served.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{ErrorCode, OsEntropy};
use net::Secret;
use net::client::Target;
use net::local::Lock;
use net::serve::{Door, serve};
use relay::{Config, Relay};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::door::{folder, socket};
use super::role::UPSTREAM_DEFAULT;
use crate::clock::clock;
use crate::cmd::Context;
use crate::failure::Failure;

/// Where `relay serve` is told to keep its file, in the order it looks.
const OUTBOX_NAMES: [&str; 2] = ["POSTRIDER_RELAY_OUTBOX", "STATEHUB_OUTBOX_PATH"];

/// What the command at hand is about.
pub enum Wants<'a> {
    /// To see or to decide; what waits goes on waiting.
    Operate,
    /// To send what waits.
    Replay {
        /// Where to, when it is not where the last relay sent.
        upstream: Option<&'a str>,
        /// A file with the relay's own token there.
        token_file: Option<&'a Path>,
    },
}

/// The file's only holder while it lives.
pub struct StandIn {
    relay: Relay,
    doors: JoinSet<()>,
    stop: CancellationToken,
    lock: Lock,
}

impl StandIn {
    /// Opens the outbox of `context`'s home. Nothing when there is none, or when somebody holds its lock.
    pub async fn open(wants: &Wants<'_>, context: &Context) -> Result<Option<Self>, Failure> {
        let (home, place) = (&context.home, folder(&context.home));
        let named = OUTBOX_NAMES.iter().find_map(std::env::var_os).map(PathBuf::from);
        let outbox = named.unwrap_or_else(|| place.join("outbox.db"));
        if !outbox.exists() || !place.exists() {
            return Ok(None);
        }
        let Ok(lock) = net::local::lock_exclusive(&place.join("lock")) else { return Ok(None) };
        let config = config(outbox, wants).await?;
        let relay = Relay::open(config, clock(), Arc::new(OsEntropy)).await.map_err(anyhow::Error::from)?;
        let operator = net::local::bind_unix(&socket(home)?, &lock)
            .map_err(|error| Failure::refused(ErrorCode::Unavailable, error.to_string()))?;
        let (stop, mut doors) = (CancellationToken::new(), JoinSet::new());
        let (router, stopped) = (relay::operator_router(&relay), stop.clone());
        doors.spawn(async move {
            serve(Door::unix(operator), router, stopped).await;
        });
        relay.look().await;
        if let Wants::Replay { .. } = wants {
            let (relay, stopped) = (relay.clone(), stop.clone());
            doors.spawn(async move { relay.drain(stopped).await });
        }
        Ok(Some(Self { relay, doors, stop, lock }))
    }

    /// Closes the file and lets the lock go.
    pub async fn close(self) {
        let Self { relay, doors, stop, lock } = self;
        stop.cancel();
        doors.join_all().await;
        relay.close().await;
        drop(lock);
    }
}

async fn config(outbox: PathBuf, wants: &Wants<'_>) -> Result<Config, Failure> {
    let (asked, token_file) = match wants {
        Wants::Operate => (None, None),
        Wants::Replay { upstream, token_file } => (upstream.map(str::to_owned), *token_file),
    };
    let url = match asked {
        Some(url) => url,
        None => Relay::last_upstream(&outbox, &*clock(), Arc::new(OsEntropy))
            .await
            .unwrap_or_else(|| UPSTREAM_DEFAULT.to_owned()),
    };
    let upstream = Target::of_url(&url).map_err(|error| Failure::usage(error.to_string()))?;
    let mut config = Config::new(upstream, outbox);
    if let Some(file) = token_file {
        let token = std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))?;
        config.upstream_token = Some(Secret::from(token.trim().to_owned()));
    }
    Ok(config)
}
