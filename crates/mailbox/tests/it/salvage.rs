//! A damaged file: whatever can be read comes over, and nothing that came over is wrong.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mailbox::{Condition, Fact, LossCount, Mailbox, Member, OutboxFilter, Salvaged, condition};
use model::outbox::{Status, Verdict};
use model::{MemberKind, NodeKey, limits};
use sqlite::Db;
use testkit::SeededEntropy;
use testkit::disk::{FaultyDisk, Kind, Trouble, mount};

use crate::desk::{ANN, BOB, Desk, options};

const ROWS: u64 = 40;
const PAGE: usize = 4096;

/// A closed file with rows in every state, mail, members and facts.
async fn filled() -> Desk {
    let mut desk = Desk::open();
    let key = NodeKey::from_bytes([7; 32]);
    desk.mailbox.put_meta(vec![Fact::IssuerKey(key), Fact::Person(ANN)]).await.unwrap();
    let ann = Member { id: ANN, name: "ann".parse().unwrap(), kind: MemberKind::Person };
    desk.mailbox.put_member(ann).await.unwrap();
    for n in 0..ROWS {
        let lane = if n % 2 == 0 { "@even" } else { "@odd" };
        let draft = desk.draft(ANN, &format!("id{n}"), lane, &format!("{n} ").repeat(300));
        desk.mailbox.accept(draft).await.unwrap();
        desk.mailbox.record(vec![desk.mail(n, BOB)], desk.now, desk.broker_now).await.unwrap();
    }
    let claimed = desk.claim().await;
    desk.deliver(&claimed.frames[0]).await;
    desk.crash();
    desk
}

/// What comes over from the file at `damaged`, into a file of its own.
fn salvage(damaged: &Path, now: model::Timestamp) -> (tempfile::TempDir, Mailbox, Salvaged) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open_inline(options(folder.path())).unwrap();
    let mailbox = Mailbox::over(db, Arc::new(SeededEntropy::new(99))).unwrap();
    let salvaged = mailbox.salvage_blocking(damaged, now).unwrap();
    (folder, mailbox, salvaged)
}

async fn rows(mailbox: &Mailbox) -> Vec<mailbox::OutboxRow> {
    let filter = OutboxFilter { limit: limits::PAGE_ROWS_MAX, ..OutboxFilter::default() };
    mailbox.outbox_list(filter).await.unwrap()
}

#[tokio::test]
async fn a_sound_file_comes_over_whole_and_is_another_life_of_the_inbox() {
    let desk = filled().await;
    desk.mailbox.clone().close().await;
    assert_eq!(condition(&desk.path()), Condition::Sound);
    let (_folder, new, salvaged) = salvage(&desk.path(), desk.now);
    let expected = Salvaged { outbox: ROWS, inbox: ROWS, members: 1, ..Salvaged::default() };
    assert_eq!(salvaged, expected);
    assert_ne!(new.inbox_epoch(), desk.mailbox.inbox_epoch());
    assert_eq!(new.meta().await.unwrap().person, Some(ANN));
    new.recover().await.unwrap();
    let counts = new.outbox_counts().await.unwrap();
    assert_eq!((counts.done, counts.pending, counts.inflight), (ROWS / 2, ROWS / 2, 0));
    let claimed = new.claim(desk.request()).await.unwrap();
    let words = String::from_utf8(claimed.frames[0].rows[0].payload.clone()).unwrap();
    assert!(words.starts_with("0 0 ") || words.starts_with("1 1 "), "{words}");
}

/// A disk below `path` that fails on request, and the file as SQLite finds it there.
fn on_failing_disk(path: &Path) -> (Arc<FaultyDisk>, PathBuf) {
    let disk = Arc::new(FaultyDisk::default());
    let vfs = mount(disk.clone());
    (disk, PathBuf::from(format!("file:{}?vfs={vfs}", path.display())))
}

