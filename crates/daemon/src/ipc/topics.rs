//! What the broker knows, asked over the link as the acting member.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use model::{ErrorCode, TopicName};
use net::respond::{Json, Refusal, json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::ask::Question;
use wire::local::ACT_AS_HEADER;
use wire::log::PageRequest;

use super::send::line;
use crate::ground::{Caller, Ground};
use crate::questions;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfMesh {
    mesh: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    topic: String,
    mesh: Option<String>,
    limit: Option<usize>,
    before: Option<String>,
}

/// `POST /v1/ask`
#[derive(Debug, Deserialize)]
pub(super) struct AnyQuestion {
    mesh: Option<String>,
    #[serde(flatten)]
    question: Question,
}

/// `POST /v1/topic/subscribe` and `/unsubscribe`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfTopic {
    topic: String,
    mesh: Option<String>,
}

#[derive(Serialize)]
struct Peers {
    mesh: String,
    peers: Box<RawValue>,
}

#[derive(Serialize)]
struct Topics {
    mesh: String,
    topics: Box<RawValue>,
}

pub(super) async fn history(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: History = super::query(&uri)?;
    let topic = topic(&asked.topic)?;
    let page = PageRequest { before: asked.before, limit: asked.limit };
    let question = Question::TopicHistory { topic, page };
    let (_, answer) = put(&ground, &caller, &headers, asked.mesh.as_deref(), question).await?;
    Ok(json(StatusCode::OK, &answer))
}

pub(super) async fn list(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: OfMesh = super::query(&uri)?;
    let asked = asked.mesh.as_deref();
    let (mesh, topics) = put(&ground, &caller, &headers, asked, Question::Topics).await?;
    Ok(json(StatusCode::OK, &Topics { mesh, topics }))
}

pub(super) async fn peers(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: OfMesh = super::query(&uri)?;
    let asked = asked.mesh.as_deref();
    let (mesh, peers) = put(&ground, &caller, &headers, asked, Question::Members).await?;
    Ok(json(StatusCode::OK, &Peers { mesh, peers }))
}

/// The acting member gets the topic from now on; asked again it changes nothing.
pub(super) async fn subscribe(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(asked): Json<OfTopic>,
) -> Result<Response, Refusal> {
    let question = Question::TopicSubscribe { topic: topic(&asked.topic)? };
    let (_, answer) = put(&ground, &caller, &headers, asked.mesh.as_deref(), question).await?;
    Ok(json(StatusCode::OK, &answer))
}

/// The acting member gets the topic no more; asked again it changes nothing.
pub(super) async fn unsubscribe(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(asked): Json<OfTopic>,
) -> Result<Response, Refusal> {
    let question = Question::TopicUnsubscribe { topic: topic(&asked.topic)? };
    let (_, answer) = put(&ground, &caller, &headers, asked.mesh.as_deref(), question).await?;
    Ok(json(StatusCode::OK, &answer))
}

fn topic(asked: &str) -> Result<TopicName, Refusal> {
    Ok(asked.strip_prefix('#').unwrap_or(asked).parse()?)
}

/// Any question but those whose answer changes what this node keeps: they have addresses of their own.
pub(super) async fn ask(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(asked): Json<AnyQuestion>,
) -> Result<Response, Refusal> {
    if matches!(asked.question, Question::MessageStatus { .. } | Question::MemberRegister { .. }) {
        return Err(Refusal::new(ErrorCode::InvalidRequest, "This question has an address of its own."));
    }
    let (_, answer) = put(&ground, &caller, &headers, asked.mesh.as_deref(), asked.question).await?;
    Ok(json(StatusCode::OK, &answer))
}

/// Puts `question` as the acting member; the answer goes on untouched.
async fn put(
    ground: &Ground,
    caller: &Caller,
    headers: &HeaderMap,
    mesh: Option<&str>,
    question: Question,
) -> Result<(String, Box<RawValue>), Refusal> {
    let actor = ground.act(caller, mesh, line(headers, ACT_AS_HEADER)?)?;
    let answer = questions::ask(&actor.mesh, actor.member.id, question).await?;
    Ok((actor.mesh.slug.clone(), answer))
}
