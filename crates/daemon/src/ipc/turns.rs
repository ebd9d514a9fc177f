//! `/v1/turns`: an agent takes a message, keeps it, and ends with it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, Uri};
use model::{TurnId, limits};
use net::respond::{Json, Refusal, json};
use net::run_to_end;
use net::serve::Connection;
use serde::Deserialize;
use wire::local::{ACT_AS_HEADER, TurnEnd, TurnExtend, TurnInterrupt, TurnPage, TurnRequest, TurnRetry};

use super::send::line;
use super::waiting::{bounded, look_until};
use crate::ground::{Actor, Caller, Ground};
use crate::storage;
use crate::turns::{self, Wanted};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    mesh: Option<String>,
    /// Whose turns to list beside.
    message_id: Option<String>,
}

/// 201 with a turn; 204 when nothing waits; 409 while one is open.
pub(super) async fn begin(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    connection: Connection,
    headers: HeaderMap,
    Json(request): Json<TurnRequest>,
) -> Result<Response, Refusal> {
    let actor = actor(&ground, &caller, &headers, request.mesh.as_deref())?;
    let wanted = Wanted::of(&actor, &request)?;
    if let Err(full) = ground.disk.check()
        && !turns::has_begun(&actor, &wanted).await?
    {
        return Err(full);
    }
    let ear = actor.mesh.bells.arrived.listen();
    let look = || turns::begin(&actor, &wanted);
    let begun = look_until(&connection, ear, bounded(request.wait), Option::is_some, look).await?;
    Ok(match begun {
        Some(turn) => json(StatusCode::CREATED, &turn),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// The acting member's open turn, and what waits for a person.
pub(super) async fn list(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let actor = actor(&ground, &caller, &headers, asked.mesh.as_deref())?;
    let (mailbox, agent) = (&actor.mesh.mailbox, actor.member.id);
    let open = mailbox.open_turn(agent).await.map_err(|error| storage::refusal(&error))?;
    let given_up = mailbox.given_up(agent, limits::PAGE_ROWS_DEFAULT).await;
    let given_up = given_up.map_err(|error| storage::refusal(&error))?;
    let message = asked.message_id.as_deref().map(str::parse).transpose()?;
    let attempts = match message {
        Some(message) => turns::attempts(&actor, message).await?,
        None => Vec::new(),
    };
    let page = TurnPage {
        open: open.and_then(|turn| turns::answer(&actor, turn).ok()),
        given_up: given_up.into_iter().filter_map(|turn| turns::answer(&actor, turn).ok()).collect(),
        attempts,
    };
    Ok(json(StatusCode::OK, &page))
}

pub(super) async fn show(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let actor = actor(&ground, &caller, &headers, asked.mesh.as_deref())?;
    let turn = turns::show(&actor, turn_id(&id)?).await?;
    Ok(json(StatusCode::OK, &turn))
}

pub(super) async fn extend(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(request): Json<TurnExtend>,
) -> Result<Response, Refusal> {
    let actor = actor(&ground, &caller, &headers, request.mesh.as_deref())?;
    let turn = turns::extend(&actor, turn_id(&id)?, request.lease).await?;
    Ok(json(StatusCode::OK, &turn))
}

/// The holder came back without memory of its turn: the message shall not wait for the lease.
pub(super) async fn interrupt(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(request): Json<TurnInterrupt>,
) -> Result<Response, Refusal> {
    let actor = actor(&ground, &caller, &headers, request.mesh.as_deref())?;
    let id = turn_id(&id)?;
    let turn = run_to_end(async move { turns::interrupt(&actor, id).await }).await?;
    Ok(json(StatusCode::OK, &turn))
}

/// A person wants a message run once more whose turns were given up.
pub(super) async fn retry(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(request): Json<TurnRetry>,
) -> Result<Response, Refusal> {
    let actor = actor(&ground, &caller, &headers, request.mesh.as_deref())?;
    ground.disk.check()?;
    let message = request.message_id.parse()?;
    let last = run_to_end(async move { turns::retry(&actor, message).await }).await?;
    Ok(json(StatusCode::OK, &last))
}

pub(super) async fn end(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(request): Json<TurnEnd>,
) -> Result<Response, Refusal> {
    let actor = actor(&ground, &caller, &headers, request.mesh.as_deref())?;
    let id = turn_id(&id)?;
    let ended = run_to_end(async move { turns::end(&actor, id, request).await }).await?;
    Ok(json(StatusCode::OK, &ended))
}

/// A turn is a deliberate act, so an operator may take one as a member of this home; reading never is.
fn actor(
    ground: &Ground,
    caller: &Caller,
    headers: &HeaderMap,
    mesh: Option<&str>,
) -> Result<Actor, Refusal> {
    ground.act(caller, mesh, line(headers, ACT_AS_HEADER)?)
}

fn turn_id(text: &str) -> Result<TurnId, Refusal> {
    Ok(text.parse::<TurnId>()?)
}
