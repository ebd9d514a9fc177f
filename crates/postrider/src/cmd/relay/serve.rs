//! `postrider relay serve`.

use sqlite::Stores;
use tokio_util::sync::CancellationToken;

use super::door::socket;
use super::role::Role;
use crate::clock::clock;
use crate::cmd::Context;
use crate::cmd::up::stop_on_signal;
use crate::failure::{Exit, Failure};
use crate::output::Form;
use crate::stopped::{exit_after, stop_after_store};
use crate::{args, home, journal};

pub async fn run(asked: args::RelayServe, context: &Context) -> Result<Exit, Failure> {
    journal::start();
    let stores = Stores::default();
    let ended = serve(asked, context, &stores).await;
    exit_after(&stores, ended)
}

async fn serve(asked: args::RelayServe, context: &Context, stores: &Stores) -> Result<Exit, Failure> {
    let role = Role::open(&asked, &context.home, clock(), stores).await?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    stop_after_store(stores, &stop);
    print_ready(&role, context)?;
    role.run(stop).await;
    Ok(Exit::Done)
}

fn print_ready(role: &Role, context: &Context) -> Result<(), Failure> {
    let output = &context.output;
    let (url, upstream) = (role.url(), &role.upstream);
    match output.form() {
        Form::Json => output.json(&serde_json::json!({
            "event": "ready", "url": url, "upstream": upstream, "socket": socket(&context.home)?,
        })),
        Form::Quiet => output.text(&url),
        Form::Text => {
            output.fact("relay", &url);
            output.fact("upstream", upstream);
            output.fact("outbox", &home::shown(&role.outbox));
            output.text("");
            output.fact("see", "postrider relay outbox status      in a second terminal");
            output.fact("stop", "Ctrl-C                             what waits stays on disk");
        }
    }
    Ok(())
}
