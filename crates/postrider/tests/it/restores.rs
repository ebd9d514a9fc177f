//! Older files put back under live peers: what was delivered is there again, and what is gone is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::bin::{Home, Options, Product};
use testkit::wait::wait_for;

use super::{home, up};

/// On a machine whose cores are busy.
const BOUND: Duration = Duration::from_secs(60);

/// The parts of a stopped database: the file and what belongs to it.
fn parts(file: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// A copy of a file of a stopped process, as a person makes one.
struct Copy {
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Copy {
    /// The file alone, without its log.
    fn of(file: PathBuf) -> Self {
        let bytes = fs::read(&file).unwrap();
        Self { file, bytes }
    }

    /// In the place of what is there now.
    fn put_back(&self) {
        for part in parts(&self.file) {
            let _ = fs::remove_file(part);
        }
        fs::write(&self.file, &self.bytes).unwrap();
    }
}

fn bodies(home: &Home, args: &[&str]) -> Vec<String> {
    let rows = home.cli(args).unwrap().done().json();
    rows.iter().map(|row| row["body"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The mail of the second home, in its order; none while it has not heard who its person is.
fn mail(home: &Home) -> Vec<String> {
    let args = ["--json", "--mesh", "far", "inbox", "--limit", "1000"];
    match home.cli(&args).unwrap().code() {
        Some(0) => bodies(home, &args),
        _ => Vec::new(),
    }
}

fn numbered(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("mail {n}")).collect()
}

fn send(broker: &Product<'_>, range: std::ops::Range<u32>) {
    for body in numbered(range) {
        broker.cli(&["send", "tom", &body, "--wait", "delivered"]).unwrap().done();
    }
}

fn join(broker: &Product<'_>, other: &Product<'_>) {
    let invite = broker.cli(&["--quiet", "invite", "lab"]).unwrap().done().stdout;
    let join = ["join", invite.trim(), "--node", "lab", "--person", "tom", "--mesh-as", "far"];
    other.cli(&join).unwrap().done();
}

fn await_mail(home: &Home, expected: &[String]) {
    let mut last = Vec::new();
    let found = wait_for("the mail of before", BOUND, || {
        last = mail(home);
        (last == expected).then_some(())
    });
    assert!(found.is_ok(), "expected {expected:?}, found {last:?}");
}

/// What `status` says that a person should know, of every mesh.
fn notices(home: &Home) -> String {
    let health = home.cli(&["--json", "status"]).unwrap().done().json().remove(0);
    let meshes = health["meshes"].as_array().unwrap();
    meshes.iter().map(|mesh| mesh["notices"].to_string()).collect()
}

#[test]
fn an_older_mailbox_put_back_has_every_delivered_mail_again_and_says_so() {
    let (first, second) = (home(), home());
    let broker = up(&first);
    let other = up(&second);
    join(&broker, &other);
    send(&broker, 0..3);
    other.interrupt().unwrap();
    let copy = Copy::of(second.path().join("daemon/far/mailbox.db"));
    let other = up(&second);
    send(&broker, 3..8);
    other.interrupt().unwrap();
    copy.put_back();
    let other = up(&second);
    await_mail(&second, &numbered(0..8));
    let rows = other.cli(&["--json", "--mesh", "far", "inbox"]).unwrap().done().json();
    let marked: Vec<bool> = rows.iter().map(|row| row["redelivered"] == true).collect();
    assert_eq!(marked, [false, false, false, true, true, true, true, true]);
    let said = wait_for("the finding to be complete", BOUND, || {
        let said = notices(&second);
        (said.contains("5 of 5") && said.contains("sent them again")).then_some(said)
    });
    let said = said.unwrap();
    assert!(said.contains("went back") && said.contains("far"), "{said}");
    let doctor = second.cli(&["--json", "doctor"]).unwrap().json();
    let finding = doctor.iter().find(|row| row["check"] == "inbox_went_back").unwrap();
    assert_eq!(finding["level"], "warn", "{finding}");
    send(&broker, 8..9);
    await_mail(&second, &numbered(0..9));
}

/// What the local door of `product` answers the agent `ci`.
fn ask_as_ci(product: &Product<'_>, path: &str, body: &serde_json::Value) -> (String, serde_json::Value) {
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(&product.ready().socket).unwrap();
    let text = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: postrider\r\npostrider-as: ci\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), serde_json::from_str(body).unwrap_or_default())
}

/// The next turn of `ci`: what it is about, and whether it is marked. It ends at once.
fn next_turn(product: &Product<'_>, mesh: &str) -> (String, bool) {
    let wanted = serde_json::json!({"mesh": mesh, "wait": 30});
    let (status, turn) = ask_as_ci(product, "/v1/turns", &wanted);
    assert!(status.contains(" 201 "), "{status} {turn}");
    let end = format!("/v1/turns/{}/end", turn["turn_id"].as_str().unwrap());
    let (status, ended) =
        ask_as_ci(product, &end, &serde_json::json!({"mesh": mesh, "outcome": "processed"}));
    assert!(status.contains(" 200 "), "{status} {ended}");
    (turn["message"]["body"].as_str().unwrap().to_owned(), turn["redelivered"] == true)
}

/// A folder for a backup, outside of every home.
fn shelf() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("b").display().to_string();
    (folder, place)
}

#[test]
fn what_waited_in_the_backup_of_a_whole_home_is_handed_out_again_marked_and_nothing_else() {
    let (home, (_shelf, place)) = (home(), shelf());
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    product.cli(&["send", "ci", "before", "--wait", "delivered"]).unwrap().done();
    home.cli(&["backup", &place]).unwrap().done();
    assert_eq!(next_turn(&product, "home"), ("before".to_owned(), false));
    product.interrupt().unwrap();
    home.cli(&["restore", &place, "--replace"]).unwrap().done();
    let product = up(&home);
    assert_eq!(next_turn(&product, "home"), ("before".to_owned(), true));
    let said = notices(&home);
    assert!(said.contains("restored at") && said.contains("1 messages waited"), "{said}");
    assert_eq!(finding(&home, "inbox_restored")["level"], "warn");
    product.cli(&["send", "ci", "after", "--wait", "delivered"]).unwrap().done();
    assert_eq!(next_turn(&product, "home"), ("after".to_owned(), false));
}

#[test]
fn a_restored_mailbox_is_marked_once_although_a_kill_leaves_the_mark_beside_it() {
    let (home, (_shelf, place)) = (home(), shelf());
    let product = up(&home);
    product.cli(&["agent", "add", "ci"]).unwrap().done();
    product.cli(&["send", "ci", "before", "--wait", "delivered"]).unwrap().done();
    home.cli(&["backup", &place]).unwrap().done();
    product.interrupt().unwrap();
    home.cli(&["restore", &place, "--replace"]).unwrap().done();
    let options = Options { faults: vec!["crash:mailbox.restored".to_owned()], ..Options::default() };
    let mut killed = Product::spawn(&home, &options).unwrap();
    assert!(!killed.wait_exit(BOUND).unwrap().success());
    let mark = home.path().join("daemon/home/mailbox.db-mark");
    let kept = fs::read(&mark).unwrap();
    let product = up(&home);
    assert!(!mark.exists());
    product.cli(&["send", "ci", "after", "--wait", "delivered"]).unwrap().done();
    product.interrupt().unwrap();
    fs::write(&mark, kept).unwrap();
    let product = up(&home);
    assert_eq!(next_turn(&product, "home"), ("before".to_owned(), true));
    assert_eq!(next_turn(&product, "home"), ("after".to_owned(), false));
}

#[test]
fn what_waited_in_the_backup_of_a_node_is_marked_and_work_that_the_broker_knows_of_is_not_begun_again() {
    let (first, second, (_shelf, place)) = (home(), home(), shelf());
    let broker = up(&first);
    let other = up(&second);
    join(&broker, &other);
    other.cli(&["--mesh", "far", "agent", "add", "ci"]).unwrap().done();
    let send = |body: &str, rung: &str| {
        let id = body.replace(' ', "-");
        broker.cli(&["send", "ci", body, "--id", &id, "--wait", rung]).unwrap().done();
    };
    send("worked on", "delivered");
    send("waits", "delivered");
    second.cli(&["backup", &place]).unwrap().done();
    assert_eq!(next_turn(&other, "far"), ("worked on".to_owned(), false));
    send("worked on", "processed");
    other.interrupt().unwrap();
    second.cli(&["restore", &place, "--replace"]).unwrap().done();
    let other = up(&second);
    // What is sent again comes before what is new.
    send("after", "delivered");
    assert_eq!(next_turn(&other, "far"), ("waits".to_owned(), true));
    assert_eq!(next_turn(&other, "far"), ("after".to_owned(), false));
}

/// A message of a caller that has no node: it hears 201 and keeps nothing.
fn post(url: &str, token: &str, body: &str) {
    use std::io::{BufRead, Write};
    let address = url.strip_prefix("http://").unwrap();
    let text = format!(r##"{{"to":"#log","body":"{body}"}}"##);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!(
        "POST /v1/meshes/home/messages HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: \
         application/json\r\nidempotency-key: {body}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    std::io::BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.contains(" 201 "), "{line}");
}

fn log(home: &Home) -> Vec<String> {
    let mut all = bodies(home, &["--json", "topic", "history", "log", "--all"]);
    all.sort();
    all
}

fn finding(home: &Home, check: &str) -> serde_json::Value {
    let rows = home.cli(&["--json", "doctor"]).unwrap().json();
    rows.iter().find(|row| row["check"] == check).cloned().unwrap_or_default()
}

#[test]
fn an_older_ledger_put_back_gets_what_nodes_sent_again_and_names_the_time_it_lost() {
    let (first, second) = (home(), home());
    // At one address over its lives, so that the other home finds it again.
    let listen = Some(format!("127.0.0.1:{}", testkit::port::free().unwrap()));
    let options = Options { listen, ..Options::default() };
    let up_again = || Product::up(&first, &options).unwrap();
    let broker = up_again();
    let other = up(&second);
    join(&broker, &other);
    let token = broker.cli(&["--quiet", "token", "create", "--as", "cron"]).unwrap().done().stdout;
    let say = |home: &Home, mesh: &str, body: &str| {
        home.cli(&["--mesh", mesh, "send", "#log", body, "--wait", "accepted"]).unwrap().done();
    };
    say(&first, "home", "a jane");
    say(&second, "far", "a tom");
    send(&broker, 0..2);
    broker.interrupt().unwrap();
    let copy = Copy::of(first.path().join("broker/ledger.db"));
    let broker = up_again();
    post(&broker.ready().url, token.trim(), "lost");
    say(&first, "home", "b jane");
    say(&second, "far", "b tom");
    send(&broker, 2..4);
    broker.interrupt().unwrap();
    copy.put_back();
    let _broker = up_again();
    let mut last = Vec::new();
    let whole = wait_for("the log of before", BOUND, || {
        last = log(&first);
        (last == ["a jane", "a tom", "b jane", "b tom"]).then_some(())
    });
    assert!(whole.is_ok(), "{last:?}");
    await_mail(&second, &numbered(0..4));
    for (home, again) in [(&first, "sent 6 messages again"), (&second, "sent 2 messages again")] {
        let said = wait_for("the notice", BOUND, || {
            let said = notices(home);
            said.contains(again).then_some(said)
        });
        assert!(said.is_ok(), "{again}: {}", notices(home));
        let found = finding(home, "ledger_went_back");
        let more = found["more"][0].as_str().unwrap();
        assert!(found["level"] == "warn" && more.contains("lost unless they send it again"), "{found}");
    }
}

#[test]
fn an_older_ledger_that_no_node_knows_more_of_is_noticed_by_the_mark_beside_it() {
    let home = home();
    let product = up(&home);
    let token = product.cli(&["--quiet", "token", "create", "--as", "cron"]).unwrap().done().stdout;
    post(&product.ready().url, token.trim(), "kept");
    product.interrupt().unwrap();
    let copy = Copy::of(home.path().join("broker/ledger.db"));
    let product = up(&home);
    post(&product.ready().url, token.trim(), "lost");
    product.interrupt().unwrap();
    copy.put_back();
    let product = up(&home);
    let said = wait_for("the notice", BOUND, || {
        let said = notices(&home);
        said.contains("ledger_went_back").then_some(said)
    });
    assert!(said.unwrap().contains("the mark beside the file"));
    assert_eq!(log(&home), ["kept"]);
    post(&product.ready().url, token.trim(), "lost");
    assert_eq!(log(&home), ["kept", "lost"]);
}

#[test]
fn a_mailbox_copied_without_its_log_and_put_back_has_every_delivered_mail_again() {
    let (first, second) = (home(), home());
    let broker = up(&first);
    let other = up(&second);
    join(&broker, &other);
    send(&broker, 0..3);
    // While it runs: what stands in the log alone is not in the copy.
    let copy = Copy::of(second.path().join("daemon/far/mailbox.db"));
    send(&broker, 3..6);
    other.kill9();
    copy.put_back();
    if let Ok(other) = Product::up(&second, &Options::default()) {
        let health = other.cli(&["--json", "status"]).unwrap().done().json().remove(0);
        let far = health["meshes"].as_array().unwrap().iter().find(|mesh| mesh["mesh"] == "far").cloned();
        if far.unwrap()["link"] != "shut" {
            await_mail(&second, &numbered(0..6));
            return;
        }
        other.interrupt().unwrap();
    }
    // A file without its log may contradict itself: then it says so, and is repaired.
    second.cli(&["daemon", "recover"]).unwrap().done();
    let _other = up(&second);
    await_mail(&second, &numbered(0..6));
}

#[test]
fn an_older_outbox_of_a_relay_put_back_is_noticed_by_the_mark_beside_it() {
    let home = home();
    let nobody = format!("http://127.0.0.1:{}", testkit::port::free().unwrap());
    let args = ["relay", "serve", "--json", "--listen", "127.0.0.1:0", "--upstream", &nobody];
    let run = || {
        let process = home.spawn(&args, &[]).unwrap();
        let ready = |line: &str| line.contains("ready");
        process.line(testkit::process::Channel::Stdout, "its ready line", BOUND, ready).unwrap();
        process
    };
    let stop = |mut process: testkit::process::Process| {
        process.interrupt();
        process.wait_exit(BOUND).unwrap();
    };
    stop(run());
    let copy = Copy::of(home.path().join("relay/outbox.db"));
    let process = run();
    let status = home.cli(&["--json", "relay", "outbox", "status"]).unwrap().done().json().remove(0);
    assert_eq!(status["went_back"], serde_json::Value::Null, "{status}");
    stop(process);
    copy.put_back();
    let process = run();
    let status = home.cli(&["--json", "relay", "outbox", "status"]).unwrap().done().json().remove(0);
    assert!(status["went_back"].as_str().unwrap().contains("went back to an older copy"), "{status}");
    let doctor = home.cli(&["relay", "doctor"]).unwrap();
    assert!(doctor.stdout.contains("went back to an older copy"), "{doctor:?}");
    stop(process);
    let again = run();
    let status = home.cli(&["--json", "relay", "outbox", "status"]).unwrap().done().json().remove(0);
    assert!(status["went_back"].is_string(), "a start later it is still said: {status}");
    stop(again);
}
