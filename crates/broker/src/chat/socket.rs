//! `/v1/subscribe`: one connection and the conversations it follows.
//!
//! - Frames of a connection are handled in order. A subscription that is replaced or ended has said its last word
//!   before the next frame is looked at, so that a `pong` is a barrier.
//! - What cannot be understood is answered; the socket stays open.
//! - A node that proved its key reads as its person, beside its link and without touching it.
//! - A reader that takes nothing for too long is closed with 4408. It loses nothing: it resumes from its cursor.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ledger::{Member, SecretHash, StorageError};
use model::{ConversationId, Cursor, ErrorCode, limits};
use net::respond::Refusal;
use net::socket::{Bounds, Close, Ended, Reader, SendError, Socket, Text, TrySendError, Upgrade, Writer};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use wire::auth::AUDIENCE_SUBSCRIBE;
use wire::chat::{CLOSE_SLOW_CONSUMER, CLOSE_UNAUTHORIZED, FrameError, FromSubscriber, ToSubscriber};

use super::escalation::{self, Edge};
use super::row::Span;
use super::subscription::{Gone, Outlet, Subscription};
use crate::audit::Event;
use crate::broker::{Shared, storage_refused};
use crate::credential::Credential;
use crate::direct::lacks;
use crate::openapi::Refusals;
use crate::wayin::{hash_of, refused};

/// A WebSocket that follows conversations: subprotocols `postrider.v1` and `ticket.<T>`, or an API token.
#[utoipa::path(
    get,
    path = "/v1/subscribe",
    tag = "conversations",
    responses((status = 101), Refusals),
    security(("token" = ["read"]))
)]
pub(super) async fn subscribe(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    upgrade: Upgrade,
) -> Result<Response, Refusal> {
    let reader = admit(&shared, &headers, &upgrade).await?;
    let stopping = upgrade.connection().stopping().clone();
    let bounds = Bounds { waiting_frames_max: limits::SUBSCRIBER_FRAMES_MAX, ..Bounds::default() };
    Ok(upgrade.with_bounds(bounds).accept(move |socket| async move {
        shared.metrics.subscribers_active.add(1);
        converse(shared.clone(), reader, socket, stopping).await;
        shared.metrics.subscribers_active.add(-1);
    }))
}

/// Who follows.
struct Admitted {
    member: Member,
    by: Proof,
}

/// By what it was let in, and is looked for again.
enum Proof {
    /// A token or a session.
    Secret(SecretHash),
    /// Its node's key: it holds as long as the node's person is a member.
    Node,
}

/// A browser cannot send headers with an upgrade, so it brings a ticket, and so does a node; a program may send its
/// token.
async fn admit(shared: &Shared, headers: &HeaderMap, upgrade: &Upgrade) -> Result<Admitted, Refusal> {
    if headers.contains_key(AUTHORIZATION) {
        return readable(shared.credential(&http::Method::GET, headers).await?);
    }
    let ticket = hash_of(&upgrade.ticket()?);
    let storage = |error| storage_refused(&error);
    match shared.ledger.use_socket_ticket(ticket).await.map_err(storage)? {
        Some(session) => {
            let credential = shared.credential_of(session).await.map_err(storage)?;
            readable(credential.ok_or_else(|| Refusal::plain(ErrorCode::InvalidTicket))?)
        }
        None => {
            let entered = shared.ledger.enter(ticket, AUDIENCE_SUBSCRIBE).await;
            let entered = entered.map_err(|error| refused(&error))?;
            if entered.first_join {
                Event::NodeJoined { node: &entered.node, person: &entered.person.name }.record();
            }
            Ok(Admitted { member: entered.person, by: Proof::Node })
        }
    }
}

fn readable(credential: Credential) -> Result<Admitted, Refusal> {
    if !credential.scopes.read {
        return Err(lacks("read"));
    }
    Ok(Admitted { member: credential.member, by: Proof::Secret(credential.hash) })
}

async fn converse(shared: Arc<Shared>, admitted: Admitted, socket: Socket, stopping: CancellationToken) {
    let (reader, writer) = socket.split();
    let closing = writer.clone();
    let edges = shared.escalations.edges();
    let out = Out { writer, shared: shared.clone() };
    let mut connection =
        Connection { shared, admitted, out, following: HashMap::new(), level: HashMap::new() };
    let work = async {
        if connection.tell_waiting().await.is_ok() {
            connection.serve(reader, edges).await;
        }
    };
    tokio::select! {
        () = work => {}
        // Said before the reader is dropped, which would close with less of a reason.
        () = async {
            stopping.cancelled().await;
            closing.close(Close::new(Close::GOING_AWAY, "the broker stops"));
        } => {}
    }
}

/// A connection's own state: what it follows.
struct Connection {
    shared: Arc<Shared>,
    admitted: Admitted,
    out: Out,
    following: HashMap<ConversationId, Following>,
    /// What the level said of each conversation that waits: an earlier edge is no news.
    level: HashMap<ConversationId, u64>,
}

/// A running subscription; ends when dropped.
struct Following(Option<JoinHandle<()>>);

/// The connection's one writer.
#[derive(Clone)]
struct Out {
    writer: Writer,
    shared: Arc<Shared>,
}

impl Connection {
    async fn serve(&mut self, mut reader: Reader, mut edges: broadcast::Receiver<Arc<Edge>>) {
        let mut check = interval(limits::CREDENTIAL_CHECK_EVERY);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        check.reset();
        loop {
            let served = tokio::select! {
                frame = reader.next() => match frame {
                    Ok(text) => self.answer(&text).await,
                    Err(ended) => return log_end(&ended),
                },
                edge = edges.recv() => match edge {
                    Ok(edge) => self.tell_edge(&edge).await,
                    // Too far behind to be told each: the level says all of it.
                    Err(RecvError::Lagged(_)) => self.tell_waiting().await,
                    Err(RecvError::Closed) => return,
                },
                _ = check.tick() => self.check_credential().await,
            };
            if served.is_err() {
                return;
            }
        }
    }

