//! The operator's door: what waits, and what a person does about it.
//!
//! - An act touches one envelope and answers with how it stands afterwards.
//! - A new try of what may have left asks the upstream first; without its word it needs the person's own.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::StatusCode;
use mailbox::relay::{Envelope, Envelopes, OperateError, Successor, Withdrawn};
use model::relay::{Fenced, Outcome, Precondition, Status};
use model::secrets::{Allowed, scan_json};
use model::{ErrorCode, RowId, hub, limits};
use net::respond::{self, Json, Refusal};
use serde::Deserialize;
use sqlite::StorageError;
use wire::Refused;
use wire::relay::{Acted, EnvelopePage, ReplayRequest, ResolveRequest, RetryRequest};

use crate::ask::{Word, fence, mint_key};
use crate::relay::{Relay, Shared, UPSTREAM_ID};
use crate::{explain, view};

pub(crate) type Answer = Result<Response, Refusal>;

/// Shorter tails would too often name several.
const TAIL_MIN: usize = 6;

/// The door at `relay/sock`.
pub fn router(relay: &Relay) -> Router {
    Router::new()
        .route("/readyz", get(ready))
        .route("/v1/relay/status", get(status))
        .route("/v1/relay/envelopes", get(list))
        .route("/v1/relay/envelopes/{id}", get(inspect))
        .route("/v1/relay/envelopes/{id}/retry", post(retry))
        .route("/v1/relay/envelopes/{id}/cancel", post(cancel))
        .route("/v1/relay/envelopes/{id}/resolve", post(resolve))
        .route("/v1/relay/replay", post(replay))
        .route("/v1/relay/explain/{id}", get(explain::about))
        .with_state(Arc::clone(&relay.shared))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    status: Option<String>,
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
    #[serde(default)]
    bodies: bool,
}

pub(crate) async fn status(State(shared): State<Arc<Shared>>) -> Answer {
    Ok(respond::json(StatusCode::OK, &view::status(&shared).await.map_err(stored)?))
}

/// Whether writes are stored. Callers' own door has no such path: all of its paths are the upstream's.
async fn ready(State(shared): State<Arc<Shared>>) -> Answer {
    match shared.config.stores.stopped().first() {
        Some(stopped) => {
            let problem =
                format!("the {} has stopped after a storage error ({})", stopped.name, stopped.cause);
            Err(Refusal::new(ErrorCode::StorageStopped, problem))
        }
        None => Ok(respond::json(StatusCode::OK, &serde_json::json!({"status": "ready"}))),
    }
}

pub(crate) async fn list(State(shared): State<Arc<Shared>>, Query(asked): Query<Listing>) -> Answer {
    let wanted = match asked.status.as_deref() {
        None => None,
        Some(word) => Some(Status::parse(word).ok_or_else(|| {
            let words: Vec<&str> = Status::ALL.iter().map(|status| status.word()).collect();
            Refusal::new(ErrorCode::InvalidRequest, format!("status must be one of {}", words.join(", ")))
        })?),
    };
    let envelopes = outbox(&shared)?;
    let limit = asked.limit.unwrap_or(limits::PAGE_ROWS_DEFAULT);
    let rows = envelopes.list(wanted, asked.after, limit).await.map_err(stored)?;
    let mut page = EnvelopePage { envelopes: Vec::with_capacity(rows.len()) };
    for row in &rows {
        let shown = if asked.bodies {
            view::with_bodies(envelopes, row).await.map_err(stored)?
        } else {
            view::envelope(row)
        };
        page.envelopes.push(shown);
    }
    Ok(respond::json(StatusCode::OK, &page))
}

