//! A caller that closes its connection after its request was taken and before it is answered: what it asked for is
//! stored all the same, and is delivered without delay.
//!
//! Another holder of the file's write lock keeps the commit waiting, so that the caller can leave in between.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use sqlite::rusqlite::Connection;
use testkit::stopwatch::Stopwatch;

use crate::broker::Broker;
use crate::home::{Home, look_again};

/// The longest a delivery may take once it is stored, although its caller has left.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// The first time a request is given to reach the store; doubled until it does.
const REACH_MIN: Duration = Duration::from_millis(20);
/// Longer than any machine needs, shorter than the engine waits for a lock.
const REACH_MAX: Duration = Duration::from_secs(2);

/// A request that reached the store is stored this long after the lock is free, or never will be.
const STORED_MAX: Duration = Duration::from_secs(2);

/// A request whose connection is open and whose answer nobody has read.
fn send(socket: &Path, path: &str, id: &str) -> UnixStream {
    let body = json!({"to": "@ci", "body": "x", "client_message_id": id}).to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Sends as `id` and hangs up while the commit waits. False: the request was dropped before it reached the store.
async fn send_and_hang_up(home: &Home, id: &str, reach: Duration) -> bool {
    let file = Connection::open(home.mailbox_path()).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let caller = send(home.daemon().socket(), "/v1/send", id);
    tokio::time::sleep(reach).await;
    drop(caller);
    // The daemon sees the end of the connection before it sees the end of the lock.
    tokio::time::sleep(reach).await;
    file.execute_batch("COMMIT").unwrap();
    // Only looked at: another send would wake the courier for this one.
    let stored = async {
        while home.unix().get(&format!("/v1/messages/{id}")).await.status != 200 {
            look_again().await;
        }
    };
    tokio::time::timeout(STORED_MAX, stored).await.is_ok()
}

#[tokio::test]
async fn a_send_whose_caller_hangs_up_before_the_commit_is_delivered_without_delay() {
    let (broker, home) = Home::linked().await;
    let mut reach = REACH_MIN;
    let mut id = 0;
    while !send_and_hang_up(&home, &format!("gone-{id}"), reach).await {
        assert!(reach < REACH_MAX, "no request reached the store within {reach:?}");
        (reach, id) = (reach * 2, id + 1);
    }
    until_delivered_at_once(&broker, &format!("gone-{id}")).await;
}

async fn until_delivered_at_once(broker: &Broker, id: &str) {
    let began = Stopwatch::start();
    broker
        .until("the message", |books| {
            let here = books.accepted.iter().any(|row| row.fields.client_message_id.as_str() == id);
            here.then_some(())
        })
        .await;
    let took = began.elapsed();
    assert!(took < DELAY_MAX, "the delivery took {took:?} after its caller hung up");
}
