//! What became of a key, which hub this is, and the schemas of its records.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use ledger::{Fence, HubKeyStatus, HubKnown};
use model::{ClientMessageId, ErrorCode, limits};
use net::respond::{self, Refusal};
use serde_json::{Map, Value};
use utoipa::PartialSchema;
use wire::hub::{
    Health, KeyQuery, KeyState, KeyStatus, NewDecision, NewProgress, NewTask, NewTokenEvent, NewWorkplan,
    Schemas,
};

use super::messages;
use crate::broker::{Shared, storage_refused};
use crate::direct::{Caller, part, query};
use crate::openapi::Refusals;

/// What the hub can do, for those who stand in front of it.
const CAPABILITIES: [&str; 4] = ["idempotency", "fence", "created", "preconditions"];

/// What became of one of the caller's keys. With `fence=true` a key nobody used is retired, so that a no stays true.
#[utoipa::path(
    get, path = "/hub/idempotency/{key}", tag = "hub",
    params(("key" = String, Path, description = "The Idempotency-Key"), KeyQuery),
    responses((status = 200, body = KeyStatus), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn status(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    key: Result<Path<String>, PathRejection>,
    asked: Result<Query<KeyQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let caller = caller.may_use_hub()?;
    let key: ClientMessageId = part(key)?.parse()?;
    let KeyQuery { fence, created } = query(asked)?;
    let fence = if fence { Fence::Retire } else { Fence::None };
    let storage = |error| storage_refused(&error);
    let found =
        shared.ledger.hub_key_status(caller.member.id, &key, created, fence).await.map_err(storage)?;
    let now = shared.ledger.now().await.map_err(storage)?;
    let (state, answered) = told(&shared, &key, found);
    let (status, etag, body) =
        answered.map_or((None, None, None), |(status, etag, body)| (Some(status), etag, body));
    Ok(respond::json(StatusCode::OK, &KeyStatus { key: key.to_string(), state, status, etag, body, now }))
}

type Answered = (u16, Option<String>, Option<Value>);

fn told(shared: &Shared, key: &ClientMessageId, found: HubKeyStatus) -> (KeyState, Option<Answered>) {
    match found {
        HubKeyStatus::Committed(HubKnown::Stored { answer, .. }) => {
            let body = serde_json::from_slice(&answer.body).ok();
            (KeyState::Committed, Some((answer.status, answer.etag, body)))
        }
        HubKeyStatus::Committed(HubKnown::Message { receipt, .. }) => {
            let body = serde_json::to_value(messages::accepted(key, receipt)).ok();
            (KeyState::Committed, Some((StatusCode::CREATED.as_u16(), None, body)))
        }
        HubKeyStatus::Committed(HubKnown::Retired) | HubKeyStatus::Retired => {
            shared.metrics.hub_keys_retired.add_one();
            (KeyState::Retired, None)
        }
        HubKeyStatus::Absent => (KeyState::Absent, None),
        HubKeyStatus::Unknown => (KeyState::Unknown, None),
    }
}

/// Whether writes would be taken, by which hub, and its time. For probes: no token, nothing about anybody.
#[utoipa::path(get, path = "/hub/health", tag = "hub", responses((status = 200, body = Health), Refusals))]
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Result<Response, Refusal> {
    let now = shared.ledger.now().await.map_err(|error| storage_refused(&error))?;
    if shared.stop.is_cancelled() {
        return Err(Refusal::plain(ErrorCode::Unavailable));
    }
    let health = Health {
        status: "ok".to_owned(),
        instance: shared.instance(),
        now,
        idempotency_days: limits::HUB_KEY_DAYS,
        capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
    };
    Ok(respond::json(StatusCode::OK, &health))
}

/// The JSON Schema of each kind's body.
#[utoipa::path(
    get, path = "/hub/schemas", tag = "hub",
    responses((status = 200, body = Schemas), Refusals), security(("token" = ["hub"]))
)]
pub(super) async fn schemas(caller: Caller) -> Result<Response, Refusal> {
    caller.may_use_hub()?;
    let mut schemas = Map::new();
    for (kind, schema) in [
        ("progress", NewProgress::schema()),
        ("token-events", NewTokenEvent::schema()),
        ("decisions", NewDecision::schema()),
        ("tasks", NewTask::schema()),
        ("workplans", NewWorkplan::schema()),
    ] {
        schemas.insert(kind.to_owned(), serde_json::to_value(schema).unwrap_or_default());
    }
    Ok(respond::json(StatusCode::OK, &Schemas { schemas }))
}
