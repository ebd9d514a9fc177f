//! `postrider down`: asks the process of this home to stop, and waits until it has.

use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output};
use daemon::home::Home;

pub async fn run(home: &Home, output: &Output) -> Result<Exit, Failure> {
    let door = LocalDoor::of(home, None)?;
    let _: serde_json::Value = door.post("/v1/shutdown", &serde_json::json!({})).await?;
    door.wait_until_gone().await?;
    match output.form() {
        Form::Json => output.json(&serde_json::json!({"event": "stopped", "home": home.root()})),
        Form::Quiet => {}
        Form::Text => output.fact("stopped", "queued work stays on disk and goes on at the next start"),
    }
    Ok(Exit::Done)
}
