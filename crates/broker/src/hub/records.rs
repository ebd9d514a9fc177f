//! Reading and deleting records: the same for every kind.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use model::hub::{Change, RecordId, RecordKind};
use model::{ErrorCode, limits};
use net::respond::{self, Refusal};
use wire::hub::{ListQuery, Record, RecordList};

use super::answer::{etag, shown};
use super::call::{Call, one_line};
use crate::broker::{Shared, storage_refused};
use crate::direct::{Caller, part, query};
use crate::openapi::Refusals;

/// Three doors for one kind.
macro_rules! record_doors {
    ($($module:ident $kind:ident $all:literal $one:literal;)*) => {$(
        pub(super) mod $module {
            use super::*;

            /// Records by their last change, oldest first.
            #[utoipa::path(
                get, path = $all, tag = "hub", params(ListQuery),
                operation_id = concat!("hub_", stringify!($module), "_list"),
                responses((status = 200, body = RecordList), Refusals),
                security(("token" = ["hub"]))
            )]
            pub(in crate::hub) async fn list(
                State(shared): State<Arc<Shared>>,
                caller: Caller,
                asked: Result<Query<ListQuery>, QueryRejection>,
            ) -> Result<Response, Refusal> {
                caller.may_use_hub()?;
                page(&shared, RecordKind::$kind, query(asked)?).await
            }

            /// One record, with its version as `ETag`.
            #[utoipa::path(
                get, path = $one, tag = "hub", params(("id" = String, Path, description = "The record")),
                operation_id = concat!("hub_", stringify!($module), "_get"),
                responses((status = 200, body = Record), (status = 304), Refusals),
                security(("token" = ["hub"]))
            )]
            pub(in crate::hub) async fn one(
                State(shared): State<Arc<Shared>>,
                caller: Caller,
                id: Result<Path<String>, PathRejection>,
                headers: HeaderMap,
            ) -> Result<Response, Refusal> {
                caller.may_use_hub()?;
                record(&shared, RecordKind::$kind, &part(id)?, &headers).await
            }

            /// Deletes a record; its version goes on counting.
            #[utoipa::path(
                delete, path = $one, tag = "hub",
                params(("id" = String, Path, description = "The record"),
                    ("idempotency-key" = Option<String>, Header, description = "Makes the write happen once"),
                    ("if-match" = Option<String>, Header, description = "The version the caller saw")),
                operation_id = concat!("hub_", stringify!($module), "_delete"),
                responses((status = 200), Refusals),
                security(("token" = ["hub"]))
            )]
            pub(in crate::hub) async fn remove(
                id: Result<Path<String>, PathRejection>,
                call: Call,
            ) -> Result<Response, Refusal> {
                call.no_fields()?;
                call.change(RecordKind::$kind, record_id(&part(id)?)?, Change::Delete).await
            }
        }
    )*};
}

record_doors! {
    progress Progress "/hub/progress/" "/hub/progress/{id}";
    token_events TokenEvent "/hub/token-events/" "/hub/token-events/{id}";
    decisions Decision "/hub/decisions/" "/hub/decisions/{id}";
    tasks Task "/hub/tasks/" "/hub/tasks/{id}";
    workplans Workplan "/hub/workplans/" "/hub/workplans/{id}";
}

/// An id no record can have is one nobody has.
pub(super) fn record_id(text: &str) -> Result<RecordId, Refusal> {
    text.parse().map_err(|_| Refusal::plain(ErrorCode::NotFound))
}

async fn record(
    shared: &Shared,
    kind: RecordKind,
    id: &str,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let found = shared.ledger.hub_record(kind, &record_id(id)?).await;
    let found = found.map_err(|error| storage_refused(&error))?;
    let record = found.ok_or_else(|| Refusal::plain(ErrorCode::NotFound))?;
    let tag = etag(record.version);
    let seen = one_line(headers, IF_NONE_MATCH)?;
    let known =
        seen.is_some_and(|tags| tags.split(',').any(|seen| [tag.as_str(), "*"].contains(&seen.trim())));
    let mut response = match known {
        true => respond::not_modified(),
        false => respond::json(StatusCode::OK, &shown(&record)),
    };
    response.headers_mut().insert(ETAG, HeaderValue::from_str(&tag).expect("digits in quotes"));
    Ok(response)
}

async fn page(shared: &Shared, kind: RecordKind, asked: ListQuery) -> Result<Response, Refusal> {
    let limit = asked.limit.unwrap_or(limits::PAGE_ROWS_DEFAULT).clamp(1, limits::PAGE_ROWS_MAX);
    let after = asked.after.as_deref().map_or(Ok(0), |cursor| place(kind, cursor))?;
    let page = shared.ledger.hub_list(kind, after, limit).await.map_err(|error| storage_refused(&error))?;
    if after > page.head {
        // A place that was never given, or that a restored ledger has not reached again.
        return Err(wire::Refused::plain(ErrorCode::CursorExpired)
            .with("first_available", cursor(kind, 0))
            .into());
    }
    let (mut records, mut bytes, mut last, mut more) = (Vec::new(), 0, after, page.more);
    for record in &page.records {
        bytes += record.body.len();
        if bytes > limits::FRAME_BYTES_MAX && !records.is_empty() {
            more = true;
            break;
        }
        last = record.seq;
        records.push(shown(record));
    }
    Ok(respond::json(StatusCode::OK, &RecordList { records, cursor: cursor(kind, last), has_more: more }))
}

fn cursor(kind: RecordKind, seq: u64) -> String {
    format!("{}:{seq}", kind.word())
}

fn place(kind: RecordKind, cursor: &str) -> Result<u64, Refusal> {
    let seq = cursor.strip_prefix(kind.word()).and_then(|rest| rest.strip_prefix(':')?.parse().ok());
    seq.ok_or_else(|| Refusal::plain(ErrorCode::InvalidCursor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_one_of_its_own_list() {
        assert_eq!(place(RecordKind::Task, &cursor(RecordKind::Task, 7)), Ok(7));
        for bad in ["decisions:7", "tasks", "tasks:", "tasks:-1", "tasks:x", "7", ""] {
            assert!(place(RecordKind::Task, bad).is_err(), "{bad}");
        }
    }
}
