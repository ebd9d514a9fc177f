//! What the predecessor's tests did not cover, and the counterexamples of the model.

use std::time::Duration;

use http::Method;
use model::Timestamp;
use serde_json::json;

use super::stage::{Stage, Subscriber, numbers, on_both_stores};
use crate::scene::Props;

/// Beyond every page and every bound of what is held for a follower.
const LONG_ROWS: usize = 10_000;

on_both_stores! {
    new_01_writers_at_several_brokers_lose_no_row
    new_02_a_clock_set_back_hides_no_row_and_is_told
    new_03_a_smaller_id_committed_later_is_not_skipped
    new_04_a_reconnect_after_live_rows_repeats_none
    new_05_a_connection_cut_amid_rows_loses_none
    new_06_a_stalled_reader_hurts_only_itself
    new_07_a_bad_cursor_is_answered_and_the_socket_lives
    new_08_a_second_subscribe_replaces_the_first
    new_09_a_cleared_history_is_told_as_reset
    new_10_a_long_log_comes_in_pages
    new_11_the_tail_before_a_close_is_delivered
    ce9_rows_pruned_while_away_are_told_and_never_skipped
    ce10_no_frame_of_the_old_tag_follows_the_new_subscribed
    a_log_that_appears_later_is_followed_from_its_first_row
    several_broker_processes_share_one_order
    a_member_the_broker_hosts_is_notified_by_a_live_frame
}

async fn new_01_writers_at_several_brokers_lose_no_row(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    let mut writers = Vec::new();
    for writer in 0..4 {
        let mut at = jane.clone();
        if writer % 2 == 1 {
            at.client = at.elsewhere.clone();
        }
        writers.push(tokio::spawn(async move { at.fill("#t", 1_000 * (writer + 1), 50).await }));
    }
    let mut seen = Vec::new();
    for _ in 0..200 {
        seen.push(follower.message().await["history_id"].as_u64().unwrap());
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(seen, (2..=201).collect::<Vec<_>>());
    assert_eq!(stage.head(&log).await, 201);
}

async fn new_02_a_clock_set_back_hides_no_row_and_is_told(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 3).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    let regressed = || stage.scene.broker.metrics().clock_regressed.get();
    assert_eq!(regressed(), 0);
    stage.set_back(Duration::from_secs(3600));
    jane.fill("#t", 3, 3).await;
    assert_eq!(follower.texts(3).await, numbers(3, 6));
    let rows = jane.page(&log).await.messages;
    assert!(rows.windows(2).all(|pair| pair[0].created_at < pair[1].created_at));
    while regressed() < 3 {
        tokio::task::yield_now().await;
    }
}

/// Behind a clock that was set back places follow each other by a microsecond, so that ids, which begin with the
/// millisecond, stand in no order.
async fn new_03_a_smaller_id_committed_later_is_not_skipped(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    stage.set_back(Duration::from_secs(60));
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    jane.fill("#t", 1, 24).await;
    for n in 1..25 {
        let frame = follower.message().await;
        assert_eq!(frame["body"], n.to_string());
        ids.push(frame["id"].as_str().unwrap().to_owned());
        cursor = frame["cursor"].as_str().unwrap().to_owned();
    }
    assert!(!ids.is_sorted(), "some id is smaller than one committed before it");
    jane.fill("#t", 25, 8).await;
    assert_eq!(jane.follow(&log, &cursor).await.1, numbers(25, 33));
}

async fn new_04_a_reconnect_after_live_rows_repeats_none(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 2).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    jane.fill("#t", 2, 2).await;
    follower.message().await;
    let cursor = follower.message().await["cursor"].as_str().unwrap().to_owned();
    drop(follower);
    jane.fill("#t", 4, 2).await;
    let (_, texts) = jane.follow(&log, &cursor).await;
    assert_eq!(texts, numbers(4, 6));
}

