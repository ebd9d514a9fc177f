//! The broker as the binary sees it: opened over a ledger, merged onto a door, stopped.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::{HeaderMap, Method};
use ledger::{Ledger, LinkError, ManageError, Member, MeshSetup, Role, StorageError, Via};
use model::outbox::DedupeWindow;
use model::webhook::Host;
use model::{Clock, Entropy, ErrorCode, MemberName, NodeKey, admission, limits};
use net::guard::Policy;
use net::handshake::KeyPair;
use net::respond::Refusal;
use net::run_to_end;
use sqlite::Stores;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use utoipa_axum::router::OpenApiRouter;
use wire::Refused;
use wire::ask::Invite;
use wire::auth::MeshRef;
use wire::health::BrokerProblem;
use wire::session::SignIn;

use crate::accept::{Accept, Item, Sender, Word};
use crate::chat::{Escalations, Notices, Rooms};
use crate::door::Callers;
use crate::hub::UnderWay;
use crate::limiter::{Budgets, Counters, Limiter, RequestLimiter};
use crate::link::Links;
use crate::metrics::Metrics;
use crate::problems::ProblemList;
use crate::wayin::KnockRate;
use crate::webhook::Webhooks;
use crate::{chat, clock, direct, health, hub, janitor, link, openapi, page, session, wayin, webhook};

/// What a broker is made of.
pub struct Parts {
    /// The books.
    pub ledger: Arc<dyn Ledger>,
    /// The stores of the process: a broker is ready while all of them take writes.
    pub stores: Stores,
    /// Who keeps the budgets.
    pub limiter: Arc<dyn Limiter>,
    /// The limiter's own figures.
    pub limiter_counters: Arc<Counters>,
    /// The budgets themselves; the plain request limiter is made from them.
    pub budgets: Budgets,
    /// For scheduling only: facts carry the ledger's time.
    pub clock: Arc<dyn Clock>,
    /// For tokens and ids.
    pub entropy: Arc<dyn Entropy>,
    /// Everything else.
    pub config: Config,
}

/// What an operator decides.
#[derive(Clone, Debug)]
pub struct Config {
    /// The mesh an empty ledger gets.
    pub mesh: MeshSetup,
    /// Told to nodes, for people.
    pub version: String,
    /// Where nodes elsewhere reach this broker, for invites.
    pub public_url: Option<String>,
    /// Hosts webhooks may go to although they are not public (`--webhook-allow-host`).
    pub webhook_allowed_hosts: Vec<Host>,
    /// Whether browsers reach the page through TLS, so that its cookie must never travel without.
    pub secure_page: bool,
    /// How long a subscriber may take nothing before it is closed with 4408.
    pub subscriber_stall_max: Duration,
    /// How long messages are kept, at least [`limits::MESSAGE_RETENTION_DAYS_MIN`] days; nothing means for ever.
    pub message_retention: Option<Duration>,
}

/// Why a broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ledger.
    #[error("the ledger cannot be used: {0}")]
    Ledger(#[from] StorageError),
    /// Messages would be pruned while they may still be delivered.
    #[error("messages must be kept at least {} days", limits::MESSAGE_RETENTION_DAYS_MIN)]
    RetentionTooShort,
    /// Ids would be forgotten while copies may still be under way.
    #[error("accepted ids must be remembered at least {} days", limits::DEDUPE_DAYS_MIN)]
    DedupeWindowTooShort,
}

/// A running broker. Clones are handles to the same one.
#[derive(Clone)]
pub struct Broker {
    shared: Arc<Shared>,
}

