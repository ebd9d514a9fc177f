//! `POST /v1/send` and `POST /v1/topic/post`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use model::ErrorCode;
use net::respond::{Json, Refusal, json};
use wire::local::{ACT_AS_HEADER, IDEMPOTENCY_HEADER, SendRequest, TopicPostRequest};

use crate::ground::{Caller, Ground};
use crate::send::{Answered, send as accept};

pub(super) async fn send(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(request): Json<SendRequest>,
) -> Result<Response, Refusal> {
    let (key, acting_as) = (line(&headers, IDEMPOTENCY_HEADER)?, line(&headers, ACT_AS_HEADER)?);
    let actor = ground.act(&caller, request.mesh.as_deref(), acting_as)?;
    ground.disk.check()?;
    let Answered { status, answer } = accept(&actor.mesh, &actor.member, request, key).await?;
    Ok(json(status, &answer))
}

pub(super) async fn post_to_topic(
    state: State<Arc<Ground>>,
    caller: Extension<Caller>,
    headers: HeaderMap,
    Json(request): Json<TopicPostRequest>,
) -> Result<Response, Refusal> {
    send(state, caller, headers, Json(request.into())).await
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