async fn new_05_a_connection_cut_amid_rows_loses_none(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 40).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    while seen.len() < 40 {
        let mut follower = jane.subscriber().await;
        follower.subscribe(&log, &cursor, "s").await;
        // Cut somewhere amid the rows: only what was read counts as had.
        for _ in 0..7.min(40 - seen.len()) {
            let frame = follower.message().await;
            seen.push(frame["body"].as_str().unwrap().to_owned());
            cursor = frame["cursor"].as_str().unwrap().to_owned();
        }
    }
    assert_eq!(seen, numbers(0, 40));
}

/// A reader that takes nothing holds up nobody, is closed with 4408, and resumes from its cursor.
async fn new_06_a_stalled_reader_hurts_only_itself(stage: Stage) {
    let props = Props { subscriber_stall_max: Duration::from_millis(300), ..Props::default() };
    let stage = stage.behind(props).await;
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let (mut healthy, _) = jane.follow(&log, "").await;
    let mut stalled = jane.subscriber().await;
    stalled.subscribe(&log, "", "s").await;
    // Large texts, so that the stalled one's window, the door's buffers and its writer are full soon.
    let (large, mut posted) = ("x".repeat(60_000), 0);
    while stage.scene.broker.metrics().subscribers_slow.get() == 0 {
        posted += 1;
        jane.post("#t", &large).await;
        assert_eq!(healthy.message().await["history_id"], posted + 1);
    }
    let (mut last, mut cursor) = (0, String::new());
    let close = loop {
        match stalled.try_next().await {
            Ok(frame) if frame["type"] == "message" => {
                assert_eq!(frame["history_id"], last + 1, "in order up to the cut");
                last += 1;
                cursor = frame["cursor"].as_str().unwrap().to_owned();
            }
            Ok(_) => {}
            Err(close) => break close,
        }
    };
    assert_eq!((close.code, close.reason.as_str()), (4408, "slow_consumer"));
    assert!(last < posted + 1, "what was not taken waits in the log");
    let rest = jane.follow(&log, &cursor).await.1;
    assert_eq!(rest.len() as u64, posted + 1 - last, "and comes from there");
}

async fn new_07_a_bad_cursor_is_answered_and_the_socket_lives(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let mut follower = jane.subscriber().await;
    follower.subscribe(&log, "yesterday", "s1").await;
    let refused = follower.next().await;
    assert_eq!((&refused["type"], &refused["code"]), (&"error".into(), &"invalid_cursor".into()));
    assert_eq!((&refused["conversation_id"], &refused["sub"]), (&log.as_str().into(), &"s1".into()));
    follower.subscribe(&log, "", "s2").await;
    assert_eq!(follower.caught_up().await.0, ["0"]);
}

async fn new_08_a_second_subscribe_replaces_the_first(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 3).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    let cursor = jane.page(&log).await.cursor;
    follower.subscribe(&log, &cursor, "s2").await;
    assert_eq!(follower.caught_up().await.0, Vec::<String>::new());
    jane.fill("#t", 3, 1).await;
    let frame = follower.message().await;
    assert_eq!((&frame["body"], &frame["sub"]), (&"3".into(), &"s2".into()));
    assert_eq!(follower.barrier().await.len(), 0, "the row came once, under the new tag alone");
}

