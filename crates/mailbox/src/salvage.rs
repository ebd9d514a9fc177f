//! What can be read of a damaged file is carried into a new one, row by row: ids first of all, because an id once
//! used must never be free again.
//!
//! - The damaged file is only read.
//! - A row that cannot be read, or that the tables refuse, costs itself and nothing else.
//! - The new file is another life of the inbox: it has its own epoch, and the broker is told.

use std::path::Path;
use std::sync::Arc;

use model::{Timestamp, limits};
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Statement, ToSql, named_params, params_from_iter};
use sqlite::StorageError;

use crate::meta::{INBOX_REBUILT, put};
use crate::outbox::Names;
use crate::{Mailbox, sql};

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
    /// Places of the outbox that held a row nobody can read any more. Their ids are lost with them.
    pub outbox_lost: u64,
    /// Inbox rows.
    pub inbox: u64,
    /// Places of the inbox that held a row nobody can read any more.
    pub inbox_lost: u64,
    /// Members at home here.
    pub members: u64,
}

/// No row of a table that is carried over by places is shorter.
const ROW_BYTES_MIN: u64 = 64;

/// A row as it stands, whatever its columns are.
struct Record {
    table: &'static str,
    columns: Vec<String>,
    values: Vec<Value>,
}

/// Looks through the whole file at `path`, which nobody has open.
pub fn condition(path: &Path) -> Condition {
    let damaged = |detail: String| Condition::Damaged { detail };
    match open(path)
        .and_then(|conn| conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)))
    {
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
        let Ok(from) = open(damaged) else { return Ok(salvaged) };
        for statement in [sql::SALVAGE_META, sql::SALVAGE_MEMBER] {
            let table = if statement == sql::SALVAGE_MEMBER { "member" } else { "meta" };
            let kept = self.keep(all(&from, table, statement))?;
            if table == "member" {
                salvaged.members = kept;
            }
        }
        let (outbox, payloads) =
            (("outbox", sql::SALVAGE_OUTBOX), ("outbox_payload", sql::SALVAGE_OUTBOX_PAYLOAD));
        (salvaged.outbox, salvaged.outbox_lost) = self.carry(&from, outbox, Some(payloads))?;
        let (inbox, envelopes) =
            (("inbox", sql::SALVAGE_INBOX), ("inbox_envelope", sql::SALVAGE_INBOX_ENVELOPE));
        (salvaged.inbox, salvaged.inbox_lost) = self.carry(&from, inbox, Some(envelopes))?;
        self.carry(&from, ("turn", sql::SALVAGE_TURN), None)?;
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

    /// Every place of a table and of the one that holds its bodies: how many rows came over, how many did not.
    fn carry(
        &self,
        from: &Connection,
        (table, row): (&'static str, &str),
        bodies: Option<(&'static str, &str)>,
    ) -> Result<(u64, u64), StorageError> {
        let Places { known, most } = Places::of(from, table);
        let (mut kept, mut lost, mut page) = (0, 0, Vec::new());
        // What cannot be read behind the last place anybody knows of may be nothing; not when a row stands behind it.
        let mut unsure = 0;
        for seq in 1..=most {
            match one(from, table, row, seq) {
                Ok(None) if seq > known && is_end(from, seq) => break,
                Ok(None) => continue,
                Err(_) if seq > known => unsure += 1,
                Err(_) => lost += 1,
                Ok(Some(record)) => {
                    lost += std::mem::take(&mut unsure);
                    let words = bodies.and_then(|(table, body)| one(from, table, body, seq).ok().flatten());
                    page.push([Some(record), words]);
                }
            }
            if page.len() == limits::SWEEP_ROWS_MAX {
                let (taken, refused) = self.keep_page(std::mem::take(&mut page))?;
                kept += taken;
                lost += refused;
            }
        }
        let (taken, refused) = self.keep_page(page)?;
        Ok((kept + taken, lost + refused))
    }

    fn keep_page(&self, page: Vec<[Option<Record>; 2]>) -> Result<(u64, u64), StorageError> {
        let names = Arc::clone(&self.names);
        let counted = self.db.write_blocking("mailbox.salvage", move |conn| {
            let (mut kept, mut refused) = (0, 0);
            for record in page {
                let [row, words] = record;
                let stored = row.filter(|row| insert(conn, row));
                if stored.map_or(Ok(false), |row| is_new(conn, &names, &row))? {
                    kept += 1;
                    words.map(|words| insert(conn, &words));
                } else {
                    refused += 1;
                }
            }
            Ok::<_, StorageError>((kept, refused))
        })?;
        self.names.file_blocking(&self.db)?;
        Ok(counted)
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
    if reads(&conn).is_ok() {
        return Ok(conn);
    }
    let shown = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Connection::open_with_flags(format!("file:{shown}?immutable=1"), flags)
}

/// Where the rows of a table may stand.
struct Places {
    /// The last place that anything in the file speaks of.
    known: u64,
    /// The last that is looked at.
    most: u64,
}

impl Places {
    fn of(from: &Connection, table: &str) -> Self {
        let number = |row: &rusqlite::Row<'_>| row.get::<_, u64>(0);
        let room = from.query_row(sql::SALVAGE_BYTES, [], number).unwrap_or(0) / ROW_BYTES_MIN;
        let given = from.query_row(sql::SALVAGE_LAST, named_params! {":name": table}, number);
        let given = given.unwrap_or(0).min(room);
        if table != "outbox" {
            return Self { known: given, most: given };
        }
        // Nothing counts its places: its last row, how far it was sorted and its names lead to them, where they can be
        // read.
        let told = [sql::OUTBOX_LAST, sql::SALVAGE_LAST_SORTED].map(|it| from.query_row(it, [], number));
        let told = told.into_iter().flatten().map(|place| place.min(room)).max().unwrap_or(0);
        Self { known: given.max(told).max(last_named(from, room)), most: room }
    }
}

/// The last place a name of the outbox leads to, as far as names can be read and lead to a place in the file.
fn last_named(from: &Connection, room: u64) -> u64 {
    let Ok(mut names) = from.prepare(sql::SALVAGE_NAMES) else { return 0 };
    let Ok(places) = names.query_map([], |row| row.get::<_, u64>(0)) else { return 0 };
    places.map_while(Result::ok).filter(|place| *place <= room).max().unwrap_or(0)
}

/// Whether the outbox ends before this place. A gap is no end: an earlier repair may have left it. What cannot be read may
/// hold rows.
fn is_end(from: &Connection, seq: u64) -> bool {
    let behind = from
        .prepare_cached(sql::SALVAGE_IS_BEHIND)
        .and_then(|mut rows| rows.exists(named_params! {":seq": seq}));
    matches!(behind, Ok(false))
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

/// As far as it can be read.
fn all(from: &Connection, table: &'static str, statement: &str) -> Vec<Record> {
    let Ok(mut statement) = from.prepare(statement) else { return Vec::new() };
    let columns = columns(&statement);
    let Ok(mut rows) = statement.query([]) else { return Vec::new() };
    let mut records = Vec::new();
    while let Ok(Some(row)) = rows.next() {
        let values: Result<Vec<Value>, _> = (0..columns.len()).map(|place| row.get(place)).collect();
        if let Ok(values) = values {
            records.push(Record { table, columns: columns.clone(), values });
        }
    }
    records
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
