//! One relay: what its doors and its drainer share.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use mailbox::relay::{Envelope, Envelopes, Heard, Settled};
use model::relay::{Moment, Move, Status};
use model::{Clock, Entropy, ErrorCode, limits};
use net::client::Target;
use net::respond::Refusal;
use net::serve::{Answers, Caller, Connection};
use sqlite::StorageError;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wire::relay::LOCAL_TOKEN_HEADER;

use crate::board::{Board, Change, Room};
use crate::classify::{Plan, classify};
use crate::config::{AuthMode, Config};
use crate::mark::{self, OutboxWentBack};
use crate::memory::{Bases, Stamps, Twins, Unstored, UnstoredKeys};
use crate::tags::Tags;
use crate::upstream::Upstream;
use crate::{drain, head, live, online};

/// The fact under which the upstream's own name is kept.
pub(crate) const UPSTREAM_ID: &str = "upstream_id";
/// The fact under which the reason of a pause is kept, so that a restart does not end it.
const PAUSED: &str = "paused";
/// The fact under which the address is kept that writes were last sent to.
const UPSTREAM_URL: &str = "upstream_url";

/// A running relay. Clones share it.
#[derive(Clone)]
pub struct Relay {
    pub(crate) shared: Arc<Shared>,
}

/// Why a relay does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its file.
    #[error(transparent)]
    Outbox(#[from] mailbox::OpenError),
    /// A damaged file that cannot be set aside.
    #[error("the damaged outbox cannot be set aside: {0}")]
    SetAside(#[from] std::io::Error),
    /// The first read of its file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) upstream: Upstream,
    /// Nothing when only live traffic passes.
    pub(crate) envelopes: Option<Envelopes>,
    pub(crate) board: Board,
    pub(crate) tags: Tags,
    pub(crate) stamps: Stamps,
    pub(crate) bases: Bases,
    pub(crate) twins: Twins,
    pub(crate) unstored: UnstoredKeys,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// Something may be due.
    pub(crate) wake: Notify,
    standing: Mutex<Standing>,
    /// Held while a pause begins or ends, so that file and memory agree.
    pausing: tokio::sync::Mutex<()>,
}

/// What a person should know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Why nothing is replayed.
    pub(crate) paused: Option<String>,
    /// Where a damaged file is.
    pub(crate) set_aside: Option<String>,
    /// The upstream's name as it is recorded.
    pub(crate) upstream_id: Option<String>,
    /// The last time the file was found older than it had been.
    pub(crate) went_back: Option<OutboxWentBack>,
    /// Whether the upstream took the relay's credential since the last start, pause or outage.
    pub(crate) credential: Credential,
}

/// What is known of the relay's own credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Credential {
    /// One write goes alone to find out.
    #[default]
    Untried,
    /// The upstream judged a write on its content.
    Accepted,
}