async fn new_09_a_cleared_history_is_told_as_reset(stage: Stage) {
    let owner = stage.owner("jane").await;
    let log = owner.fill("#t", 0, 3).await;
    let old = owner.page(&log).await.cursor;
    let (mut follower, _) = owner.follow(&log, "").await;
    let path = format!("/v1/conversations/{log}/messages");
    let emptied = owner.call(Method::DELETE, &path, None).await.unwrap();
    assert_eq!(emptied, json!({"generation": 1, "removed": 3}));
    let reset = follower.next().await;
    assert_eq!((&reset["type"], &reset["generation"]), (&"reset".into(), &1.into()));
    assert_eq!((&reset["conversation_id"], &reset["sub"]), (&log.as_str().into(), &"s".into()));
    let page = owner.page(&log).await;
    assert_eq!(page.messages.len(), 0);
    owner.fill("#t", 3, 1).await;
    follower.subscribe(&log, &page.cursor, "s2").await;
    let (texts, done) = follower.caught_up().await;
    assert_eq!((texts, &done["generation"]), (numbers(3, 4), &1.into()));
    follower.subscribe(&log, &old, "s3").await;
    let gone = follower.next().await;
    assert_eq!((&gone["code"], &gone["sub"]), (&"cursor_expired".into(), &"s3".into()));
    assert!(gone["first_available"].is_string());
    let path = format!("/v1/conversations/{log}?before={old}");
    assert_eq!(owner.call(Method::GET, &path, None).await.unwrap_err(), (410, "cursor_expired".to_owned()));
}

async fn new_10_a_long_log_comes_in_pages(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    stage.write_many("jane", LONG_ROWS - 1).await;
    let mut follower = jane.subscriber().await;
    follower.subscribe(&log, "", "s").await;
    for expected in 1..=LONG_ROWS {
        assert_eq!(follower.message().await["history_id"], expected);
    }
    assert_eq!(follower.next().await["type"], "subscribed");
    // From the newest page back to the first row; a place to join at is the head all the way.
    let mut page = jane.page(&log).await;
    assert_eq!((page.messages.len(), page.has_more), (200, true));
    let (head, mut rows) = (page.cursor.clone(), LONG_ROWS as u64);
    loop {
        for message in page.messages.iter().rev() {
            assert_eq!(message.history_id, rows);
            rows -= 1;
        }
        assert_eq!(page.cursor, head);
        if !page.has_more {
            break;
        }
        let path = format!("/v1/conversations/{log}?limit=1000&before={}", page.before);
        page = jane.client.get(&path).await.unwrap();
    }
    assert_eq!(rows, 0);
}

async fn new_11_the_tail_before_a_close_is_delivered(stage: Stage) {
    let owner = stage.owner("jane").await;
    let log = owner.fill("#t", 0, 1).await;
    let (mut follower, _) = owner.follow(&log, "").await;
    owner.fill("#t", 1, 5).await;
    let path = format!("/v1/conversations/{log}");
    let closed = owner.call(Method::PATCH, &path, Some(json!({"state": "closed"}))).await.unwrap();
    assert_eq!(closed["state"], "closed");
    assert_eq!(follower.texts(5).await, numbers(1, 6));
    let refused = owner.call(Method::POST, &format!("{path}/messages"), Some(json!({"body": "late"}))).await;
    assert_eq!(refused.unwrap_err(), (409, "conversation_closed".to_owned()));
    for state in ["paused", "active"] {
        owner.call(Method::PATCH, &path, Some(json!({"state": state}))).await.unwrap();
        owner.post("#t", state).await;
        assert_eq!(follower.texts(1).await, [state]);
    }
}

async fn ce9_rows_pruned_while_away_are_told_and_never_skipped(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 4).await;
    let rows = jane.page(&log).await.messages;
    let before = Timestamp::from_micros(rows[2].created_at.as_micros() + 1);
    assert_eq!(stage.ledger().prune_messages(before, 100).await.unwrap().messages, 3);
    let mut follower = jane.subscriber().await;
    follower.subscribe(&log, &rows[0].cursor, "s").await;
    let gone = follower.next().await;
    assert_eq!((&gone["code"], &gone["sub"]), (&"cursor_expired".into(), &"s".into()));
    assert_eq!(gone["first_available"], rows[2].cursor.as_str());
    follower.subscribe(&log, gone["first_available"].as_str().unwrap(), "s2").await;
    assert_eq!(follower.caught_up().await.0, ["3"]);
}

