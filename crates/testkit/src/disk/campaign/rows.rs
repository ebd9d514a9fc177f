//! The engine alone as a store: rows written by every kind of job.

use std::path::Path;
use std::sync::LazyLock;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use sqlite::fault::Disk;
use sqlite::{Db, Gathering, InsertMany, Migration, Options, Schema, StorageError};

use super::{AdjustBounds, OpenStore, PendingAnswer, Request, StoreAnswer, StoreDriver};

const TABLE: &str =
    "CREATE TABLE row (n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, body BLOB NOT NULL) STRICT;";
const SCHEMA: Schema =
    Schema { migrations: &[Migration { number: 1, name: "rows", sql: TABLE }], sum: TABLE };
static INSERT: LazyLock<InsertMany> =
    LazyLock::new(|| InsertMany::new("INSERT INTO row (n, name, body) VALUES (?, ?, ?)"));

/// Rows; a request is one of them, or four that belong together.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowsDriver;

struct OpenRows {
    db: Db,
    gathering: Gathering<Row, (), StorageError>,
}

#[derive(Clone)]
struct Row {
    number: i64,
    name: String,
    body: Vec<u8>,
}

impl Row {
    /// Names fall anywhere in their index, as ids of callers do.
    fn of(request: Request, part: u64) -> Self {
        let number = request.number * 4 + part;
        let mut seeded = crate::seeded::Seeded::new(number);
        let name = format!("{:016x}", seeded.next_u64());
        let mut body = vec![0; request.bytes];
        seeded.fill(&mut body);
        Self { number: number.cast_signed(), name, body }
    }

    fn values(&self) -> [ToSqlOutput<'_>; 3] {
        [self.number.into(), self.name.as_str().into(), self.body.as_slice().into()]
    }

    /// All of them by one statement, before anything is read; who asks again meets the names.
    fn insert_blindly(conn: &Connection, rows: &[Row]) -> rusqlite::Result<()> {
        match INSERT.insert(conn, rows, Row::values) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(()),
            inserted => inserted,
        }
    }

    /// Those that are not there yet; who asks again has its answer from the row.
    fn insert(conn: &Connection, rows: &[Row]) -> rusqlite::Result<()> {
        let mut find = conn.prepare_cached("SELECT 1 FROM row WHERE name = ?1")?;
        let mut new = Vec::new();
        for row in rows {
            if !find.exists([&row.name])? {
                new.push(row);
            }
        }
        INSERT.insert(conn, &new, |row| row.values())
    }
}

impl StoreDriver for RowsDriver {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn kinds(&self) -> u64 {
        4
    }

    fn open(&self, folder: &Path, bounds: &AdjustBounds, disk: Disk) -> Result<Box<dyn OpenStore>, String> {
        let mut options = Options::new(folder.join("rows.db"), SCHEMA).fault(disk);
        options.bounds = bounds(options.bounds);
        let db = Db::open(options).map_err(|error| error.to_string())?;
        let gathering = Gathering::new("campaign.gathered", |conn, rows: &[Row]| {
            Row::insert(conn, rows)?;
            Ok(vec![(); rows.len()])
        });
        Ok(Box::new(OpenRows { db, gathering }))
    }
}

impl OpenStore for OpenRows {
    fn db(&self) -> &Db {
        &self.db
    }

    fn ask(&self, request: Request) -> PendingAnswer<'_> {
        let row = Row::of(request, 0);
        Box::pin(async move {
            let answer = match request.kind {
                0 => self.db.write_gathered(&self.gathering, row).await,
                1 => self.db.write("campaign.saved", move |conn| Ok(Row::insert(conn, &[row])?)).await,
                2 => {
                    self.db
                        .write_checked("campaign.checked", move |conn| Ok(Row::insert(conn, &[row])?))
                        .await
                }
                // Rows of one statement: SQLite undoes them alone when there is no room for them.
                _ => {
                    let rows: Vec<Row> = (0..4).map(|part| Row::of(request, part)).collect();
                    self.db
                        .write_checked("campaign.four", move |conn| Ok(Row::insert_blindly(conn, &rows)?))
                        .await
                }
            };
            match answer {
                Ok(()) => StoreAnswer::Stored,
                Err(error) => StoreAnswer::of(&error),
            }
        })
    }

    fn holds(&self, request: Request) -> Result<bool, String> {
        let parts = if request.kind == 3 { 4 } else { 1 };
        let rows: Vec<Row> = (0..parts).map(|part| Row::of(request, part)).collect();
        let found = self.db.read_blocking("campaign.holds", move |conn| {
            let mut find = conn.prepare_cached("SELECT body FROM row WHERE name = ?1")?;
            let bodies = rows
                .iter()
                .map(|row| {
                    Ok((row, find.query_row([&row.name], |found| found.get::<_, Vec<u8>>(0)).optional()?))
                })
                .collect::<Result<Vec<_>, StorageError>>()?;
            let there = bodies.iter().filter(|(_, body)| body.is_some()).count();
            let changed =
                bodies.iter().any(|(row, body)| body.as_ref().is_some_and(|body| *body != row.body));
            Ok::<_, StorageError>((there, changed))
        });
        match found {
            Ok((_, true)) => Err("its body is another".to_owned()),
            Ok((0, _)) => Ok(false),
            Ok((there, _)) if there == rows_of(parts) => Ok(true),
            Ok((there, _)) => Err(format!("{there} of its {parts} rows are there")),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn rows_of(parts: u64) -> usize {
    usize::try_from(parts).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{BrokenPromise, Campaign, Control, Outcome, run};
    use super::RowsDriver;

    fn campaign(faults: u64, control: Control) -> Outcome {
        run(&RowsDriver, &Campaign { faults, seed: 1, control }).unwrap()
    }

    #[test]
    fn of_an_engine_on_a_failing_disk_nothing_acknowledged_is_lost_and_nothing_refused_is_kept() {
        let outcome = campaign(100, Control::Nothing);
        assert!(outcome.holds(), "{}", outcome.summary());
        assert!(outcome.met() >= 100 && outcome.denied > 50 && outcome.acknowledged > 1_000, "{outcome:?}");
    }

    #[test]
    fn the_same_campaign_finds_bytes_that_a_layer_held_back_and_dropped() {
        let outcome = campaign(400, Control::DroppedBytes);
        let harmed = outcome.count(BrokenPromise::Lost) + outcome.count(BrokenPromise::Damaged);
        assert!(harmed > 0, "{outcome:?}");
    }

    #[test]
    fn the_same_campaign_finds_a_group_that_goes_on_after_its_transaction_was_rolled_back() {
        let outcome = campaign(200, Control::GroupGoesOn);
        assert!(outcome.count(BrokenPromise::Kept) > 0, "{outcome:?}");
    }

    #[test]
    fn the_same_campaign_finds_a_whole_commit_that_was_refused() {
        let outcome = campaign(200, Control::FullBehindCommit);
        assert!(outcome.count(BrokenPromise::Kept) > 0, "{outcome:?}");
    }
}