pub(crate) async fn inspect(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer {
    let envelopes = outbox(&shared)?;
    let row = find(envelopes, &id).await?;
    Ok(respond::json(StatusCode::OK, &view::with_bodies(envelopes, &row).await.map_err(stored)?))
}

async fn cancel(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer {
    let row = find(outbox(&shared)?, &id).await?;
    let acted = withdraw(&shared, &row, "cancelled").await?;
    Ok(respond::json(StatusCode::OK, &acted))
}

async fn withdraw(shared: &Shared, row: &Envelope, resolution: &str) -> Result<Acted, Refusal> {
    let may_be_there = row
        .outcome
        .may_be_committed()
        .then(|| "It may have been committed: nobody could say yet.".to_owned());
    let now = shared.clock.now();
    match outbox(shared)?.cancel(row.envelope_id, resolution.to_owned(), now).await.map_err(refused)? {
        Withdrawn::Changed { before, envelope } => {
            shared.changed(before, &envelope);
            let warning = may_be_there;
            Ok(Acted {
                did: "cancelled".into(),
                envelope: view::envelope(&envelope),
                successor: None,
                warning,
            })
        }
        Withdrawn::Asking(envelope) => {
            shared.wake.notify_one();
            let warning = Some(
                "It may have been committed; it ends when the upstream has said what became of it."
                    .to_owned(),
            );
            Ok(Acted {
                did: "cancelling".into(),
                envelope: view::envelope(&envelope),
                successor: None,
                warning,
            })
        }
    }
}

async fn retry(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(asked): Json<RetryRequest>,
) -> Answer {
    let envelopes = outbox(&shared)?;
    let row = find(envelopes, &id).await?;
    if row.status == Status::Queued {
        match envelopes.retry_now(row.envelope_id, shared.clock.now()).await {
            Ok(Withdrawn::Changed { envelope, .. } | Withdrawn::Asking(envelope)) => {
                shared.wake.notify_one();
                let envelope = view::envelope(&envelope);
                let acted = Acted { did: "due".into(), envelope, successor: None, warning: None };
                return Ok(respond::json(StatusCode::OK, &acted));
            }
            // Past its age and never sent: a successor takes its place below.
            Err(OperateError::Unknown) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    let condition =
        row.theirs_etag.clone().filter(|_| row.status == Status::Conflict).map(Precondition::Match);
    let acted = succeed(&shared, row, condition, None, "retried", asked.force_duplicate).await?;
    Ok(respond::json(StatusCode::OK, &acted))
}

pub(crate) async fn resolve(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(asked): Json<ResolveRequest>,
) -> Answer {
    let row = find(outbox(&shared)?, &id).await?;
    if row.status != Status::Conflict {
        return Err(Refusal::new(
            ErrorCode::InvalidRequest,
            format!("it is {}, not in conflict", row.status.word()),
        ));
    }
    let seen = asked.seen_etag.or_else(|| row.theirs_etag.clone()).map(Precondition::Match);
    let acted = match (asked.choice.as_str(), asked.body) {
        ("drop", None) => withdraw(&shared, &row, "dropped mine").await?,
        ("keep", None) => succeed(&shared, row, seen, None, "kept mine", false).await?,
        ("edit", Some(body)) => {
            let text = body.to_string().into_bytes();
            check_body(&text)?;
            let print = hub::request_fingerprint(&row.method, &row.path, row.query.as_deref(), Some(&body));
            succeed(&shared, row, seen, Some((text, print)), "edited", false).await?
        }
        _ => {
            let wrong = "choice must be keep, drop, or edit with a body";
            return Err(Refusal::new(ErrorCode::InvalidRequest, wrong));
        }
    };
    Ok(respond::json(StatusCode::OK, &acted))
}

fn check_body(text: &[u8]) -> Result<(), Refusal> {
    if text.len() > limits::RELAY_BODY_BYTES_MAX {
        return Err(Refusal::plain(ErrorCode::PayloadTooLargeToQueue));
    }
    let found = scan_json(text, Allowed::default())
        .map_err(|error| Refusal::new(ErrorCode::InvalidRequest, error.to_string()))?;
    if found.is_empty() {
        return Ok(());
    }
    Err(Refused::plain(ErrorCode::SecretInPayload).with("pointers", found).into())
}

/// A successor under a new key, once it is sure that the old one was not committed, or the person insists.
async fn succeed(
    shared: &Shared,
    row: Envelope,
    precondition: Option<Precondition>,
    body: Option<(Vec<u8>, model::Fingerprint)>,
    resolution: &str,
    forced: bool,
) -> Result<Acted, Refusal> {
    let envelopes = outbox(shared)?;
    let row = match learn(shared, envelopes, row).await? {
        learned if learned.status == Status::Done => {
            let warning = Some("The upstream has it: nothing is left to do.".to_owned());
            let envelope = view::envelope(&learned);
            return Ok(Acted { did: "done".into(), envelope, successor: None, warning });
        }
        learned => learned,
    };
    let successor = Successor {
        idempotency_key: mint_key(shared),
        precondition,
        body,
        created_at: shared.upstream.now(),
        resolution: resolution.to_owned(),
        forced,
    };
    let (before, next) =
        envelopes.succeed(row.envelope_id, successor, shared.clock.now()).await.map_err(refused)?;
    let old = envelopes.find(row.envelope_id).await.map_err(stored)?.unwrap_or(row);
    shared.changed(before, &old);
    shared.board.load(&next.order_key, 1, next.body_bytes);
    shared.wake.notify_one();
    let (envelope, successor) = (view::envelope(&old), Some(view::envelope(&next)));
    Ok(Acted { did: "superseded".into(), envelope, successor, warning: None })
}

/// Asks about the key of an ended envelope of unknown outcome.
async fn learn(shared: &Shared, envelopes: &Envelopes, row: Envelope) -> Result<Envelope, Refusal> {
    if row.status.is_unfinished() || row.outcome != Outcome::Unknown {
        return Ok(row);
    }
    let outcome = match fence(shared, envelopes, &row).await.map_err(stored)? {
        Word::Said(Fenced::Committed) => Outcome::Committed,
        Word::Said(Fenced::Retired | Fenced::AnotherRequest) => Outcome::NotCommitted,
        Word::Said(Fenced::Unknown) | Word::Silent | Word::Refused(_) => return Ok(row),
    };
    let before = row.status;
    let learned = envelopes.learn(row.envelope_id, outcome, shared.clock.now()).await.map_err(refused)?;
    shared.changed(before, &learned);
    Ok(learned)
}

async fn replay(State(shared): State<Arc<Shared>>, Json(asked): Json<ReplayRequest>) -> Answer {
    let envelopes = outbox(&shared)?;
    match shared.upstream.probe().await {
        Ok(seen) => {
            if asked.force_upstream && seen.instance.is_some() {
                envelopes.keep_fact(UPSTREAM_ID, seen.instance.clone()).await.map_err(stored)?;
                shared.standing().upstream_id.clone_from(&seen.instance);
            }
            let recorded = shared.standing().upstream_id.clone();
            if let (Some(named), Some(recorded)) = (seen.instance, recorded)
                && named != recorded
            {
                let told = format!("the upstream is {named}, the waiting writes are for {recorded}");
                return Err(Refusal::new(ErrorCode::WrongInstance, told));
            }
            shared.resume().await.map_err(stored)?;
            envelopes.all_due(shared.clock.now()).await.map_err(stored)?;
            shared.wake.notify_one();
        }
        Err(error) => tracing::debug!(?error, "a replay was asked for while the upstream is away"),
    }
    Ok(respond::json(StatusCode::OK, &view::status(&shared).await.map_err(stored)?))
}

fn outbox(shared: &Shared) -> Result<&Envelopes, Refusal> {
    let damaged = "the outbox was damaged and is set aside; restart the relay to begin a new one";
    shared.envelopes.as_ref().ok_or_else(|| Refusal::new(ErrorCode::Unavailable, damaged))
}

/// The envelope of an id or a key, or of the last six or more characters of an id.
async fn find(envelopes: &Envelopes, id: &str) -> Result<Envelope, Refusal> {
    match look(envelopes, id).await? {
        Some(row) => Ok(row),
        None if id.len() < TAIL_MIN => {
            Err(Refusal::new(ErrorCode::InvalidRequest, "give at least six characters of the id"))
        }
        None => Err(Refusal::plain(ErrorCode::NotFound)),
    }
}

/// The same, for whoever may ask about anything.
pub(crate) async fn look(envelopes: &Envelopes, id: &str) -> Result<Option<Envelope>, Refusal> {
    if let Ok(id) = id.parse::<RowId>()
        && let Some(row) = envelopes.find(id).await.map_err(stored)?
    {
        return Ok(Some(row));
    }
    if let Some(row) = envelopes.find_key(id.to_owned()).await.map_err(stored)? {
        return Ok(Some(row));
    }
    if id.len() < TAIL_MIN || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = envelopes.list(None, after, limits::PAGE_ROWS_MAX).await.map_err(stored)?;
        let Some(last) = page.last() else { break };
        after = last.local_seq;
        found.extend(
            page.into_iter().filter(|row| row.envelope_id.to_string().ends_with(&id.to_ascii_uppercase())),
        );
    }
    if found.len() > 1 {
        let candidates: Vec<String> = found.iter().map(|row| row.envelope_id.to_string()).collect();
        return Err(Refused::plain(ErrorCode::IdAmbiguous).with("candidates", candidates).into());
    }
    Ok(found.pop())
}

fn refused(error: OperateError) -> Refusal {
    match error {
        OperateError::NotFound => Refusal::plain(ErrorCode::NotFound),
        OperateError::Inflight => Refusal::new(
            ErrorCode::RowInflight,
            "The write is on its way to the upstream; nothing was changed.",
        ),
        OperateError::Over => {
            Refusal::new(ErrorCode::RowAborted, "The write has ended already; nothing was changed.")
        }
        OperateError::Unknown => Refusal::new(
            ErrorCode::OutcomeUnknown,
            "The upstream cannot say whether it committed the write; nothing was changed.",
        )
        .with_status(wire::status::UNKNOWN_TO_OPERATOR),
        OperateError::Storage(error) => stored(error),
    }
}

pub(crate) fn stored(error: StorageError) -> Refusal {
    tracing::error!(%error, "the relay's file");
    match error {
        StorageError::OutcomeUnknown { .. } => Refusal::plain(ErrorCode::OutcomeUnknown),
        StorageError::LogFull { .. } => Refusal::new(ErrorCode::LogFull, error.to_string()),
        _ => Refusal::plain(ErrorCode::StorageStopped),
    }
}
