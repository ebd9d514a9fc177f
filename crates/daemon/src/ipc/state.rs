//! `GET /v1/health`, `/readyz`, `/v1/version`, `/v1/metrics` and `POST /v1/shutdown`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use model::ErrorCode;
use net::respond::{Refusal, json};
use wire::local::{Health, MeshHealth, OutboxCounts, Ready, ShutdownAnswer, StoppedStore, Version};

use crate::ground::{Caller, Ground, Slot};
use crate::mesh::{LinkState, Mesh};
use crate::metrics::Page;
use crate::notices::notices;
use crate::{storage, view};

/// What this door can do beside the core of version 1.
const FEATURES: &[&str] =
    &["agents", "ask", "events", "explain", "inbox_wait", "meshes", "messages_wait", "turns"];

pub(super) async fn health(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    let meshes = healths(&ground, &caller).await?;
    let stopped_stores: Vec<StoppedStore> = ground.stores.stopped().iter().map(view::stopped_store).collect();
    let mut problems = ground.disk.problems();
    problems.extend(stopped_stores.iter().map(StoppedStore::problem));
    for health in meshes.iter().filter(|health| health.link == "parked" || health.link == "shut") {
        let reason = health.reason.as_deref().unwrap_or_default();
        problems.push(format!("mesh {}: {reason}", health.mesh));
    }
    problems.extend(
        ground.open_meshes().iter().filter_map(|mesh| mesh.mailbox.kept_log()).map(|kept| kept.to_string()),
    );
    let health = Health {
        daemon_version: ground.version.clone(),
        meshes,
        uptime_s: ground.uptime().as_secs(),
        page: ground.page_url.clone(),
        roles: ground.roles.clone(),
        problems,
        stopped_stores,
    };
    Ok(json(StatusCode::OK, &health))
}

/// `GET /readyz`: whether every store of the process takes writes and nobody asked it to stop.
pub(super) async fn ready(State(ground): State<Arc<Ground>>) -> Result<Response, Refusal> {
    if let Some(stopped) = ground.stores.stopped().first() {
        return Err(Refusal::new(ErrorCode::StorageStopped, view::stopped_store(stopped).problem()));
    }
    if ground.stop.is_cancelled() {
        return Err(Refusal::plain(ErrorCode::Unavailable));
    }
    Ok(json(StatusCode::OK, &Ready { status: "ready".to_owned() }))
}

/// Every mesh as it stands; an agent sees its own.
pub(super) async fn healths(ground: &Ground, caller: &Caller) -> Result<Vec<MeshHealth>, Refusal> {
    let mut slots = ground.slots().all.clone();
    if let Caller::Agent { mesh, .. } = caller {
        slots.retain(|slot| slot.slug() == mesh.slug);
    }
    let mut healths = Vec::new();
    for slot in &slots {
        healths.push(match slot {
            Slot::Open { mesh, .. } => mesh_health(mesh).await?,
            Slot::Shut { slug, node, problem } => shut_health(ground, slug, node, problem),
        });
    }
    Ok(healths)
}

pub(super) async fn version(State(ground): State<Arc<Ground>>) -> Response {
    let negotiated = ground.open_meshes().into_iter().filter(|mesh| mesh.live().is_some());
    let version = Version {
        daemon_version: ground.version.clone(),
        ipc_api: "v1".to_owned(),
        ipc_features: FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
        schema_version: mailbox::SCHEMA.migrations.last().map_or(0, |last| last.number),
        broker_features_negotiated: negotiated
            .flat_map(|_| [wire::link::FEATURE_DEDUPE, wire::link::FEATURE_CONNECTIONS])
            .map(str::to_owned)
            .collect(),
    };
    json(StatusCode::OK, &version)
}

pub(super) async fn metrics(State(ground): State<Arc<Ground>>) -> Result<Response, Refusal> {
    let mut page = Page::default();
    ground.ipc.print(&mut page);
    for mesh in ground.open_meshes() {
        mesh.tally.print(&mut page, &mesh.slug);
        print_mesh(&mut page, &mesh).await?;
    }
    ground.disk.print(&mut page);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], page.text()).into_response())
}

pub(super) async fn shutdown(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    caller.must_be_operator()?;
    tracing::info!("asked to stop");
    ground.stop.cancel();
    Ok(json(StatusCode::ACCEPTED, &ShutdownAnswer { stopping: true }))
}

async fn mesh_health(mesh: &Mesh) -> Result<MeshHealth, Refusal> {
    let outbox = mesh.mailbox.outbox_counts().await.map_err(|error| storage::refusal(&error))?;
    let inbox = mesh.mailbox.inbox_counts().await.map_err(|error| storage::refusal(&error))?;
    let person = mesh.person();
    let own = inbox.iter().find(|count| person.as_ref().is_some_and(|person| person.id == count.recipient));
    let went_back = mesh.mailbox.went_back().await.map_err(|error| storage::refusal(&error))?;
    let link = mesh.link();
    let (word, reason) = match link.state {
        LinkState::Live => ("live", None),
        LinkState::Away { reason } => ("away", reason),
        LinkState::Parked { reason, detail } => ("parked", Some(format!("{reason}: {detail}"))),
    };
    Ok(MeshHealth {
        mesh: mesh.slug.clone(),
        node: mesh.node.to_string(),
        person: person.map_or(String::new(), |person| person.name.to_string()),
        connected: word == "live",
        link: word.to_owned(),
        link_since: link.since,
        reason,
        outbox: view::outbox_counts(&outbox),
        oldest_queued_at: outbox.oldest_open_at,
        inbox_unread: own.map_or(0, |count| count.unread),
        inbox_total: own.map_or(0, |count| count.total),
        notices: notices(&mesh.slug, &went_back, mesh.broker_now()),
    })
}

fn shut_health(ground: &Ground, slug: &str, node: &str, problem: &str) -> MeshHealth {
    MeshHealth {
        mesh: slug.to_owned(),
        node: node.to_owned(),
        person: String::new(),
        connected: false,
        link: "shut".to_owned(),
        link_since: ground.clock.now(),
        reason: Some(problem.to_owned()),
        outbox: OutboxCounts::default(),
        oldest_queued_at: None,
        inbox_unread: 0,
        inbox_total: 0,
        notices: Vec::new(),
    }
}

async fn print_mesh(page: &mut Page, mesh: &Mesh) -> Result<(), Refusal> {
    let slug = mesh.slug.as_str();
    let counts = mesh.mailbox.outbox_counts().await.map_err(|error| storage::refusal(&error))?;
    let shown = view::outbox_counts(&counts);
    let live = if mesh.live().is_some() { 1.0 } else { 0.0 };
    page.gauge("cm_daemon_connected", &[("mesh", slug)], live);
    for (status, rows) in [
        ("pending", shown.pending),
        ("inflight", shown.inflight),
        ("done", shown.done),
        ("dead", shown.dead),
        ("aborted", shown.aborted),
    ] {
        page.gauge("cm_daemon_outbox_depth", &[("mesh", slug), ("status", status)], rows as f64);
    }
    let age = counts.oldest_open_at.map_or(0.0, |at| mesh.clock.now().since(at).as_secs_f64());
    page.gauge("cm_daemon_outbox_age_seconds", &[("mesh", slug)], age);
    let inbox = mesh.mailbox.inbox_counts().await.map_err(|error| storage::refusal(&error))?;
    let rows: u64 = inbox.iter().map(|count| count.total).sum();
    page.gauge("cm_daemon_inbox_rows", &[("mesh", slug)], rows as f64);
    Ok(())
}
