//! The way to the server cut at the worst moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ledger::conformance::town::{self, Home};
use ledger::{Admission, Ledger, MeshSetup, Outcome, PostgresLedger, Role};
use model::{ErrorCode, OsEntropy};
use testkit::postgres::{Database, Private};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{client, database, open};

/// On which side of the commit the connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The server never hears of it.
    Before,
    /// The server did it; nobody hears the answer.
    After,
}

/// A way to the server that is cut once, at the next commit after it was armed.
struct Proxy {
    url: String,
    armed: Arc<AtomicBool>,
}

impl Proxy {
    async fn start(database: &Database, cut: Cut) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (address, name) = parts(&database.url());
        let armed = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&armed);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(&address).await.unwrap();
                tokio::spawn(carry(near, far, cut, Arc::clone(&switch)));
            }
        });
        Self { url: format!("postgres://postgres@127.0.0.1:{port}/{name}"), armed }
    }
}

/// Host with port, and database, of a URL.
fn parts(url: &str) -> (String, String) {
    let (_, rest) = url.split_once('@').expect("the test server's URL names its user");
    let (address, name) = rest.split_once('/').expect("the test server's URL names its database");
    (address.to_owned(), name.to_owned())
}

async fn carry(mut near: TcpStream, mut far: TcpStream, cut: Cut, armed: Arc<AtomicBool>) {
    let (mut up, mut down) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = near.read(&mut up) => {
                let Ok(bytes @ 1..) = read else { return };
                let commits = up[..bytes].windows(7).any(|word| word == b"COMMIT\0");
                if commits && armed.swap(false, Ordering::SeqCst) {
                    if cut == Cut::After {
                        far.write_all(&up[..bytes]).await.unwrap();
                        // The server answers once it is done; the answer goes nowhere.
                        while !ready(&mut far, &mut down).await {}
                    }
                    return;
                }
                if far.write_all(&up[..bytes]).await.is_err() { return }
            }
            read = far.read(&mut down) => {
                let Ok(bytes @ 1..) = read else { return };
                if near.write_all(&down[..bytes]).await.is_err() { return }
            }
        }
    }
}

/// Whether the answer to the commit is complete: its tag has come.
async fn ready(far: &mut TcpStream, buffer: &mut [u8]) -> bool {
    let bytes = far.read(buffer).await.unwrap();
    bytes == 0 || buffer[..bytes].windows(7).any(|word| word == b"COMMIT\0")
}

async fn jane(ledger: &dyn Ledger) -> Home {
    ledger.setup(MeshSetup { slug: "home".into(), policies: town::POLICIES }).await.unwrap();
    town::join(ledger, "jane", Role::Owner).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_looked_up_before_anybody_is_told() {
    for cut in [Cut::Before, Cut::After] {
        let database = database();
        let proxy = Proxy::start(&database, cut).await;
        let ledger = PostgresLedger::open(&proxy.url, Arc::new(OsEntropy)).await.unwrap();
        let jane = jane(&ledger).await;
        town::accepted(&ledger, &jane, town::text("#t", "warm", "up")).await;
        proxy.armed.store(true, Ordering::SeqCst);
        let receipt = town::accepted(&ledger, &jane, town::text("#t", "a", "hi")).await;
        assert!(!proxy.armed.load(Ordering::SeqCst), "the connection was cut {cut:?} the commit");
        let history = town::newest(&ledger, "t", jane.id()).await;
        assert_eq!(town::bodies(&history), ["up", "hi"], "cut {cut:?} the commit");
        assert_eq!(history.rows[1].id, receipt.broker_message_id);
        let again = town::send(&ledger, &jane, vec![town::text("#t", "a", "hi")]).await.remove(0);
        let admission = Admission::Duplicate { history_available: true };
        assert_eq!(again, Outcome::Admitted { receipt, admission });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_ended_under_load_lose_and_double_nothing() {
    const SENDERS: usize = 8;
    const EACH: usize = 25;
    let database = database();
    let ledger = open(&database).await;
    let jane = jane(&*ledger).await;
    let admin = client(&database).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&done);
    let killer = tokio::spawn(async move {
        let mut rounds = 0;
        while !stop.load(Ordering::SeqCst) && rounds < 40 {
            admin.query(end, &[]).await.unwrap();
            rounds += 1;
            tokio::task::yield_now().await;
        }
        rounds
    });
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (ledger, jane) = (Arc::clone(&ledger), jane.clone());
        senders.spawn(async move {
            for n in 0..EACH {
                let id = format!("{sender}-{n}");
                accept_at_last(&*ledger, &jane, &id).await;
            }
        });
    }
    senders.join_all().await;
    done.store(true, Ordering::SeqCst);
    assert!(killer.await.unwrap() > 0);
    let history = town::newest(&*ledger, "t", jane.id()).await;
    let mut ids: Vec<_> = history.rows.iter().map(|row| row.client_message_id.to_string()).collect();
    assert_eq!(ids.len(), SENDERS * EACH);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), SENDERS * EACH, "each once");
    let later = ledger.now().await.unwrap() + Duration::from_secs(1);
    assert_eq!(ledger.orphans(later, 10).await.unwrap(), []);
}

/// As a node does: the same message again until it is accepted.
async fn accept_at_last(ledger: &dyn Ledger, from: &Home, id: &str) {
    loop {
        let lane = ledger::LaneSubmission {
            via: from.via(),
            sender: from.id(),
            messages: vec![town::text("#t", id, id)],
        };
        match ledger.accept(lane).await {
            Ok(outcomes) => {
                assert!(matches!(outcomes[0], Outcome::Admitted { .. }), "{outcomes:?}");
                return;
            }
            Err(error) => assert_eq!(error.code().class(), model::Class::Transient, "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_and_comes_back_has_what_was_answered() {
    let mut server = Private::start().unwrap();
    let ledger = PostgresLedger::open(&server.url(), Arc::new(OsEntropy)).await.unwrap();
    let jane = jane(&ledger).await;
    let receipt = town::accepted(&ledger, &jane, town::text("#t", "a", "hi")).await;
    server.stop_immediately().unwrap();
    let away = ledger.known(jane.id(), &"a".parse().unwrap()).await.unwrap_err();
    assert_eq!(away.code(), ErrorCode::Unavailable);
    server.restart().unwrap();
    accept_at_last(&ledger, &jane, "b").await;
    let history = town::newest(&ledger, "t", jane.id()).await;
    assert_eq!(town::bodies(&history), ["hi", "b"]);
    assert_eq!(history.rows[0].id, receipt.broker_message_id);
}