    async fn answer(&mut self, text: &str) -> Result<(), Gone> {
        match FromSubscriber::parse(text) {
            Ok(FromSubscriber::Ping) => self.out.say(&ToSubscriber::Pong).await,
            Ok(FromSubscriber::Unsubscribe { conversation_id }) => {
                if let Ok(id) = conversation_id.parse() {
                    self.end(id).await;
                }
                Ok(())
            }
            Ok(FromSubscriber::Subscribe { conversation_id, since_cursor, sub }) => {
                self.follow(conversation_id, &since_cursor, sub).await
            }
            Err(refused) => self.out.say(&refused).await,
        }
    }

    async fn follow(&mut self, asked: String, since: &str, sub: Option<String>) -> Result<(), Gone> {
        let refused = |code| ToSubscriber::refused(code, Some(asked.clone()), sub.clone());
        let Ok(cursor) = since.parse::<Cursor>() else {
            return self.out.say(&refused(FrameError::InvalidCursor)).await;
        };
        // An id of another form is one that nobody has: silent like any other that is not there.
        let conversation = asked.parse().unwrap_or(ConversationId::from_bytes([0; 16]));
        self.end(conversation).await;
        if self.following.len() >= limits::SUBSCRIPTIONS_MAX {
            return self.out.say(&refused(FrameError::TooManySubscriptions)).await;
        }
        let subscription = Subscription {
            shared: self.shared.clone(),
            reader: self.admitted.member.id,
            hosted: self.admitted.member.home.is_none(),
            conversation,
            asked,
            sub,
            cursor,
        };
        let out = self.out.clone();
        let task = tokio::spawn(async move {
            // Whoever is gone is noticed by the connection's reader.
            let _ = subscription.run(out).await;
        });
        self.following.insert(conversation, Following(Some(task)));
        Ok(())
    }

    /// Ends a subscription; afterwards it says nothing more.
    async fn end(&mut self, conversation: ConversationId) {
        if let Some(following) = self.following.remove(&conversation) {
            following.end().await;
        }
    }

    async fn tell_waiting(&mut self) -> Result<(), Gone> {
        match escalation::waiting(&self.shared, self.admitted.member.id).await {
            Ok(escalations) => {
                self.level = escalations.iter().map(|one| (one.conversation_id, one.rev)).collect();
                self.out.say(&ToSubscriber::Escalations { escalations }).await
            }
            Err(error) => {
                tracing::warn!(%error, "what waits for an answer was not read");
                self.out.writer.close(Close::new(Close::GOING_AWAY, ErrorCode::Unavailable.code()));
                Err(Gone)
            }
        }
    }

    async fn tell_edge(&mut self, edge: &Edge) -> Result<(), Gone> {
        let (conversation, rev) = edge.number();
        if self.level.get(&conversation).is_some_and(|known| rev <= *known) {
            return Ok(());
        }
        match edge.frame_for(self.admitted.member.id) {
            Some(frame) => self.out.say(&frame).await,
            None => Ok(()),
        }
    }

    async fn still_holds(&self) -> Result<bool, StorageError> {
        match self.admitted.by {
            Proof::Secret(hash) => Ok(self.shared.credential_of(hash).await?.is_some()),
            Proof::Node => {
                let member = self.shared.ledger.member(self.admitted.member.id).await?;
                Ok(member.is_some_and(|member| member.removed_at.is_none()))
            }
        }
    }

    async fn check_credential(&mut self) -> Result<(), Gone> {
        match self.still_holds().await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let code = ErrorCode::Unauthorized.code();
                self.out.writer.close(Close::new(CLOSE_UNAUTHORIZED, code));
                Err(Gone)
            }
            // Unknown is not gone: the next check asks again.
            Err(error) => {
                tracing::warn!(%error, "a subscriber's credential was not checked");
                Ok(())
            }
        }
    }
}

impl Out {
    /// What was not taken at once is waited for, but not for ever.
    async fn or_wait(
        &self,
        tried: Result<(), TrySendError>,
        sending: impl Future<Output = Result<(), SendError>>,
    ) -> Result<(), Gone> {
        match tried {
            Ok(()) => return Ok(()),
            Err(TrySendError::Stalled) => {}
            Err(TrySendError::Gone | TrySendError::TooLarge) => return Err(Gone),
        }
        match timeout(self.shared.config.subscriber_stall_max, sending).await {
            Ok(sent) => sent.map_err(|_| Gone),
            Err(_) => {
                self.writer.close(Close::new(CLOSE_SLOW_CONSUMER, "slow_consumer"));
                self.shared.metrics.subscribers_slow.add_one();
                Err(Gone)
            }
        }
    }
}

impl Outlet for Out {
    async fn messages(&mut self, span: &Span) -> Result<(), Gone> {
        let frames = span.frames();
        self.or_wait(self.writer.try_send_frames(frames), self.writer.send_frames(frames)).await
    }

    async fn say(&mut self, frame: &ToSubscriber) -> Result<(), Gone> {
        let text = Text::from(frame.text());
        self.or_wait(self.writer.try_send(text.clone()), self.writer.send(text)).await
    }
}

impl Following {
    async fn end(mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
            // It is either done or cancelled; both are over.
            let _ = task.await;
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

fn log_end(ended: &Ended) {
    tracing::debug!(%ended, "a subscriber left");
}
