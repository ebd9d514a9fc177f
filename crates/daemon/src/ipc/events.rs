//! `GET /v1/events`: a member's mail as it arrives, and what else happens in its mesh.
//!
//! - Messages carry an id, `inbox_seq:inbox_epoch`; a reader that comes back with it misses none and sees none
//!   twice. Another epoch means the inbox was lost in between: the reader is told `reset` and starts anew.
//! - Everything else has no id and is not repeated.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event as Line, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, Uri};
use mailbox::{InboxPlace, InboxQuery, InboxRow, InboxShow, OutboxKey};
use model::ErrorCode;
use net::follow::{Follow, Log};
use net::respond::Refusal;
use net::serve::Connection;
use serde::Deserialize;
use serde_json::json;
use sqlite::StorageError;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::{self, error::RecvError};
use wire::local::ACT_AS_HEADER;

use super::inbox::notify;
use super::send::line;
use crate::events::Event;
use crate::ground::{Actor, Caller, Ground};
use crate::{storage, view};

/// Between two comments on a quiet stream, so that proxies and callers know it lives.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
/// Rows read at once.
const BATCH_ROWS: usize = 64;
const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    mesh: Option<String>,
}

pub(super) async fn stream(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    connection: Connection,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let actor = Arc::new(ground.act(&caller, asked.mesh.as_deref(), line(&headers, ACT_AS_HEADER)?)?);
    ground.disk.check_streams()?;
    let place = ground.streams.clone().try_acquire_owned();
    let place = place.map_err(|_| Refusal::plain(ErrorCode::TooManyStreams))?;
    let mut lines = VecDeque::new();
    let begin = match line(&headers, LAST_EVENT_ID)? {
        Some(id) => match parse_id(&actor, id)? {
            Some(seq) => seq,
            None => {
                let epoch = actor.mesh.mailbox.inbox_epoch().to_string();
                lines.push_back(plain("reset", &json!({"inbox_epoch": epoch})));
                0
            }
        },
        None => newest(&actor).await?,
    };
    let (ear, events) = (actor.mesh.bells.arrived.listen(), actor.mesh.events.listen());
    let follow = Follow::new(Mail { actor: actor.clone() }, begin, ear);
    let feed = Feed { actor, follow, events, lines, connection, _place: place };
    let stream = stream::unfold(feed, |mut feed| async {
        let line = feed.next().await?;
        Some((Ok::<_, Infallible>(line), feed))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_EVERY)).into_response())
}

/// The place an id names; `None` when it is of another life of the inbox.
fn parse_id(actor: &Actor, id: &str) -> Result<Option<u64>, Refusal> {
    let malformed = || Refusal::new(ErrorCode::InvalidCursor, "Last-Event-ID must be an id of this stream");
    let (seq, epoch) = id.split_once(':').ok_or_else(malformed)?;
    let seq: u64 = seq.parse().map_err(|_| malformed())?;
    Ok((epoch == actor.mesh.mailbox.inbox_epoch().to_string()).then_some(seq))
}

async fn newest(actor: &Actor) -> Result<u64, Refusal> {
    let rows = actor.mesh.mailbox.inbox(query(actor, InboxPlace::Newest, 1)).await;
    let rows = rows.map_err(|error| storage::refusal(&error))?;
    Ok(rows.last().map_or(0, |row| row.seq))
}

fn query(actor: &Actor, place: InboxPlace, limit: usize) -> InboxQuery {
    InboxQuery { recipient: Some(actor.member.id), place, show: InboxShow::All, from: None, limit }
}

/// A member's mail as a log.
struct Mail {
    actor: Arc<Actor>,
}

impl Log for Mail {
    type Row = InboxRow;
    type Cursor = u64;
    type Error = StorageError;

    async fn read_after(&mut self, cursor: &u64) -> Result<Vec<InboxRow>, StorageError> {
        let query = query(&self.actor, InboxPlace::After(*cursor), BATCH_ROWS);
        self.actor.mesh.mailbox.inbox(query).await
    }

    fn place(&self, row: &InboxRow) -> u64 {
        row.seq
    }
}

/// One listener's stream.
struct Feed {
    actor: Arc<Actor>,
    follow: Follow<Mail>,
    events: broadcast::Receiver<Event>,
    lines: VecDeque<Line>,
    connection: Connection,
    _place: OwnedSemaphorePermit,
}

impl Feed {
    /// The next line, or the end.
    async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            tokio::select! {
                () = self.connection.stopping().cancelled() => return None,
                rows = self.follow.next() => self.take(rows).await?,
                event = self.events.recv() => match event {
                    Ok(event) => self.tell(event).await?,
                    // Whoever fell behind reads the store; nothing here promised every event.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    async fn take(&mut self, rows: Result<Vec<InboxRow>, StorageError>) -> Option<()> {
        let rows = rows.inspect_err(|error| tracing::warn!(%error, "an event stream ends")).ok()?;
        notify(&self.actor, &rows).await.ok()?;
        let epoch = self.actor.mesh.mailbox.inbox_epoch();
        for row in rows {
            let id = format!("{}:{epoch}", row.seq);
            if let Some(item) = view::inbox_item(&self.actor.mesh, row) {
                self.lines.push_back(data("message", &item).id(id));
            }
        }
        Some(())
    }

    async fn tell(&mut self, event: Event) -> Option<()> {
        let line = match event {
            Event::Reconnect => plain("daemon_reconnect", &json!({})),
            Event::Disconnect { reason } => plain("daemon_disconnect", &json!({"reason": reason})),
            Event::Parked { reason } if reason.starts_with("feature_") => {
                plain("feature_negotiation_failed", &json!({"reason": reason}))
            }
            Event::Parked { reason } => {
                plain("daemon_disconnect", &json!({"reason": reason, "parked": true}))
            }
            Event::HopLimit { sender } => plain("hop_limit", &json!({"sender": sender.as_str()})),
            Event::PressureHigh { percent } => plain("outbox_pressure_high", &json!({"percent": percent})),
            Event::RowMoved { row } => {
                let row = self.actor.mesh.mailbox.outbox_row(OutboxKey::Row(row)).await.ok()??;
                if row.sender != self.actor.member.id {
                    return Some(());
                }
                data("send_status", &view::outbox_item(&self.actor.mesh, row))
            }
        };
        self.lines.push_back(line);
        Some(())
    }
}

fn plain(name: &str, value: &serde_json::Value) -> Line {
    Line::default().event(name).data(value.to_string())
}

fn data(name: &str, value: &impl serde::Serialize) -> Line {
    let text = serde_json::to_string(value).expect("items hold only what JSON can say");
    Line::default().event(name).data(text)
}
