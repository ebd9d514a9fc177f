//! What an operator does to a home whose daemon is stopped: a damaged mailbox, a disk that moved or was copied.

use std::sync::Arc;

use ::daemon::{HostError, LossCount, RecoverError, Recovered, RecoveryRun, Surroundings};

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
        .map_err(recover_failure)?;
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
        (Form::Json, Recovered::Sound { mesh, leftover }) => {
            output.json(&serde_json::json!({"mesh": mesh, "sound": true, "leftover": leftover}))
        }
        (Form::Json, Recovered::Rebuilt { mesh, damage, aside, salvaged, run }) => {
            output.json(&serde_json::json!({
                "mesh": mesh, "sound": false, "damage": damage, "aside": aside,
                "outbox": salvaged.outbox, "outbox_lost": salvaged.outbox_lost,
                "inbox": salvaged.inbox, "inbox_lost": salvaged.inbox_lost,
                "turns": salvaged.turns, "turns_lost": salvaged.turns_lost,
                "lost_is_exact": salvaged.count == LossCount::Exact,
                "finished_earlier_run": *run == RecoveryRun::Earlier,
            }));
        }
        (Form::Quiet, Recovered::Sound { .. }) => {}
        (Form::Quiet | Form::Text, Recovered::Rebuilt { mesh, damage, aside, salvaged, run }) => {
            output.fact("rebuilt", &format!("mesh {mesh}: {damage}"));
            if *run == RecoveryRun::Earlier {
                output.fact("finished", "an earlier run was cut off; its new file is in place now");
            }
            let at_least = match salvaged.count {
                LossCount::Exact => "",
                LossCount::AtLeast => "at least ",
            };
            for (table, kept, lost) in [
                ("outbox", salvaged.outbox, salvaged.outbox_lost),
                ("inbox", salvaged.inbox, salvaged.inbox_lost),
                ("turns", salvaged.turns, salvaged.turns_lost),
            ] {
                output.fact(table, &format!("{kept} rows carried over, {at_least}{lost} lost"));
            }
            if salvaged.count == LossCount::AtLeast {
                output.fact("", "the damaged file does not say how many rows it had");
            }
            output.fact("aside", &shown(aside));
        }
        (Form::Text, Recovered::Sound { mesh, leftover }) => {
            output.fact("sound", &format!("mesh {mesh}; its mailbox was not changed"));
            if let Some(leftover) = leftover {
                output.fact("left", &format!("{}, of a run that was cut off", shown(leftover)));
            }
        }
    }
}

/// Only a daemon that runs is helped by stopping it.
fn recover_failure(error: RecoverError) -> Failure {
    let line = error.to_string();
    match error {
        RecoverError::Running { .. } => stopped_first(line),
        RecoverError::Open(_) | RecoverError::Storage(_) | RecoverError::Files { .. } => {
            Failure::refused(ErrorCode::StorageStopped, line)
                .line("The damaged mailbox is kept as it is. Room for a copy of it may be missing.")
                .fix("postrider daemon recover")
        }
        RecoverError::Lock(_) | RecoverError::Settings(_) | RecoverError::NoSource { .. } => {
            Failure::refused(ErrorCode::Unavailable, line).line("Nothing was changed.")
        }
    }
}

fn host_failure(error: HostError) -> Failure {
    stopped_first(error.to_string())
}

fn stopped_first(line: String) -> Failure {
    Failure::refused(ErrorCode::Unavailable, line).line("Nothing was changed.").fix("postrider down")
}
