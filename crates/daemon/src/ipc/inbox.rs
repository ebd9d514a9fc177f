//! `GET /v1/inbox` and `POST /v1/inbox/seen`: a member's own mail.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use mailbox::{InboxPlace, InboxQuery, InboxRow, InboxShow};
use model::{DeliveryRung, ErrorCode, MemberName, MessageId, TopicName, limits};
use net::respond::{Json, Refusal, json};
use net::run_to_end;
use net::serve::Connection;
use serde::Deserialize;
use wire::local::{ACT_AS_HEADER, InboxItem, InboxPage, SeenAnswer, SeenRequest};

use super::send::line;
use super::waiting::{bounded, look_until};
use crate::ground::{Actor, Caller, Ground};
use crate::{storage, view};

/// A filtered page may have to look through this many pages; beyond it the caller pages on by itself.
const PAGES_LOOKED_THROUGH_MAX: usize = 20;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    mesh: Option<String>,
    /// Rows behind this `inbox_seq`, oldest first.
    #[serde(alias = "since")]
    after: Option<u64>,
    /// Rows before this `inbox_seq`.
    before: Option<u64>,
    from: Option<String>,
    topic: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    unread_only: bool,
    #[serde(default)]
    mark_seen: bool,
    wait: Option<u64>,
}

/// What a row must be to be shown.
struct Wanted {
    from: Option<MemberName>,
    topic: Option<String>,
}

pub(super) async fn list(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    connection: Connection,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let actor = ground.act(&caller, asked.mesh.as_deref(), line(&headers, ACT_AS_HEADER)?)?;
    let (wanted, query) = (Wanted::of(&asked)?, query_of(&asked, &actor)?);
    let ear = actor.mesh.bells.arrived.listen();
    let enough = |items: &Vec<Shown>| !items.is_empty();
    let look = || page(&actor, &wanted, query.clone());
    let shown = look_until(&connection, ear, bounded(asked.wait), enough, look).await?;
    let (rows, items): (Vec<InboxRow>, Vec<InboxItem>) =
        shown.into_iter().map(|shown| (shown.row, shown.item)).unzip();
    notify(&actor, &rows).await?;
    if asked.mark_seen {
        mark_seen(&actor, rows.iter().map(|row| row.id).collect()).await?;
    }
    let counts = actor.mesh.mailbox.inbox_counts().await.map_err(|error| storage::refusal(&error))?;
    let count = counts.iter().find(|count| count.recipient == actor.member.id);
    let (unread, total) = count.map_or((0, 0), |count| (count.unread, count.total));
    let last = rows.last().map_or(asked.after.unwrap_or(0), |row| row.seq);
    let cursor = format!("{last}:{}", actor.mesh.mailbox.inbox_epoch());
    Ok(json(StatusCode::OK, &InboxPage { items, unread, total, cursor }))
}

pub(super) async fn seen(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(request): Json<SeenRequest>,
) -> Result<Response, Refusal> {
    let actor = ground.act(&caller, request.mesh.as_deref(), line(&headers, ACT_AS_HEADER)?)?;
    let ids: Result<Vec<MessageId>, _> = request.ids.iter().map(|id| id.parse()).collect();
    let marked_seen = mark_seen(&actor, ids?).await?;
    Ok(json(StatusCode::OK, &SeenAnswer { marked_seen }))
}

/// A row and how it is shown.
struct Shown {
    row: InboxRow,
    item: InboxItem,
}

impl Wanted {
    fn of(asked: &Asked) -> Result<Self, Refusal> {
        let from =
            asked.from.as_deref().map(|name| name.strip_prefix('@').unwrap_or(name).parse()).transpose()?;
        let topic =
            asked.topic.as_deref().map(|name| name.strip_prefix('#').unwrap_or(name).parse()).transpose()?;
        Ok(Self { from, topic: topic.map(|name: TopicName| format!("#{name}")) })
    }

    fn is_all(&self) -> bool {
        self.from.is_none() && self.topic.is_none()
    }

    fn has(&self, item: &InboxItem) -> bool {
        let message = &item.message;
        self.from.as_ref().is_none_or(|name| message.sender == *name)
            && self.topic.as_deref().is_none_or(|topic| message.conversation_name.as_deref() == Some(topic))
    }
}

