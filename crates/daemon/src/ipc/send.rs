//! `POST /v1/send` and `POST /v1/topic/post`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;
use model::ErrorCode;
use net::respond::{Json, Refusal, json};
use wire::local::{ACT_AS_HEADER, IDEMPOTENCY_HEADER, SendRequest, TopicPostRequest};

use crate::ground::{Caller, Ground};
use crate::send::{Answered, send as accept};

/// The headers that say something of a message. An extractor: a send does not copy all the others.
pub(super) struct Lines {
    key: Option<String>,
    acting_as: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Lines {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let of = |name| line(&parts.headers, name).map(|line| line.map(str::to_owned));
        Ok(Self { key: of(IDEMPOTENCY_HEADER)?, acting_as: of(ACT_AS_HEADER)? })
    }
}

pub(super) async fn send(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Lines { key, acting_as }: Lines,
    Json(request): Json<SendRequest>,
) -> Result<Response, Refusal> {
    let actor = ground.act(&caller, request.mesh.as_deref(), acting_as.as_deref())?;
    ground.disk.check()?;
    let Answered { status, answer } = accept(&actor.mesh, &actor.member, request, key.as_deref()).await?;
    Ok(json(status, &answer))
}

pub(super) async fn post_to_topic(
    state: State<Arc<Ground>>,
    caller: Extension<Caller>,
    lines: Lines,
    Json(request): Json<TopicPostRequest>,
) -> Result<Response, Refusal> {
    send(state, caller, lines, Json(request.into())).await
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
