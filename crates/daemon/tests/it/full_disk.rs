//! A disk that is nearly full: an id that is known gets the answer it gets with room, and a new one is told 507.

use std::collections::BTreeMap;

use model::outbox::AbortedBy;
use model::{Clock, ErrorCode, RowId, SystemClock, TurnId, limits};
use serde_json::{Value, json};
use sqlite::rusqlite::{Connection, OpenFlags};
use wire::link::{MailRow, Rows, ToNode};

use crate::broker::{Broker, Reply, SOON};
use crate::home::{Caller, Home, Said, look_again};

/// Leaves the disk so full that the outbox uses `percent` of its room, and waits until the daemon has measured it.
async fn fill_to(home: &Home, percent: u64) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(home.mailbox_path(), flags).unwrap();
    let figure =
        |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, u64>(0)).unwrap();
    let (page, pages, free) = (figure("page_size"), figure("page_count"), figure("freelist_count"));
    let used = (pages - free) * page;
    let room = used * (100 - percent) / percent;
    home.disk.leave(limits::DISK_RESERVE_BYTES + room.saturating_sub(free * page));
    until_percent(home, |measured| measured == percent).await;
}

async fn until_percent(home: &Home, enough: impl Fn(u64) -> bool) {
    let measured = async {
        while !enough(percent(home).await) {
            look_again().await;
        }
    };
    tokio::time::timeout(SOON, measured).await.expect("the daemon measures its disk");
}

async fn percent(home: &Home) -> u64 {
    let page = home.unix().get("/v1/metrics").await.body;
    let line = page.as_str().unwrap().lines().find(|line| line.starts_with("cm_daemon_disk_pct"));
    line.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap()
}

/// A home whose link is open, with a row in each state: ids `pending`, `inflight`, `done`, `dead` and `aborted`.
async fn home_with_every_state() -> (Broker, Home) {
    let (broker, mut home) = Home::linked().await;
    broker.script(|fields| match fields.client_message_id.as_str() {
        "dead" => Reply::Refuse(ErrorCode::TooLarge),
        "inflight" => Reply::Silence,
        _ => Reply::Accept,
    });
    for id in ["done", "dead"] {
        assert_eq!(home.unix().send(id, &format!("@{id}"), "words").await.status, 202);
        home.until_rung(id, "accepted").await;
    }
    broker.hang_up();
    home.until_link("away").await;
    let row: RowId = {
        let said = home.unix().send("aborted", "@aborted", "words").await;
        said.body["row"].as_str().unwrap().parse().unwrap()
    };
    home.stop().await;
    let mailbox = home.mailbox();
    mailbox.abort(row, AbortedBy::Operator, SystemClock::start().now()).await.unwrap();
    mailbox.close().await;
    broker.listen().await;
    home.start().await;
    home.until_live().await;
    assert_eq!(home.unix().send("inflight", "@busy", "words").await.status, 202);
    home.until_life("inflight", |life| life["status"] == "inflight").await;
    // A lane has one frame on the wire: what comes behind it waits.
    assert_eq!(home.unix().send("pending", "@busy", "words").await.status, 202);
    (broker, home)
}

/// The answers to every known id, asked with the same words and with others.
async fn known_answers(caller: &Caller) -> BTreeMap<String, Said> {
    let mut answers = BTreeMap::new();
    for (id, to) in [
        ("pending", "@busy"),
        ("inflight", "@busy"),
        ("done", "@done"),
        ("dead", "@dead"),
        ("aborted", "@aborted"),
    ] {
        for words in ["words", "other words"] {
            answers.insert(format!("{id}, {words}"), caller.send(id, to, words).await);
        }
    }
    answers
}

