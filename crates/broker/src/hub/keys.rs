//! What became of a key, which hub this is, and the schemas of its records.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::StatusCode;
use ledger::{Fence, HubKeyStatus, HubKnown};
use model::{ClientMessageId, ErrorCode, Timestamp, limits};
use net::respond::{self, Refusal};
use serde_json::Map;
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
    Ok(respond::json(StatusCode::OK, &told(&shared, &key, found, now)))
}

fn told(shared: &Shared, key: &ClientMessageId, found: HubKeyStatus, now: Timestamp) -> KeyStatus {
    let without_answer = |state| KeyStatus {
        key: key.to_string(),
        state,
        status: None,
        etag: None,
        body: None,
        fingerprint: None,
        recorded_at: None,
        now,
    };
    match found {
        HubKeyStatus::Committed(HubKnown::Stored { answer, fingerprint, created_at }) => KeyStatus {
            status: Some(answer.status),
            etag: answer.etag,
            body: serde_json::from_slice(&answer.body).ok(),
            fingerprint: Some(fingerprint.to_string()),
            recorded_at: Some(created_at),
            ..without_answer(KeyState::Committed)
        },
        HubKeyStatus::Committed(HubKnown::Message { receipt, fingerprint }) => KeyStatus {
            status: Some(StatusCode::CREATED.as_u16()),
            recorded_at: Some(receipt.accepted_at),
            body: serde_json::to_value(messages::accepted(key, receipt)).ok(),
            fingerprint: Some(fingerprint.to_string()),
            ..without_answer(KeyState::Committed)
        },
        HubKeyStatus::Committed(HubKnown::Retired) | HubKeyStatus::Retired => {
            shared.metrics.hub_keys_retired.add_one();
            without_answer(KeyState::Retired)
        }
        HubKeyStatus::Absent => without_answer(KeyState::Absent),
        HubKeyStatus::Unknown => without_answer(KeyState::Unknown),
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
