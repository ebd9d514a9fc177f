//! Names are filed late: whether they wait, are half filed or all in the tree, and whatever crashed in between, none is
//! free again. Builds for proofs file from the third name on.

use mailbox::{Mailbox, NewRow, OutboxFilter, SCHEMA};
use model::limits;
use model::outbox::Verdict;
use rusqlite::Connection;
use sqlite::Schema;

use crate::desk::{ANN, BOB, Desk, options};

/// Keys in the tree, and the row up to which all are there.
fn filed(desk: &Desk) -> (u64, u64) {
    let conn = Connection::open(desk.path()).unwrap();
    let count = conn.query_row("SELECT count(*) FROM outbox_name", [], |row| row.get(0)).unwrap();
    (count, conn.query_row("SELECT upto FROM outbox_filed", [], |row| row.get(0)).unwrap())
}

/// Every name leads to its row, for whoever reads and whoever sends.
async fn check(mailbox: &Mailbox, desk: &Desk, names: &[(NewRow, u64)]) {
    for (new, seq) in names {
        let key = mailbox::OutboxKey::Client {
            sender: new.sender,
            client_message_id: new.client_message_id.clone(),
        };
        let found = mailbox.outbox_row(key).await.unwrap().expect("its row is found");
        assert_eq!((found.seq, found.row), (*seq, new.row));
        let again = NewRow { row: desk.row_id(), ..new.clone() };
        let again = mailbox.accept(again).await.unwrap();
        assert_eq!((again.verdict, again.row), (Verdict::Queued, new.row), "{}", new.client_message_id);
    }
}

#[tokio::test]
async fn a_name_is_found_while_it_waits_and_when_it_is_filed_whatever_crashed_between() {
    let mut desk = Desk::open();
    let mut names = Vec::new();
    for n in 0..60_u64 {
        let draft =
            desk.draft([ANN, BOB][usize::from(n % 3 == 0)], &format!("name-{}", n / 2 * 2), "@x", "words");
        let new = if n % 5 == 4 { NewRow { client_message_id: draft.row.into(), ..draft } } else { draft };
        let stored = desk.mailbox.accept(new.clone()).await.unwrap();
        if stored.verdict == Verdict::Insert {
            names.push((new, names.len() as u64 + 1));
        }
        if n % 7 == 0 {
            desk.crash();
        }
        check(&desk.mailbox, &desk, &names).await;
    }
    let ((keys, upto), rows) = (filed(&desk), names.len() as u64);
    assert!(keys > rows / 2, "{keys} of {rows} names are filed");
    assert!(upto > rows / 2 && upto < rows, "filed up to {upto} of {rows}");
}

/// Readers have connections of their own: what they see of the file and of memory is not of one moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_reads_while_names_are_filed_finds_every_one() {
    const NAMES: u64 = 1_500;
    let (desk, folder) = (Desk::open(), tempfile::tempdir().unwrap());
    let db = sqlite::Db::open(options(folder.path())).unwrap();
    let mailbox = Mailbox::over(db, std::sync::Arc::new(model::OsEntropy)).unwrap();
    let (told, stored) = tokio::sync::watch::channel(0_u64);
    let readers: Vec<_> = (0..3)
        .map(|reader| {
            let (mailbox, mut stored) = (mailbox.clone(), stored.clone());
            tokio::spawn(async move {
                let mut looked = 0;
                while stored.changed().await.is_ok() {
                    let newest = *stored.borrow_and_update();
                    // The newest, and one that is being filed or was.
                    for n in [newest, newest.saturating_sub(1 + (looked + reader) % 12)] {
                        let client_message_id = crate::desk::client_id(&format!("name-{n}"));
                        let key = mailbox::OutboxKey::Client { sender: ANN, client_message_id };
                        assert!(mailbox.outbox_row(key).await.unwrap().is_some(), "name-{n} of {newest}");
                        looked += 1;
                    }
                }
                looked
            })
        })
        .collect();
    for n in 0..NAMES {
        mailbox.accept(desk.draft(ANN, &format!("name-{n}"), "@x", "words")).await.unwrap();
        told.send_replace(n);
    }
    drop(told);
    for reader in readers {
        assert_ne!(reader.await.unwrap(), 0, "it never looked");
    }
    mailbox.close().await;
}

#[tokio::test]
async fn a_key_that_leads_astray_is_passed_over() {
    let mut desk = Desk::open();
    let mut names = Vec::new();
    for n in 0..20 {
        let new = desk.draft(ANN, &format!("name-{n}"), "@x", "words");
        desk.mailbox.accept(new.clone()).await.unwrap();
        names.push((new, n + 1));
    }
    // As if all names shared all keys, and rows had been rolled back under some.
    let conn = Connection::open(desk.path()).unwrap();
    conn.execute_batch(
        "INSERT OR IGNORE INTO outbox_name SELECT name.key, outbox.seq FROM outbox_name AS name, outbox;
         INSERT INTO outbox_name SELECT DISTINCT key, 9999 FROM outbox_name;",
    )
    .unwrap();
    drop(conn);
    desk.crash();
    check(&desk.mailbox, &desk, &names).await;
    let new = desk.draft(ANN, "another", "@x", "words");
    assert_eq!(desk.mailbox.accept(new).await.unwrap().verdict, Verdict::Insert);
}

#[tokio::test]
async fn the_names_of_an_older_file_are_filed_when_it_is_opened() {
    const ROWS: u64 = 2_500;
    let (desk, folder) = (Desk::open(), tempfile::tempdir().unwrap());
    let path = folder.path().join("mailbox.db");
    let before = Schema { migrations: &SCHEMA.migrations[..4], ..SCHEMA };
    drop(sqlite::Db::open_inline(sqlite::Options::new(&path, before)).unwrap());
    let mut conn = Connection::open(&path).unwrap();
    let all = conn.transaction().unwrap();
    for n in 0..ROWS {
        all.execute(
            "INSERT INTO outbox (id, sender_member_id, client_message_id, request_fingerprint, to_asked, lane, enqueued_at)
             VALUES (randomblob(16), ?1, ?2, zeroblob(32), '@x', '@x', 1)",
            rusqlite::params![ANN.as_bytes(), format!("name-{n}")],
        )
        .unwrap();
    }
    all.commit().unwrap();
    drop(conn);
    let db = sqlite::Db::open_inline(options(folder.path())).unwrap();
    let mailbox = Mailbox::over(db, std::sync::Arc::new(model::OsEntropy)).unwrap();
    for n in [0, 1, 999, 1_000, 1_001, ROWS - 1] {
        let taken = mailbox.accept(desk.draft(ANN, &format!("name-{n}"), "@x", "words")).await.unwrap();
        assert!(matches!(taken.verdict, Verdict::Conflict(_)), "name-{n}: {taken:?}");
    }
    let filter = OutboxFilter { limit: limits::PAGE_ROWS_MAX, ..OutboxFilter::default() };
    assert_eq!(mailbox.outbox_list(filter).await.unwrap()[0].seq, ROWS);
}