async fn ce10_no_frame_of_the_old_tag_follows_the_new_subscribed(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    let writer = {
        let jane = jane.clone();
        tokio::spawn(async move { jane.fill("#t", 1, 60).await })
    };
    let (mut cursor, mut shown, mut tag) = (String::new(), vec![1_u64], 0_u32);
    // As a client does it: after a subscribe every frame of another tag is dropped, and nothing else is.
    let mut current = "s".to_owned();
    while shown.len() < 61 {
        let frame = follower.next().await;
        let (kind, sub) =
            (frame["type"].as_str().unwrap().to_owned(), frame["sub"].as_str().unwrap().to_owned());
        if sub != current {
            assert!(!shown.is_empty() && kind != "subscribed", "an old tag never says that it is caught up");
            continue;
        }
        if kind == "message" {
            shown.push(frame["history_id"].as_u64().unwrap());
            cursor = frame["cursor"].as_str().unwrap().to_owned();
            if shown.len() % 5 == 0 && shown.len() < 60 {
                tag += 1;
                current = format!("s{tag}");
                follower.subscribe(&log, &cursor, &current).await;
            }
        }
    }
    writer.await.unwrap();
    assert_eq!(shown, (1..=61).collect::<Vec<_>>());
    assert!(!cursor.is_empty());
}

async fn a_log_that_appears_later_is_followed_from_its_first_row(stage: Stage) {
    let jane = stage.member("jane").await;
    let mut follower = jane.subscriber().await;
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    follower.subscribe(unknown, "", "s").await;
    let done = follower.next().await;
    assert_eq!((&done["type"], &done["cursor"]), (&"subscribed".into(), &"".into()));
    jane.fill("#t", 0, 2).await;
    assert_eq!(follower.barrier().await.len(), 0);
    follower.unsubscribe(unknown).await;
}

async fn several_broker_processes_share_one_order(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let mut here = jane.subscriber().await;
    let mut there = Subscriber::open(&jane.elsewhere).await;
    for follower in [&mut here, &mut there] {
        follower.subscribe(&log, "", "s").await;
        follower.caught_up().await;
    }
    for n in 1..11 {
        let client = if n % 2 == 0 { &jane.client } else { &jane.elsewhere };
        let body = json!({"to": "#t", "body": n.to_string()});
        client.post::<serde_json::Value>("/v1/meshes/home/messages", &body).await.unwrap();
    }
    assert_eq!((here.texts(10).await, there.texts(10).await), (numbers(1, 11), numbers(1, 11)));
}

async fn a_member_the_broker_hosts_is_notified_by_a_live_frame(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    let log = jane.fill("@carl", 0, 1).await;
    let (mut follower, _) = carl.follow(&log, "").await;
    let id = jane.post("@carl", "live").await.broker_message_id;
    follower.texts(1).await;
    let rung = async || stage.ledger().rungs(id).await.unwrap()[0].1;
    while rung().await != model::DeliveryRung::Notified {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_stops_says_so_and_is_resumed_from_the_cursor_kept() {
    let stage = Stage::sqlite().await;
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 2).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    let scene = stage.scene;
    let (cut, close) = tokio::join!(scene.stop(), async {
        loop {
            if let Err(close) = follower.try_next().await {
                break close;
            }
        }
    });
    assert_eq!((cut, close.code), (0, 1001));
}

/// Large bodies: a page is bounded by bytes, and what does not fit comes with the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_large_bodies_are_bounded_and_nothing_is_left_out() {
    let stage = Stage::sqlite().await;
    let jane = stage.member("jane").await;
    let large = "x".repeat(60_000);
    let mut log = String::new();
    for _ in 0..30 {
        log = jane.post("#t", &large).await.conversation.to_string();
    }
    let page: wire::log::Page =
        jane.client.get(&format!("/v1/conversations/{log}?after=&limit=1000")).await.unwrap();
    assert!(page.has_more && page.messages.len() < 30, "{}", page.messages.len());
    let (_, texts) = jane.follow(&log, "").await;
    assert_eq!(texts.len(), 30);
}
