//! What can be read of a damaged file is carried into a new one, row by row: ids first of all, because an id once
//! used must never be free again.
//!
//! - The damaged file is only read.
//! - A row that cannot be read twice, or that the tables refuse, costs itself and nothing else.
//! - The new file is another life of the inbox: it has its own epoch, and the broker is told.

mod places;

use std::path::Path;
use std::sync::Arc;

use model::{Timestamp, limits};
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Statement, ToSql, named_params, params_from_iter};
use sqlite::StorageError;

use self::places::{Evidence, GapMeaning, INBOX, OUTBOX, PlacedTable, TURN};
use crate::meta::{INBOX_REBUILT, put};
use crate::outbox::Names;
use crate::{Mailbox, sql};

pub use places::LossCount;

/// How a file that is not open looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing contradicts itself.
    Sound,
    /// Something does.
    Damaged {
        /// The first thing found, in SQLite's words.
        detail: String,
    },
}

/// What was carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Outbox rows.
    pub outbox: u64,
    /// Rows of the outbox that did not come over. Their ids are lost with them.
    pub outbox_lost: u64,
    /// Inbox rows.
    pub inbox: u64,
    /// Rows of the inbox that did not come over.
    pub inbox_lost: u64,
    /// Turns.
    pub turns: u64,
    /// Turns that did not come over.
    pub turns_lost: u64,
    /// Whether as many were lost as these figures say.
    pub count: LossCount,
    /// Members at home here.
    pub members: u64,
}

/// What became of one table.
struct CarriedTable {
    kept: u64,
    lost: u64,
    count: LossCount,
}

impl CarriedTable {
    /// The file does not even say that it has the table.
    const UNKNOWN: Self = Self { kept: 0, lost: 0, count: LossCount::AtLeast };
}

/// A row as it stands, whatever its columns are.
struct Record {
    table: &'static str,
    columns: Vec<String>,
    values: Vec<Value>,
}

/// Looks through the whole file at `path`, which nobody has open: each row, and whether its indexes name it. Takes as long
/// as the disk does.
pub fn condition(path: &Path) -> Condition {
    checked(path, "PRAGMA integrity_check(1)")
}

/// The same without the indexes, which a file that is made anew when it is damaged can do without.
pub(crate) fn quick_condition(path: &Path) -> Condition {
    checked(path, "PRAGMA quick_check(1)")
}

/// A disk that fails to read once says nothing of the file, so what looks damaged is opened and looked at again.
fn checked(path: &Path, check: &str) -> Condition {
    match look(path, check) {
        Condition::Sound => Condition::Sound,
        Condition::Damaged { .. } => look(path, check),
    }
}

fn look(path: &Path, check: &str) -> Condition {
    let damaged = |detail: String| Condition::Damaged { detail };
    match open(path).and_then(|conn| conn.query_row(check, [], |row| row.get::<_, String>(0))) {
        Ok(word) if word == "ok" => Condition::Sound,
        Ok(detail) => damaged(detail),
        Err(error) => damaged(error.to_string()),
    }
}

impl Mailbox {
    /// Carries over what can be read of `damaged` into this new file. To be called before anything else.
    pub fn salvage_blocking(&self, damaged: &Path, now: Timestamp) -> Result<Salvaged, StorageError> {
        let mut salvaged = Salvaged::default();
        self.db.write_blocking("mailbox.salvage", |conn| {
            put(conn, INBOX_REBUILT, &true.to_string())?;
            Ok::<_, StorageError>(())
        })?;
        let Ok(from) = twice(|| open(damaged)) else {
            salvaged.count = LossCount::AtLeast;
            return Ok(salvaged);
        };
        for statement in [sql::SALVAGE_META, sql::SALVAGE_MEMBER] {
            let table = if statement == sql::SALVAGE_MEMBER { "member" } else { "meta" };
            let kept = self.keep(all(&from, table, statement))?;
            if table == "member" {
                salvaged.members = kept;
            }
        }
        let gaps = GapMeaning::of(&from);
        let outbox = self.carry(&from, OUTBOX, gaps)?;
        (salvaged.outbox, salvaged.outbox_lost) = (outbox.kept, outbox.lost);
        let inbox = self.carry(&from, INBOX, gaps)?;
        (salvaged.inbox, salvaged.inbox_lost) = (inbox.kept, inbox.lost);
        let turns = self.carry(&from, TURN, gaps)?;
        (salvaged.turns, salvaged.turns_lost) = (turns.kept, turns.lost);
        if [outbox, inbox, turns].iter().any(|table| table.count == LossCount::AtLeast) {
            salvaged.count = LossCount::AtLeast;
        }
        self.db.write_blocking("mailbox.salvage", move |conn| {
            let at = named_params! {":now": now.as_micros()};
            conn.prepare_cached(sql::SALVAGE_SORT)?.execute([])?;
            conn.prepare_cached(sql::SALVAGE_SORTED)?.execute([])?;
            conn.prepare_cached(sql::SALVAGE_BURY_WORDLESS)?.execute([])?;
            conn.prepare_cached(sql::SALVAGE_MARK_OUTBOX)?.execute(at)?;
            conn.prepare_cached(sql::SALVAGE_MARK_INBOX)?.execute(at)?;
            conn.prepare_cached(sql::SALVAGE_MARK_TURNS)?.execute([])?;
            Ok::<_, StorageError>(())
        })?;
        Ok(salvaged)
    }

