//! A home on a disk that fills up: sends are refused by name, no id is used, nothing acknowledged is lost.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::process::Channel;
use testkit::wait_for;

use super::home;

const BOUND: Duration = Duration::from_secs(60);
/// Twice what the disk must keep free, and some.
const DISK_MIB: u32 = 160;

/// Status and body of one call.
fn call(socket: &Path, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

fn send(socket: &Path, id: &str) -> (u16, Value) {
    let message = json!({"to": "@me", "body": "x".repeat(60_000), "client_message_id": id});
    call(socket, "POST", "/v1/send", &message.to_string())
}

/// Takes what is left of the disk.
fn fill(ballast: &Path) {
    let mut file = File::create(ballast).unwrap();
    let block = vec![7; 1 << 20];
    while file.write_all(&block).is_ok() {}
    while file.write_all(&block[..512]).is_ok() {}
}

#[test]
fn a_send_to_a_full_disk_is_refused_with_507_and_its_id_stays_free() {
    let allowed = Command::new("unshare").args(["-r", "-m", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("not run: this system gives no namespaces to this account");
        return;
    }
    let home = home();
    let process = home.spawn_on_a_small_disk(DISK_MIB, &["up", "--json", "--listen", "127.0.0.1:0"]).unwrap();
    let ready =
        process.line(Channel::Stdout, "its ready line", BOUND, |line| line.contains("ready")).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let seen = |path: &Path| -> PathBuf {
        Path::new("/proc").join(process.id().to_string()).join("root").join(path.strip_prefix("/").unwrap())
    };
    let socket = seen(Path::new(ready["socket"].as_str().unwrap()));
    assert_eq!(send(&socket, "before").0, 202);
    let ballast = seen(&home.path().join("ballast"));
    fill(&ballast);
    // What the log already holds room for is still taken, and is then durable.
    let mut taken = vec!["before".to_owned()];
    let refused = loop {
        let id = format!("during-{}", taken.len());
        let (status, body) = send(&socket, &id);
        match status {
            202 => taken.push(id),
            507 => break (id, body),
            _ => panic!("{status} {body}"),
        }
        assert!(taken.len() < 1_000, "a full disk takes no end of rows");
    };
    assert_eq!(refused.1["error"], "insufficient_storage", "{}", refused.1);
    assert_eq!(call(&socket, "GET", &format!("/v1/messages/{}", refused.0), "").0, 404, "the id is not used");
    assert_eq!(call(&socket, "GET", "/v1/outbox", "").0, 200, "reads go on");
    std::fs::remove_file(&ballast).unwrap();
    wait_for("the disk's room to be noticed", BOUND, || (send(&socket, &refused.0).0 == 202).then_some(()))
        .unwrap();
    for id in taken.iter().chain([&refused.0]) {
        assert_eq!(call(&socket, "GET", &format!("/v1/messages/{id}"), "").0, 200, "{id} is there");
    }
}
