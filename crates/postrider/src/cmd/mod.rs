//! One file per subcommand.

mod agent;
mod backup;
mod broker;
mod daemon;
mod demo;
mod detach;
mod doctor;
mod down;
mod explain;
mod inbox;
mod invite;
mod mcp;
mod mend;
mod mesh;
mod outbox;
mod relay;
mod reply;
mod send;
mod service;
mod signin;
mod status;
mod token;
mod topic;
mod up;
mod watch;
mod webhook;

use std::path::PathBuf;

use ::daemon::home::Home;
use net::Secret;

use crate::args::{Args, Command};
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::Output;

/// What every command is given.
pub struct Context {
    pub home: Home,
    pub output: Output,
    pub mesh: Option<String>,
    pub act_as: Option<String>,
    /// Holds an agent's token; `--as` wins over it, because the environment may name the file.
    pub agent_token_file: Option<PathBuf>,
}

impl Context {
    /// The local door as the acting member.
    pub fn door(&self) -> Result<LocalDoor, Failure> {
        Ok(self.any_door()?.with(self.act_as.clone(), self.mesh.clone()))
    }

    /// The local door as the home's person, in the named mesh.
    pub fn own_door(&self) -> Result<LocalDoor, Failure> {
        Ok(self.any_door()?.with(None, self.mesh.clone()))
    }

    /// The agent's token that was named, when nobody is named by `--as`.
    pub fn token(&self) -> Result<Option<Secret>, Failure> {
        match &self.agent_token_file {
            Some(file) if self.act_as.is_none() => crate::local::read_token(file).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// Whoever brings a token is judged by it, whatever is asked.
    fn any_door(&self) -> Result<LocalDoor, Failure> {
        let door = LocalDoor::of(&self.home)?;
        Ok(match self.token()? {
            Some(token) => door.with_token(&token),
            None => door,
        })
    }
}

/// Does what was asked.
pub async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let home = crate::home::resolve(args.home.as_deref())?;
    let context = Context {
        home,
        output: *output,
        mesh: args.mesh,
        act_as: args.act_as,
        agent_token_file: args.agent_token_file,
    };
    match args.command {
        Command::Up(up) => up::run(up, &context).await,
        Command::Down => down::run(&context).await,
        Command::Status => status::run(&context).await,
        Command::Send(send) => send::run(send, &context).await,
        Command::Inbox(inbox) => inbox::run(inbox, &context).await,
        Command::Watch(watch) => watch::run(watch, &context).await,
        Command::Reply(reply) => reply::run(reply, &context).await,
        Command::Explain { id } => explain::run(&id, &context).await,
        Command::Backup(asked) => backup::run(asked, &context),
        Command::Restore(asked) => backup::restore(&asked, &context),
        Command::Demo => demo::run(&context).await,
        Command::Doctor(asked) => doctor::run(asked, &context).await,
        Command::Topic(topic) => topic::run(topic, &context).await,
        Command::Agent(agent) => agent::run(agent, &context).await,
        Command::Mcp(mcp) => mcp::run(mcp, &context).await,
        Command::Invite(invite) => invite::run(invite, &context).await,
        Command::Join(join) => invite::join(join, &context).await,
        Command::Mesh(mesh) => mesh::run(mesh, &context).await,
        Command::Signin => signin::run(&context).await,
        Command::Token(token) => token::run(token, &context).await,
        Command::Webhook(webhook) => webhook::run(webhook, &context).await,
        Command::Daemon(daemon) => daemon::run(daemon, &context).await,
        Command::Broker(broker) => broker::run(broker, &context).await,
        Command::Relay(relay) => relay::run(relay, &context).await,
        Command::Service(service) => service::run(service, &context),
    }
}
