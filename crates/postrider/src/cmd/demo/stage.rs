//! The process on its private home, and its end.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use daemon::home::{Home, make_private};
use model::{Clock, ErrorCode, MemberName};
use net::Secret;
use wire::local::{AgentAnswer, AgentRequest};

use crate::failure::Failure;
use crate::local::LocalDoor;

/// A start of everything on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks at a process that starts.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The home and its process; both are gone when it is dropped.
pub struct Stage {
    home: Home,
    running: Option<Child>,
}

impl Stage {
    /// A home of its own; its name is short, because a socket's path has about a hundred bytes.
    pub fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("postrider-demo-{}", std::process::id()));
        make_private(&folder).map_err(anyhow::Error::from)?;
        Ok(Self { home: Home::at(folder), running: None })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        self.home.root()
    }

    /// Starts broker and daemon; answers the process's id and how long it took.
    pub async fn start(&mut self, clock: &dyn Clock) -> Result<(u32, Duration), Failure> {
        let began = clock.monotonic();
        let mut child = command(self.home.root())?.spawn().map_err(anyhow::Error::from)?;
        let stdout = child.stdout.take().expect("its stdout is piped");
        let id = child.id();
        self.running = Some(child);
        let ready = tokio::task::spawn_blocking(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).any(|line| line.contains("\"ready\""))
        });
        match tokio::time::timeout(READY_TIMEOUT, ready).await {
            Ok(Ok(true)) => Ok((id, clock.monotonic().saturating_sub(began))),
            Ok(Ok(false) | Err(_)) | Err(_) => {
                Err(Failure::refused(ErrorCode::Internal, "broker and daemon did not start")
                    .fix("postrider doctor"))
            }
        }
    }

    /// kill -9; when it returns, the process is gone. Answers its id.
    pub async fn kill(&mut self) -> Option<u32> {
        let mut child = self.running.take()?;
        let id = child.id();
        // It may have ended by itself; gone is gone.
        let _ = child.kill();
        while matches!(child.try_wait(), Ok(None)) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Some(id)
    }

    /// The door as the home's person.
    pub fn door(&self) -> Result<LocalDoor, Failure> {
        LocalDoor::of(&self.home)
    }

    /// Makes an agent at home here; answers its token.
    pub async fn agent(&self, name: &MemberName) -> Result<Secret, Failure> {
        let request = AgentRequest { name: name.to_string(), mesh: None };
        let made: AgentAnswer = self.door()?.post("/v1/agents", &request).await?;
        Ok(Secret::from(made.token))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // What cannot be removed is told by the folder itself, which is named after us.
        let _ = std::fs::remove_dir_all(self.home.root());
    }
}

/// This very binary, pointed at the private home and at nothing of its caller's.
fn command(home: &Path) -> Result<Command, Failure> {
    let program: PathBuf = std::env::current_exe().map_err(anyhow::Error::from)?;
    let mut command = Command::new(program);
    command.args(["--json", "up", "--listen", "127.0.0.1:0", "--home"]).arg(home);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("POSTRIDER_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(command)
}
