//! A caller that closes its connection after its message was taken and before it is answered: those who wait for the
//! message are told of its commit all the same.
//!
//! Another holder of the ledger's write lock keeps the commit waiting, so that the caller can leave in between.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ledger::SqliteLedger;
use model::{MemberName, OsEntropy, SystemClock};
use serde_json::json;
use sqlite::rusqlite::Connection;
use testkit::stopwatch::Stopwatch;
use wire::ask::{Question, Scope, Token};

use crate::scene::{Props, Scene};

/// The longest a delivery may take once it is stored, although its caller has left.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// The first time a request is given to reach the store; doubled until it does.
const REACH_MIN: Duration = Duration::from_millis(20);
/// Longer than any machine needs, shorter than the engine waits for a lock.
const REACH_MAX: Duration = Duration::from_secs(2);
/// A request that reached the store is stored this long after the lock is free, or never will be.
const STORED_MAX: Duration = Duration::from_secs(2);
/// A wake that comes at all comes at once.
const WOKEN_MAX: Duration = Duration::from_secs(10);

/// Posts a message as `id` and hangs up while its commit waits. False: it was dropped before it reached the store.
async fn post_and_hang_up(scene: &Scene, file: &Path, token: &str, id: &str, reach: Duration) -> bool {
    let holder = Connection::open(file).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = json!({"to": "@jane", "body": "x", "client_message_id": id}).to_string();
    let request = format!(
        "POST /v1/meshes/home/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        scene.address(),
        body.len()
    );
    let mut caller = TcpStream::connect(scene.address()).unwrap();
    caller.write_all(request.as_bytes()).unwrap();
    tokio::time::sleep(reach).await;
    drop(caller);
    // The broker sees the end of the connection before it sees the end of the lock.
    tokio::time::sleep(reach).await;
    holder.execute_batch("COMMIT").unwrap();
    let cron: MemberName = "cron".parse().unwrap();
    let sender = scene.ledger.member_named(&cron).await.unwrap().unwrap().id;
    let stored = async {
        while scene.ledger.known(sender, &id.parse().unwrap()).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(STORED_MAX, stored).await.is_ok()
}

#[tokio::test]
async fn a_message_whose_caller_hangs_up_before_the_commit_wakes_those_who_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.db");
    let ledger = SqliteLedger::open(&file, Arc::new(SystemClock::start()), Arc::new(OsEntropy)).unwrap();
    let scene = Scene::over(Arc::new(ledger), Props::default()).await.unwrap();
    let mut owner = scene.owner("jane").await.link().await;
    let asked = Question::TokenCreate { member: "cron".parse().unwrap(), scopes: vec![Scope::Send] };
    let token: Token = owner.ask(asked).await.unwrap();
    let (mut reach, mut n) = (REACH_MIN, 0);
    let woken = loop {
        let mut stirred = scene.ledger.stirred();
        if post_and_hang_up(&scene, &file, &token.token, &format!("gone-{n}"), reach).await {
            break tokio::time::timeout(WOKEN_MAX, stirred.changed()).await;
        }
        assert!(reach < REACH_MAX, "no request reached the store within {reach:?}");
        (reach, n) = (reach * 2, n + 1);
    };
    assert!(
        woken.is_ok(),
        "the commit of a message woke no link within {WOKEN_MAX:?} after its caller hung up"
    );
    let began = Stopwatch::start();
    assert_eq!(owner.mail().await[0].message.sender.as_str(), "cron");
    assert!(began.elapsed() < DELAY_MAX, "the delivery took {:?}", began.elapsed());
}
