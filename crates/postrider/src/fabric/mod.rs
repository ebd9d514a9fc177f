//! The fabric door: a broker over its books, served on one address.

mod panel;
mod store;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use broker::limiter::{self, Backend, Budgets, Counters};
use broker::{Broker, Config, Parts};
use daemon::Invites;
use ledger::{MeshSetup, Policies};
use model::webhook::Host;
use model::{Clock, Entropy, ErrorCode, limits};
use net::Secret;
use net::guard::{Hosts, Origins, Policy, Site};
use net::handshake::Invite;
use net::serve::{Door, serve};
use net::tls::Identity;
use relay::Relay;
use sqlite::Stores;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

pub use store::{Books, Store};

/// Where a broker listens when nobody says.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7440);

/// The mesh an empty store gets.
pub const OWN_MESH: &str = "home";

/// What an operator decides about a broker.
pub struct Setup {
    /// Where the books are.
    pub store: Store,
    /// The mesh an empty store gets.
    pub mesh: String,
    /// Who keeps the budgets.
    pub limiter: Backend,
    /// How much a member and the mesh may ask.
    pub budgets: Budgets,
    /// Where nodes elsewhere reach this broker.
    pub public_url: Option<String>,
    /// The door's own TLS.
    pub identity: Option<Identity>,
    /// How long messages are kept; nothing means for ever.
    pub message_retention: Option<Duration>,
    /// Private hosts that webhooks may reach.
    pub webhook_allowed_hosts: Vec<Host>,
    /// The local door of the home in this process, for its person's browser.
    pub local_door: Option<PathBuf>,
    /// The relay in this process, for the same browser.
    pub relay: Option<Relay>,
}

/// A broker on its door.
pub struct Fabric {
    pub broker: Broker,
    pub url: String,
    books: Books,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Lets the home of this very process into its own mesh.
struct OwnInvites {
    broker: Broker,
    url: String,
}

impl Setup {
    /// A broker for this machine alone, with everything as it comes.
    pub fn local(store: Store) -> Self {
        Self {
            store,
            mesh: OWN_MESH.to_owned(),
            limiter: Backend::Memory,
            budgets: Budgets::default(),
            public_url: None,
            identity: None,
            message_retention: None,
            webhook_allowed_hosts: Vec::new(),
            local_door: None,
            relay: None,
        }
    }
}

impl Fabric {
    /// Opens the books and serves them on `listener`.
    pub async fn open(
        setup: Setup,
        listener: TcpListener,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        stores: &Stores,
    ) -> Result<Fabric, Failure> {
        let address = listener.local_addr().map_err(anyhow::Error::from)?;
        let books = setup.store.open(clock.clone(), entropy.clone()).await?;
        books.enter(stores);
        let counters = Arc::new(Counters::default());
        let parts = Parts {
            ledger: books.ledger(),
            stores: stores.clone(),
            limiter: limiter::open(setup.limiter, setup.budgets, clock.clone(), counters.clone()).await,
            limiter_counters: counters,
            budgets: setup.budgets,
            clock,
            entropy,
            config: Config {
                mesh: MeshSetup { slug: setup.mesh, policies: Policies::default() },
                version: env!("CARGO_PKG_VERSION").to_owned(),
                public_url: setup.public_url.clone(),
                message_retention: setup.message_retention,
                webhook_allowed_hosts: setup.webhook_allowed_hosts,
                secure_page: setup.identity.is_some()
                    || setup.public_url.as_ref().is_some_and(|url| url.starts_with("https://")),
                subscriber_stall_max: limits::SUBSCRIBER_STALL_MAX,
            },
        };
        let broker = Broker::open(parts)
            .await
            .map_err(|error| Failure::refused(ErrorCode::Unavailable, error.to_string()))?;
        broker.start();
        let scheme =
            if setup.identity.is_some() { net::guard::Scheme::Https } else { net::guard::Scheme::Http };
        let public = setup.public_url.as_deref().and_then(Site::of_url);
        let policy = Policy::new(Hosts::listed(address, scheme, public), Origins::Own);
        let panel =
            setup.local_door.map(|socket| panel::routes(broker.clone(), socket, setup.relay.as_ref()));
        let callers = broker.callers(policy, panel.unwrap_or_default());
        let door = match setup.identity {
            Some(identity) => Door::tls(listener, identity),
            None => Door::tcp(listener),
        };
        let stop = CancellationToken::new();
        let door_stop = stop.clone();
        let serving = tokio::spawn(async move {
            let ended = serve(door, callers, door_stop).await;
            tracing::debug!(cut = ended.cut, "the fabric door is closed");
        });
        Ok(Fabric { broker, url: format!("{}{address}", scheme.prefix()), books, stop, serving })
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
        self.books.close().await;
    }
}

#[async_trait]
impl Invites for OwnInvites {
    async fn fresh(&self) -> Option<Invite> {
        match invite(&self.broker, &self.url).await {
            Ok(invite) => Some(invite),
            Err(error) => {
                tracing::warn!(%error, "no invite for this home could be made");
                None
            }
        }
    }
}

/// An invite for one join at `url`: the owner's while the mesh has none.
pub async fn invite(broker: &Broker, url: &str) -> Result<Invite, ledger::StorageError> {
    let made = if broker.wants_owner().await? {
        broker.owner_invite().await?
    } else {
        broker.create_invite(None).await?
    };
    Ok(Invite { url: url.to_owned(), token: Secret::from(made.token), issuer_key: made.issuer_key })
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
