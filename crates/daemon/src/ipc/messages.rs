//! `GET /v1/messages/{id}`: where one message is, and a wait for it to get further.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use mailbox::{OutboxKey, OutboxRow};
use model::receipt::Standing;
use model::{ErrorCode, Rung};
use net::respond::{Refusal, json};
use net::serve::Connection;
use serde::Deserialize;
use wire::Refused;
use wire::local::{ACT_AS_HEADER, MessageLife};

use super::send::line;
use super::waiting::{bounded, look_until};
use crate::ground::{Actor, Caller, Ground};
use crate::{storage, view};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    mesh: Option<String>,
    rung: Option<String>,
    wait: Option<u64>,
}

/// What an id names here.
enum Found {
    Out(Box<OutboxRow>),
    In(Box<MessageLife>),
}

pub(super) async fn life(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    connection: Connection,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let rung: Rung = asked.rung.as_deref().map_or(Ok(Rung::Accepted), str::parse)?;
    let actor = ground.act(&caller, asked.mesh.as_deref(), line(&headers, ACT_AS_HEADER)?)?;
    let sees_all = matches!(caller, Caller::Operator);
    let ear = actor.mesh.bells.moved.listen();
    let look = || find(&actor, &id, sees_all);
    let found = look_until(&connection, ear, bounded(asked.wait), |found| found.reached(rung), look).await?;
    let life = match found {
        Found::Out(row) => MessageLife::Out(view::outbox_item(&actor.mesh, *row)),
        Found::In(life) => *life,
    };
    Ok(json(StatusCode::OK, &life))
}

impl Found {
    /// Whether waiting longer could not show more.
    fn reached(&self, rung: Rung) -> bool {
        match self {
            Found::Out(row) => match row.standing() {
                Standing::At(held) => held >= rung,
                Standing::Ended(_) => true,
            },
            Found::In(_) => true,
        }
    }
}

/// By outbox row, by the acting sender's own id, or by the broker's message.
async fn find(actor: &Actor, id: &str, sees_all: bool) -> Result<Found, Refusal> {
    let mut rows: Vec<OutboxRow> = Vec::new();
    for key in keys(actor, id) {
        let row = actor.mesh.mailbox.outbox_row(key).await.map_err(|error| storage::refusal(&error))?;
        let visible = row.filter(|row| sees_all || row.sender == actor.member.id);
        rows.extend(visible.filter(|row| rows.iter().all(|known| known.row != row.row)));
    }
    match rows.len() {
        0 => received(actor, id).await,
        1 => Ok(Found::Out(Box::new(rows.remove(0)))),
        _ => {
            let candidates: Vec<String> = rows.iter().map(|row| row.row.to_string()).collect();
            Err(Refused::plain(ErrorCode::IdAmbiguous).with("candidates", candidates).into())
        }
    }
}

fn keys(actor: &Actor, id: &str) -> Vec<OutboxKey> {
    let client = |client_message_id| OutboxKey::Client { sender: actor.member.id, client_message_id };
    let row = id.parse().ok().map(OutboxKey::Row);
    row.into_iter()
        .chain(id.parse().ok().map(client))
        .chain(id.parse().ok().map(OutboxKey::Message))
        .collect()
}

async fn received(actor: &Actor, id: &str) -> Result<Found, Refusal> {
    let unknown = || Refusal::new(ErrorCode::NotFound, "This node holds no such message.");
    let id = id.parse().map_err(|_| unknown())?;
    let rows = actor.mesh.mailbox.inbox_by_id(id).await.map_err(|error| storage::refusal(&error))?;
    let own = rows.into_iter().find(|row| row.recipient == actor.member.id);
    let item = own.and_then(|row| view::inbox_item(&actor.mesh, row));
    item.map(|item| Found::In(Box::new(MessageLife::In(item)))).ok_or_else(unknown)
}
