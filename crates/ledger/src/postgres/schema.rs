//! The tables as numbered steps, and as their sum; the same numbers as on SQLite.

use sha2::{Digest, Sha256};
use tokio_postgres::Client;

use super::sql;
use super::trouble::PostgresError;

/// Why a database cannot be used. Nothing was deleted, and no half-made table is left behind.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address does not parse.
    #[error("the store's address is not one of PostgreSQL: {0}")]
    Address(String),
    /// The address asks for TLS.
    #[error(
        "this program speaks to PostgreSQL without TLS: name a server on this machine, in a private network, or the \
         near end of a tunnel (stunnel, ssh -L), with sslmode=disable"
    )]
    Tls,
    /// The server, or its settings.
    #[error(transparent)]
    Server(#[from] PostgresError),
    /// An old server.
    #[error("PostgreSQL {found} is older than {VERSION_MIN}, the oldest this program knows")]
    TooOld {
        /// Its major version.
        found: i32,
    },
    /// Tables that are not ours.
    #[error("the database holds tables of another program; name an empty one")]
    Foreign,
    /// Written by a newer binary.
    #[error("schema {found} is newer than {known}, the newest this program knows; use a newer program")]
    NewerSchema {
        /// Last step in the database.
        found: i32,
        /// Last step in this binary.
        known: i32,
    },
    /// A step in the database differs from the one of that number in this binary.
    #[error("migration {number} was applied with another text; use the program that wrote it")]
    ChangedMigration {
        /// Which.
        number: i32,
    },
}

/// The oldest server's major version.
const VERSION_MIN: i32 = 15;

/// One forward step.
struct Step {
    number: i32,
    name: &'static str,
    sql: &'static str,
}

const STEPS: &[Step] = &[
    Step { number: 1, name: "books", sql: include_str!("migrations/0001_books.sql") },
    Step { number: 2, name: "webhooks", sql: include_str!("migrations/0002_webhooks.sql") },
    Step { number: 3, name: "chat", sql: include_str!("migrations/0003_chat.sql") },
    Step { number: 4, name: "hub", sql: include_str!("migrations/0004_hub.sql") },
    Step { number: 5, name: "outlived", sql: include_str!("migrations/0005_outlived.sql") },
    Step { number: 6, name: "dedupe_by_id", sql: include_str!("migrations/0006_dedupe_by_id.sql") },
    Step { number: 7, name: "mail", sql: include_str!("migrations/0007_mail.sql") },
    Step { number: 8, name: "lean", sql: include_str!("migrations/0008_lean.sql") },
    Step { number: 9, name: "stretches", sql: include_str!("migrations/0009_stretches.sql") },
    Step {
        number: 10,
        name: "ageing_and_receipt_marks",
        sql: include_str!("migrations/0010_ageing_and_receipt_marks.sql"),
    },
];

/// The checked-in sum of the steps.
pub const SUM: &str = include_str!("schema.sql");

/// Brings the database up to date; several processes may try at once, and one of them does it.
pub(super) async fn migrate(client: &mut Client) -> Result<(), OpenError> {
    let version: i32 = client.query_one(sql!("server_version"), &[]).await.map_err(server)?.get(0);
    if version / 10_000 < VERSION_MIN {
        return Err(OpenError::TooOld { found: version / 10_000 });
    }
    let tx = client.transaction().await.map_err(server)?;
    // Held until the transaction ends.
    tx.batch_execute(sql!("migration_lock")).await.map_err(server)?;
    let ours: bool = tx.query_one(sql!("migrations_exist"), &[]).await.map_err(server)?.get(0);
    if !ours {
        let tables: i64 = tx.query_one(sql!("tables_count"), &[]).await.map_err(server)?.get(0);
        if tables > 0 {
            return Err(OpenError::Foreign);
        }
        tx.batch_execute(sql!("migrations_create")).await.map_err(server)?;
    }
    let applied = tx.query(sql!("migrations"), &[]).await.map_err(server)?;
    for row in &applied {
        check(row.get(0), row.get(1))?;
    }
    for step in STEPS.iter().skip(applied.len()) {
        tx.batch_execute(step.sql).await.map_err(server)?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&step.number, &step.name, &checksum(step.sql)];
        tx.execute(sql!("migration_insert"), &params).await.map_err(server)?;
    }
    tx.commit().await.map_err(server)
}

fn check(number: i32, sum: Vec<u8>) -> Result<(), OpenError> {
    match STEPS.iter().find(|step| step.number == number) {
        Some(step) if checksum(step.sql) == sum => Ok(()),
        Some(_) => Err(OpenError::ChangedMigration { number }),
        None => {
            let known = STEPS.last().map_or(0, |step| step.number);
            Err(OpenError::NewerSchema { found: number, known })
        }
    }
}

fn checksum(sql: &str) -> Vec<u8> {
    Sha256::digest(sql).to_vec()
}

fn server(error: tokio_postgres::Error) -> OpenError {
    OpenError::Server(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_from_one_as_on_sqlite() {
        for (step, expected) in STEPS.iter().zip(1..) {
            assert_eq!(step.number, expected);
        }
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        let sqlite: Vec<_> = crate::SQLITE_SCHEMA.migrations.iter().map(|step| step.name).collect();
        assert_eq!(names, sqlite);
    }

    #[test]
    fn a_newer_or_changed_step_is_refused() {
        assert!(check(1, checksum(STEPS[0].sql)).is_ok());
        assert!(matches!(check(1, vec![0; 32]), Err(OpenError::ChangedMigration { number: 1 })));
        let newer = check(STEPS.len() as i32 + 1, vec![0; 32]);
        assert!(matches!(newer, Err(OpenError::NewerSchema { .. })));
    }
}
