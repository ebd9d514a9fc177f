//! Files of earlier versions, and damaged ones.

use super::*;

#[tokio::test]
async fn a_file_from_before_the_lean_tables_keeps_its_writes_and_gives_no_place_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outbox.db");
    let before = sqlite::Schema { migrations: &RELAY_SCHEMA.migrations[..5], ..RELAY_SCHEMA };
    drop(sqlite::Db::open_inline(sqlite::Options::new(&path, before)).unwrap());
    let conn = rusqlite::Connection::open(&path).unwrap();
    for key in ["a", "b", "trimmed"] {
        conn.execute(
            "INSERT INTO envelope (place, envelope_id, idempotency_key, fingerprint, method, path, route_class, scope,
                 order_key, barrier, status, outcome, next_attempt_at, queued_at, created_at, body_bytes)
             VALUES ((SELECT count(*) FROM envelope) + 1, randomblob(16), ?1, zeroblob(32), 'POST', '/', 0, 'task',
                 'task:1', 0, 0, 0, ?2, ?2, ?2, 1)",
            rusqlite::params![key, NOW.as_micros()],
        )
        .unwrap();
        let seq = conn.last_insert_rowid();
        conn.execute("INSERT INTO envelope_body (local_seq, body) VALUES (?1, CAST(?2 AS BLOB))", (seq, key))
            .unwrap();
    }
    conn.execute_batch(
        "DELETE FROM envelope_body WHERE local_seq = 3; DELETE FROM envelope WHERE local_seq = 3",
    )
    .unwrap();
    drop(conn);
    let envelopes = Envelopes::open(path, Arc::new(OsEntropy), NOW).unwrap();
    let relay = Stage { envelopes, folder };
    let next = relay.store("c", "task:2", RouteClass::Append, Start::Waiting).await;
    assert_eq!(next.local_seq, 4, "a place that was given away is not given again");
    let sent = relay.claim(NOW).await;
    assert_eq!(keys(&sent), ["a", "c"], "b waits behind a");
    assert!(matches!(&sent[0].task, Task::Send { body, .. } if body == b"a"));
    assert_eq!(relay.now(&sent[0].envelope).await.idempotency_key, "a");
}

#[tokio::test]
async fn a_file_from_before_forgets_the_writes_whose_callers_heard_the_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outbox.db");
    let before = sqlite::Schema { migrations: &RELAY_SCHEMA.migrations[..6], ..RELAY_SCHEMA };
    drop(sqlite::Db::open_inline(sqlite::Options::new(&path, before)).unwrap());
    let conn = rusqlite::Connection::open(&path).unwrap();
    for told in [0, 1] {
        conn.execute(
            "INSERT INTO envelope (place, envelope_id, idempotency_key, fingerprint, method, path, route_class, scope,
                 order_key, barrier, status, outcome, ending, told, next_attempt_at, queued_at, created_at, body_bytes)
             VALUES (1, randomblob(16), 'told ' || ?1, zeroblob(32), 'POST', '/', 0, 'task', 'task:1', 0, 0, 1, 4, ?1,
                 ?2, ?2, ?2, 1)",
            (told, NOW.as_micros()),
        )
        .unwrap();
        conn.execute("INSERT INTO envelope_body (local_seq, body) VALUES (?1, x'7b7d')", [told + 1]).unwrap();
    }
    drop(conn);
    let envelopes = Envelopes::open(path, Arc::new(OsEntropy), NOW).unwrap();
    let left = envelopes.list(None, 0, 10).await.unwrap();
    assert_eq!(left.iter().map(|row| row.idempotency_key.as_str()).collect::<Vec<_>>(), ["told 0"]);
    assert_eq!(envelopes.bodies(2).await.unwrap(), None);
}

#[test]
fn a_damaged_file_is_set_aside_by_name_and_a_sound_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outbox.db");
    assert_eq!(Envelopes::set_damaged_aside(&path, NOW).unwrap(), None);
    std::fs::write(&path, b"SQLite format 3\0 and then nothing of the kind").unwrap();
    let aside = Envelopes::set_damaged_aside(&path, NOW).unwrap().unwrap();
    assert!(aside.path.exists() && !path.exists());
    assert!(aside.path.file_name().unwrap().to_str().unwrap().starts_with("outbox.db.damaged-"));
    let fresh = Envelopes::open(&path, Arc::new(OsEntropy), NOW).unwrap();
    drop(fresh);
    assert_eq!(Envelopes::set_damaged_aside(&path, NOW).unwrap(), None);
}

#[test]
fn a_file_that_cannot_be_read_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outbox.db");
    // What is opened like a file, and whose bytes the system refuses to give.
    std::fs::create_dir(&path).unwrap();
    let refused = Envelopes::set_damaged_aside(&path, NOW).unwrap_err();
    assert!(refused.to_string().contains("outbox.db: cannot be read"), "{refused}");
    assert!(path.exists(), "it stays where it is");
}
