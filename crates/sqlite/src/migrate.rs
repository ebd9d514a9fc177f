//! Forward-only numbered migrations, one transaction each.
//!
//! Written here instead of taken from a crate, because the checks are the point: a newer file is refused
//! before anything is touched, a landed step may not change, and the sum of the steps must equal the
//! checked-in `schema.sql`. Running the steps is the small part.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::{Migration, OpenError, Schema};

const HAS_TABLES: &str = "SELECT count(*) FROM sqlite_schema";
const HAS_VERSIONS: &str =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'";
const READ_VERSIONS: &str = "SELECT number, name, checksum FROM schema_version ORDER BY number";
const MAKE_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS schema_version (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL)";
const ADD_VERSION: &str = "INSERT INTO schema_version (number, name, checksum) VALUES (?1, ?2, ?3)";
const DUMP: &str = "SELECT sql FROM sqlite_schema
    WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'schema_version'
    ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 WHEN 'view' THEN 2 ELSE 3 END, name";

/// The steps do not add up to the checked-in text.
#[derive(Debug, thiserror::Error)]
pub enum SchemaDrift {
    /// A step or the sum is not valid SQL.
    #[error("{what} does not run: {source}")]
    Invalid {
        /// Which text.
        what: String,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// Numbers must be 1, 2, 3, …
    #[error("migration {name} has number {found}, expected {expected}")]
    Numbering {
        /// The migration's name.
        name: &'static str,
        /// Its number.
        found: u32,
        /// The number its place asks for.
        expected: u32,
    },
    /// A constraint checked at `COMMIT` would make one job's breach the error of its whole batch.
    #[error("a constraint is deferred to the commit, which jobs share: check it at once\n{steps}")]
    Deferred {
        /// The tables after all steps.
        steps: String,
    },
    /// Both run and lead to different tables.
    #[error("the migrations lead to\n{steps}\nbut schema.sql says\n{sum}")]
    Different {
        /// The tables after all steps.
        steps: String,
        /// The tables after the checked-in text.
        sum: String,
    },
}

/// Refuses a file that is not ours, or newer, or whose steps were changed. Reads only.
pub(crate) fn inspect(conn: &Connection, path: &Arc<Path>, schema: &Schema) -> Result<(), OpenError> {
    let fail = |source| OpenError::of(Arc::clone(path), source);
    let tables: u32 = conn.query_row(HAS_TABLES, [], |row| row.get(0)).map_err(fail)?;
    let versions: u32 = conn.query_row(HAS_VERSIONS, [], |row| row.get(0)).map_err(fail)?;
    match (tables, versions) {
        (0, _) => return Ok(()),
        (_, 0) => return Err(OpenError::Foreign { path: Arc::clone(path) }),
        (_, _) => {}
    }
    for (number, name, checksum) in applied(conn).map_err(fail)? {
        let Some(known) = schema.migrations.iter().find(|step| step.number == number) else {
            let newest = newest(schema);
            return Err(OpenError::NewerSchema {
                path: Arc::clone(path),
                found: number.max(newest + 1),
                known: newest,
            });
        };
        if known.name != name || known.checksum() != checksum {
            return Err(OpenError::ChangedMigration {
                path: Arc::clone(path),
                number,
                found: name,
                known: known.name,
            });
        }
    }
    Ok(())
}

/// Runs the steps the file has not seen.
pub(crate) fn run(conn: &Connection, path: &Arc<Path>, schema: &Schema) -> Result<(), OpenError> {
    conn.execute_batch(MAKE_VERSIONS).map_err(|source| OpenError::of(Arc::clone(path), source))?;
    let seen = applied(conn).map_err(|source| OpenError::of(Arc::clone(path), source))?.len();
    for step in schema.migrations.iter().skip(seen) {
        apply(conn, step).map_err(|source| match OpenError::of(Arc::clone(path), source) {
            OpenError::Sql { path, source } => {
                OpenError::Migration { path, number: step.number, name: step.name, source }
            }
            storage => storage,
        })?;
    }
    Ok(())
}

/// The tables, indexes and views of an open file as normalised text, one statement a line.
pub(crate) fn text(conn: &Connection) -> rusqlite::Result<String> {
    let mut dump = conn.prepare(DUMP)?;
    let statements = dump.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> =
        statements.map(|sql| sql.map(|sql| normalise(&sql))).collect::<Result<_, _>>()?;
    Ok(lines.join(";\n"))
}

/// Compares the steps with the checked-in sum, in memory.
pub fn check_schema_sum(schema: &Schema) -> Result<(), SchemaDrift> {
    let invalid = |what: String| move |source| SchemaDrift::Invalid { what, source };
    let (steps, sum) = (memory()?, memory()?);
    for (step, expected) in schema.migrations.iter().zip(1..) {
        if step.number != expected {
            return Err(SchemaDrift::Numbering { name: step.name, found: step.number, expected });
        }
        steps
            .execute_batch(step.sql)
            .map_err(invalid(format!("migration {} ({})", step.number, step.name)))?;
    }
    sum.execute_batch(schema.sum).map_err(invalid("schema.sql".into()))?;
    let steps = text(&steps).map_err(invalid("the dump".into()))?;
    let sum = text(&sum).map_err(invalid("the dump".into()))?;
    if steps.to_uppercase().contains("INITIALLY DEFERRED") {
        return Err(SchemaDrift::Deferred { steps });
    }
    if steps == sum { Ok(()) } else { Err(SchemaDrift::Different { steps, sum }) }
}

/// For a room's tests: panics with both texts when the steps and the checked-in sum differ.
///
/// # Panics
/// When they differ, which is its purpose.
pub fn assert_schema_sum(schema: &Schema) {
    if let Err(drift) = check_schema_sum(schema) {
        panic!("{drift}");
    }
}

impl Migration {
    /// FNV-1a of the text: it finds an edited step, and needs no more than that.
    fn checksum(&self) -> i64 {
        let sum = self.sql.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        sum.cast_signed()
    }
}

fn newest(schema: &Schema) -> u32 {
    schema.migrations.last().map_or(0, |step| step.number)
}

fn applied(conn: &Connection) -> rusqlite::Result<Vec<(u32, String, i64)>> {
    let mut read = conn.prepare(READ_VERSIONS)?;
    let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

fn apply(conn: &Connection, step: &Migration) -> rusqlite::Result<()> {
    let tx = rusqlite::Transaction::new_unchecked(conn, rusqlite::TransactionBehavior::Immediate)?;
    tx.execute_batch(step.sql)?;
    tx.execute(ADD_VERSION, params![step.number, step.name, step.checksum()])?;
    tx.commit()
}

fn memory() -> Result<Connection, SchemaDrift> {
    Connection::open_in_memory()
        .map_err(|source| SchemaDrift::Invalid { what: "an empty database".into(), source })
}

/// One spelling for statements that differ only in comments, line breaks and spaces.
fn normalise(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql.chars().peekable();
    let mut gap = false;
    while let Some(c) = rest.next() {
        match c {
            '-' if rest.peek() == Some(&'-') => {
                rest.by_ref().find(|c| *c == '\n');
                gap = true;
            }
            '/' if rest.peek() == Some(&'*') => {
                let mut last = ' ';
                rest.by_ref().skip(1).find(|c| std::mem::replace(&mut last, *c) == '*' && *c == '/');
                gap = true;
            }
            c if c.is_whitespace() => gap = true,
            c => {
                let tight = |c: char| matches!(c, '(' | ')' | ',' | ';' | '=' | '<' | '>');
                if gap && !tight(c) && !out.ends_with(tight) && !out.is_empty() {
                    out.push(' ');
                }
                gap = false;
                out.push(c);
                if matches!(c, '\'' | '"' | '`') {
                    // A doubled quote inside reads as two neighbouring strings: the copy is the same.
                    out.extend(rest.by_ref().take_while(|inner| *inner != c));
                    out.push(c);
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter_and_content_does() {
        let same = [
            "CREATE TABLE a (b INTEGER,  c TEXT DEFAULT 'x  y')",
            "CREATE TABLE a(\n  b INTEGER, -- why\n  c TEXT /* because */ DEFAULT 'x  y'\n)",
        ];
        assert_eq!(normalise(same[0]), normalise(same[1]));
        assert_eq!(normalise(same[0]), "CREATE TABLE a(b INTEGER,c TEXT DEFAULT 'x  y')");
        assert_ne!(normalise("a DEFAULT 'x'"), normalise("a DEFAULT 'x '"));
        assert_ne!(normalise("a DEFAULT 'it''s'"), normalise("a DEFAULT 'its'"));
        assert_eq!(normalise("a /* * ** / */ b"), "a b");
    }

    const STEPS: &[Migration] = &[
        Migration { number: 1, name: "first", sql: "CREATE TABLE a (b INTEGER); CREATE INDEX a_b ON a (b);" },
        Migration { number: 2, name: "second", sql: "ALTER TABLE a ADD COLUMN c TEXT;" },
    ];

    #[test]
    fn a_sum_equal_to_its_steps_passes() {
        let sum = "-- the tables\nCREATE TABLE a (\n  b INTEGER,\n  c TEXT\n);\nCREATE INDEX a_b ON a (b);";
        assert_schema_sum(&Schema { migrations: STEPS, sum });
    }

    #[test]
    fn a_sum_that_lacks_an_index_is_drift() {
        let drift =
            check_schema_sum(&Schema { migrations: STEPS, sum: "CREATE TABLE a (b INTEGER, c TEXT);" });
        assert!(matches!(drift, Err(SchemaDrift::Different { .. })), "{drift:?}");
    }

    #[test]
    fn a_constraint_deferred_to_the_shared_commit_is_drift() {
        const SQL: &str = "CREATE TABLE a (b REFERENCES a (rowid) DEFERRABLE initially\n deferred)";
        const STEP: &[Migration] = &[Migration { number: 1, name: "first", sql: SQL }];
        let drift = check_schema_sum(&Schema { migrations: STEP, sum: SQL });
        assert!(matches!(drift, Err(SchemaDrift::Deferred { .. })), "{drift:?}");
    }

    #[test]
    fn a_gap_in_the_numbers_is_drift() {
        const GAP: &[Migration] = &[Migration { number: 2, name: "second", sql: "CREATE TABLE a (b)" }];
        let drift = check_schema_sum(&Schema { migrations: GAP, sum: "" });
        assert!(matches!(drift, Err(SchemaDrift::Numbering { found: 2, expected: 1, .. })), "{drift:?}");
    }
}
