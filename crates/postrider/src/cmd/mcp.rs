//! `postrider mcp`: tools for coding agents, on stdin and stdout; and the routes that serve them at `/mcp`.

mod client;
mod edit;
mod install;

use daemon::home::Home;
use mcp::{Door, Server};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::home::{shown, socket};
use crate::{args, journal};

pub async fn run(asked: args::Mcp, context: &Context) -> Result<Exit, Failure> {
    match asked.command {
        None => serve(context).await,
        Some(args::McpCommand::Install(asked)) => install::run(asked, context).await,
    }
}

/// `/mcp` for the local door. It asks at that same door, with its caller's own credential.
pub fn routes(home: &Home) -> Result<axum::Router, Failure> {
    Ok(mcp::router(server(door(home)?)))
}

/// Needs no daemon to begin: a client starts its servers whenever it likes, and each call says what is missing.
async fn serve(context: &Context) -> Result<Exit, Failure> {
    journal::start();
    let mut door = door(&context.home)?.with(context.act_as.clone(), context.mesh.clone());
    if let Some(token) = context.token()? {
        door = door.with_token(&token);
    }
    mcp::serve(server(door)).await.map_err(anyhow::Error::from)?;
    Ok(Exit::Done)
}

fn door(home: &Home) -> Result<Door, Failure> {
    let socket = socket(home)?;
    let shown = shown(&socket);
    Ok(Door::at(socket, shown))
}

fn server(door: Door) -> Server {
    Server::new(door, env!("CARGO_PKG_VERSION"))
}
