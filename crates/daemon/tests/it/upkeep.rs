//! What looks after a home: its machine, its old bodies, its settings, a damaged file.

use std::sync::Arc;
use std::time::Duration;

use daemon::{Recovered, StartError, accept_host, recover, remint};
use model::{Clock, DeliveryRung, OsEntropy, SystemClock, limits};
use serde_json::json;
use testkit::ManualClock;
use wire::link::{Rows, ToNode};

use crate::broker::Broker;
use crate::home::{Home, look_again};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn a_home_that_wakes_up_on_another_machine_asks_a_person_first() {
    let (broker, mut home) = Home::linked().await;
    home.stop().await;
    home.surroundings.machine_id = Some("linux:two".to_owned());
    match home.try_start().await {
        Err(error @ StartError::OtherMachine { .. }) => {
            let words = error.to_string();
            assert!(words.contains("accept-host") && words.contains("remint"), "{words}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a copied home starts"),
    }
    accept_host(home.path(), Some("linux:two"), &SystemClock::start()).unwrap();
    home.start().await;
    home.until_live().await;
    assert_eq!(broker.books().nodes.len(), 1, "the same node came back");
    let running = accept_host(home.path(), Some("linux:two"), &SystemClock::start());
    assert!(running.is_err(), "not while the daemon runs");
}

#[tokio::test]
async fn a_reminted_home_is_another_node_and_its_old_files_are_set_aside() {
    let (broker, mut home) = Home::linked().await;
    home.unix().send("old", "@ci", "x").await;
    home.until_rung("old", "accepted").await;
    home.stop().await;
    home.surroundings.machine_id = Some("linux:two".to_owned());
    let aside = remint(home.path(), Some("linux:two"), &SystemClock::start(), &OsEntropy).unwrap();
    assert_eq!(aside.len(), 1);
    assert!(aside[0].join("mailbox.db").exists(), "nothing was deleted");
    home.start().await;
    let mesh = home.until_link("live").await;
    assert_ne!(mesh["node"], "mbp");
    assert_eq!(mesh["outbox"]["done"], 0);
    let books = broker.books();
    let keys: std::collections::HashSet<_> = books.nodes.values().collect();
    assert_eq!(keys.len(), 2, "a new key");
}

#[tokio::test]
async fn old_bodies_go_and_their_ids_stay() {
    let broker = Broker::start().await;
    let clock = Arc::new(ManualClock::at(SystemClock::start().now()));
    let mut home = Home::with_clock(&broker, clock.clone()).await;
    home.until_live().await;
    home.unix().send("old", "@ci", "words").await;
    home.until_rung("old", "accepted").await;
    broker.push(ToNode::Mail(Rows { rows: vec![broker.mail("m1", "hello")] })).await;
    broker.until("an ack", |books| (!books.acks.is_empty()).then_some(())).await;
    home.stop().await;
    clock.advance(31 * DAY);
    home.start().await;
    home.until_life("old", |life| life["status"] == "done").await;
    let row = home.unix().get("/v1/messages/old").await.body["id"].as_str().unwrap().to_owned();
    let kept = home.unix().get(&format!("/v1/outbox/{row}")).await.body["message"].clone();
    assert_ne!(kept, json!(null), "a clock that stands a month ahead at a start may be wrong");
    // A day of running later it is believed, at the next look.
    clock.advance(limits::CLOCK_DOUBT + HOUR);
    tokio::time::pause();
    tokio::time::advance(HOUR).await;
    tokio::time::resume();
    let gone = async {
        while home.unix().get(&format!("/v1/outbox/{row}")).await.body["message"] != json!(null)
            || home.unix().get("/v1/inbox").await.body["items"] != json!([])
        {
            look_again().await;
        }
    };
    tokio::time::timeout(crate::broker::SOON, gone).await.expect("old bodies go");
    let again = home.unix().send("old", "@ci", "words").await;
    assert_eq!((again.status, &again.body["duplicate"]), (200, &json!(true)));
    let other = home.unix().send("old", "@ci", "other words").await;
    assert_eq!(other.body["conflict"], "outbox_done_fingerprint_mismatch");
}

#[tokio::test]
async fn settings_are_read_again_without_touching_links_that_stay() {
    let (broker, home) = Home::linked().await;
    let second = Broker::start().await;
    let invite = second.invite().to_text();
    home.unix().post("/v1/meshes", &json!({"invite": invite.reveal(), "mesh_as": "lab"})).await;
    let path = home.files().config();
    let text = std::fs::read_to_string(&path).unwrap();
    let (kept, _lab) = text.split_once("[mesh.lab]").unwrap();
    std::fs::write(&path, kept).unwrap();
    assert_eq!(home.unix().post("/v1/reload", &json!({})).await.status, 200);
    let send = json!({"to": "@ci", "body": "x", "mesh": "lab"});
    assert_eq!(home.unix().post("/v1/send", &send).await.body["error"], "mesh_not_attached");
    std::fs::write(&path, &text).unwrap();
    assert_eq!(home.unix().post("/v1/reload", &json!({})).await.status, 200);
    assert_eq!(home.unix().post("/v1/send", &send).await.status, 202);
    second.until_accepted(1).await;
    std::fs::write(&path, "nonsense = [").unwrap();
    let said = home.unix().post("/v1/reload", &json!({})).await;
    assert_eq!((said.status, &said.body["error"]), (400, &json!("invalid_request")));
    assert_eq!(broker.books().upgrades, 1, "the first mesh's link stayed open");
}

#[tokio::test]
async fn in_a_container_only_the_socket_is_opened() {
    let (_broker, mut home) = Home::linked().await;
    home.stop().await;
    home.surroundings.container = true;
    home.start().await;
    assert_eq!(home.daemon().http(), None);
    assert_eq!(home.unix().get("/v1/health").await.status, 200);
    assert!(!home.files().http_port().exists());
}

#[tokio::test]
async fn a_wait_on_a_topics_message_asks_the_broker_how_far_its_copies_came() {
    let (broker, home) = Home::linked().await;
    home.unix().send("t", "#alerts", "x").await;
    home.until_rung("t", "accepted").await;
    let nobody = home.unix().get("/v1/messages/t?rung=delivered&wait=60").await;
    assert_eq!((nobody.status, &nobody.body["error"]), (409, &json!("no_recipients")));
    broker.books().copies = vec![DeliveryRung::Processed, DeliveryRung::Delivered];
    assert_eq!(home.until_rung("t", "delivered").await["receipt"]["rung"], "delivered");
    broker.books().copies = vec![DeliveryRung::Processed, DeliveryRung::Expired];
    let ended = home.until_rung("t", "processed").await;
    assert_eq!(ended["receipt"]["rung"], "processed", "the copy that ended is counted out");
    assert_eq!(home.until_rung("t", "accepted").await["receipt"]["rung"], "accepted");
}

#[tokio::test]
async fn a_damaged_mailbox_is_rebuilt_with_its_ids_and_comes_back_by_key() {
    let (broker, mut home) = Home::linked().await;
    home.unix().send("kept", "@ci", "words").await;
    home.until_rung("kept", "accepted").await;
    broker.hang_up();
    home.until_link("away").await;
    for n in 0..200 {
        home.unix().send(&format!("m{n}"), "@ci", &"words ".repeat(200)).await;
    }
    home.stop().await;
    let sound = recover(home.path(), &SystemClock::start(), Arc::new(OsEntropy)).unwrap();
    assert_eq!(sound, [Recovered::Sound { mesh: "home".to_owned(), leftover: None }]);
    // The end of the file is lost, as after a disk that gave up.
    let path = home.mailbox_path();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let recovered = recover(home.path(), &SystemClock::start(), Arc::new(OsEntropy)).unwrap();
    let [Recovered::Rebuilt { aside, salvaged, .. }] = &recovered[..] else { panic!("{recovered:?}") };
    assert_eq!(std::fs::read(aside).unwrap().len(), whole.len() / 2, "the damaged file is set aside whole");
    assert!(salvaged.outbox > 0, "{salvaged:?}");
    let mailbox = home.mailbox();
    let members = mailbox.members().await.unwrap();
    mailbox.close().await;
    broker.listen().await;
    home.start().await;
    home.until_live().await;
    assert_eq!(members.len(), 1);
    let epochs: Vec<String> =
        broker.books().negotiations.iter().map(|asked| asked.inbox_epoch.clone()).collect();
    assert_ne!(epochs.first(), epochs.last(), "another life of the inbox");
    let rows = home.unix().get("/v1/outbox?limit=1000").await.body["counts"].clone();
    let all: u64 = ["pending", "inflight", "done", "dead", "aborted"]
        .iter()
        .map(|word| rows[word].as_u64().unwrap())
        .sum();
    assert_eq!(all, salvaged.outbox);
}

#[tokio::test]
async fn a_lost_mailbox_still_finds_its_way_in_by_key() {
    let (broker, mut home) = Home::linked().await;
    home.stop().await;
    std::fs::write(home.mailbox_path(), "gone").unwrap();
    let recovered = recover(home.path(), &SystemClock::start(), Arc::new(OsEntropy)).unwrap();
    assert!(matches!(&recovered[..], [Recovered::Rebuilt { .. }]), "{recovered:?}");
    home.start().await;
    let mesh = home.until_link("live").await;
    assert_eq!(mesh["person"], "jane", "the broker says who is at home here");
    assert_eq!(broker.books().nodes.len(), 1);
    assert_eq!(home.unix().send("a", "@ci", "x").await.status, 202);
}
