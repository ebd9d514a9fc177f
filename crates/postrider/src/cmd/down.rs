//! `postrider down`: asks the process of this home to stop, and waits until it has.

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::Form;

pub async fn run(context: &Context) -> Result<Exit, Failure> {
    let door = context.door()?;
    let output = &context.output;
    let _: serde_json::Value = door.post("/v1/shutdown", &serde_json::json!({})).await?;
    door.wait_until_gone().await?;
    match output.form() {
        Form::Json => output.json(&serde_json::json!({"event": "stopped", "home": context.home.root()})),
        Form::Quiet => {}
        Form::Text => output.fact("stopped", "queued work stays on disk and goes on at the next start"),
    }
    Ok(Exit::Done)
}
