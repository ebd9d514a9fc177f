//! The same log for plain HTTP: events and long poll.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::stage::{Member, Stage, numbers, on_both_stores};

on_both_stores! {
    events_resume_from_the_last_id_without_gap_or_repeat
    a_long_poll_answers_with_what_follows_and_waits_for_it
    a_post_under_a_known_id_is_answered_with_the_first
    members_and_nodes_are_listed
}

/// Reads `count` messages of an event stream; answers with their texts and the last id.
async fn events(
    stage: &Stage,
    member: &Member,
    path: &str,
    last: Option<&str>,
    count: usize,
) -> (Vec<String>, String) {
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    let token = member.token.reveal();
    let mut request = http::Request::get(format!("{}{path}", stage.scene.url()))
        .header("authorization", format!("Bearer {token}"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let client: Client<_, http_body_util::Empty<bytes::Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request.body(http_body_util::Empty::new()).unwrap()).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = answer.into_body();
    let (mut text, mut seen, mut last) = (String::new(), Vec::new(), String::new());
    while seen.len() < count {
        let frame = timeout(Duration::from_secs(20), body.frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if line("event:") == Some("message") {
                let data: Value = serde_json::from_str(line("data:").unwrap()).unwrap();
                seen.push(data["body"].as_str().unwrap().to_owned());
                last = line("id:").unwrap().to_owned();
                assert_eq!(data["cursor"], last.as_str());
            }
        }
    }
    (seen, last)
}

async fn events_resume_from_the_last_id_without_gap_or_repeat(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 3).await;
    let path = format!("/v1/conversations/{log}/events");
    let (texts, last) = events(&stage, &jane, &path, None, 3).await;
    assert_eq!(texts, numbers(0, 3));
    jane.fill("#t", 3, 2).await;
    let (texts, last) = events(&stage, &jane, &path, Some(&last), 2).await;
    assert_eq!(texts, numbers(3, 5));
    let more = tokio::spawn({
        let jane = jane.clone();
        async move { jane.fill("#t", 5, 2).await }
    });
    let (texts, _) = events(&stage, &jane, &format!("{path}?after={last}"), None, 2).await;
    assert_eq!(texts, numbers(5, 7));
    more.await.unwrap();
    let refused = jane.call(Method::GET, &format!("{path}?after=nonsense"), None).await.unwrap_err();
    assert_eq!(refused, (400, "invalid_cursor".to_owned()));
}

async fn a_long_poll_answers_with_what_follows_and_waits_for_it(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 3).await;
    let path = format!("/v1/conversations/{log}");
    let first: Value = jane.client.get(&format!("{path}?after=&limit=2")).await.unwrap();
    assert_eq!((first["messages"].as_array().unwrap().len(), &first["has_more"]), (2, &true.into()));
    let rest: Value =
        jane.client.get(&format!("{path}?after={}", first["cursor"].as_str().unwrap())).await.unwrap();
    let head = rest["cursor"].as_str().unwrap().to_owned();
    let none: Value = jane.client.get(&format!("{path}?after={head}")).await.unwrap();
    assert_eq!((none["messages"].as_array().unwrap().len(), &none["cursor"]), (0, &head.as_str().into()));
    let waiting = {
        let (jane, path) = (jane.clone(), format!("{path}?after={head}&wait=15"));
        tokio::spawn(async move { jane.client.get::<Value>(&path).await.unwrap() })
    };
    jane.fill("#t", 3, 1).await;
    let woken = timeout(Duration::from_secs(10), waiting).await.expect("woken, not timed out").unwrap();
    assert_eq!(woken["messages"][0]["body"], "3");
}

async fn a_post_under_a_known_id_is_answered_with_the_first(stage: Stage) {
    let jane = stage.member("jane").await;
    let log = jane.fill("#t", 0, 1).await;
    let path = format!("/v1/conversations/{log}/messages");
    let post = async |body: Value| jane.call(Method::POST, &path, Some(body)).await;
    let first = post(json!({"body": "hi", "client_message_id": "k"})).await.unwrap();
    let again = post(json!({"body": "hi", "client_message_id": "k"})).await.unwrap();
    assert_eq!(
        (&again["broker_message_id"], &again["duplicate"]),
        (&first["broker_message_id"], &true.into())
    );
    let other = post(json!({"body": "ho", "client_message_id": "k"})).await.unwrap_err();
    assert_eq!(other, (409, "idempotency_key_reused".to_owned()));
    assert_eq!(stage.head(&log).await, 2);
}

async fn members_and_nodes_are_listed(stage: Stage) {
    let owner = stage.owner("jane").await;
    let list: Value = owner.client.get("/v1/members").await.unwrap();
    assert_eq!((&list["members"][0]["name"], &list["members"][0]["role"]), (&"jane".into(), &"owner".into()));
    assert_eq!((&list["nodes"][0]["node"], &list["nodes"][0]["held"]), (&"jane".into(), &0.into()));
}
