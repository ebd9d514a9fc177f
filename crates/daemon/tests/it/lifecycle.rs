//! Starting, stopping, starting again.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use daemon::StartError;
use serde_json::json;
use sqlite::{FileMark, MarkedBy};

use crate::broker::{Broker, Reply};
use crate::home::Home;

#[tokio::test]
async fn a_daemon_that_joined_starts_and_queues_without_any_network_and_drains_in_order_later() {
    let (broker, mut home) = Home::linked().await;
    home.stop().await;
    broker.hang_up();
    home.start().await;
    for n in 0..20 {
        let said = home.unix().send(&format!("m{n}"), "@ci", &n.to_string()).await;
        assert_eq!((said.status, &said.body["status"]), (202, &json!("queued")));
    }
    assert_eq!(home.until_link("away").await["outbox"]["pending"], 20);
    home.stop().await;
    home.start().await;
    broker.listen().await;
    let expected: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(broker.until_accepted(20).await, expected);
}

#[tokio::test]
async fn a_home_that_never_joined_says_so_and_stores_nothing() {
    let broker = Broker::deaf();
    broker.reserve_address().await;
    let home = Home::of(&broker).await;
    let said = home.unix().send("a", "@ci", "x").await;
    assert_eq!((said.status, &said.body["error"]), (503, &json!("unavailable")));
    broker.listen().await;
    home.until_live().await;
    assert_eq!(home.unix().send("a", "@ci", "x").await.status, 202);
}

#[tokio::test]
async fn a_second_start_comes_back_by_key_and_uses_no_invite() {
    let (broker, mut home) = Home::linked().await;
    let person = home.until_link("live").await["person"].clone();
    home.stop().await;
    home.start().await;
    assert_eq!(home.until_link("live").await["person"], person);
    let books = broker.books();
    assert_eq!(books.nodes.len(), 1);
    assert_eq!((books.exchanges, books.upgrades), (2, 2));
    assert_eq!(books.negotiations[1].members.len(), 1, "it names who is at home here");
    assert_eq!(books.negotiations[0].inbox_epoch, books.negotiations[1].inbox_epoch);
}

#[tokio::test]
async fn a_restored_mailbox_tells_the_broker_which_inbox_it_is_a_backup_of() {
    let (broker, mut home) = Home::linked().await;
    home.stop().await;
    let mark = FileMark { place: 0, at_us: 9, by: MarkedBy::Restore { backup_at_us: 7 } };
    mark.write(&home.mailbox_path()).unwrap();
    for _ in 0..2 {
        home.start().await;
        home.until_link("live").await;
        home.stop().await;
    }
    let books = broker.books();
    let told: Vec<_> = books
        .negotiations
        .iter()
        .map(|asked| (&asked.inbox_epoch, asked.inbox_epoch_before.as_ref()))
        .collect();
    let first = told[0].0;
    assert!(told[0].1.is_none() && told[1].0 != first && told[1].1 == Some(first), "{told:?}");
    assert_eq!(told[1], told[2], "it is another life once");
}

/// Every file under `folder` with its content.
fn files_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_of(&path));
        } else if path.is_file() {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_second_daemon_on_the_same_home_refuses_by_lock_and_changes_nothing() {
    let (broker, home) = Home::linked().await;
    broker.hang_up();
    home.until_link("away").await;
    let before = files_of(home.path());
    match home.try_start().await {
        Err(StartError::AlreadyRunning { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("two daemons share one home"),
    }
    assert_eq!(files_of(home.path()), before);
    assert_eq!(home.unix().send("a", "@ci", "x").await.status, 202, "the first one lives on");
}

#[tokio::test]
async fn a_pid_file_or_a_socket_left_behind_stops_nobody() {
    let (_broker, mut home) = Home::linked().await;
    let socket = home.daemon().socket().to_owned();
    home.stop().await;
    assert!(!socket.exists());
    std::fs::write(home.files().pid(), "1").unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    home.start().await;
    assert_eq!(home.unix().get("/v1/health").await.status, 200);
}

#[tokio::test]
async fn secrets_are_for_this_account_alone() {
    let (_broker, home) = Home::linked().await;
    let files = home.files();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (path, expected) in [
        (files.daemon(), 0o700),
        (files.mesh("home"), 0o700),
        (files.local_token(), 0o600),
        (files.keypair("home"), 0o600),
        (files.mailbox("home"), 0o600),
        (files.config(), 0o600),
        (home.daemon().socket().to_owned(), 0o600),
        (files.http_port(), 0o644),
    ] {
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
}

#[tokio::test]
async fn a_stop_lets_the_answer_on_its_way_arrive_and_keeps_what_is_queued() {
    let (broker, mut home) = Home::linked().await;
    broker.script(|fields| if fields.body == "held" { Reply::Silence } else { Reply::Accept });
    home.unix().send("one", "@ci", "words").await;
    home.until_rung("one", "accepted").await;
    let asked = home.unix().post("/v1/shutdown", &json!({})).await;
    assert_eq!((asked.status, &asked.body["stopping"]), (202, &json!(true)));
    home.stopped().await;
    let mailbox = home.mailbox();
    assert_eq!(mailbox.outbox_counts().await.unwrap().done, 1);
    mailbox.close().await;
}

#[tokio::test]
async fn a_damaged_mailbox_shuts_its_own_mesh_loudly_and_no_other() {
    let (_broker, mut home) = Home::linked().await;
    let other = Broker::start().await;
    other.books().mesh.slug = "lab".to_owned();
    let joined = home.unix().post("/v1/meshes", &json!({"invite": other.invite().to_text().reveal()})).await;
    assert_eq!((joined.status, &joined.body["mesh"]), (201, &json!("lab")), "{joined:?}");
    home.stop().await;
    std::fs::write(home.mailbox_path(), "this is no database, and it is long enough to be looked at as one")
        .unwrap();
    home.start().await;
    let health = home.unix().get("/v1/health").await.body;
    assert_eq!(health["meshes"][0]["link"], "shut");
    assert!(health["problems"][0].as_str().unwrap().contains("mailbox.db"), "{health}");
    let said = home.unix().send("a", "@ci", "x").await;
    assert_eq!((said.status, &said.body["error"]), (503, &json!("storage_stopped")));
    let there = home.unix().post("/v1/send", &json!({"to": "@ci", "body": "x", "mesh": "lab"})).await;
    assert_eq!(there.status, 202, "{there:?}");
    other.until_accepted(1).await;
}
