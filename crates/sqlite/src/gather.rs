//! Callers that ask alike at the same time, as one job.
//!
//! Whoever asks while a job of the same kind still waits for its thread joins it. Nobody waits for others: the group is
//! what came together while the thread was busy, as a batch is for the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::job::{Job, Ran, Undo};
use crate::reply::{Reply, answer_all};
use crate::stats::Gauges;
use crate::{StorageError, fault};

/// One kind of question, and the work that answers many of them at once.
///
/// The work makes every check before its first change, as [`crate::Db::write_checked`] asks of a job: it has no
/// savepoint. An `Err` or a panic before that, and any while jobs have savepoints, undoes what was done; then each
/// question of the group is answered alone, so that none spoils another.
pub struct Gathering<Q, A, E> {
    name: &'static str,
    work: Work<Q, A, E>,
    /// The group that waits for its thread.
    open: Mutex<Option<Group<Q, A, E>>>,
}

type Work<Q, A, E> = Arc<dyn Fn(&Connection, &[Q]) -> Result<Vec<A>, E> + Send + Sync>;
/// One for each question; nothing for one that panicked.
type Answers<A, E> = Vec<Option<Result<A, E>>>;
/// Nothing once its job runs.
type Group<Q, A, E> = Arc<Mutex<Option<Vec<Asked<Q, A, E>>>>>;

type Answer<A, E> = oneshot::Receiver<Result<A, E>>;

struct Asked<Q, A, E> {
    question: Q,
    reply: Reply<Result<A, E>>,
}

/// Where questions wait: what the engine knows of the line they stand in.
pub(crate) struct Line<'engine> {
    pub(crate) path: &'engine Arc<Path>,
    pub(crate) gauges: &'engine Arc<Gauges>,
    pub(crate) waiting: fn(&Gauges) -> &AtomicU64,
    pub(crate) waiting_max: usize,
    pub(crate) group_max: usize,
}

impl<Q, A, E> Gathering<Q, A, E>
where
    Q: Send + 'static,
    A: Send + 'static,
    E: From<StorageError> + Send + 'static,
{
    /// `work` answers every question it is given, in their order.
    pub fn new(
        name: &'static str,
        work: impl Fn(&Connection, &[Q]) -> Result<Vec<A>, E> + Send + Sync + 'static,
    ) -> Self {
        Self { name, work: Arc::new(work), open: Mutex::new(None) }
    }

    /// Joins the group that waits, or hands a new one to `submit`.
    pub(crate) fn ask(
        &self,
        line: &Line<'_>,
        question: Q,
        submit: impl FnOnce(Box<dyn Job>) -> Result<(), StorageError>,
    ) -> Result<Answer<A, E>, StorageError> {
        let (reply, answer) = Reply::here();
        let asked = Asked { question, reply };
        // Held while the job is handed over: nobody joins a group that was refused.
        let mut open = held(&self.open);
        let joined = match open.as_ref() {
            Some(group) => line.join(group, asked),
            None => Err(asked),
        };
        let Err(asked) = joined else { return Ok(answer) };
        let waiting = (line.waiting)(line.gauges).load(Relaxed);
        if waiting >= line.waiting_max as u64 {
            let (path, waiting_max) = (Arc::clone(line.path), line.waiting_max);
            return Err(StorageError::QueueFull { path, waiting_max });
        }
        let group = Arc::new(Mutex::new(Some(vec![asked])));
        *open = None;
        submit(self.job(line, &group))?;
        *open = Some(group);
        Ok(answer)
    }

    /// A job that nobody joins, with the place where its answer will appear.
    pub(crate) fn alone(&self, line: &Line<'_>, question: Q) -> (Box<dyn Job>, Answer<A, E>) {
        let (reply, answer) = Reply::here();
        let group = Arc::new(Mutex::new(Some(vec![Asked { question, reply }])));
        (self.job(line, &group), answer)
    }

    fn job(&self, line: &Line<'_>, group: &Group<Q, A, E>) -> Box<dyn Job> {
        Box::new(Gathered {
            name: self.name,
            path: Arc::clone(line.path),
            gauges: Arc::clone(line.gauges),
            waiting: line.waiting,
            work: Arc::clone(&self.work),
            group: Arc::clone(group),
            replies: Vec::new(),
            answers: Vec::new(),
        })
    }
}

impl Line<'_> {
    /// Gives the question back when the group runs already or is full.
    fn join<Q, A, E>(&self, group: &Group<Q, A, E>, asked: Asked<Q, A, E>) -> Result<(), Asked<Q, A, E>> {
        let waiting = (self.waiting)(self.gauges);
        match &mut *held(group) {
            Some(list) if list.len() < self.group_max && waiting.load(Relaxed) < self.waiting_max as u64 => {
                waiting.fetch_add(1, Relaxed);
                list.push(asked);
                Ok(())
            }
            Some(_) | None => Err(asked),
        }
    }
}

/// A group on its way through the engine.
struct Gathered<Q, A, E> {
    name: &'static str,
    path: Arc<Path>,
    gauges: Arc<Gauges>,
    waiting: fn(&Gauges) -> &AtomicU64,
    work: Work<Q, A, E>,
    group: Group<Q, A, E>,
    replies: Vec<Reply<Result<A, E>>>,
    /// One for each reply, once it ran.
    answers: Answers<A, E>,
}

