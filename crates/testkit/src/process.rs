//! A child process that cannot outlive its owner, and whose output can be awaited.
//!
//! Invariants:
//! - The child leads its own process group, so a Ctrl-C at the terminal reaches the owner alone, which then
//!   ends the child in its own way.
//! - Signals go to the child only while it has not been waited for; its id cannot have been reused then.
//! - Output is drained from the first byte on (a full pipe would stop the child) and kept up to a bound.

mod reaper;
mod transcript;

use crate::wait::{WaitedTooLong, wait_for};
use reaper::Reaper;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use transcript::Transcript;

pub use transcript::{Channel, LineNeverCame};

/// What happens to the child when its owner is killed and drops nothing.
#[derive(Clone, Debug)]
pub enum Orphaned {
    /// It ends by itself soon: a command that runs to completion.
    EndsByItself,
    /// A reaper ends it with SIGQUIT (for PostgreSQL an immediate shutdown) and SIGTERM, after five seconds with
    /// SIGKILL, and removes the folder.
    Reaped {
        /// The temporary folder that goes with it.
        folder: PathBuf,
    },
}

/// A running child; dropped, it is killed and waited for.
#[derive(Debug)]
pub struct Process {
    child: Child,
    ended: Option<ExitStatus>,
    output: Arc<Transcript>,
    reaper: Option<Reaper>,
}

impl Process {
    /// Starts `command` with `input` as its whole standard input.
    pub fn spawn(mut command: Command, input: &[u8], orphaned: &Orphaned) -> std::io::Result<Self> {
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        let mut child = command.spawn()?;
        let reaper = match orphaned {
            Orphaned::EndsByItself => None,
            Orphaned::Reaped { folder } => Some(Reaper::watch(child.id(), folder)?),
        };
        let output = Transcript::of(&mut child);
        let stdin = child.stdin.take();
        let process = Self { child, ended: None, output, reaper };
        if let Some(mut stdin) = stdin {
            // A child that ends without reading its input is that child's business, not an error here.
            match stdin.write_all(input) {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(process)
    }

    /// The process id, for messages and for reading `/proc`.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a line of `channel` satisfies `wanted` and returns it; also a line printed before the call.
    pub fn line(
        &self,
        channel: Channel,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String, LineNeverCame> {
        self.output.line(channel, what, bound, wanted)
    }

    /// Everything kept of `channel` so far.
    pub fn text(&self, channel: Channel) -> String {
        self.output.text(channel)
    }

    /// How it ended, when it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("this process is the parent of the child it waits for");
        }
        self.ended
    }

    /// Waits for the end and for the last of its output.
    pub fn wait_exit(&mut self, bound: Duration) -> Result<ExitStatus, WaitedTooLong> {
        let what = format!("process {} to end", self.id());
        let status = wait_for(&what, bound, || self.ended())?;
        // A grandchild may hold the pipes open; what the child itself wrote is in them already.
        self.output.settle(Duration::from_secs(1));
        Ok(status)
    }

    /// kill -9, then waits: when it returns, the process is gone and its locks are free.
    pub fn kill9(&mut self) -> ExitStatus {
        if let Some(status) = self.ended() {
            return status;
        }
        self.signal(Signal::KILL);
        let status = self.child.wait().expect("this process is the parent of the child it waits for");
        self.ended = Some(status);
        status
    }

    /// Ctrl-C.
    pub fn interrupt(&mut self) {
        self.signal(Signal::INT);
    }

    /// SIGTERM, what a service manager sends.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// SIGQUIT, which PostgreSQL takes for an immediate shutdown.
    pub fn quit(&mut self) {
        self.signal(Signal::QUIT);
    }

    /// SIGSTOP: it stands still and holds everything it holds.
    pub fn freeze(&mut self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT after [`Self::freeze`].
    pub fn thaw(&mut self) {
        self.signal(Signal::CONT);
    }

    fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            // The only error left is that it ended a moment ago, which is what most signals ask for.
            let _gone = kill_process(Pid::from_child(&self.child), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            let _gone = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _status = self.child.wait();
        }
        if let Some(reaper) = self.reaper.take() {
            reaper.dismiss();
        }
    }
}
