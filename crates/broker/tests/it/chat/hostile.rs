//! What nobody should send, and what nobody should learn.

use http::Method;
use serde_json::{Value, json};

use super::stage::{Stage, on_both_stores};

on_both_stores! {
    cursors_that_were_never_given_are_refused_everywhere
    frames_that_cannot_be_understood_are_answered_and_the_socket_lives
    an_unreadable_conversation_looks_like_one_that_does_not_exist
    texts_are_handed_on_as_they_are
    a_connection_follows_a_bounded_number_of_conversations
}

async fn cursors_that_were_never_given_are_refused_everywhere(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 2).await;
    let foreign = jane.page(&jane.fill("#other", 0, 1).await).await.cursor;
    let own = jane.page(&log).await.cursor;
    let (at, rest) = own.split_once(':').unwrap();
    let (id, epoch) = rest.split_once(':').unwrap();
    let huge = "9".repeat(150_000);
    for (cursor, code) in [
        (foreign.as_str(), "invalid_cursor"),
        ("-1.000000000:x:0", "invalid_cursor"),
        (&format!("-{at}:{rest}"), "invalid_cursor"),
        (&format!("{}:{rest}", at.replacen('1', "2", 1)), "invalid_cursor"),
        (&format!("9999999999.000000000:{id}:{epoch}"), "invalid_cursor"),
        (&format!("{at}:{id}:{epoch} "), "invalid_cursor"),
        (&format!("{at}:{id}:99"), "cursor_expired"),
        (&format!("{at}:01890a5d-ac96-774b-bcce-b302099a8057:0"), "cursor_expired"),
        (&huge, "invalid_cursor"),
        ("' OR 1=1 --", "invalid_cursor"),
        ("\u{202e}0.0:x:0", "invalid_cursor"),
    ] {
        let shown = &cursor[..cursor.len().min(60)];
        let mut follower = jane.subscriber().await;
        follower.subscribe(&log, cursor, "s").await;
        assert_eq!(follower.next().await["code"], code, "subscribe {shown}");
        let status = if code == "invalid_cursor" { 400 } else { 410 };
        if cursor.len() < 1_000 && cursor.is_ascii() {
            let encoded = cursor.replace(' ', "%20").replace('\'', "%27");
            for field in ["before", "after"] {
                let path = format!("/v1/conversations/{log}?{field}={encoded}");
                let refused = jane.call(Method::GET, &path, None).await.unwrap_err();
                assert_eq!(refused, (status, code.to_owned()), "{field} {shown}");
            }
        }
        let path = format!("/v1/conversations/{log}/read");
        let refused = jane.call(Method::POST, &path, Some(json!({"cursor": cursor}))).await.unwrap_err();
        assert_eq!(refused, (status, code.to_owned()), "read {shown}");
    }
    let mut follower = jane.subscriber().await;
    follower.subscribe(&log, &"9".repeat(1_000_000), "s").await;
    assert_eq!(follower.next().await["code"], "invalid_cursor", "a megabyte");
}

async fn frames_that_cannot_be_understood_are_answered_and_the_socket_lives(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let mut follower = jane.subscriber().await;
    for (frame, code) in [
        ("nonsense", "bad_frame"),
        ("[1]", "bad_frame"),
        ("{}", "unknown_type"),
        (r#"{"type":"shout","conversation_id":"x"}"#, "unknown_type"),
        (r#"{"type":"subscribe"}"#, "missing_conversation_id"),
        (r#"{"type":"subscribe","conversation_id":7}"#, "missing_conversation_id"),
        (r#"{"type":"subscribe","conversation_id":"x","sub":{}}"#, "bad_frame"),
    ] {
        follower.writer.send(frame.to_owned()).await.unwrap();
        let refused = follower.next().await;
        assert_eq!((&refused["type"], &refused["code"]), (&"error".into(), &code.into()), "{frame}");
    }
    follower.subscribe(&log, "", "s").await;
    assert_eq!(follower.caught_up().await.0, ["0"]);
}

async fn an_unreadable_conversation_looks_like_one_that_does_not_exist(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    let dora = stage.member("dora").await;
    let secret = jane.fill("@carl", 0, 2).await;
    let cursor = jane.page(&secret).await.cursor;
    let absent = "01890a5d-ac96-774b-bcce-b302099a8057";
    let seen = async |id: &str| -> Vec<Value> {
        let path = format!("/v1/conversations/{id}");
        let asks = [
            (Method::GET, path.clone(), None),
            (Method::GET, format!("{path}?after="), None),
            (Method::GET, format!("{path}?after={cursor}"), None),
            (Method::PATCH, path.clone(), Some(json!({"state": "closed"}))),
            (Method::POST, format!("{path}/messages"), Some(json!({"body": "x"}))),
            (Method::POST, format!("{path}/read"), Some(json!({"cursor": ""}))),
            (Method::DELETE, format!("{path}/messages"), None),
        ];
        let mut seen = Vec::new();
        for (method, path, body) in asks {
            let answer = dora.call(method, &path, body).await;
            seen.push(answer.unwrap_or_else(|(status, code)| json!([status, code])));
        }
        let mut follower = dora.subscriber().await;
        for since in ["", cursor.as_str()] {
            follower.subscribe(id, since, "s").await;
            let mut answer = follower.next().await;
            answer["conversation_id"] = "?".into();
            seen.push(answer);
        }
        jane.fill("@carl", 2, 1).await;
        seen.extend(follower.barrier().await);
        seen
    };
    let (unreadable, absent) = (seen(&secret).await, seen(absent).await);
    assert_eq!(unreadable, absent);
    assert_eq!(carl.page(&secret).await.messages.len(), 4, "its two read it");
}

async fn texts_are_handed_on_as_they_are(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let (mut follower, _) = jane.follow(&log, "").await;
    for text in
        ["<script>alert(1)</script>", "a\u{1b}[31mred\u{7}", "\u{202e}evil\u{2066}", "\"}\n\\", "日本 é"]
    {
        jane.post("#t", text).await;
        assert_eq!(follower.texts(1).await, [text]);
    }
}

async fn a_connection_follows_a_bounded_number_of_conversations(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let mut follower = jane.subscriber().await;
    for n in 0..model::limits::SUBSCRIPTIONS_MAX {
        follower.subscribe(&format!("01890a5d-ac96-774b-bcce-{n:012x}"), "", "s").await;
        assert_eq!(follower.next().await["type"], "subscribed");
    }
    follower.subscribe(&log, "", "one more").await;
    let refused = follower.next().await;
    assert_eq!((&refused["code"], &refused["sub"]), (&"too_many_subscriptions".into(), &"one more".into()));
    follower.unsubscribe("01890a5d-ac96-774b-bcce-000000000000").await;
    follower.subscribe(&log, "", "now").await;
    assert_eq!(follower.caught_up().await.0, ["0"]);
}
