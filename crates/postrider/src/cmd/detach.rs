//! `--detach`: the same process in the background; the prompt comes back when it is ready.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use daemon::home::Home;
use model::ErrorCode;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::failure::{Exit, Failure};
use crate::home::shown;
use crate::output::{Form, Output};

/// Runs `words` in the background; its first line of JSON says that it is ready.
pub async fn run(words: &[String], home: &Home, output: &Output) -> Result<Exit, Failure> {
    home.prepare().map_err(anyhow::Error::from)?;
    let path = crate::home::log(home);
    let log =
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(anyhow::Error::from)?;
    let mut command = std::process::Command::new(std::env::current_exe().map_err(anyhow::Error::from)?);
    command.arg("--json").arg("--home").arg(home.root()).args(words);
    // A group of its own: the terminal's Ctrl-C is not for it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).process_group(0);
    let mut child = tokio::process::Command::from(command).spawn().map_err(anyhow::Error::from)?;
    let stdout = child.stdout.take().expect("stdout was piped above");
    let ready = BufReader::new(stdout).lines().next_line().await.map_err(anyhow::Error::from)?;
    let Some(ready) = ready else {
        let status = child.wait().await.map_err(anyhow::Error::from)?;
        return Err(Failure::refused(ErrorCode::Unavailable, format!("it did not start ({status})"))
            .line(format!("Its last words are in {}.", shown(&path)))
            .fix(format!("tail {}", path.display())));
    };
    match output.form() {
        Form::Json => output.text(&ready),
        Form::Quiet => {}
        Form::Text => {
            output.fact("runs", &format!("in the background, home {}", shown(home.root())));
            output.fact("log", &shown(&path));
            output.fact("stop", "postrider down");
        }
    }
    Ok(Exit::Done)
}
