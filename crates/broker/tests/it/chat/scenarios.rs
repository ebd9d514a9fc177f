//! The scenarios 8 to 23.

use http::Method;
use serde_json::json;

use super::stage::{Stage, numbers, on_both_stores};

on_both_stores! {
    a9_08_rows_before_and_after_a_subscribe_come_once_in_order
    a9_09_a_row_between_fetch_and_subscribe_comes_once
    a9_10_a_stale_cursor_gives_only_the_gap
    a9_11_two_clients_have_cursors_of_their_own
    a9_12_and_23_after_unsubscribe_and_its_barrier_nothing_comes
    a9_13_and_21_a_connection_that_never_subscribed_gets_no_message
    a9_14_each_conversation_comes_from_its_own_log
    a9_15_a_subscribe_amid_writers_gets_each_row_once
    a9_18_a_fetch_has_rows_and_cursor_in_order
    a9_19_an_unknown_conversation_is_an_empty_page
    a9_20_a_subscribe_replays_the_log
    a9_22_fetch_then_subscribe_repeats_nothing
}

async fn a9_08_rows_before_and_after_a_subscribe_come_once_in_order(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 3).await;
    let (mut follower, before) = jane.follow(&log, "").await;
    assert_eq!(before, numbers(0, 3));
    jane.fill("#t", 3, 3).await;
    assert_eq!(follower.texts(3).await, numbers(3, 6));
    assert_eq!(follower.barrier().await.len(), 0);
}

async fn a9_09_a_row_between_fetch_and_subscribe_comes_once(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 2).await;
    let page = jane.page(&log).await;
    jane.fill("#t", 2, 1).await;
    let (mut follower, gap) = jane.follow(&log, &page.cursor).await;
    assert_eq!(gap, ["2"]);
    jane.fill("#t", 3, 1).await;
    assert_eq!(follower.texts(1).await, ["3"]);
}

async fn a9_10_a_stale_cursor_gives_only_the_gap(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 5).await;
    let page = jane.page(&log).await;
    let (_, gap) = jane.follow(&log, &page.messages[1].cursor).await;
    assert_eq!(gap, numbers(2, 5));
}

async fn a9_11_two_clients_have_cursors_of_their_own(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    let log = jane.fill("#t", 0, 3).await;
    let at = jane.page(&log).await.messages[1].cursor.clone();
    let (mut one, all) = jane.follow(&log, "").await;
    let (mut other, tail) = carl.follow(&log, &at).await;
    assert_eq!((all, tail), (numbers(0, 3), numbers(2, 3)));
    jane.fill("#t", 3, 1).await;
    assert_eq!((one.texts(1).await, other.texts(1).await), (numbers(3, 4), numbers(3, 4)));
}

async fn a9_12_and_23_after_unsubscribe_and_its_barrier_nothing_comes(stage: Stage) {
    let jane = stage.member("jane").await;
    let (log, other) = (jane.fill("#t", 0, 1).await, jane.fill("#other", 0, 1).await);
    let (mut follower, _) = jane.follow(&log, "").await;
    follower.subscribe(&other, "", "o").await;
    follower.caught_up().await;
    follower.unsubscribe(&log).await;
    follower.barrier().await;
    jane.fill("#t", 1, 3).await;
    jane.fill("#other", 1, 1).await;
    let frame = follower.message().await;
    assert_eq!(frame["conversation"], other.as_str(), "only what is still followed comes");
}

async fn a9_13_and_21_a_connection_that_never_subscribed_gets_no_message(stage: Stage) {
    let jane = stage.member("jane").await;
    let mut bare = jane.subscriber().await;
    let log = jane.fill("#t", 0, 3).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    jane.fill("#t", 3, 1).await;
    follower.texts(1).await;
    assert_eq!(bare.barrier().await.len(), 0);
}