    /// Every place of a table and of the one that holds its bodies.
    fn carry(
        &self,
        from: &Connection,
        table: PlacedTable,
        gaps: GapMeaning,
    ) -> Result<CarriedTable, StorageError> {
        let Some(mut evidence) = Evidence::of(from, table) else { return Ok(CarriedTable::UNKNOWN) };
        let (known, mut kept, mut page) = (evidence.known(), 0, Vec::new());
        for seq in 1..=evidence.most {
            match twice(|| one(from, table.name, table.row, seq)) {
                Ok(None) if seq > known && evidence.is_end(from, seq) => break,
                Ok(None) => continue,
                Err(_) => evidence.was_unreadable(),
                Ok(Some(record)) => {
                    evidence.was_read(seq);
                    let words = |(bodies, body)| twice(|| one(from, bodies, body, seq)).ok().flatten();
                    page.push([Some(record), table.bodies.and_then(words)]);
                }
            }
            if page.len() == limits::SWEEP_ROWS_MAX {
                kept += self.keep_page(std::mem::take(&mut page))?;
            }
        }
        kept += self.keep_page(page)?;
        let (lost, count) = evidence.lost(kept, gaps);
        Ok(CarriedTable { kept, lost, count })
    }

    /// How many of the rows the tables took.
    fn keep_page(&self, page: Vec<[Option<Record>; 2]>) -> Result<u64, StorageError> {
        let names = Arc::clone(&self.names);
        let kept = self.db.write_blocking("mailbox.salvage", move |conn| {
            let mut kept = 0;
            for record in page {
                let [row, words] = record;
                let stored = row.filter(|row| insert(conn, row));
                if stored.map_or(Ok(false), |row| is_new(conn, &names, &row))? {
                    kept += 1;
                    words.map(|words| insert(conn, &words));
                }
            }
            Ok::<_, StorageError>(kept)
        })?;
        self.names.file_blocking(&self.db)?;
        Ok(kept)
    }

    fn keep(&self, records: Vec<Record>) -> Result<u64, StorageError> {
        self.db.write_blocking("mailbox.salvage", move |conn| {
            Ok(records.iter().map(|record| u64::from(insert(conn, record))).sum())
        })
    }
}

/// Read-only, and when its log cannot be read, without its log.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = with_or_without_log(path)?;
    // Otherwise a file that lost its end is not read at all; nothing is written either way.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    Ok(conn)
}

fn with_or_without_log(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let reads = |conn: &Connection| conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let conn = Connection::open_with_flags(path, flags)?;
    if twice(|| reads(&conn)).is_ok() {
        return Ok(conn);
    }
    let shown = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Connection::open_with_flags(format!("file:{shown}?immutable=1"), flags)
}

/// A read that fails once says nothing of the file.
fn twice<T>(read: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    read().or_else(|_| read())
}

fn one(
    from: &Connection,
    table: &'static str,
    statement: &str,
    seq: u64,
) -> rusqlite::Result<Option<Record>> {
    let mut statement = from.prepare_cached(statement)?;
    let columns = columns(&statement);
    let read = |row: &rusqlite::Row<'_>| {
        let values = (0..columns.len()).map(|place| row.get(place)).collect::<Result<_, _>>()?;
        Ok(Record { table, columns: columns.clone(), values })
    };
    statement.query_row(named_params! {":seq": seq}, read).optional()
}

/// As far as it can be read; rows that are read twice are kept once.
fn all(from: &Connection, table: &'static str, statement: &str) -> Vec<Record> {
    let mut records = Vec::new();
    if read_all(from, table, statement, &mut records).is_err() {
        // What was read is kept either way.
        let _ = read_all(from, table, statement, &mut records);
    }
    records
}

fn read_all(
    from: &Connection,
    table: &'static str,
    statement: &str,
    records: &mut Vec<Record>,
) -> rusqlite::Result<()> {
    let mut statement = from.prepare(statement)?;
    let columns = columns(&statement);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let values: Result<Vec<Value>, _> = (0..columns.len()).map(|place| row.get(place)).collect();
        if let Ok(values) = values {
            records.push(Record { table, columns: columns.clone(), values });
        }
    }
    Ok(())
}

fn columns(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

/// Whether the tables took the row. A row the file holds twice, or that breaks a rule, is none.
fn insert(conn: &Connection, record: &Record) -> bool {
    let places: Vec<String> = (1..=record.columns.len()).map(|place| format!("?{place}")).collect();
    // The columns are those of the file that is read: an older one may have fewer.
    let statement = format!(
        "INSERT OR IGNORE INTO {} ({}) VALUES ({})",
        record.table,
        record.columns.join(", "),
        places.join(", ")
    );
    let values = record.values.iter().map(|value| value as &dyn ToSql);
    let inserted = conn.prepare_cached(&statement).and_then(|mut it| it.execute(params_from_iter(values)));
    matches!(inserted, Ok(1))
}

/// Whether no row before has a name of the one just inserted; otherwise that one goes again. No index refuses it.
fn is_new(conn: &Connection, names: &Names, record: &Record) -> rusqlite::Result<bool> {
    if record.table != "outbox" {
        return Ok(true);
    }
    let seq = conn.last_insert_rowid().unsigned_abs();
    let is_new = matches!(names.take_in(conn, seq), Ok(true));
    if !is_new {
        conn.prepare_cached(sql::SALVAGE_REFUSE)?.execute(named_params! {":seq": seq})?;
    }
    Ok(is_new)
}
