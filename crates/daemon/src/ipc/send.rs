//! `POST /v1/send` and `POST /v1/topic/post`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderMap;
use model::ErrorCode;
use net::respond::{Json, Refusal, json, read_json};
use wire::local::{ACT_AS_HEADER, IDEMPOTENCY_HEADER, SendRequest, TopicPostRequest};

use crate::ground::{Caller, Ground};
use crate::send::{Answered, send as accept};

/// Where sends go. Whoever answers them stands before the routes.
pub(super) const PATH: &str = "/v1/send";

/// Answers a send of `caller`.
pub(super) async fn send(ground: &Ground, caller: &Caller, request: Request) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    take(ground, caller, &head.headers, read_json(body).await?).await
}

pub(super) async fn post_to_topic(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(request): Json<TopicPostRequest>,
) -> Result<Response, Refusal> {
    take(&ground, &caller, &headers, request.into()).await
}

async fn take(
    ground: &Ground,
    caller: &Caller,
    headers: &HeaderMap,
    request: SendRequest,
) -> Result<Response, Refusal> {
    let (key, acting_as) = (line(headers, IDEMPOTENCY_HEADER)?, line(headers, ACT_AS_HEADER)?);
    let actor = ground.act(caller, request.mesh.as_deref(), acting_as)?;
    ground.disk.check()?;
    let Answered { status, answer } = accept(&actor.mesh, &actor.member, request, key).await?;
    Ok(json(status, &answer))
}

/// A header's one line; two could be understood differently by two readers.
pub(super) fn line<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    let malformed =
        || Refusal::new(ErrorCode::InvalidRequest, format!("{name} must be one line of plain text"));
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => line.to_str().map(Some).map_err(|_| malformed()),
        (Some(_), Some(_)) => Err(malformed()),
    }
}
