//! `GET /v1/conversations/{id}/events`: the same loop for clients of plain HTTP.
//!
//! - The id of an event is the cursor after its message: a reader that comes back with it misses none and sees none
//!   twice.
//! - A reader that takes nothing is cut by the door; one that falls behind waits in its own loop.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::HeaderMap;
use model::{ConversationId, Cursor, ErrorCode, limits};
use net::respond::Refusal;
use net::serve::Connection;
use tokio::sync::mpsc;
use wire::chat::ToSubscriber;
use wire::direct::EventsQuery;

use super::row::Span;
use super::subscription::{Gone, Outlet, Subscription};
use crate::broker::Shared;
use crate::direct::{Caller, part, query};
use crate::openapi::Refusals;

/// Between two comments on a quiet stream, so that proxies and readers know it lives.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const LAST_EVENT_ID: &str = "last-event-id";

/// Follows a conversation as server-sent events: `message`, `subscribed`, `reset`, `error`.
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}/events",
    tag = "conversations",
    params(("id" = String, Path, description = "The conversation"), EventsQuery,
        ("last-event-id" = Option<String>, Header, description = "The cursor of the last message kept")),
    responses((status = 200, body = String, content_type = "text/event-stream"), Refusals),
    security(("token" = ["read"]), ("cookie" = []))
)]
pub(super) async fn stream(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    connection: Connection,
    id: Result<Path<String>, PathRejection>,
    asked: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let caller = caller.may_read()?;
    let (asked, after) = (part(id)?, query(asked)?.after);
    let last = headers.get(LAST_EVENT_ID).map(|line| line.to_str().unwrap_or("?").to_owned());
    let cursor: Cursor =
        last.or(after).unwrap_or_default().parse().map_err(|_| Refusal::plain(ErrorCode::InvalidCursor))?;
    let place = shared.streams.clone().try_acquire_owned();
    let place = place.map_err(|_| Refusal::plain(ErrorCode::TooManyStreams))?;
    let subscription = Subscription {
        reader: caller.member.id,
        hosted: caller.member.home.is_none(),
        conversation: asked.parse().unwrap_or(ConversationId::from_bytes([0; 16])),
        asked,
        sub: None,
        cursor,
        shared: shared.clone(),
    };
    let (lines, read) = mpsc::channel(limits::SUBSCRIBER_FRAMES_MAX);
    let stopping = connection.stopping().clone();
    tokio::spawn(async move {
        let _place = place;
        tokio::select! {
            // The stream ends with its last event; whoever reads it comes back with the cursor.
            _ = subscription.run(Lines(lines.clone())) => {}
            () = lines.closed() => {}
            () = stopping.cancelled() => {}
        }
    });
    let events = stream::unfold(read, |mut read| async move {
        let event: Event = read.recv().await?;
        Some((Ok::<_, Infallible>(event), read))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_EVERY)).into_response())
}

/// A stream's events on their way out.
struct Lines(mpsc::Sender<Event>);

impl Outlet for Lines {
    async fn messages(&mut self, span: &Span) -> Result<(), Gone> {
        for (row, text) in span.rows().iter().zip(span.texts()) {
            let id = row.place.cursor.to_string();
            let event = Event::default().event("message").id(id).data(text.as_str());
            self.0.send(event).await.map_err(|_| Gone)?;
        }
        Ok(())
    }

    async fn say(&mut self, frame: &ToSubscriber) -> Result<(), Gone> {
        let word = match frame {
            ToSubscriber::Subscribed { .. } => "subscribed",
            ToSubscriber::Reset { .. } => "reset",
            ToSubscriber::Error { .. } => "error",
            ToSubscriber::Message(_)
            | ToSubscriber::Pong
            | ToSubscriber::Escalations { .. }
            | ToSubscriber::InputRequested(_)
            | ToSubscriber::EscalationCleared { .. } => return Ok(()),
        };
        self.0.send(Event::default().event(word).data(frame.text())).await.map_err(|_| Gone)
    }
}
