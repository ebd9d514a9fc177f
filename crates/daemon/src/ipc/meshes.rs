//! `/v1/meshes`: which meshes this home is in, joining one, leaving one, trying a link again.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use model::ErrorCode;
use net::handshake::Invite;
use net::respond::{Json, Refusal, json};
use wire::ask::Done;
use wire::local::{JoinAnswer, JoinRequest, MeshList};

use super::state::healths;
use crate::ground::{Caller, Ground, Slot};
use crate::join::{Join, JoinError};

pub(super) async fn list(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    let default_mesh = ground.slots().default_mesh.clone();
    let meshes = healths(&ground, &caller).await?;
    Ok(json(StatusCode::OK, &MeshList { default_mesh, meshes }))
}

pub(super) async fn join(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Json(request): Json<JoinRequest>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    let invite: Invite = request.invite.parse()?;
    let join = Join {
        invite,
        mesh_as: request.mesh_as,
        node: request.node.as_deref().map(str::parse).transpose()?,
        person: request.person,
        insecure_lan: request.insecure_lan.unwrap_or(false),
        ca: request.ca.map(PathBuf::from),
    };
    let joined = ground.join(join).await.map_err(refusal)?;
    let answer = JoinAnswer { mesh: joined.mesh, node: joined.node.to_string(), person: joined.person };
    Ok(json(StatusCode::CREATED, &answer))
}

/// `POST /v1/reload`: the settings are read again.
pub(super) async fn reload(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    let reloaded = ground.reload().await;
    reloaded.map_err(|error| Refusal::new(ErrorCode::InvalidRequest, error.to_string()))?;
    Ok(json(StatusCode::OK, &Done {}))
}

/// A parked or waiting link is tried now.
pub(super) async fn resume(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(slug): Path<String>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    let slots = ground.slots();
    match slots.all.iter().find(|slot| slot.slug() == slug) {
        Some(Slot::Open { resume, .. }) => {
            resume.notify_one();
            Ok(json(StatusCode::ACCEPTED, &Done {}))
        }
        Some(Slot::Shut { problem, .. }) => Err(Refusal::new(ErrorCode::StorageStopped, problem.clone())),
        None => Err(Refusal::plain(ErrorCode::MeshNotAttached)),
    }
}

/// The mesh is no longer attached. Its folder stays: it holds rows that may matter.
pub(super) async fn leave(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(slug): Path<String>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    ground.leave(&slug).await.map_err(refusal)?;
    Ok(json(StatusCode::OK, &Done {}))
}

fn refusal(error: JoinError) -> Refusal {
    let code = match &error {
        JoinError::Address(_) | JoinError::Plain { .. } | JoinError::AliasMalformed => {
            ErrorCode::InvalidRequest
        }
        JoinError::AliasTaken { .. } | JoinError::AlreadyJoined { .. } => ErrorCode::NameTaken,
        JoinError::NotAttached { .. } => ErrorCode::MeshNotAttached,
        JoinError::Refused { code, .. } => *code,
        JoinError::Unreachable(_) => ErrorCode::BrokerUnreachable,
        JoinError::Files(_) | JoinError::Settings(_) => ErrorCode::Internal,
    };
    match error {
        JoinError::Refused { message, .. } => Refusal::new(code, message),
        error => Refusal::new(code, error.to_string()),
    }
}