#[tokio::test]
async fn at_96_percent_each_row_of_the_accept_table_answers_as_with_room_and_a_new_id_is_told_507() {
    let (_broker, home) = home_with_every_state().await;
    let with_room = known_answers(&home.unix()).await;
    let statuses: Vec<u16> = with_room.values().map(|said| said.status).collect();
    assert_eq!(
        statuses,
        [409, 409, 409, 409, 409, 200, 409, 202, 409, 202],
        "the table itself: {with_room:?}"
    );
    fill_to(&home, 96).await;
    for (listener, caller) in [("unix", home.unix()), ("tcp", home.tcp())] {
        let new = caller.send("new", "@ci", "words").await;
        assert_eq!((new.status, &new.body["error"]), (507, &json!("insufficient_storage")), "{listener}");
        assert_eq!(known_answers(&caller).await, with_room, "{listener}");
    }
    let unnamed = home.unix().post("/v1/send", &json!({"to": "@ci", "body": "words"})).await;
    assert_eq!(unnamed.status, 507, "an id that the daemon mints is new");
    assert_eq!(home.unix().get("/v1/messages/new").await.status, 404, "the refused id is not used");
    home.disk.leave(u64::MAX);
    until_percent(&home, |measured| measured < 95).await;
    assert_eq!(home.unix().send("new", "@ci", "words").await.status, 202);
}

#[tokio::test]
async fn at_96_percent_a_post_to_a_topic_that_is_known_is_answered_and_a_new_one_is_told_507() {
    let (_broker, home) = Home::linked().await;
    let post = |id: &str| json!({"topic": "alerts", "body": "words", "client_message_id": id});
    let first = home.unix().post("/v1/topic/post", &post("known")).await;
    assert_eq!(first.status, 202, "{first:?}");
    home.until_rung("known", "accepted").await;
    fill_to(&home, 96).await;
    let again = home.unix().post("/v1/topic/post", &post("known")).await;
    assert_eq!((again.status, &again.body["status"]), (200, &json!("done")), "{again:?}");
    assert_eq!(home.unix().post("/v1/topic/post", &post("new")).await.status, 507);
}

#[tokio::test]
async fn at_96_percent_a_turn_that_began_is_answered_again_and_a_new_one_is_told_507() {
    let (broker, home) = Home::linked().await;
    let token = home.unix().post("/v1/agents", &json!({"name": "planner"})).await.body["token"].clone();
    let planner = broker.books().members[1].id;
    let rows = ["m1", "m2", "m3"].map(|id| MailRow { recipient: planner, ..broker.mail(id, id) });
    broker.push(ToNode::Mail(Rows { rows: rows.into() })).await;
    broker.until("acks", |books| (books.acks.len() >= 3).then_some(())).await;
    let agent = home.agent(token.as_str().unwrap());
    let ask = |byte: u8| json!({"turn_id": TurnId::from_bytes([byte; 16]).to_string()});
    let (over, open, new) = (ask(7), ask(8), ask(9));
    assert_eq!(agent.post("/v1/turns", &over).await.status, 201);
    let end = format!("/v1/turns/{}/end", over["turn_id"].as_str().unwrap());
    assert_eq!(agent.post(&end, &json!({"outcome": "processed"})).await.status, 200);
    let begun = agent.post("/v1/turns", &open).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    fill_to(&home, 96).await;
    assert_eq!(agent.post("/v1/turns", &open).await, begun, "the turn that is open");
    // With room, both are told what is true of the agent's turns.
    assert_eq!(agent.post("/v1/turns", &over).await.body["error"], "turn_open");
    let end = format!("/v1/turns/{}/end", open["turn_id"].as_str().unwrap());
    assert_eq!(agent.post(&end, &json!({"outcome": "processed"})).await.status, 200, "what began may end");
    assert_eq!(agent.post("/v1/turns", &over).await.body["error"], "turn_over");
    let refused = agent.post("/v1/turns", &new).await;
    assert_eq!((refused.status, &refused.body["error"]), (507, &json!("insufficient_storage")));
    let minted: Value = json!({});
    assert_eq!(agent.post("/v1/turns", &minted).await.status, 507, "a turn without an id is new");
}

