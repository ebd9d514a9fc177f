//! Where the row stands that a caller named.
//!
//! A name of a caller's choice falls anywhere among all others, and in a tree each send would write a page of its own for
//! it. So names are filed late: they wait in memory until many do, and those that stand side by side in the tree are
//! written together.
//!
//! - A row has its name in itself, so those that wait are read again at the next start, from `outbox_filed` on.
//! - Tree and memory know keys of 64 bits, which two names may share: whoever finds a place looks at its row.
//! - A key waits before its row is committed, and until its place in the tree is: no reader misses it. One whose row
//!   was rolled back leads to no row or to another's, and is passed over.
//! - No index refuses a second row of a name: the one writer looks before it inserts.

mod key;
mod unfiled;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use model::{ClientMessageId, MemberId, RowId, limits};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row, named_params, params};
use sqlite::{Db, InsertMany, StorageError, fault};

use self::key::Key;
use self::unfiled::{Sheaf, Unfiled};
use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// Names that wait in a build for proofs, so that each of them files many times.
const UNFILED_IN_PROOFS: usize = 3;

static FILE: LazyLock<InsertMany> = LazyLock::new(|| InsertMany::new(sql::NAME_FILE));

/// See the module.
pub(crate) struct Names {
    unfiled: Mutex<Unfiled>,
    /// Whether it is time to file, to be asked without the lock.
    due: AtomicBool,
    /// Whether somebody files.
    filing: AtomicBool,
}

/// One files at a time; whoever is dropped while filing makes room for the next, who files the same again.
struct Turn<'names>(&'names Names);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.filing.store(false, SeqCst);
    }
}

impl Mailbox {
    /// Files names when too many wait. To be called after the commit that added one, whose caller has nothing more to
    /// fear.
    pub(crate) async fn file_names_if_due(&self) {
        if let Some(turn) = self.names.turn() {
            // Most calls end before: what this one needs shall not be carried by all.
            Box::pin(self.file_names(turn)).await;
        }
    }

    /// What cannot be filed now waits on; a file that cannot be written tells whoever sends next.
    async fn file_names(&self, _turn: Turn<'_>) {
        let names = Arc::clone(&self.names);
        if let Ok(sheaf) = self.db.write("mailbox.file", move |conn| names.file(conn, 0)).await {
            self.names.filed(&sheaf);
        }
    }
}

impl Names {
    /// Reads the names that waited when the file was last in use.
    pub(crate) fn open(db: &Db) -> Result<Arc<Self>, StorageError> {
        let waiting_max = fault::bound(limits::NAMES_UNFILED_MAX, UNFILED_IN_PROOFS);
        let names = Arc::new(Self {
            unfiled: Mutex::new(Unfiled::new(waiting_max)),
            due: AtomicBool::new(false),
            filing: AtomicBool::new(false),
        });
        let filed = |conn: &Connection| Ok::<_, StorageError>(one(conn, sql::NAME_FILED, [])?.unwrap_or(0));
        let (mut last, mut count): (u64, _) = (db.read_blocking("mailbox.filed", filed)?, 0);
        loop {
            let page =
                db.read_blocking("mailbox.names", move |conn| Ok::<_, StorageError>(page(conn, last)?))?;
            let Some((seq, _)) = page.last() else { break };
            (last, count) = (*seq, count + page.len());
            page.into_iter().for_each(|(seq, key)| names.add_key(key, seq));
            names.file_blocking(db)?;
        }
        // Otherwise one that is stopped again before its round is over would read more at every start.
        if count > 2 * waiting_max {
            while names.file_one_blocking(db)? < Some(last) {}
        }
        Ok(names)
    }

    /// Files until no more wait than may.
    pub(crate) fn file_blocking(self: &Arc<Self>, db: &Db) -> Result<(), StorageError> {
        while self.unfiled().is_full() {
            self.file_one_blocking(db)?;
        }
        Ok(())
    }

    /// Files a large sheaf: nobody sends meanwhile. The row up to which all names are filed, if that is known now.
    fn file_one_blocking(self: &Arc<Self>, db: &Db) -> Result<Option<u64>, StorageError> {
        let names = Arc::clone(self);
        let sheaf =
            db.write_blocking("mailbox.file", move |conn| names.file(conn, limits::SWEEP_ROWS_MAX))?;
        self.filed(&sheaf);
        Ok(sheaf.completes())
    }

    /// A row was inserted at `seq`, in the transaction under way, and its caller named it so.
    pub(super) fn add(&self, sender: &MemberId, name: &ClientMessageId, seq: u64) {
        self.add_key(Key::of(sender, name), seq);
    }

