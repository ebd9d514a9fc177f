//! A broker to talk to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use broker::limiter::{Ask, Budgets, Counters, Limiter, MemoryLimiter, Verdict};
use broker::{Broker, Config, Parts, StartError};
use ledger::{ConnectionPolicy, Ledger, MeshSetup, Policies, SqliteLedger, TopicPolicy};
use model::outbox::DedupeWindow;
use model::webhook::Host;
use model::{Clock, OsEntropy, SystemClock, Timestamp};
use net::client::{Client, Target};
use net::guard::{Hosts, Origins, Policy, Scheme};
use net::serve::{Door, serve};
use tempfile::TempDir;
use testkit::ManualClock;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// A broker, its ledger and its door.
pub struct Scene {
    pub broker: Broker,
    pub ledger: Arc<dyn Ledger>,
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<net::serve::Ended>,
    _folder: Option<TempDir>,
}

/// What a scene may have of its own.
pub struct Props {
    pub clock: Arc<dyn Clock>,
    pub limiter: Option<Arc<dyn Limiter>>,
    pub policies: Policies,
    pub message_retention: Option<Duration>,
    pub webhook_allowed_hosts: Vec<Host>,
    pub subscriber_stall_max: Duration,
}

/// Lets nothing pass.
pub struct Saturated;

#[async_trait]
impl Limiter for Saturated {
    async fn consume(&self, _: &Ask) -> Verdict {
        Verdict::Denied { retry_after: Duration::from_millis(1_500) }
    }
}

impl Default for Props {
    fn default() -> Self {
        let policies = Policies {
            topics: TopicPolicy::Open,
            dedupe: DedupeWindow::Days(365),
            connections: ConnectionPolicy::PreferNewest,
        };
        Self {
            clock: Arc::new(SystemClock::start()),
            limiter: None,
            policies,
            message_retention: None,
            webhook_allowed_hosts: Vec::new(),
            subscriber_stall_max: model::limits::SUBSCRIBER_STALL_MAX,
        }
    }
}

impl Props {
    /// With a clock the test moves.
    pub fn with_manual_clock() -> (Self, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_798_761_600_000_000)));
        (Self { clock: clock.clone(), ..Self::default() }, clock)
    }
}

impl Scene {
    pub async fn open() -> Self {
        Self::with(Props::default()).await
    }

    pub async fn with(props: Props) -> Self {
        Self::try_with(props).await.unwrap()
    }

    pub async fn try_with(props: Props) -> Result<Self, StartError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let ledger = SqliteLedger::open(&path, props.clock.clone(), Arc::new(OsEntropy)).unwrap();
        let scene = Self::over(Arc::new(ledger), props).await?;
        Ok(Self { _folder: Some(folder), ..scene })
    }

    /// A broker of its own over books that others may use too.
    pub async fn over(ledger: Arc<dyn Ledger>, props: Props) -> Result<Self, StartError> {
        let Props {
            clock,
            limiter,
            policies,
            message_retention,
            webhook_allowed_hosts,
            subscriber_stall_max,
        } = props;
        let mesh = MeshSetup { slug: "home".into(), policies };
        let (entropy, counters, budgets) =
            (Arc::new(OsEntropy), Arc::new(Counters::default()), Budgets::default());
        let limiter =
            limiter.unwrap_or_else(|| Arc::new(MemoryLimiter::new(budgets, clock.clone(), counters.clone())));
        let parts = Parts {
            ledger: ledger.clone(),
            stores: sqlite::Stores::default(),
            limiter,
            limiter_counters: counters,
            budgets,
            clock,
            entropy,
            config: Config {
                message_retention,
                webhook_allowed_hosts,
                subscriber_stall_max,
                ..Config::new(mesh, "test")
            },
        };
        let broker = Broker::open(parts).await?;
        broker.start();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let policy = Policy::new(Hosts::listed(address, Scheme::Http, []), Origins::Own);
        let callers = broker.callers(policy, axum::Router::new());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(Door::tcp(listener), callers, stop.clone()));
        Ok(Self { broker, ledger, address, stop, serving, _folder: None })
    }

    /// A client of the door.
    pub fn client(&self) -> Client {
        Client::new(Target::of_url(&self.url()).unwrap())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same node at another broker of its mesh.
    pub fn node_here(&self, node: &Node) -> Node {
        node.at(self.client())
    }

    /// A node with a key of its own that nobody knows yet.
    pub fn stranger(&self, name: &str) -> Node {
        Node::new(name, self.client(), self.broker.issuer_key())
    }

    /// A node that joined by invite; its person has the node's name.
    pub async fn joined(&self, name: &str) -> Node {
        let node = self.stranger(name);
        let invite = self.broker.create_invite(None).await.unwrap();
        node.join(&invite.token).await.unwrap();
        node
    }

    /// The same as the mesh's owner.
    pub async fn owner(&self, name: &str) -> Node {
        let node = self.stranger(name);
        let invite = self.broker.owner_invite().await.unwrap();
        node.join(&invite.token).await.unwrap();
        node
    }

    /// Asks the door to stop and waits until it has; how many connections had to be cut.
    pub async fn stop(self) -> usize {
        self.stop.cancel();
        let ended = self.serving.await.unwrap();
        self.broker.stop().await;
        ended.cut
    }
}
