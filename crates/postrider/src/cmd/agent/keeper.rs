//! Stands between `agent run` and its program, so that the program never outlives who answers for it.
//!
//! - The program leads a process group of its own. When it ends, or the adapter does, the whole group ends.
//! - A lock is held while the group lives: the next adapter waits for it, so one message never has two programs.
//! - The keeper ends as the program did, by the same code or the same signal.
//!
//! The adapter speaks through standard input: a line with the length of the program's input, that input, then a
//! letter for each wish (`t` asks the group to end, `k` ends it). The end of the stream is the end of the adapter.

use std::io::{BufRead, BufReader, Read, Stdin, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use model::limits;
use net::local::lock_exclusive;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getppid, kill_process, kill_process_group, waitid,
};

use crate::args::KeepProgram;
use crate::failure::Failure;

/// What a shell says when there is no such program.
pub const NO_PROGRAM: i32 = 127;

/// The program's group, as long as its leader was not reaped: from then on the number may be somebody else's.
#[derive(Clone)]
struct Group(Arc<Mutex<Option<Pid>>>);

/// Runs the program to its end, or to the adapter's.
pub fn keep(asked: &KeepProgram) -> Result<(), Failure> {
    let _lock = lock_exclusive(&asked.lock).map_err(|error| anyhow::anyhow!(error))?;
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().unsigned_abs() != asked.parent) {
        // The adapter is gone, and another one may be at work: this message is its to begin.
        return Ok(());
    }
    let mut wishes = BufReader::new(std::io::stdin());
    let input = read_input(&mut wishes)?;
    let Some((program, args)) = asked.program.split_first() else { return Ok(()) };
    let spawned = Command::new(program).args(args).process_group(0).stdin(Stdio::piped()).spawn();
    let child = match spawned {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{}: {error}", program.to_string_lossy());
            std::process::exit(NO_PROGRAM);
        }
    };
    let status = watch(child, input, wishes)?;
    end_like(status)
}

fn read_input(wishes: &mut BufReader<Stdin>) -> anyhow::Result<Vec<u8>> {
    let mut length = String::new();
    wishes.read_line(&mut length).context("the length of the input")?;
    let length: usize = length.trim().parse().context("the length of the input")?;
    anyhow::ensure!(length <= limits::REQUEST_BYTES_MAX, "the input is over its bound");
    let mut input = vec![0; length];
    wishes.read_exact(&mut input).context("the input")?;
    Ok(input)
}

fn watch(mut child: Child, input: Vec<u8>, wishes: BufReader<Stdin>) -> anyhow::Result<ExitStatus> {
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("the program's id")?;
    let group = Group(Arc::new(Mutex::new(Some(leader))));
    let stdin = child.stdin.take();
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input is none the worse for it.
            let _ = stdin.write_all(&input);
        }
    });
    let wished = group.clone();
    std::thread::spawn(move || obey(wishes, &wished));
    // Looked at without being reaped, so that its number still names its group when the rest of it is ended.
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    group.signal(Signal::KILL);
    let mut held = group.0.lock().unwrap_or_else(PoisonError::into_inner);
    let status = child.wait().context("the program's end")?;
    *held = None;
    Ok(status)
}

fn obey(wishes: BufReader<Stdin>, group: &Group) {
    for wish in wishes.bytes() {
        match wish {
            Ok(b't') => group.signal(Signal::TERM),
            Ok(b'k') => group.signal(Signal::KILL),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    group.signal(Signal::KILL);
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // A group that is gone needs no signal.
            let _ = kill_process_group(leader, signal);
        }
    }
}

fn end_like(status: ExitStatus) -> Result<(), Failure> {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        let _ = kill_process(rustix::process::getpid(), signal);
    }
    std::process::exit(status.code().unwrap_or(1))
}
