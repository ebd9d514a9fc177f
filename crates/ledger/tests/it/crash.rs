//! A ledger's process aborted around its commits: what was answered is there, what was not is whole or absent,
//! and a retry makes exactly one message either way. On both stores.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use ledger::conformance::town::{self, Home};
use ledger::planted::DEDUPE_OWN_TRANSACTION;
use ledger::{Admission, Ledger, Outcome, PostgresLedger, Role, SqliteLedger};
use model::{Clock, OsEntropy, SystemClock};
use sqlite::fault;
use tempfile::TempDir;
use testkit::ManualClock;
use testkit::postgres::Database;

const FOLDER: &str = "LEDGER_CRASH_FOLDER";
const DATABASE: &str = "LEDGER_CRASH_DATABASE";

/// Where the books lie that a crash leaves behind.
pub(crate) enum Store {
    Sqlite(TempDir),
    Postgres(Database),
}

impl Store {
    pub(crate) fn both() -> [Store; 2] {
        [Store::Sqlite(tempfile::tempdir().unwrap()), Store::Postgres(crate::postgres::database())]
    }

    pub(crate) async fn open(&self) -> Arc<dyn Ledger> {
        match self {
            Store::Sqlite(folder) => open_file(folder.path()),
            Store::Postgres(database) => open_database(&database.url()).await,
        }
    }

    /// The same, `span` later.
    pub(crate) async fn open_after(&self, span: Duration) -> Arc<dyn Ledger> {
        match self {
            Store::Sqlite(folder) => {
                let clock = Arc::new(ManualClock::at(SystemClock::start().now() + span));
                let path = folder.path().join("ledger.db");
                Arc::new(SqliteLedger::open(&path, clock, Arc::new(OsEntropy)).unwrap())
            }
            Store::Postgres(database) => {
                let ledger = PostgresLedger::open(&database.url(), Arc::new(OsEntropy)).await.unwrap();
                ledger.shift_clock(i64::try_from(span.as_micros()).unwrap());
                Arc::new(ledger)
            }
        }
    }

    /// Lives one life of [`crashing_process`] under a plan of faults.
    fn crash(&self, plan: &str) -> Output {
        self.crash_in("crash::crashing_process", plan)
    }

    /// Lives one life of the test called `life` under a plan of faults.
    pub(crate) fn crash_in(&self, life: &str, plan: &str) -> Output {
        let program = std::env::current_exe().expect("a test knows its own program");
        let mut child = Command::new(program);
        child.args(["--exact", life, "--nocapture"]).env(fault::VARIABLE, plan);
        match self {
            Store::Sqlite(folder) => child.env(FOLDER, folder.path()),
            Store::Postgres(database) => child.env(DATABASE, database.url()),
        };
        let output = child.output().expect("the test's own program can be started");
        assert!(!output.status.success(), "the process was to crash at {plan}");
        output
    }
}

fn open_file(folder: &Path) -> Arc<dyn Ledger> {
    let (clock, entropy) = (Arc::new(SystemClock::start()), Arc::new(OsEntropy));
    Arc::new(SqliteLedger::open(&folder.join("ledger.db"), clock, entropy).unwrap())
}

async fn open_database(url: &str) -> Arc<dyn Ledger> {
    Arc::new(PostgresLedger::open(url, Arc::new(OsEntropy)).await.unwrap())
}

/// The books a crashing process was given; none when nobody started it to crash.
pub(crate) async fn given() -> Option<Arc<dyn Ledger>> {
    match (std::env::var(FOLDER), std::env::var(DATABASE)) {
        (Ok(folder), _) => Some(open_file(Path::new(&folder))),
        (_, Ok(url)) => Some(open_database(&url).await),
        (Err(_), Err(_)) => None,
    }
}

/// Not a check of its own: the life of the process that the tests below start and crash.
#[tokio::test]
async fn crashing_process() {
    let Some(ledger) = given().await else { return };
    let setup = ledger::MeshSetup { slug: "home".into(), policies: town::POLICIES };
    ledger.setup(setup).await.unwrap();
    let jane = town::join(&*ledger, "jane", Role::Owner).await;
    for n in 0..3 {
        town::accepted(&*ledger, &jane, town::text("#t", &format!("m{n}"), &n.to_string())).await;
        println!("answered");
    }
}

async fn back(ledger: &dyn Ledger) -> Home {
    let back = town::come_back(ledger, "jane", "1").await;
    Home { link: back.link, person: back.person, key: town::key("jane") }
}

/// Answers before the crash, messages found after it, and messages after every send was repeated.
async fn life_until(store: &Store, plan: &str) -> (usize, usize, usize) {
    let output = store.crash(plan);
    let answered = String::from_utf8_lossy(&output.stdout).matches("answered").count();
    let ledger = store.open().await;
    let jane = back(&*ledger).await;
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
        for store in Store::both() {
            let plan = format!("crash:ledger.accept.before_commit:{visit}");
            assert_eq!(life_until(&store, &plan).await, (visit - 1, visit - 1, 3));
        }
    }
}

#[tokio::test]
async fn a_crash_after_the_commit_leaves_it_whole_and_the_retry_makes_none() {
    for visit in 1..=3 {
        for store in Store::both() {
            let plan = format!("crash:ledger.accept.after_commit:{visit}");
            assert_eq!(life_until(&store, &plan).await, (visit - 1, visit, 3));
        }
    }
}

#[tokio::test]
async fn the_planted_bug_shows_as_a_doubled_message() {
    for store in Store::both() {
        let plan = format!("bug:{DEDUPE_OWN_TRANSACTION},crash:ledger.accept_ids.before_commit:2");
        assert_eq!(life_until(&store, &plan).await, (1, 2, 4));
        let ledger = store.open().await;
        let later = ledger.now().await.unwrap() + Duration::from_secs(1);
        assert_eq!(ledger.orphans(later, 10).await.unwrap().len(), 1, "and the audit finds its id missing");
    }
}

/// The upgrade consumed ticket and invite, then the process died.
#[tokio::test]
async fn ce12_a_crash_around_a_join_locks_nobody_out() {
    for (moment, joined) in [("before_commit", false), ("after_commit", true)] {
        for store in Store::both() {
            store.crash(&format!("crash:ledger.redeem.{moment}"));
            let ledger = store.open().await;
            assert_eq!(ledger.has_owner().await.unwrap(), joined);
            let jane = if joined {
                back(&*ledger).await
            } else {
                let again = town::by_invite("jane", "invite-jane", "another nonce");
                let ticket = again.ticket;
                ledger.exchange(again).await.unwrap();
                let joined = ledger.redeem(ticket, "postrider-link").await.unwrap();
                Home { link: joined.link, person: joined.person, key: town::key("jane") }
            };
            let outcome = town::send(&*ledger, &jane, vec![town::text("#t", "a", "hi")]).await.remove(0);
            assert!(
                matches!(outcome, Outcome::Admitted { admission: Admission::New { .. }, .. }),
                "{outcome:?}"
            );
        }
    }
}
