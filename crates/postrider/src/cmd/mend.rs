//! What an operator does to a home whose daemon is stopped: a damaged mailbox, a disk that moved or was copied.

use std::sync::Arc;

use ::daemon::{HostError, Recovered, Surroundings};
use model::{ErrorCode, OsEntropy};

use super::Context;
use crate::clock::clock;
use crate::failure::{Exit, Failure};
use crate::home::shown;
use crate::output::{Form, Output};

/// `postrider daemon recover`
pub fn recover(context: &Context) -> Result<Exit, Failure> {
    let clock = clock();
    let found = ::daemon::recover(context.home.root(), clock.as_ref(), Arc::new(OsEntropy))
        .map_err(|error| stopped_first(error.to_string()))?;
    found.iter().for_each(|one| print(one, &context.output));
    Ok(Exit::Done)
}

/// `postrider daemon accept-host`
pub fn accept_host(context: &Context) -> Result<Exit, Failure> {
    let (clock, around) = (clock(), surroundings());
    ::daemon::accept_host(context.home.root(), around.machine_id.as_deref(), clock.as_ref())
        .map_err(host_failure)?;
    said(&context.output, "this machine is now the home's own; its keys stay");
    Ok(Exit::Done)
}

/// `postrider daemon remint`
pub fn remint(context: &Context) -> Result<Exit, Failure> {
    let (clock, around) = (clock(), surroundings());
    let aside =
        ::daemon::remint(context.home.root(), around.machine_id.as_deref(), clock.as_ref(), &OsEntropy)
            .map_err(host_failure)?;
    said(&context.output, "the home has new keys; join its meshes again by invite");
    aside.iter().for_each(|path| said(&context.output, &format!("set aside {}", shown(path))));
    Ok(Exit::Done)
}

fn surroundings() -> Surroundings {
    Surroundings::read(|name| std::env::var(name).ok())
}

fn said(output: &Output, sentence: &str) {
    match output.form() {
        Form::Json => output.json(&serde_json::json!({"done": sentence})),
        Form::Quiet => {}
        Form::Text => output.text(sentence),
    }
}

fn print(found: &Recovered, output: &Output) {
    match (output.form(), found) {
        (Form::Json, Recovered::Sound { mesh }) => {
            output.json(&serde_json::json!({"mesh": mesh, "sound": true}))
        }
        (Form::Json, Recovered::Rebuilt { mesh, damage, aside, salvaged }) => {
            output.json(&serde_json::json!({
                "mesh": mesh, "sound": false, "damage": damage, "aside": aside,
                "outbox": salvaged.outbox, "outbox_lost": salvaged.outbox_lost,
                "inbox": salvaged.inbox, "inbox_lost": salvaged.inbox_lost,
            }));
        }
        (Form::Quiet, Recovered::Sound { .. }) => {}
        (Form::Quiet | Form::Text, Recovered::Rebuilt { mesh, damage, aside, salvaged }) => {
            output.fact("rebuilt", &format!("mesh {mesh}: {damage}"));
            let (out, out_lost) = (salvaged.outbox, salvaged.outbox_lost);
            output.fact("outbox", &format!("{out} rows carried over, {out_lost} could not be read"));
            let (inn, in_lost) = (salvaged.inbox, salvaged.inbox_lost);
            output.fact("inbox", &format!("{inn} rows carried over, {in_lost} could not be read"));
            output.fact("aside", &shown(aside));
        }
        (Form::Text, Recovered::Sound { mesh }) => {
            output.fact("sound", &format!("mesh {mesh}; nothing was changed"))
        }
    }
}

fn host_failure(error: HostError) -> Failure {
    stopped_first(error.to_string())
}

fn stopped_first(line: String) -> Failure {
    Failure::refused(ErrorCode::Unavailable, line).line("Nothing was changed.").fix("postrider down")
}