async fn prune(home: &Home, asked: Value) -> Said {
    home.unix().post("/v1/outbox/prune", &asked).await
}

#[tokio::test]
async fn at_96_percent_a_prune_makes_room_at_once_and_every_known_id_answers_as_before() {
    let (_broker, home) = home_with_every_state().await;
    let caller = home.unix();
    for n in 0..20 {
        let id = format!("long{n}");
        assert_eq!(caller.send(&id, "@done", &"words ".repeat(5_000)).await.status, 202);
        home.until_rung(&id, "accepted").await;
    }
    let before = known_answers(&caller).await;
    fill_to(&home, 96).await;
    let would = prune(&home, json!({})).await;
    assert_eq!((would.status, &would.body["pruned"]), (200, &json!(false)), "{would:?}");
    for (status, rows) in [("done", 21), ("dead", 1), ("aborted", 1), ("total", 23)] {
        assert_eq!(would.body[status]["rows"], rows, "{status}: {would:?}");
    }
    assert!(would.body["done"]["bytes"].as_u64().unwrap() > 20 * 30_000, "{would:?}");
    assert_eq!(caller.send("new", "@ci", "words").await.status, 507, "nothing was freed yet");
    let refused = prune(&home, json!({"status": "pending"})).await;
    assert_eq!((refused.status, &refused.body["error"]), (400, &json!("invalid_request")));
    let only = prune(&home, json!({"confirm": true, "status": "dead"})).await;
    assert_eq!((&only.body["dead"]["rows"], &only.body["total"]["rows"]), (&json!(1), &json!(1)));
    let freed = prune(&home, json!({"confirm": true})).await;
    assert_eq!(
        (&freed.body["pruned"], &freed.body["total"]["rows"]),
        (&json!(true), &json!(22)),
        "{freed:?}"
    );
    assert_eq!(freed.body["done"], would.body["done"], "as was said");
    assert!(freed.body["disk_percent"].as_u64().unwrap() < 95, "{freed:?}");
    assert_eq!(known_answers(&caller).await, before);
    assert_eq!(caller.send("new", "@ci", "words").await.status, 202, "there is room");
    let dead = home.unix().get("/v1/messages/dead").await.body["id"].as_str().unwrap().to_owned();
    assert_eq!(home.unix().get(&format!("/v1/outbox/{dead}")).await.body["message"], Value::Null);
    let requeue = home.unix().post("/v1/outbox/requeue", &json!({"id": dead})).await;
    assert_eq!((requeue.status, &requeue.body["error"]), (404, &json!("not_found")), "{requeue:?}");
}

#[tokio::test]
async fn after_a_prune_the_next_start_gives_the_room_back_to_the_disk() {
    const ROWS: usize = 300;
    let (_broker, mut home) = Home::linked().await;
    let words = "words ".repeat(10_000);
    for n in 0..ROWS {
        assert_eq!(home.unix().send(&format!("long{n}"), "@ci", &words).await.status, 202);
    }
    home.until_rung(&format!("long{}", ROWS - 1), "accepted").await;
    let freed = prune(&home, json!({"confirm": true})).await;
    assert_eq!(freed.body["done"]["rows"], ROWS, "{freed:?}");
    let reusable = freed.body["reusable_bytes"].as_u64().unwrap();
    assert!(reusable >= limits::SHRINK_FREE_BYTES_MIN, "{freed:?}");
    home.stop().await;
    let before = std::fs::metadata(home.mailbox_path()).unwrap().len();
    home.start().await;
    let after = std::fs::metadata(home.mailbox_path()).unwrap().len();
    assert!(after < before / 4, "{before} bytes before, {after} after");
    home.until_live().await;
    for n in [0, ROWS - 1] {
        let again = home.unix().send(&format!("long{n}"), "@ci", &words).await;
        assert_eq!((again.status, &again.body["status"]), (200, &json!("done")), "{n}");
    }
}
