//! `POST /v1/agents`: a durable address with a token of its own. `POST /v1/rotate-token`: the operator's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use mailbox::Member;
use model::{ErrorCode, MemberKind, MemberName};
use net::Secret;
use net::respond::{Json, Refusal, json};
use wire::ask::{MemberRow, Question};
use wire::local::{AgentAnswer, AgentRequest, RotateAnswer};

use crate::ground::{Caller, Ground};
use crate::token::GRACE;
use crate::{questions, storage};

/// Registers the agent at the broker first: a name is the mesh's to give. Asked again at this home, it gets a
/// new token and the old one ends shortly.
pub(super) async fn register(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Json(request): Json<AgentRequest>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    let name: MemberName = request.name.strip_prefix('@').unwrap_or(&request.name).parse()?;
    let actor = ground.act(&caller, request.mesh.as_deref(), None)?;
    let known = actor.mesh.member(&name);
    if known.as_ref().is_some_and(|member| member.kind != MemberKind::Agent) {
        return Err(Refusal::plain(ErrorCode::NameTaken));
    }
    let question = Question::MemberRegister { name: name.clone(), kind: MemberKind::Agent };
    let row: MemberRow = questions::ask(&actor.mesh, actor.member.id, question).await?;
    let member = Member { id: row.member.id, name: row.member.name, kind: MemberKind::Agent };
    let stored = |error: &sqlite::StorageError| storage::refusal(error);
    actor.mesh.learn_members(vec![member.clone()]).await.map_err(|error| stored(&error))?;
    let token = Secret::mint(&*ground.entropy);
    let old_until = ground.clock.now() + GRACE;
    let hash = *token.token_hash().as_bytes();
    actor.mesh.mailbox.set_token(member.id, hash, old_until).await.map_err(|error| match error {
        mailbox::SetTokenError::Storage(error) => stored(&error),
        mailbox::SetTokenError::UnknownMember(_) => Refusal::plain(ErrorCode::NameTaken),
    })?;
    let replaced = known.is_some();
    let answer = AgentAnswer {
        id: member.id,
        name: member.name,
        mesh: actor.mesh.slug.clone(),
        token: token.reveal().to_owned(),
        replaced,
    };
    let status = if replaced { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, &answer))
}

pub(super) async fn rotate_token(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    ground.token.rotate(&ground.home, &*ground.clock, &*ground.entropy).map_err(|error| {
        tracing::error!(%error, "the local token could not be replaced");
        Refusal::new(ErrorCode::Internal, "The token's file could not be written; the old token stays.")
    })?;
    ground.ipc.token_rotations.fetch_add(1, Ordering::Relaxed);
    let old_valid_until = ground.clock.now() + GRACE;
    Ok(json(StatusCode::OK, &RotateAnswer { old_valid_until }))
}
