//! `postrider demo`: three agents, a kill -9 in the middle, receipts climbing.
//!
//! - Everything is the real thing: another process of this very binary, on a home of its own.
//! - The home and the process are gone at the end, also after Ctrl-C.
//! - It counts what it did; a message lost or doubled ends it with exit 1.

mod agent;
mod stage;
mod story;

use super::Context;
use super::up::stop_on_signal;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};
use stage::Stage;
use tokio_util::sync::CancellationToken;

pub async fn run(context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    let told = |line: &str| {
        if output.form() == Form::Text {
            output.text(line);
        }
    };
    told("A broker, a daemon and three agents in a home of their own, removed at the end.");
    told("");
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let mut stage = Stage::new()?;
    let ended = tokio::select! {
        ended = story::play(&mut stage, output) => ended,
        () = stop.cancelled() => Err(Failure::refused(model::ErrorCode::Unavailable, "stopped by you")
            .line("The home and its process are gone.")),
    };
    // Before the last words: they say that nothing is left.
    drop(stage);
    let count = ended?;
    print(&count, output);
    Ok(if count.lost == 0 && count.doubled == 0 { Exit::Done } else { Exit::Refused })
}

fn print(count: &story::Count, output: &Output) {
    match output.form() {
        Form::Json => output.json(count),
        Form::Quiet => {}
        Form::Text => {
            output.text("");
            let story::Count { asked, stored, lost, doubled, .. } = count;
            output.fact(
                "counted",
                &format!("{asked} calls, {stored} messages, {lost} lost, {doubled} doubled"),
            );
            output.fact("removed", "the home and its process");
            output.fact("try", "postrider up");
        }
    }
}