    fn add_key(&self, key: Key, seq: u64) {
        let mut unfiled = self.unfiled();
        unfiled.add(key, seq);
        self.due.store(unfiled.is_full(), SeqCst);
    }

    /// A row that stands at `seq` already is to be found from now on, unless another has its name: whether it is.
    pub(crate) fn take_in(&self, conn: &Connection, seq: u64) -> rusqlite::Result<bool> {
        let row = |row: &Row<'_>| Ok((named(row)?, row.get::<_, bool>("named")?));
        let ((sender, name), by_caller) = conn.prepare_cached(sql::NAME_ROW)?.query_row([seq], row)?;
        let is_new = self.place_of(conn, &sender, &name)?.is_none_or(|held| held == seq);
        if is_new && by_caller {
            self.add(&sender, &name, seq);
        }
        Ok(is_new)
    }

    /// Where the row stands that has this name of its sender's. A read asks this before anything else: what it sees of
    /// the file must not be older than what it sees of memory.
    pub(crate) fn place_of(
        &self,
        conn: &Connection,
        sender: &MemberId,
        name: &ClientMessageId,
    ) -> rusqlite::Result<Option<u64>> {
        let key = Key::of(sender, name);
        let bears = |seq: u64| {
            let row = one::<bool>(conn, sql::NAME_BEARS, params![seq, Sql(sender), Sql(name)])?;
            Ok(row.map(|_| seq))
        };
        // Memory is asked first: a key is there until every later look at the tree finds it.
        let waiting = self.unfiled().places(key);
        if let Some(seq) = first(waiting.into_iter().map(Ok), bears)? {
            return Ok(Some(seq));
        }
        let mut filed = conn.prepare_cached(sql::NAME_PLACES)?;
        if let Some(seq) = first(filed.query_map([key], |row| row.get(0))?, bears)? {
            return Ok(Some(seq));
        }
        // A message that its caller did not name has its row's id for a name.
        let Ok(row) = name.as_str().parse::<RowId>() else { return Ok(None) };
        one(conn, sql::NAME_OF_ROW, params![Sql(&row), Sql(sender), Sql(name)])
    }

    /// The right to file, when it is time and nobody does.
    fn turn(&self) -> Option<Turn<'_>> {
        (self.due.load(SeqCst) && !self.filing.swap(true, SeqCst)).then_some(Turn(self))
    }

    /// Puts the next keys into the tree, at least so many. They wait on until this is committed.
    fn file(&self, conn: &Connection, least: usize) -> Result<Sheaf, StorageError> {
        // Rows are inserted by this connection alone: all that it sees have been added.
        let last = one(conn, sql::OUTBOX_LAST, [])?.unwrap_or(0);
        let sheaf = self.unfiled().sheaf(least, last);
        FILE.insert(conn, sheaf.keys(), |(key, seq)| [key.bits().into(), seq.cast_signed().into()])?;
        if let Some(upto) = sheaf.completes() {
            conn.prepare_cached(sql::NAME_FILED_PUT)?.execute(named_params! {":upto": upto})?;
        }
        Ok(sheaf)
    }

    /// The sheaf is committed.
    fn filed(&self, sheaf: &Sheaf) {
        let mut unfiled = self.unfiled();
        unfiled.filed(sheaf);
        self.due.store(unfiled.is_full(), SeqCst);
    }

    fn unfiled(&self) -> MutexGuard<'_, Unfiled> {
        // It is changed key by key: a panic elsewhere leaves nothing half-made.
        self.unfiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first that bears the name.
fn first(
    places: impl Iterator<Item = rusqlite::Result<u64>>,
    bears: impl Fn(u64) -> rusqlite::Result<Option<u64>>,
) -> rusqlite::Result<Option<u64>> {
    places.map(|seq| bears(seq?)).find_map(Result::transpose).transpose()
}

/// The rows behind a place that callers named, with their keys, as many as a page has.
fn page(conn: &Connection, after: u64) -> rusqlite::Result<Vec<(u64, Key)>> {
    let mut rows = conn.prepare_cached(sql::NAME_ROWS)?;
    let page = named_params! {":after": after, ":limit": limits::PAGE_ROWS_MAX};
    let read = |row: &Row<'_>| {
        let (sender, name) = named(row)?;
        Ok((row.get("seq")?, Key::of(&sender, &name)))
    };
    rows.query_map(page, read)?.collect()
}

fn named(row: &Row<'_>) -> rusqlite::Result<(MemberId, ClientMessageId)> {
    Ok((get(row, "sender_member_id")?, get(row, "client_message_id")?))
}

fn one<T: FromSql>(conn: &Connection, statement: &str, key: impl Params) -> rusqlite::Result<Option<T>> {
    conn.prepare_cached(statement)?.query_row(key, |row| row.get(0)).optional()
}
