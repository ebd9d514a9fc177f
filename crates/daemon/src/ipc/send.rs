//! `POST /v1/send` and `POST /v1/topic/post`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use hyper::body::Incoming;
use mailbox::NewRow;
use model::ErrorCode;
use net::guard::Policy;
use net::respond::{Json, Refusal, json, parse_json};
use wire::local::{ACT_AS_HEADER, IDEMPOTENCY_HEADER, SendRequest, TopicPostRequest};

use crate::ground::{Caller, Ground};
use crate::mesh::Mesh;
use crate::send::{Answered, row_of, store};

/// Where sends go. Whoever answers them stands before the routes.
pub(super) const PATH: &str = "/v1/send";

/// Answers a send of `caller`, whose request keeps `policy`.
pub(super) async fn send(
    ground: &Ground,
    policy: &Policy,
    caller: Caller,
    request: http::Request<Incoming>,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let body = policy.read(&head.headers, body).await?;
    let (mesh, new) = take(ground, &caller, &head.headers, parse_json(&body)?)?;
    // Before the wait: whatever lives across it is part of what every send allocates and moves.
    drop((head, body, caller));
    store(&mesh, &ground.disk, new).await.map(told)
}

pub(super) async fn post_to_topic(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(request): Json<TopicPostRequest>,
) -> Result<Response, Refusal> {
    let (mesh, new) = take(&ground, &caller, &headers, request.into())?;
    store(&mesh, &ground.disk, new).await.map(told)
}

/// The row of a message, and where it is to be stored.
fn take(
    ground: &Ground,
    caller: &Caller,
    headers: &HeaderMap,
    request: SendRequest,
) -> Result<(Arc<Mesh>, NewRow), Refusal> {
    let (key, acting_as) = (line(headers, IDEMPOTENCY_HEADER)?, line(headers, ACT_AS_HEADER)?);
    let actor = ground.act(caller, request.mesh.as_deref(), acting_as)?;
    let new = row_of(&actor.mesh, &actor.member, request, key)?;
    Ok((actor.mesh, new))
}

fn told(answered: Answered) -> Response {
    json(answered.status, &answered.answer)
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