/// What every handler and task of one broker shares.
pub(crate) struct Shared {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) stores: Stores,
    pub(crate) limiter: Arc<dyn Limiter>,
    pub(crate) limiter_counters: Arc<Counters>,
    pub(crate) requests: RequestLimiter,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) config: Config,
    pub(crate) mesh: MeshRef,
    pub(crate) issuer: KeyPair,
    pub(crate) metrics: Metrics,
    pub(crate) problems: ProblemList,
    pub(crate) links: Links,
    pub(crate) knocks: KnockRate,
    pub(crate) webhooks: Webhooks,
    pub(crate) rooms: Rooms,
    pub(crate) escalations: Escalations,
    pub(crate) notices: Notices,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) hub_under_way: UnderWay,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Broker {
    /// Reads the mesh and its issuer key; makes both on an empty ledger.
    pub async fn open(parts: Parts) -> Result<Broker, StartError> {
        let Parts { ledger, stores, limiter, limiter_counters, budgets, clock, entropy, config } = parts;
        config.check()?;
        let mesh = ledger.setup(config.mesh.clone()).await?;
        let issuer = KeyPair::from_secret(&ledger.issuer().await?.0);
        let escalations = Escalations::open(ledger.as_ref()).await?;
        let webhooks = Webhooks::new(config.webhook_allowed_hosts.clone(), &config.version);
        let shared = Shared {
            ledger,
            stores,
            limiter,
            limiter_counters,
            requests: RequestLimiter::new(budgets, clock.clone()),
            clock,
            entropy,
            config,
            mesh: MeshRef { id: mesh.id, slug: mesh.slug },
            issuer,
            metrics: Metrics::default(),
            problems: ProblemList::default(),
            links: Links::default(),
            knocks: KnockRate::default(),
            webhooks,
            rooms: Rooms::default(),
            escalations,
            notices: Notices::default(),
            streams: Arc::new(Semaphore::new(limits::CHAT_STREAMS_MAX)),
            hub_under_way: UnderWay::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        Ok(Broker { shared: Arc::new(shared) })
    }

    /// The whole fabric door, with `more` routes, behind its guard.
    pub fn callers(&self, policy: Policy, more: Router) -> Callers {
        Callers::new(self.shared.clone(), policy, self.routes().merge(more))
    }

    fn routes(&self) -> Router {
        let routes = OpenApiRouter::new()
            .merge(wayin::routes())
            .merge(link::routes())
            .merge(direct::routes())
            .merge(chat::routes())
            .merge(session::routes())
            .merge(hub::routes(&self.shared))
            .merge(health::routes());
        openapi::with_document(routes).merge(page::routes()).with_state(self.shared.clone())
    }

    /// Begins background work. Once.
    pub fn start(&self) {
        self.shared.tasks.spawn(janitor::keep(self.shared.clone()));
        self.shared.tasks.spawn(clock::keep(self.shared.clone()));
        self.shared.tasks.spawn(webhook::keep(self.shared.clone()));
        self.shared.tasks.spawn(chat::keep(self.shared.clone()));
    }

    /// Ends background work and waits for it. Links end with their door.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// The mesh it serves.
    pub fn mesh(&self) -> &MeshRef {
        &self.shared.mesh
    }

    /// The key whose signature joiners must see.
    pub fn issuer_key(&self) -> NodeKey {
        self.shared.issuer.public()
    }

    /// Whether nobody owns the mesh yet: time to hand out [`Broker::owner_invite`].
    pub async fn wants_owner(&self) -> Result<bool, StorageError> {
        Ok(!self.shared.ledger.has_owner().await?)
    }

    /// An invite whose person owns the mesh. The token is returned once and kept nowhere.
    pub async fn owner_invite(&self) -> Result<Invite, StorageError> {
        wayin::create_invite(&self.shared, None, Role::Owner).await
    }

    /// An invite for one join.
    pub async fn create_invite(&self, node: Option<model::NodeName>) -> Result<Invite, StorageError> {
        wayin::create_invite(&self.shared, node, Role::Member).await
    }

    /// A key with which a browser may sign in once as the member called `name`.
    pub async fn sign_in(&self, name: &MemberName) -> Result<SignIn, ManageError> {
        let found = self.shared.ledger.member_named(name).await?;
        let member = found.ok_or_else(|| ManageError::MemberNotFound(name.to_string()))?;
        session::create_sign_in(&self.shared, member.id).await
    }

    /// The member whose browser sent these headers; a refusal when nobody is signed in.
    pub async fn signed_in(&self, method: &Method, headers: &HeaderMap) -> Result<Member, Refusal> {
        Ok(self.shared.credential(method, headers).await?.member)
    }

    /// What an operator has to look at although the broker serves.
    pub fn problems(&self) -> Vec<BrokerProblem> {
        self.shared.problems.all()
    }

    /// The broker's figures.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

impl Config {
    /// `mesh` with nothing else decided.
    pub fn new(mesh: MeshSetup, version: impl Into<String>) -> Self {
        Self {
            mesh,
            version: version.into(),
            public_url: None,
            webhook_allowed_hosts: Vec::new(),
            secure_page: false,
            subscriber_stall_max: limits::SUBSCRIBER_STALL_MAX,
            message_retention: None,
        }
    }

    fn check(&self) -> Result<(), StartError> {
        let floor = admission::days_long(limits::MESSAGE_RETENTION_DAYS_MIN);
        if self.message_retention.is_some_and(|retention| retention < floor) {
            return Err(StartError::RetentionTooShort);
        }
        match self.mesh.policies.dedupe {
            DedupeWindow::Days(days) if days < limits::DEDUPE_DAYS_MIN => {
                Err(StartError::DedupeWindowTooShort)
            }
            DedupeWindow::Days(_) | DedupeWindow::Permanent => Ok(()),
        }
    }
}

impl Shared {
    /// Answers every message of one lane, in order. A lane that was begun is carried to its end although its caller
    /// leaves: whoever waits for its messages is told of them.
    pub(crate) async fn accept_lane(
        self: &Arc<Self>,
        via: Via,
        sender: Sender<'_>,
        items: Vec<Result<Item, Refused>>,
    ) -> Result<Vec<Word>, LinkError> {
        let (shared, id, name) = (self.clone(), sender.id, sender.name.clone());
        let lane = async move { shared.accept().lane(via, Sender { id, name: &name }, items).await };
        run_to_end(lane).await
    }

    fn accept(&self) -> Accept<'_> {
        Accept {
            ledger: self.ledger.as_ref(),
            requests: &self.requests,
            limiter: self.limiter.as_ref(),
            metrics: &self.metrics,
            rooms: &self.rooms,
            mesh: self.mesh.id,
        }
    }
}

/// A store's refusal as an answer; this is where it stops travelling, so it is logged here.
pub(crate) fn storage_refused(error: &StorageError) -> Refusal {
    tracing::error!(%error, "the ledger did not do its part");
    let code = error.code();
    let refusal = Refusal::from(refused_by_store(error));
    match code {
        ErrorCode::StorageBusy | ErrorCode::Unavailable => refusal.retry_after(limits::RETRY_DELAY_MIN),
        _ => refusal,
    }
}

/// A store's error in the words of its code, or in its own where only these name the way out.
pub(crate) fn refused_by_store(error: &StorageError) -> Refused {
    match error.code() {
        ErrorCode::LogFull => Refused::new(ErrorCode::LogFull, error.to_string()),
        code => Refused::plain(code),
    }
}