impl<Q, A, E> Gathered<Q, A, E> {
    /// Closes the group: from here on nobody joins it.
    fn take(&mut self) -> Vec<Q> {
        let asked = held(&self.group).take().unwrap_or_default();
        // The engine counted the group as one.
        (self.waiting)(&self.gauges).fetch_sub(asked.len().saturating_sub(1) as u64, Relaxed);
        let (questions, replies): (Vec<Q>, Vec<_>) =
            asked.into_iter().map(|asked| (asked.question, asked.reply)).unzip();
        self.replies.extend(replies);
        questions
    }

    /// Nothing when the work panicked.
    fn work(&self, conn: &Connection, questions: &[Q]) -> Option<Result<Vec<A>, E>> {
        // The connection stays sound: a statement left behind is finalised while unwinding, and what was written is
        // undone before anybody else looks.
        catch_unwind(AssertUnwindSafe(|| (self.work)(conn, questions))).ok()
    }

    /// Whether SQLite gave the transaction up.
    fn is_rolled_back(&self, conn: &Connection) -> bool {
        conn.is_autocommit() && !fault::planted_below(fault::GROUP_GOES_ON, &self.path)
    }

    /// Each question in a savepoint of its own; nothing when SQLite gave the transaction up, outside of which a
    /// savepoint would commit by itself.
    fn one_by_one(&self, conn: &Connection, questions: &[Q]) -> rusqlite::Result<Option<Answers<A, E>>> {
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            if self.is_rolled_back(conn) {
                return Ok(None);
            }
            say(conn, "SAVEPOINT alone")?;
            let answer = self.work(conn, std::slice::from_ref(question));
            if self.is_rolled_back(conn) {
                return Ok(None);
            }
            if !matches!(answer, Some(Ok(_))) {
                say(conn, "ROLLBACK TO alone")?;
            }
            say(conn, "RELEASE alone")?;
            answers.push(answer.map(|answer| answer.map(|mut answers| answers.remove(0))));
        }
        Ok(Some(answers))
    }

    fn all(
        &self,
        conn: &Connection,
        within: Undo,
        questions: &[Q],
    ) -> rusqlite::Result<Option<Answers<A, E>>> {
        match within {
            Undo::Transaction => self.all_checked(conn, questions),
            Undo::Savepoint => self.all_saved(conn, questions),
        }
    }

    /// Nothing when the work went wrong after its first change, or SQLite gave the transaction up.
    fn all_checked(&self, conn: &Connection, questions: &[Q]) -> rusqlite::Result<Option<Answers<A, E>>> {
        let before = conn.total_changes();
        match self.work(conn, questions) {
            Some(Ok(answers)) => Ok(Some(kept(answers))),
            Some(Err(_)) | None if conn.total_changes() == before => self.one_by_one(conn, questions),
            Some(Err(_)) | None => Ok(None),
        }
    }

    /// Nothing when SQLite gave the transaction up.
    fn all_saved(&self, conn: &Connection, questions: &[Q]) -> rusqlite::Result<Option<Answers<A, E>>> {
        say(conn, "SAVEPOINT gathered")?;
        let answers = match self.work(conn, questions) {
            Some(Ok(answers)) => Some(kept(answers)),
            Some(Err(_)) | None if self.is_rolled_back(conn) => None,
            Some(Err(_)) | None => {
                say(conn, "ROLLBACK TO gathered")?;
                self.one_by_one(conn, questions)?
            }
        };
        if answers.is_some() {
            say(conn, "RELEASE gathered")?;
        }
        Ok(answers)
    }
}

impl<Q, A, E> Job for Gathered<Q, A, E>
where
    Q: Send,
    A: Send + 'static,
    E: From<StorageError> + Send + 'static,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn undo(&self) -> Undo {
        Undo::Transaction
    }

    fn callers(&self) -> usize {
        self.replies.len().max(1)
    }

    fn run(&mut self, conn: &Connection, within: Undo) -> Ran {
        let questions = self.take();
        match self.all(conn, within, &questions) {
            Ok(Some(answers)) => {
                self.answers = answers;
                Ran::Kept
            }
            // The writer sees the changes, and tells everybody of the transaction.
            Ok(None) => Ran::Refused,
            // The transaction went away, or its savepoints cannot be trusted any more.
            Err(error) => {
                let error = StorageError::of(Arc::clone(&self.path), error);
                self.answers = questions.iter().map(|_| Some(Err(error.clone().into()))).collect();
                Ran::Refused
            }
        }
    }

    fn answer(&mut self, end: Result<(), StorageError>) {
        // Where the transaction could not begin, nobody was asked.
        drop(self.take());
        let mut answers = std::mem::take(&mut self.answers).into_iter();
        let (path, name) = (&self.path, self.name);
        answer_all(self.replies.drain(..).map(|reply| {
            let answer = match (&end, answers.next().flatten()) {
                (Err(error), _) => Err(error.clone().into()),
                (Ok(()), Some(answer)) => answer,
                (Ok(()), None) => Err(StorageError::Panicked { path: Arc::clone(path), name }.into()),
            };
            (reply, answer)
        }));
    }
}

impl<Q, A, E> Drop for Gathered<Q, A, E> {
    fn drop(&mut self) {
        // One that never ran, behind the closing order: its callers must not wait for it.
        drop(held(&self.group).take());
    }
}

fn kept<A, E>(answers: Vec<A>) -> Answers<A, E> {
    answers.into_iter().map(|answer| Some(Ok(answer))).collect()
}

fn say(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Lists are changed in one step each: a panic elsewhere leaves none half-made.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
