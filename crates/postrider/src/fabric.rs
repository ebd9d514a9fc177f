//! The fabric door: a broker over its books, served on one address.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use broker::limiter::{Budgets, Counters, MemoryLimiter};
use broker::{Broker, Config, Parts};
use daemon::Invites;
use ledger::{MeshSetup, Policies, SqliteLedger};
use model::{Clock, Entropy, ErrorCode};
use net::Secret;
use net::guard::{Hosts, Origins, Policy, Scheme, protect, with_fallbacks};
use net::handshake::Invite;
use net::serve::{Door, serve};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::home::shown;

/// Where a broker listens when nobody says.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7440);

/// The mesh an empty home gets.
pub const OWN_MESH: &str = "home";

/// A broker on its door.
pub struct Fabric {
    pub broker: Broker,
    pub url: String,
    ledger: Arc<SqliteLedger>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Lets the home of this very process into its own mesh.
struct OwnInvites {
    broker: Broker,
    url: String,
}

impl Fabric {
    /// Opens the books at `path` and serves them on `listener`.
    pub async fn open(
        path: &Path,
        listener: TcpListener,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Fabric, Failure> {
        let address = listener.local_addr().map_err(anyhow::Error::from)?;
        let ledger = SqliteLedger::open(path, clock.clone(), entropy.clone()).map_err(|error| {
            Failure::refused(ErrorCode::Unavailable, error.to_string())
                .line(format!("The broker's books are {}; nothing was changed.", shown(path)))
        })?;
        let ledger = Arc::new(ledger);
        let (counters, budgets) = (Arc::new(Counters::default()), Budgets::default());
        let parts = Parts {
            ledger: ledger.clone(),
            limiter: Arc::new(MemoryLimiter::new(budgets, clock.clone(), counters.clone())),
            limiter_counters: counters,
            budgets,
            clock,
            entropy,
            config: Config::new(
                MeshSetup { slug: OWN_MESH.to_owned(), policies: Policies::default() },
                env!("CARGO_PKG_VERSION"),
            ),
        };
        let broker = Broker::open(parts).await.map_err(anyhow::Error::from)?;
        broker.start();
        let policy = Policy::new(Hosts::listed(address, Scheme::Http, []), Origins::Own);
        let router = protect(with_fallbacks(broker.router()), policy);
        let stop = CancellationToken::new();
        let door_stop = stop.clone();
        let serving = tokio::spawn(async move {
            let ended = serve(Door::tcp(listener), router, door_stop).await;
            tracing::debug!(cut = ended.cut, "the fabric door is closed");
        });
        Ok(Fabric { broker, url: format!("http://{address}"), ledger, stop, serving })
    }

    /// Invites for this process's own home.
    pub fn invites(&self) -> Arc<dyn Invites> {
        Arc::new(OwnInvites { broker: self.broker.clone(), url: self.url.clone() })
    }

    /// Ends answers in flight, then background work, then closes the books.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.serving.await {
            tracing::error!(%error, "the fabric door ended badly");
        }
        self.broker.stop().await;
        self.ledger.db().clone().close().await;
    }
}

#[async_trait]
impl Invites for OwnInvites {
    async fn fresh(&self) -> Option<Invite> {
        let made = match self.broker.wants_owner().await {
            Ok(true) => self.broker.owner_invite().await,
            Ok(false) => self.broker.create_invite(None).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(invite) => Some(Invite {
                url: self.url.clone(),
                token: Secret::from(invite.token),
                issuer_key: invite.issuer_key,
            }),
            Err(error) => {
                tracing::warn!(%error, "no invite for this home could be made");
                None
            }
        }
    }
}

/// Binds `asked`; without it the address this home had last, then the default, then any free port.
pub async fn bind(asked: Option<SocketAddr>, last: Option<SocketAddr>) -> Result<TcpListener, Failure> {
    if let Some(asked) = asked {
        return TcpListener::bind(asked).await.map_err(|error| {
            Failure::refused(ErrorCode::Unavailable, format!("{asked} cannot be listened on: {error}"))
                .fix("postrider up --listen 127.0.0.1:0")
        });
    }
    for candidate in last.into_iter().chain([LISTEN_DEFAULT]) {
        if let Ok(listener) = TcpListener::bind(candidate).await {
            return Ok(listener);
        }
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(anyhow::Error::from)?)
}