impl Relay {
    /// Opens the outbox and reads what waits in it. A damaged one is set aside, and only live traffic passes.
    pub async fn open(
        config: Config,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StartError> {
        let now = clock.now();
        let aside = Envelopes::set_damaged_aside(&config.outbox, now)?;
        let mut standing = Standing::default();
        let envelopes = match aside {
            Some(aside) => {
                tracing::error!(path = %aside.path.display(), detail = aside.detail, "the outbox was damaged and is set aside; nothing is stored until the relay is started again");
                standing.set_aside = Some(aside.path.display().to_string());
                None
            }
            None => Some(Envelopes::open(&config.outbox, Arc::clone(&entropy), now)?),
        };
        let board = Board::default();
        if let Some(envelopes) = &envelopes {
            envelopes.enter(&config.stores, "relay outbox");
            standing.upstream_id = envelopes.fact(UPSTREAM_ID).await?;
            standing.went_back = mark::compare(envelopes, now).await?;
            standing.paused = envelopes.fact(PAUSED).await?;
            if let Some(why) = &standing.paused {
                tracing::warn!(why, "replay is still paused; postrider relay outbox replay goes on");
            }
            fill(&board, envelopes).await?;
            if let Target::Tcp { base, .. } = &config.upstream {
                envelopes.keep_fact(UPSTREAM_URL, Some(format!("{}{base}", config.upstream))).await?;
            }
        }
        let upstream = Upstream::new(&config, Arc::clone(&clock));
        let shared = Shared {
            config,
            upstream,
            envelopes,
            board,
            tags: Tags::default(),
            stamps: Stamps::default(),
            bases: Bases::default(),
            twins: Twins::default(),
            unstored: UnstoredKeys::default(),
            clock,
            entropy,
            wake: Notify::new(),
            standing: Mutex::new(standing),
            pausing: tokio::sync::Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Where the last relay of this file sent its writes. The caller holds the relay's lock.
    pub async fn last_upstream(
        outbox: &Path,
        clock: &dyn Clock,
        entropy: Arc<dyn Entropy>,
    ) -> Option<String> {
        let envelopes = Envelopes::open(outbox, entropy, clock.now()).ok()?;
        let url = envelopes.fact(UPSTREAM_URL).await;
        envelopes.close().await;
        url.ok().flatten()
    }

    /// Looks at the upstream until it answers or counts as away, so that the standing is no guess.
    pub async fn look(&self) {
        for _ in 0..limits::BREAKER_FAILURES_MAX {
            if self.shared.upstream.probe().await.is_ok() {
                return;
            }
        }
    }

    /// The door for callers: every path is the upstream's.
    pub fn callers(&self) -> impl Answers {
        Callers(Arc::clone(&self.shared))
    }

    /// Replays what waits, until `stop`.
    pub async fn drain(&self, stop: CancellationToken) {
        let marks = mark::keep(Arc::clone(&self.shared), stop.clone());
        tokio::join!(drain::run(Arc::clone(&self.shared), stop), marks);
    }

    /// Finishes what is being stored and closes the file.
    pub async fn close(self) {
        if let Some(envelopes) = self.shared.envelopes.clone() {
            envelopes.close().await;
        }
    }
}

async fn fill(board: &Board, envelopes: &Envelopes) -> Result<(), StorageError> {
    for open in envelopes.open_keys().await? {
        board.load(&open.key, open.rows, open.bytes);
    }
    let mut after = 0;
    loop {
        let page = envelopes.list(Some(Status::Conflict), after, limits::PAGE_ROWS_MAX).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.local_seq;
        page.iter().for_each(|conflict| board.conflict(&conflict.order_key, Change::Begun));
    }
}

/// Whoever answers callers. No routes stand between: there is only one, and every request would pay for them.
#[derive(Clone)]
struct Callers(Arc<Shared>);

impl Answers for Callers {
    async fn answer(&self, connection: &Connection, request: http::Request<Incoming>) -> Response {
        let Self(shared) = self;
        let request = request.map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(body) });
        // Only a write is asked about by its key.
        let key = if request.method().is_safe() { None } else { head::key(request.headers()).ok().flatten() };
        let response = answer(shared, connection, request).await;
        if let (Some(key), Some(told)) = (key, unstored(&response)) {
            shared.unstored.note(key, told, shared.clock.now());
        }
        response
    }
}

/// What a caller that hears no is told; whoever asks about its key later hears the same when no envelope does better.
fn unstored(response: &Response) -> Option<Unstored> {
    match response.extensions().get::<ErrorCode>() {
        Some(code) => Some(Unstored::Refused(*code)),
        None if response.status().is_client_error() => Some(Unstored::Answered(response.status().as_u16())),
        None => None,
    }
}

async fn answer(shared: &Arc<Shared>, connection: &Connection, request: Request) -> Response {
    let lends = match shared.lends(connection, &request) {
        Ok(lends) => lends,
        Err(refusal) => return refusal.into_response(),
    };
    let (config, headers) = (&shared.config, request.headers());
    let plan = classify(&config.routes, request.method(), request.uri(), headers, config.auth_mode);
    match plan {
        Err(refused) => Refusal::new(ErrorCode::InvalidRequest, refused.to_string()).into_response(),
        Ok(Plan::Read { resource }) => online::read(shared, request, resource, lends, connection).await,
        // Boxed, because a write has longer to go: a read would carry it all along.
        Ok(Plan::Online { resource, why }) => {
            Box::pin(online::write(shared, request, resource, why, lends)).await
        }
        Ok(Plan::Queue { route, resource }) => {
            Box::pin(live::write(shared, request, route, resource, lends)).await
        }
    }
}

/// Whether the relay's own credential goes with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lends {
    Own,
    Nothing,
}

