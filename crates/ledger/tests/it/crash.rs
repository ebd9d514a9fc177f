//! A ledger's process aborted around its commits: what was answered is there, what was not is whole or absent,
//! and a retry makes exactly one message either way.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use ledger::conformance::town::{self, Home};
use ledger::{Admission, DEDUPE_OWN_TRANSACTION, Ledger, Outcome, Role, SqliteLedger};
use model::{OsEntropy, SystemClock};
use sqlite::fault;

const FOLDER: &str = "LEDGER_CRASH_FOLDER";

fn open(folder: &Path) -> Arc<SqliteLedger> {
    let (clock, entropy) = (Arc::new(SystemClock::start()), Arc::new(OsEntropy));
    Arc::new(SqliteLedger::open(&folder.join("ledger.db"), clock, entropy).unwrap())
}

async fn jane(ledger: &dyn Ledger) -> Home {
    let setup = ledger::MeshSetup { slug: "home".into(), policies: town::POLICIES };
    ledger.setup(setup).await.unwrap();
    town::join(ledger, "jane", Role::Owner).await
}

/// Not a check of its own: the life of the process that the tests below start and crash.
#[tokio::test]
async fn crashing_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let ledger = open(Path::new(&folder));
    let jane = jane(&*ledger).await;
    for n in 0..3 {
        town::accepted(&*ledger, &jane, town::text("#t", &format!("m{n}"), &n.to_string())).await;
        println!("answered");
    }
}

fn crash(folder: &Path, plan: &str) -> Output {
    let program = std::env::current_exe().expect("a test knows its own program");
    let mut child = Command::new(program);
    child.args(["--exact", "crash::crashing_process", "--nocapture"]);
    child.env(FOLDER, folder).env(fault::VARIABLE, plan);
    child.output().expect("the test's own program can be started")
}

/// Answers before the crash, messages found after it, and messages after every send was repeated.
async fn life_until(plan: &str) -> (usize, usize, usize) {
    let folder = tempfile::tempdir().unwrap();
    let output = crash(folder.path(), plan);
    assert!(!output.status.success(), "the process was to crash at {plan}");
    let answered = String::from_utf8_lossy(&output.stdout).matches("answered").count();
    let ledger = open(folder.path());
    let back = town::come_back(&*ledger, "jane", "1").await;
    let jane = Home { link: back.link, person: back.person, key: town::key("jane") };
    let log = ledger::Log::Topic(town::topic("t"));
    let count = async || {
        let page = ledger.history(&log, jane.id(), ledger::HistoryPage::Newest, 100).await.unwrap();
        page.map_or(0, |page| page.rows.len())
    };
    let found = count().await;
    for n in 0..3 {
        town::send(&*ledger, &jane, vec![town::text("#t", &format!("m{n}"), &n.to_string())]).await;
    }
    (answered, found, count().await)
}

#[tokio::test]
async fn a_crash_before_the_commit_leaves_nothing_and_the_retry_makes_one() {
    for visit in 1..=3 {
        let plan = format!("crash:ledger.accept.before_commit:{visit}");
        assert_eq!(life_until(&plan).await, (visit - 1, visit - 1, 3));
    }
}

#[tokio::test]
async fn a_crash_after_the_commit_leaves_it_whole_and_the_retry_makes_none() {
    for visit in 1..=3 {
        let plan = format!("crash:ledger.accept.after_commit:{visit}");
        assert_eq!(life_until(&plan).await, (visit - 1, visit, 3));
    }
}

#[tokio::test]
async fn the_planted_bug_shows_as_a_doubled_message() {
    let plan = format!("bug:{DEDUPE_OWN_TRANSACTION},crash:ledger.accept_ids.before_commit:2");
    assert_eq!(life_until(&plan).await, (1, 2, 4));
}

/// The upgrade consumed ticket and invite, then the process died.
#[tokio::test]
async fn ce12_a_crash_around_a_join_locks_nobody_out() {
    for (moment, joined) in [("before_commit", false), ("after_commit", true)] {
        let folder = tempfile::tempdir().unwrap();
        let output = crash(folder.path(), &format!("crash:ledger.redeem.{moment}"));
        assert!(!output.status.success(), "the process was to crash at {moment}");
        let ledger = open(folder.path());
        assert_eq!(ledger.has_owner().await.unwrap(), joined);
        let jane = if joined {
            let back = town::come_back(&*ledger, "jane", "1").await;
            Home { link: back.link, person: back.person, key: town::key("jane") }
        } else {
            let again = town::by_invite("jane", "invite-jane", "another nonce");
            let ticket = again.ticket;
            ledger.exchange(again).await.unwrap();
            let joined = ledger.redeem(ticket, "postrider-link").await.unwrap();
            Home { link: joined.link, person: joined.person, key: town::key("jane") }
        };
        let outcome = town::send(&*ledger, &jane, vec![town::text("#t", "a", "hi")]).await.remove(0);
        assert!(matches!(outcome, Outcome::Admitted { admission: Admission::New, .. }), "{outcome:?}");
    }
}
