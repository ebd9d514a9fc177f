//! Conversations that wait for an answer.

use serde_json::{Value, json};

use super::stage::{Member, Stage, on_both_stores};

on_both_stores! {
    a9_16_a_question_and_its_answer_are_told_once_each
    a9_17_a_question_asked_before_the_connect_is_the_level_then_one_clear
    new_12_a_question_asked_and_answered_at_once_is_told_as_both
    edges_go_to_those_who_may_read_the_conversation_and_to_nobody_else
    a_list_shows_what_waits_and_what_is_unread
}

async fn ask(member: &Member, to: &str, body: &str) -> String {
    let asked = member.post_with(json!({"to": to, "body": body, "expects_input": true})).await;
    asked.conversation.to_string()
}

fn edge(frame: &Value) -> (&str, u64) {
    (frame["type"].as_str().unwrap(), frame["rev"].as_u64().unwrap())
}

async fn a9_16_a_question_and_its_answer_are_told_once_each(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    let mut watching = carl.subscriber().await;
    for round in 0..2 {
        let log = ask(&jane, "@carl", "may I?").await;
        let asked = watching.next().await;
        assert_eq!(edge(&asked), ("input_requested", 2 * round + 1));
        assert_eq!((&asked["question"], &asked["sender"]), (&"may I?".into(), &"jane".into()));
        assert_eq!(
            (&asked["conversation_id"], &asked["conversation_name"]),
            (&log.as_str().into(), &"@jane".into())
        );
        assert!(asked["message_id"].is_string());
        carl.post("@jane", "yes").await;
        carl.post("@jane", "really").await;
        let cleared = watching.next().await;
        assert_eq!(edge(&cleared), ("escalation_cleared", 2 * round + 2));
    }
    assert_eq!(watching.barrier().await.len(), 0);
}

async fn a9_17_a_question_asked_before_the_connect_is_the_level_then_one_clear(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    ask(&jane, "@carl", "may I?").await;
    let mut watching = carl.subscriber().await;
    let questions: Vec<_> = watching.waiting.iter().map(|waiting| &waiting["question"]).collect();
    assert_eq!(questions, ["may I?"]);
    carl.post("@jane", "yes").await;
    assert_eq!(watching.next().await["type"], "escalation_cleared");
    assert_eq!(watching.barrier().await.len(), 0);
    assert_eq!(carl.subscriber().await.waiting.len(), 0);
}

async fn new_12_a_question_asked_and_answered_at_once_is_told_as_both(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    let mut watching = carl.subscriber().await;
    for round in 0..5 {
        ask(&jane, "#t", "who?").await;
        carl.post("#t", "me").await;
        let (on, off) = (watching.next().await, watching.next().await);
        assert_eq!(edge(&on), ("input_requested", 2 * round + 1));
        assert_eq!(edge(&off), ("escalation_cleared", 2 * round + 2));
    }
}

async fn edges_go_to_those_who_may_read_the_conversation_and_to_nobody_else(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    let dora = stage.member("dora").await;
    let (mut two, mut third) = (carl.subscriber().await, dora.subscriber().await);
    ask(&jane, "@carl", "between us").await;
    ask(&jane, "#t", "to all").await;
    let names = [two.next().await, two.next().await].map(|frame| frame["conversation_name"].clone());
    assert_eq!(names, ["@jane", "#t"]);
    assert_eq!(third.next().await["question"], "to all");
    assert_eq!(third.barrier().await.len(), 0);
    assert_eq!(dora.subscriber().await.waiting.len(), 1);
    assert_eq!(carl.subscriber().await.waiting.len(), 2);
}

async fn a_list_shows_what_waits_and_what_is_unread(stage: Stage) {
    let (jane, carl) = (stage.member("jane").await, stage.member("carl").await);
    jane.fill("#t", 0, 2).await;
    let log = ask(&jane, "#t", "who?").await;
    let list: Value = carl.client.get("/v1/conversations").await.unwrap();
    let row = &list["conversations"][0];
    assert_eq!((&row["unread"], &row["awaiting"], &row["state"]), (&3.into(), &3.into(), &"active".into()));
    let cursor = carl.page(&log).await.messages[1].cursor.clone();
    let path = format!("/v1/conversations/{log}/read");
    let read: Value = carl.client.post(&path, &json!({"cursor": cursor})).await.unwrap();
    assert_eq!(read, json!({"read": 2, "unread": 1}));
}
