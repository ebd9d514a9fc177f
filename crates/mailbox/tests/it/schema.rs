//! The tables, and the words the views show for stored numbers.

use mailbox::{Mailbox, OutboxFilter, SCHEMA};
use model::outbox::{AbortedBy, DeadReason, Outcome, Status, Verdict};
use model::turn::{TurnMark, TurnOutcome};
use model::{DeliveryRung, OsEntropy, Priority, limits};
use rusqlite::Connection;
use sqlite::Schema;

use crate::desk::{ANN, Desk};

#[test]
fn the_sum_of_the_migrations_is_the_checked_in_schema() {
    sqlite::assert_schema_sum(&SCHEMA);
}

/// Reads `column` of a row in `view` forced to hold `code` in its table.
fn word(conn: &Connection, table: &str, column: &str, code: i64) -> Option<String> {
    conn.execute_batch(&format!("UPDATE {table} SET {column} = {code}")).unwrap();
    conn.query_row(&format!("SELECT {column} FROM {table}_text"), [], |row| row.get(0)).unwrap()
}

/// Every number a column allows has the word of the value the code reads it as, and no other number is allowed.
fn compare(conn: &Connection, table: &str, column: &str, expected: &[(i64, &str)]) {
    conn.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    for (code, expected) in expected {
        assert_eq!(word(conn, table, column, *code).as_deref(), Some(*expected), "{table}.{column} {code}");
    }
    let beyond = expected.iter().map(|(code, _)| *code).max().unwrap() + 1;
    assert_eq!(word(conn, table, column, beyond), None, "{table}.{column} has a word too many");
}

#[test]
fn the_views_say_the_words_of_the_enums() {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(SCHEMA.sum).unwrap();
    conn.execute_batch(
        "INSERT INTO outbox (id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane, enqueued_at)
         VALUES (zeroblob(16), zeroblob(16), 'a', zeroblob(32), '@a', '@a', 1);
         INSERT INTO inbox (sender_member_id, client_message_id, recipient_member_id, broker_message_id, conversation,
             history_id, received_at, rung, rung_at, redelivered)
         VALUES (zeroblob(16), 'a', zeroblob(16), zeroblob(16), zeroblob(16), 1, 1, 4, 1, 0);
         INSERT INTO turn (id, agent_member_id, inbox_seq, attempt, redelivered, began_at, lease_until)
         VALUES (zeroblob(16), zeroblob(16), 1, 1, 0, 1, 1);",
    )
    .unwrap();
    let statuses: Vec<_> =
        Status::ALL.iter().map(|status| (i64::from(status.code()), status.word())).collect();
    compare(&conn, "outbox", "status", &statuses);
    compare(&conn, "outbox", "dead_reason", &numbered(DeadReason::ALL.iter().map(|reason| reason.word())));
    compare(&conn, "outbox", "outcome", &numbered(Outcome::ALL.iter().map(|outcome| outcome.word())));
    compare(&conn, "outbox", "aborted_by", &numbered(AbortedBy::ALL.iter().map(|by| by.word())));
    let rungs: Vec<_> = DeliveryRung::ALL.iter().map(|rung| (i64::from(rung.code()), rung.word())).collect();
    compare(&conn, "outbox", "ended_as", &rungs[1..3]);
    compare(&conn, "inbox", "rung", &rungs[3..]);
    compare(&conn, "inbox", "priority", &numbered(Priority::ALL.iter().map(|priority| priority.word())));
    compare(&conn, "inbox", "turn", &numbered(TurnMark::ALL.iter().map(|mark| mark.word())));
    let outcomes = TurnOutcome::ALL.iter().map(|outcome| outcome.word());
    compare(&conn, "turn", "state", &numbered(["open"].into_iter().chain(outcomes).chain(["interrupted"])));
}

fn numbered(words: impl Iterator<Item = &'static str>) -> Vec<(i64, &'static str)> {
    (0..).zip(words).collect()
}

#[tokio::test]
async fn a_state_without_its_data_is_refused_by_the_table() {
    let desk = Desk::open();
    desk.send(crate::desk::ANN, "a", "@bob").await;
    let path = desk.path();
    desk.mailbox.clone().close().await;
    let conn = Connection::open(path).unwrap();
    for broken in [
        "status = 1",
        "status = 2",
        "status = 3",
        "status = 4",
        "status = 5",
        "status = 3, dead_reason = 8, outcome = 1, first_attempt_at = 1",
        "status = 3, dead_reason = 0, outcome = 1",
        "lease_token = zeroblob(16)",
        "superseded_by = zeroblob(16)",
        "scrubbed_at = 1",
        "outcome = 0",
        "aborted_by = 0",
    ] {
        let forced = conn.execute(&format!("UPDATE outbox SET {broken}"), []);
        assert!(forced.is_err(), "{broken} was taken");
    }
}

#[tokio::test]
async fn a_file_from_before_the_lean_outbox_keeps_its_rows_places_and_names() {
    let desk = Desk::open();
    let path = desk.path().with_file_name("before.db");
    let before = Schema { migrations: &SCHEMA.migrations[..3], ..SCHEMA };
    drop(sqlite::Db::open_inline(sqlite::Options::new(&path, before)).unwrap());
    let conn = Connection::open(&path).unwrap();
    for (id, payload) in [("first", Some("short")), ("second", None)] {
        conn.execute(
            "INSERT INTO outbox (id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane,
                 enqueued_at, payload)
             VALUES (randomblob(16), ?1, ?2, zeroblob(32), '@bob', '@bob', 1, CAST(?3 AS BLOB))",
            rusqlite::params![ANN.as_bytes(), id, payload],
        )
        .unwrap();
    }
    conn.execute("INSERT INTO outbox_payload (seq, payload) VALUES (2, CAST('long' AS BLOB))", []).unwrap();
    drop(conn);
    let mailbox = Mailbox::open(&path, std::sync::Arc::new(OsEntropy)).unwrap();
    assert_eq!(mailbox.accept(desk.draft(ANN, "third", "@bob", "x")).await.unwrap().verdict, Verdict::Insert);
    let all = OutboxFilter { limit: limits::PAGE_ROWS_MAX, ..OutboxFilter::default() };
    let rows = mailbox.outbox_list(all).await.unwrap();
    let places: Vec<_> = rows.iter().map(|row| (row.seq, row.client_message_id.as_str())).collect();
    assert_eq!(places, [(3, "third"), (2, "second"), (1, "first")]);
    for (row, words) in rows.iter().zip(["x", "long", "short"]) {
        let found = mailbox.outbox_payload(row.row).await.unwrap();
        assert_eq!(found.as_deref(), Some(words.as_bytes()), "{}", row.client_message_id);
    }
    let again = mailbox.accept(desk.draft(ANN, "first", "@bob", "other words")).await.unwrap();
    assert!(matches!(again.verdict, Verdict::Conflict(_)), "{again:?}");
    mailbox.close().await;
}

#[test]
fn a_file_of_a_newer_program_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mailbox.db");
    drop(sqlite::Db::open_inline(Mailbox::options(&path)).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.execute("INSERT INTO schema_version (number, name, checksum) VALUES (99, 'later', 0)", []).unwrap();
    drop(conn);
    let refused = sqlite::Db::open_inline(Mailbox::options(&path)).err().expect("a newer schema is refused");
    assert!(matches!(refused, sqlite::OpenError::NewerSchema { found: 99, .. }), "{refused}");
}
