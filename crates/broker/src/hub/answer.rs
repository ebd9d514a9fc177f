//! What was done, as JSON that is stored with the effect; and what was refused.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName};
use http::{HeaderValue, StatusCode};
use ledger::{HubAnswer, HubApplied, HubRecord, HubRefusal};
use model::ErrorCode;
use model::hub::Refusal as RecordRefusal;
use net::respond::Refusal;
use serde::Serialize;
use serde_json::{Value, json};
use wire::hub::{CHANGED_AT_HEADER, REPLAYED_HEADER, Record, WasRead};

/// The answer to a write.
pub(super) fn render(applied: &HubApplied) -> HubAnswer {
    match applied {
        HubApplied::Made(record) => of_record(StatusCode::CREATED, record),
        HubApplied::Changed(record) => of_record(StatusCode::OK, record),
        HubApplied::Deleted { id, version, .. } => {
            plain(&json!({"id": id.as_str(), "deleted": true, "version": version}))
        }
        HubApplied::Batch(records) => {
            let versions: Vec<Value> = records
                .iter()
                .map(|record| json!({"id": record.id.as_str(), "version": record.version}))
                .collect();
            let changed_at = records.iter().map(|record| record.updated_at).max();
            HubAnswer { changed_at, ..plain(&json!({"tasks": versions})) }
        }
        HubApplied::Read { id, read_at } => plain(&WasRead { id: id.to_string(), read_at: *read_at }),
    }
}

/// The tag of a version.
pub(super) fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// A record as readers get it.
pub(super) fn shown(record: &HubRecord) -> Record {
    Record {
        id: record.id.to_string(),
        version: record.version,
        created_by: record.created_by.to_string(),
        created_at: record.created_at,
        updated_by: record.updated_by.to_string(),
        updated_at: record.updated_at,
        // What is stored was an object when it was written.
        fields: serde_json::from_slice(&record.body).unwrap_or_default(),
    }
}

fn of_record(status: StatusCode, record: &HubRecord) -> HubAnswer {
    HubAnswer {
        changed_at: Some(record.updated_at),
        status: status.as_u16(),
        etag: Some(etag(record.version)),
        body: bytes(&shown(record)),
    }
}

fn plain(body: &impl Serialize) -> HubAnswer {
    HubAnswer { changed_at: None, status: StatusCode::OK.as_u16(), etag: None, body: bytes(body) }
}

fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("an answer's fields are all JSON can say")
}

/// The answer as it is given the first time.
pub(super) fn first(answer: HubAnswer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    // Only success is ever stored, and there are two kinds of it.
    *response.status_mut() = match answer.status == StatusCode::CREATED.as_u16() {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(tag) = answer.etag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        headers.insert(ETAG, tag);
    }
    if let Some(at) = answer.changed_at.and_then(|at| HeaderValue::from_str(&at.to_string()).ok()) {
        headers.insert(HeaderName::from_static(CHANGED_AT_HEADER), at);
    }
    response
}

/// The same answer to a copy.
pub(super) fn replayed(answer: HubAnswer) -> Response {
    let mut response = first(answer);
    mark_replayed(&mut response);
    response
}

/// Says that the answer was given before.
pub(super) fn mark_replayed(response: &mut Response) {
    let name = HeaderName::from_static(REPLAYED_HEADER);
    response.headers_mut().insert(name, HeaderValue::from_static("true"));
}

/// The key belongs to another request.
pub(super) fn reused() -> Refusal {
    Refusal::new(ErrorCode::IdempotencyKeyReused, "The key was used for another request.")
}

/// The ledger's refusal as an answer.
pub(super) fn refused(refusal: HubRefusal) -> Refusal {
    match refusal {
        HubRefusal::KeyReused => reused(),
        HubRefusal::KeyRetired => Refusal::plain(ErrorCode::IdempotencyKeyRetired),
        HubRefusal::KeyExpired => Refusal::plain(ErrorCode::IdempotencyKeyExpired),
        HubRefusal::Revoked => Refusal::plain(ErrorCode::Revoked),
        HubRefusal::NoSuchMessage => Refusal::plain(ErrorCode::NotFound),
        HubRefusal::Record(RecordRefusal::NotFound) => Refusal::plain(ErrorCode::NotFound),
        HubRefusal::Record(RecordRefusal::TooLarge) => Refusal::plain(ErrorCode::TooLarge),
        HubRefusal::Record(RecordRefusal::Conflict { current }) => {
            wire::Refused::plain(ErrorCode::StateConflict).with("current_version", current).into()
        }
        HubRefusal::Batch(refused) => {
            let refused: Vec<Value> = refused.iter().map(|(id, why)| of_batch(id.as_str(), *why)).collect();
            let sentence = "Some of these tasks are not as the caller had seen them; none was changed.";
            wire::Refused::new(ErrorCode::StateConflict, sentence).with("refused", refused).into()
        }
    }
}

fn of_batch(id: &str, why: RecordRefusal) -> Value {
    match why {
        RecordRefusal::NotFound => json!({"id": id, "error": ErrorCode::NotFound.code()}),
        RecordRefusal::TooLarge => json!({"id": id, "error": ErrorCode::TooLarge.code()}),
        RecordRefusal::Conflict { current } => {
            json!({"id": id, "error": ErrorCode::StateConflict.code(), "current_version": current})
        }
    }
}