impl Shared {
    /// The relay lends its credential to callers that showed the local one, and to nobody else.
    fn lends(&self, connection: &Connection, request: &Request) -> Result<Lends, Refusal> {
        let keeps_own =
            || self.config.auth_mode == AuthMode::Strict && head::has_authorization(request.headers());
        if self.config.upstream_token.is_none() || keeps_own() {
            return Ok(Lends::Nothing);
        }
        let shown = request.headers().get(LOCAL_TOKEN_HEADER).and_then(|token| token.to_str().ok());
        let is_known = match (connection.caller(), &self.config.local_token) {
            (Caller::Unix { .. }, _) => true,
            (Caller::Tcp { .. }, Some(token)) => shown.is_some_and(|shown| token.token_hash().matches(shown)),
            (Caller::Tcp { .. }, None) => false,
        };
        let missing =
            "this relay lends its own credential: show it the token of relay/token in Statehub-Relay-Token";
        if is_known { Ok(Lends::Own) } else { Err(Refusal::new(ErrorCode::Unauthorized, missing)) }
    }

    pub(crate) fn room(&self) -> Room {
        Room { rows_max: self.config.rows_max, bytes_max: self.config.bytes_max }
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { here: self.clock.now(), upstream: self.upstream.now() }
    }

    pub(crate) fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is replayed until a person looked, not even after a restart.
    pub(crate) async fn pause(&self, why: String) {
        let _pausing = self.pausing.lock().await;
        {
            let mut standing = self.standing();
            standing.credential = Credential::Untried;
            // The first cause stands; those that were on the wire beside it say the same.
            if standing.paused.is_some() {
                return;
            }
            // In memory before it is stored: nothing may leave meanwhile.
            standing.paused = Some(why.clone());
        }
        tracing::error!(why, "replay is paused; postrider relay outbox replay goes on");
        if let Some(envelopes) = &self.envelopes
            && let Err(error) = envelopes.keep_fact(PAUSED, Some(why)).await
        {
            tracing::error!(%error, "the pause could not be stored; it ends with this process");
        }
    }

    /// A person looked.
    pub(crate) async fn resume(&self) -> Result<(), StorageError> {
        let _pausing = self.pausing.lock().await;
        if self.standing().paused.is_none() {
            return Ok(());
        }
        if let Some(envelopes) = &self.envelopes {
            envelopes.keep_fact(PAUSED, None).await?;
        }
        self.standing().paused = None;
        Ok(())
    }

    /// Applies an answer, and keeps the board in step.
    pub(crate) async fn settle(
        &self,
        envelopes: &Envelopes,
        heard: Heard,
    ) -> Result<Option<Settled>, StorageError> {
        let settled = envelopes.settle(heard).await?;
        if let Some(Settled { before, envelope, did: Move::Done | Move::Expire }) = &settled {
            self.changed(*before, envelope);
        }
        Ok(settled)
    }

    /// An envelope went from `before` to where it stands: the board follows.
    pub(crate) fn changed(&self, before: Status, envelope: &Envelope) {
        let key = &envelope.order_key;
        if before.is_unfinished() && !envelope.status.is_unfinished() {
            self.board.leave(key, envelope.body_bytes);
        }
        match (before == Status::Conflict, envelope.status == Status::Conflict) {
            (false, true) => self.board.conflict(key, Change::Begun),
            (true, false) => self.board.conflict(key, Change::Resolved),
            (true, true) | (false, false) => {}
        }
        self.wake.notify_one();
    }
}
