//! `postrider invite` and `postrider join`: one invite, at most one join.

use ::daemon::settings::Settings;
use model::{ErrorCode, NodeName};
use net::Secret;
use net::handshake::Invite;
use wire::ask::Question;
use wire::local::{Health, JoinAnswer, JoinRequest};

use super::Context;
use super::send::text;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output::{Form, clock_time};

pub async fn run(asked: args::Invite, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    let node: Option<NodeName> = asked
        .node
        .map(|name| name.parse())
        .transpose()
        .map_err(|error: model::error::Malformed| Failure::usage(error.to_string()))?;
    let made: wire::ask::Invite = door.ask_broker(&Question::InviteCreate { node: node.clone() }).await?;
    let url = match made.url.clone().or(door.get::<Health>("/v1/health").await?.page) {
        Some(url) => url,
        None => url_of(context)?,
    };
    let invite = Invite { url, token: Secret::from(made.token.clone()), issuer_key: made.issuer_key };
    let line = invite.to_text();
    match output.form() {
        Form::Json => output.json(&serde_json::json!({
            "invite": line.reveal(),
            "node": node.as_ref().map(NodeName::as_str),
            "expires_at": made.expires_at.to_string(),
        })),
        Form::Quiet => output.text(line.reveal()),
        Form::Text => {
            let whom = node.map_or_else(|| "any node".to_owned(), |node| format!("node {node}"));
            output.fact("invite", &format!("for {whom}, one join, until {}", clock_time(made.expires_at)));
            output.fact("there", &format!("postrider join '{}'", line.reveal()));
            output.fact("", "Shown once (join - reads it from stdin).");
        }
    }
    Ok(Exit::Done)
}

pub async fn join(asked: args::Join, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    let request = JoinRequest {
        invite: text(&asked.url)?.trim().to_owned(),
        mesh_as: asked.mesh_as,
        node: asked.node,
        person: asked.person,
        insecure_lan: asked.insecure_lan.then_some(true),
        ca: asked
            .ca
            .map(|path| std::path::absolute(path).map_err(anyhow::Error::from))
            .transpose()?
            .map(|path| path.display().to_string()),
    };
    let joined: JoinAnswer = door.post("/v1/meshes", &request).await?;
    match output.form() {
        Form::Json => output.json(&joined),
        Form::Quiet => output.text(&joined.mesh),
        Form::Text => {
            output.fact(
                "joined",
                &format!("mesh {} as {}, you are {}", joined.mesh, joined.node, joined.person),
            );
            output.fact("", "Its key is registered; reconnecting needs no invite.");
        }
    }
    Ok(Exit::Done)
}

/// Where this home itself reaches the mesh's broker.
fn url_of(context: &Context) -> Result<String, Failure> {
    let settings =
        Settings::read(&context.home.config()).map_err(|error| Failure::usage(error.to_string()))?;
    let slug = context.mesh.clone().or(settings.default_mesh.clone());
    let entry =
        slug.and_then(|slug| settings.mesh(&slug).cloned()).or_else(|| settings.meshes.first().cloned());
    entry.map(|entry| entry.url).ok_or_else(|| {
        Failure::refused(ErrorCode::MeshNotAttached, "this home is in no mesh").fix("postrider join URL")
    })
}