async fn a9_14_each_conversation_comes_from_its_own_log(stage: Stage) {
    let jane = stage.member("jane").await;
    let (one, other) = (jane.fill("#one", 0, 2).await, jane.fill("#other", 10, 2).await);
    let mut follower = jane.subscriber().await;
    follower.subscribe(&one, "", "1").await;
    let (texts, _) = follower.caught_up().await;
    follower.subscribe(&other, "", "2").await;
    let (others, _) = follower.caught_up().await;
    assert_eq!((texts, others), (numbers(0, 2), numbers(10, 12)));
    jane.fill("#other", 12, 1).await;
    let frame = follower.message().await;
    assert_eq!((&frame["conversation"], &frame["sub"]), (&other.as_str().into(), &"2".into()));
}

async fn a9_15_a_subscribe_amid_writers_gets_each_row_once(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let writers = (0..4).map(|w| {
        let jane = jane.clone();
        tokio::spawn(async move { jane.fill("#t", 100 * (w + 1), 25).await })
    });
    let writers: Vec<_> = writers.collect();
    let (mut follower, mut texts) = jane.follow(&log, "").await;
    for writer in writers {
        writer.await.unwrap();
    }
    texts.extend(follower.texts(101 - texts.len()).await);
    let page: Vec<String> = jane.page(&log).await.messages.into_iter().map(|row| row.fields.body).collect();
    assert_eq!(texts, page, "the same rows in the same order as the log");
}

async fn a9_18_a_fetch_has_rows_and_cursor_in_order(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 4).await;
    let page = jane.call(Method::GET, &format!("/v1/conversations/{log}?limit=3"), None).await.unwrap();
    let bodies: Vec<_> = page["messages"].as_array().unwrap().iter().map(|row| &row["body"]).collect();
    assert_eq!(bodies, ["1", "2", "3"]);
    assert_eq!(page["cursor"], page["messages"][2]["cursor"]);
    assert_eq!((&page["has_more"], &page["before"]), (&true.into(), &page["messages"][0]["cursor"]));
    let before = page["before"].as_str().unwrap();
    let path = format!("/v1/conversations/{log}?limit=3&before={before}");
    let older = jane.call(Method::GET, &path, None).await.unwrap();
    assert_eq!((&older["messages"][0]["body"], &older["has_more"]), (&"0".into(), &false.into()));
    assert_eq!(older["cursor"], page["cursor"], "paging never moves the join point");
}

async fn a9_19_an_unknown_conversation_is_an_empty_page(stage: Stage) {
    let jane = stage.member("jane").await;
    for unknown in ["01890a5d-ac96-774b-bcce-b302099a8057", "nonsense"] {
        let page = jane.call(Method::GET, &format!("/v1/conversations/{unknown}"), None).await.unwrap();
        assert_eq!(page, json!({"messages": [], "cursor": "", "before": "", "has_more": false}));
    }
}

async fn a9_20_a_subscribe_replays_the_log(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 3).await;
    let mut follower = jane.subscriber().await;
    follower.subscribe(&log, "", "s1").await;
    let first = follower.message().await;
    assert_eq!(
        (&first["body"], &first["sender"], &first["sub"]),
        (&"0".into(), &"jane".into(), &"s1".into())
    );
    assert_eq!(first["conversation_name"], "#t");
    assert!(first["client_message_id"].is_string() && first["cursor"].is_string());
    follower.texts(2).await;
    let done = follower.next().await;
    let page = jane.page(&log).await;
    assert_eq!((&done["type"], &done["cursor"]), (&"subscribed".into(), &page.cursor.as_str().into()));
    assert_eq!((&done["sub"], &done["generation"]), (&"s1".into(), &0.into()));
    assert_eq!(done["conversation_id"], log.as_str());
}

async fn a9_22_fetch_then_subscribe_repeats_nothing(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 5).await;
    let page = jane.page(&log).await;
    let (mut follower, texts) = jane.follow(&log, &page.cursor).await;
    assert_eq!(texts, Vec::<String>::new());
    assert_eq!(follower.barrier().await.len(), 0);
    jane.fill("#t", 5, 1).await;
    assert_eq!(follower.texts(1).await, ["5"]);
}