#[tokio::test]
async fn a_read_that_fails_once_is_no_damage_and_costs_no_row_and_one_that_always_fails_is() {
    let desk = filled().await;
    desk.mailbox.clone().close().await;
    let (disk, file) = on_failing_disk(&desk.path());
    let asked = |look: &dyn Fn()| {
        let before = disk.asked(Kind::Read);
        look();
        disk.asked(Kind::Read) - before
    };
    let reads = asked(&|| assert_eq!(condition(&file), Condition::Sound));
    for spare in 0..reads {
        disk.fail_once(Kind::Read, Trouble::Error, spare);
        assert_eq!((condition(&file), disk.hits()), (Condition::Sound, 1), "read {spare} of {reads}");
    }
    disk.fail(Kind::Read, Trouble::Error, "mailbox.db");
    assert!(matches!(condition(&file), Condition::Damaged { .. }));
    disk.heal();
    let whole = Salvaged { outbox: ROWS, inbox: ROWS, members: 1, ..Salvaged::default() };
    let reads = asked(&|| assert_eq!(salvage(&file, desk.now).2, whole));
    for spare in (0..reads).step_by(7) {
        disk.fail_once(Kind::Read, Trouble::Error, spare);
        let salvaged = Salvaged { count: LossCount::Exact, ..salvage(&file, desk.now).2 };
        assert_eq!(salvaged, whole, "read {spare} of {reads}");
    }
}

#[tokio::test]
async fn with_any_one_page_lost_what_comes_over_is_right_and_the_rest_is_counted() {
    let desk = filled().await;
    desk.mailbox.clone().close().await;
    let whole = std::fs::read(desk.path()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("mailbox.db");
    let (mut noticed, mut kept) = (0, 0);
    for page in 0..whole.len() / PAGE {
        let mut bytes = whole.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0xA5);
        std::fs::write(&damaged, &bytes).unwrap();
        noticed += u64::from(condition(&damaged) != Condition::Sound);
        let (_folder, new, salvaged) = salvage(&damaged, desk.now);
        // All are kept or counted, or the file does not even say that it has an outbox.
        let all = salvaged.outbox + salvaged.outbox_lost;
        assert!(all == ROWS || all == 0 && salvaged.count == LossCount::AtLeast, "page {page}: {salvaged:?}");
        new.recover().await.unwrap();
        check(&desk, &new, &salvaged, page).await;
        kept += salvaged.outbox;
    }
    let pages = (whole.len() / PAGE) as u64;
    assert!(noticed > pages / 2, "damage was noticed in {noticed} of {pages} pages");
    assert!(kept > pages * ROWS * 3 / 4, "{kept} rows came over in {pages} tries");
}

async fn check(desk: &Desk, new: &Mailbox, salvaged: &Salvaged, page: usize) {
    let rows = rows(new).await;
    assert_eq!(rows.len() as u64, salvaged.outbox, "page {page}");
    for row in &rows {
        let mut again = desk.draft(ANN, row.client_message_id.as_str(), &row.lane, "other words");
        again.row = desk.row_id();
        let accepted = new.accept(again).await.unwrap();
        assert!(
            matches!(accepted.verdict, Verdict::Conflict(_)),
            "page {page}: {} is free",
            row.client_message_id
        );
        if row.state.status() == Status::Pending {
            let words = new.outbox_payload(row.row).await.unwrap().expect("a pending row has its words");
            let n = row.client_message_id.as_str().strip_prefix("id").unwrap();
            assert_eq!(String::from_utf8(words).unwrap(), format!("{n} ").repeat(300), "page {page}");
        }
    }
    new.claim(desk.request()).await.unwrap();
}

/// Rows that stand in the file and can be read, each by its place.
fn readable(path: &Path) -> u64 {
    let conn = rusqlite::Connection::open(path).unwrap();
    // A table is read although the schema's text of another is lost.
    conn.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true).unwrap();
    let reads = |seq: &u64| {
        let mut row = conn.prepare("SELECT * FROM outbox WHERE seq = ?1")?;
        row.query_row([seq], |row| row.get::<_, bool>("named"))
    };
    (1..=ROWS).filter(|seq| reads(seq).is_ok()).count() as u64
}

