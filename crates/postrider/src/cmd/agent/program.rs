//! One process for one message: started, fed, bounded, ended.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use model::limits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, timeout, timeout_at};
use wire::local::TurnAnswer;

use super::verdict::{Ended, Left};

/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_secs(5);
/// Output of a process that left the group may never end; what was printed until then counts.
const OUTPUT_ENDS_WITHIN: Duration = Duration::from_secs(1);
/// What is kept of standard error, from its end.
const STDERR_KEPT: usize = limits::TURN_ERROR_BYTES_MAX / 2;

/// How programs of one agent are started.
pub struct Programs {
    pub agent: String,
    pub home: PathBuf,
    pub lock: PathBuf,
    pub program: Vec<OsString>,
    pub timeout: Duration,
}

impl Programs {
    /// Runs the program on a turn's message. `lost` resolves when the turn is somebody else's.
    pub async fn run(&self, turn: &TurnAnswer, lost: impl Future<Output = ()>) -> anyhow::Result<Left> {
        let mut keeper = self.start(turn)?;
        let mut wishes = keeper.stdin.take().context("the keeper's input")?;
        let stdout = tokio::spawn(first(keeper.stdout.take(), limits::BODY_BYTES_MAX + 1));
        let stderr = tokio::spawn(last(keeper.stderr.take(), STDERR_KEPT));
        feed(&mut wishes, turn).await;
        let ended = self.watch(&mut keeper, wishes, lost).await?;
        let output = async { (stdout.await.unwrap_or_default(), stderr.await.unwrap_or_default()) };
        let (stdout, stderr) = timeout(OUTPUT_ENDS_WITHIN, output).await.unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(Left { ended, stdout, stderr, timeout_s: self.timeout.as_secs() })
    }

    fn start(&self, turn: &TurnAnswer) -> anyhow::Result<Child> {
        let own = std::env::current_exe().context("this program's own file")?;
        let flag = |yes: bool| if yes { "1" } else { "0" };
        let mut command = Command::new(own);
        command.args(["agent", "keep", "--parent"]).arg(std::process::id().to_string());
        command.arg("--lock").arg(&self.lock).arg("--").args(&self.program);
        command
            .env("POSTRIDER_HOME", &self.home)
            .env("POSTRIDER_AGENT", &self.agent)
            .env("POSTRIDER_TURN_ID", turn.turn_id.to_string())
            .env("POSTRIDER_MESSAGE_ID", turn.message.message.id.to_string())
            .env("POSTRIDER_ATTEMPT", turn.attempt.to_string())
            .env("POSTRIDER_REDELIVERED", flag(turn.redelivered))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().context("the program's keeper cannot be started")
    }

    async fn watch(
        &self,
        keeper: &mut Child,
        mut wishes: ChildStdin,
        lost: impl Future<Output = ()>,
    ) -> anyhow::Result<Ended> {
        let due = Instant::now() + self.timeout;
        let why = tokio::select! {
            ended = timeout_at(due, keeper.wait()) => match ended {
                Ok(status) => return Ok(by_itself(status.context("the program's end")?)),
                Err(_) => Ended::TimedOut,
            },
            () = lost => Ended::TurnLost,
        };
        // The keeper knows the group; a number kept here could be somebody else's by now.
        let _ = wishes.write_all(b"t").await;
        if timeout(GRACE, keeper.wait()).await.is_err() {
            let _ = wishes.write_all(b"k").await;
            keeper.wait().await.context("the program's end")?;
        }
        Ok(why)
    }
}

fn by_itself(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, Some(signal)) => Ended::Killed(signal),
        (None, None) => Ended::Exited(1),
    }
}

/// The envelope with what the turn adds, as one line.
async fn feed(wishes: &mut ChildStdin, turn: &TurnAnswer) {
    let mut input = serde_json::to_value(&turn.message).expect("a message is JSON");
    if let Some(fields) = input.as_object_mut() {
        fields.insert("turn_id".to_owned(), turn.turn_id.to_string().into());
        fields.insert("attempt".to_owned(), turn.attempt.into());
        fields.insert("redelivered".to_owned(), turn.redelivered.into());
    }
    let input = format!("{input}\n");
    // A keeper that is gone says so by its end.
    let _ = wishes.write_all(format!("{}\n{input}", input.len()).as_bytes()).await;
    let _ = wishes.flush().await;
}

/// The first `max` bytes; the rest is read and dropped, or the program would wait for a reader.
async fn first(from: Option<impl AsyncRead + Unpin>, max: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return kept };
    let mut piece = [0; 8 * 1024];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let room = max.saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..read.min(room)]);
    }
    kept
}

/// The last `max` bytes.
async fn last(from: Option<impl AsyncRead + Unpin>, max: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return kept };
    let mut piece = [0; 8 * 1024];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(&piece[..read]);
        let surplus = kept.len().saturating_sub(max);
        kept.drain(..surplus);
    }
    kept
}

/// Where the locks of an agent's adapter and keeper are.
pub fn locks(folder: &Path, agent: &str) -> (PathBuf, PathBuf) {
    (folder.join(format!("{agent}.run")), folder.join(format!("{agent}.keep")))
}