fn query_of(asked: &Asked, actor: &Actor) -> Result<InboxQuery, Refusal> {
    let place = match (asked.after, asked.before) {
        (None, None) if asked.wait.is_some() && asked.unread_only => InboxPlace::After(0),
        (None, None) => InboxPlace::Newest,
        (Some(seq), None) => InboxPlace::After(seq),
        (None, Some(seq)) => InboxPlace::Before(seq),
        (Some(_), Some(_)) => {
            return Err(Refusal::new(ErrorCode::InvalidRequest, "give after or before, not both"));
        }
    };
    let limit = asked.limit.unwrap_or(limits::PAGE_ROWS_DEFAULT);
    if !(1..=limits::PAGE_ROWS_MAX).contains(&limit) {
        let message = format!("limit must be 1 to {}", limits::PAGE_ROWS_MAX);
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    let show = if asked.unread_only { InboxShow::Unread } else { InboxShow::All };
    Ok(InboxQuery { recipient: Some(actor.member.id), place, show, from: None, limit })
}

/// A page of what is wanted, oldest first. Senders and topics are known by name inside the messages alone, so
/// a filter looks through pages.
async fn page(actor: &Actor, wanted: &Wanted, mut query: InboxQuery) -> Result<Vec<Shown>, Refusal> {
    let limit = query.limit;
    if !wanted.is_all() {
        query.limit = limits::PAGE_ROWS_MAX;
    }
    let mut shown = Vec::new();
    for _ in 0..PAGES_LOOKED_THROUGH_MAX {
        let rows = actor.mesh.mailbox.inbox(query.clone()).await.map_err(|error| storage::refusal(&error))?;
        let (full, ends) = (rows.len() == query.limit, rows.first().zip(rows.last()));
        let Some((first, last)) = ends.map(|(first, last)| (first.seq, last.seq)) else { break };
        let fitting =
            rows.into_iter().filter_map(|row| show(actor, row)).filter(|shown| wanted.has(&shown.item));
        match query.place {
            InboxPlace::After(_) => {
                shown.extend(fitting);
                shown.truncate(limit);
                query.place = InboxPlace::After(last);
            }
            InboxPlace::Newest | InboxPlace::Before(_) => {
                shown = fitting.chain(shown).collect();
                let surplus = shown.len().saturating_sub(limit);
                shown.drain(..surplus);
                query.place = InboxPlace::Before(first);
            }
        }
        if !full || shown.len() == limit {
            break;
        }
    }
    Ok(shown)
}

fn show(actor: &Actor, row: InboxRow) -> Option<Shown> {
    view::inbox_item(&actor.mesh, row.clone()).map(|item| Shown { row, item })
}

/// Handed to the recipient's own credential: that is what `notified` says. An operator who looks as somebody
/// else hands over nothing, and nobody is woken for a message past its deadline.
pub(super) async fn notify(actor: &Actor, rows: &[InboxRow]) -> Result<(), Refusal> {
    let now = actor.mesh.broker_now();
    let in_time = |row: &&InboxRow| row.deliver_by.is_none_or(|deliver_by| now < deliver_by);
    let fresh = rows.iter().filter(|row| row.rung < DeliveryRung::Notified).filter(in_time);
    let seqs: Vec<u64> = fresh.map(|row| row.seq).collect();
    if !actor.own || seqs.is_empty() {
        return Ok(());
    }
    let mesh = actor.mesh.clone();
    let risen = run_to_end(async move {
        let risen = mesh.mailbox.mark_notified(seqs, mesh.clock.now()).await?;
        if !risen.is_empty() {
            mesh.bells.climbed.ring();
        }
        Ok(())
    });
    risen.await.map_err(|error| storage::refusal(&error))
}

async fn mark_seen(actor: &Actor, ids: Vec<MessageId>) -> Result<usize, Refusal> {
    let (mesh, reader) = (actor.mesh.clone(), actor.member.id);
    let marked = run_to_end(async move {
        let marked = mesh.mailbox.mark_read(reader, ids, mesh.clock.now()).await?;
        if marked > 0 {
            mesh.bells.climbed.ring();
        }
        Ok(marked)
    });
    marked.await.map_err(|error| storage::refusal(&error))
}
