//! `postrider daemon`: the daemon alone, and what an operator does with it.

use std::sync::Arc;

use ::daemon::{Config, Daemon, Surroundings, SystemDisk};
use model::{ErrorCode, OsEntropy};
use sqlite::Stores;
use tokio_util::sync::CancellationToken;
use wire::local::RotateAnswer;

use super::Context;
use super::up::{refuse_second, start_failure, stop_on_signal, warn_of_leftovers};
use crate::clock::clock;
use crate::failure::{Exit, Failure};
use crate::home::{log, shown};
use crate::output::{Form, clock_time};
use crate::stopped::{exit_after, stop_after_store};
use crate::{args, journal};

pub async fn run(asked: args::Daemon, context: &Context) -> Result<Exit, Failure> {
    match asked {
        args::Daemon::Up { detach: true } => {
            super::detach::run(&["daemon".to_owned(), "up".to_owned()], &context.home, &context.output).await
        }
        args::Daemon::Up { detach: false } => up(context).await,
        args::Daemon::Down => super::down::run(context).await,
        args::Daemon::Status => super::status::run(context).await,
        args::Daemon::Logs { lines } => logs(lines, context),
        args::Daemon::Outbox(outbox) => super::outbox::run(outbox, context).await,
        args::Daemon::RotateToken => rotate_token(context).await,
        args::Daemon::Recover => super::mend::recover(context),
        args::Daemon::AcceptHost => super::mend::accept_host(context),
        args::Daemon::Remint => super::mend::remint(context),
    }
}

async fn up(context: &Context) -> Result<Exit, Failure> {
    let stores = Stores::default();
    let ended = serve(context, &stores).await;
    exit_after(&stores, ended)
}

async fn serve(context: &Context, stores: &Stores) -> Result<Exit, Failure> {
    let (home, output) = (&context.home, &context.output);
    journal::start();
    warn_of_leftovers(&refuse_second(home)?);
    let stop = CancellationToken::new();
    let config = Config {
        home: home.root().to_owned(),
        clock: clock(),
        entropy: Arc::new(OsEntropy),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roles: vec!["daemon".to_owned()],
        page_url: None,
        own_mesh: None,
        more_routes: super::mcp::routes(home)?,
        surroundings: Surroundings::read(|name| std::env::var(name).ok()),
        free_space: Arc::new(SystemDisk),
        stores: stores.clone(),
        stop: stop.clone(),
    };
    let daemon = Daemon::start(config).await.map_err(start_failure)?;
    tokio::spawn(stop_on_signal(stop.clone()));
    stop_after_store(stores, &stop);
    match output.form() {
        Form::Json => output.json(&serde_json::json!({
            "event": "ready",
            "socket": daemon.socket(),
            "home": home.root(),
        })),
        Form::Quiet => {}
        Form::Text => {
            output.fact("socket", &shown(daemon.socket()));
            output.fact("runs", "daemon");
            output.fact("stop", "Ctrl-C, or postrider daemon down          queued work stays on disk");
        }
    }
    daemon.stopped().await;
    Ok(Exit::Done)
}

fn logs(lines: usize, context: &Context) -> Result<Exit, Failure> {
    let path = log(&context.home);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::refused(ErrorCode::NotFound, format!("{} cannot be read: {error}", shown(&path)))
            .line("Only a detached process writes it.")
            .fix("postrider up --detach")
    })?;
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].iter().for_each(|line| context.output.text(line));
    Ok(Exit::Done)
}

async fn rotate_token(context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    let answer: RotateAnswer = door.post("/v1/rotate-token", &serde_json::json!({})).await?;
    match output.form() {
        Form::Json => output.json(&answer),
        Form::Quiet => {}
        Form::Text => {
            let until = clock_time(answer.old_valid_until);
            let path = shown(&context.home.local_token());
            output.text(&format!("a new token is in {path}; the old one is taken until {until}"));
        }
    }
    Ok(Exit::Done)
}
