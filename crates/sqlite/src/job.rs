//! A caller's closure on its way through the engine, and the answer on its way back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::StorageError;

/// A job whose types are known only to the caller.
pub(crate) trait Job: Send {
    /// The name its caller gave it; crash points and errors carry it.
    fn name(&self) -> &'static str;
    /// What takes its changes back when it goes wrong.
    fn undo(&self) -> Undo;
    /// How many callers it answers, once it ran.
    fn callers(&self) -> usize {
        1
    }
    /// Runs it, once, in what takes its changes back this time; the result waits inside until it is answered.
    fn run(&mut self, conn: &Connection, within: Undo) -> Ran;
    /// Tells the caller how it ended. An error replaces whatever the job itself said: a refusal may rest
    /// on rows that the same lost transaction had written. Only the first answer is given.
    fn answer(&mut self, end: Result<(), StorageError>);
}

/// What takes a job's changes back when it goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undo {
    /// A savepoint of its own. SQLite keeps a copy of every page the job touches for it.
    Savepoint,
    /// The whole transaction: the job checks everything before it writes, so that it goes wrong by a defect only.
    Transaction,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// Its changes stay.
    Kept,
    /// It said no; its changes go.
    Refused,
    /// It panicked; its changes go.
    Panicked,
}

/// Something for a thread to do.
pub(crate) enum Order {
    /// Run this.
    Run(Box<dyn Job>),
    /// Copy the log if it is long: a caller that committed by itself does not wait for that.
    Shorten,
    /// Finish what came before, then end.
    Close,
}

struct Asked<F, T, E> {
    name: &'static str,
    undo: Undo,
    path: Arc<Path>,
    stage: Stage<F, T, E>,
    reply: Option<oneshot::Sender<Result<T, E>>>,
}

enum Stage<F, T, E> {
    Waiting(F),
    Ended(Result<T, E>),
    Panicked,
}

/// Wraps a closure, with the place where its answer will appear.
pub(crate) fn ask<T, E, F>(
    name: &'static str,
    undo: Undo,
    path: &Arc<Path>,
    work: F,
) -> (Box<dyn Job>, oneshot::Receiver<Result<T, E>>)
where
    F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<StorageError> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let (path, stage) = (Arc::clone(path), Stage::Waiting(work));
    (Box::new(Asked { name, undo, path, stage, reply: Some(reply) }), answer)
}

impl<T, E, F> Job for Asked<F, T, E>
where
    F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<StorageError> + Send + 'static,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn undo(&self) -> Undo {
        self.undo
    }

    fn run(&mut self, conn: &Connection, _within: Undo) -> Ran {
        let Stage::Waiting(work) = std::mem::replace(&mut self.stage, Stage::Panicked) else {
            unreachable!("the engine runs a job once: running takes it out of the line")
        };
        // The connection stays sound: a statement left behind is finalised while unwinding, and what was
        // written is rolled back before anybody else looks.
        let Ok(result) = catch_unwind(AssertUnwindSafe(|| work(conn))) else { return Ran::Panicked };
        let ran = if result.is_ok() { Ran::Kept } else { Ran::Refused };
        self.stage = Stage::Ended(result);
        ran
    }

    fn answer(&mut self, end: Result<(), StorageError>) {
        let Some(reply) = self.reply.take() else { return };
        let result = match (end, std::mem::replace(&mut self.stage, Stage::Panicked)) {
            (Err(error), _) => Err(error.into()),
            (Ok(()), Stage::Ended(result)) => result,
            (Ok(()), Stage::Panicked | Stage::Waiting(_)) => {
                Err(StorageError::Panicked { path: Arc::clone(&self.path), name: self.name }.into())
            }
        };
        // A caller that went away does not want to know; what was committed stays committed.
        drop(reply.send(result));
    }
}