/// A file that was repaired once has gaps, and a second damage may take what tells how many places there are.
#[tokio::test]
async fn what_stands_behind_a_gap_comes_over_though_nothing_leads_there() {
    let desk = filled().await;
    desk.mailbox.clone().close().await;
    let conn = rusqlite::Connection::open(desk.path()).unwrap();
    conn.execute_batch(
        "DELETE FROM outbox_payload WHERE seq IN (10, 24, 25); DELETE FROM outbox WHERE seq IN (10, 24, 25);
         DELETE FROM outbox_name; UPDATE outbox_sorted SET upto = 0",
    )
    .unwrap();
    drop(conn);
    let whole = std::fs::read(desk.path()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("mailbox.db");
    let mut with_less = 0;
    for page in 1..whole.len() / PAGE {
        let mut bytes = whole.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0xA5);
        std::fs::write(&damaged, &bytes).unwrap();
        let readable = readable(&damaged);
        let (_folder, new, salvaged) = salvage(&damaged, desk.now);
        assert_eq!(salvaged.outbox, readable, "page {page}: {salvaged:?}");
        new.recover().await.unwrap();
        with_less += u64::from(0 < readable && readable < ROWS - 3);
    }
    assert!(with_less > 1, "rows were lost with {with_less} pages");
}

#[tokio::test]
async fn of_two_rows_with_one_name_the_older_comes_over() {
    let desk = filled().await;
    desk.mailbox.clone().close().await;
    let conn = rusqlite::Connection::open(desk.path()).unwrap();
    conn.execute_batch("UPDATE outbox SET client_message_id = 'id3' WHERE seq IN (20, 30)").unwrap();
    drop(conn);
    let (_folder, new, salvaged) = salvage(&desk.path(), desk.now);
    assert_eq!((salvaged.outbox, salvaged.outbox_lost), (ROWS - 2, 2));
    let named: Vec<u64> = rows(&new)
        .await
        .iter()
        .filter(|row| row.client_message_id.as_str() == "id3")
        .map(|row| row.seq)
        .collect();
    assert_eq!(named, [4]);
}

#[tokio::test]
async fn a_file_that_lost_its_end_gives_what_stands_before() {
    let desk = filled().await;
    desk.mailbox.clone().close().await;
    let whole = std::fs::read(desk.path()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("mailbox.db");
    let pages = whole.len() / PAGE;
    let mut kept = Vec::new();
    for left in (pages / 2..pages).rev() {
        std::fs::write(&damaged, &whole[..left * PAGE]).unwrap();
        assert!(matches!(condition(&damaged), Condition::Damaged { .. }), "{left} pages left");
        let (_folder, new, salvaged) = salvage(&damaged, desk.now);
        new.recover().await.unwrap();
        check(&desk, &new, &salvaged, left).await;
        kept.push(salvaged.outbox);
    }
    assert!(kept[0] > ROWS / 2, "the last page lost: {kept:?}");
    assert!(kept.is_sorted_by(|more, less| more >= less), "the more is lost, the less comes over: {kept:?}");
}

#[tokio::test]
async fn a_file_that_is_no_database_gives_nothing_and_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mailbox.db");
    std::fs::write(&path, "nonsense".repeat(1000)).unwrap();
    assert!(matches!(condition(&path), Condition::Damaged { .. }));
    let desk = Desk::open();
    let (_new_folder, _new, salvaged) = salvage(&path, desk.now);
    assert_eq!(
        salvaged,
        Salvaged { count: LossCount::AtLeast, ..Salvaged::default() },
        "what it held is unknown"
    );
    assert_eq!(std::fs::read(&path).unwrap(), "nonsense".repeat(1000).as_bytes());
    assert!(matches!(condition(&folder.path().join("absent.db")), Condition::Damaged { .. }));
}
