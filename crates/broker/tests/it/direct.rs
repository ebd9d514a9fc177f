//! Direct HTTP with API tokens.

use http::Method;
use http::header::HeaderName;
use model::Fingerprint;
use net::Secret;
use net::client::{Ask, Client, ClientError};
use serde_json::{Value, json};
use wire::ask::{AnswerResult, BrokerExplained, Done, NodeQuestion, Question, Scope, StatusAnswer, Token};
use wire::direct::{AcceptAnswer, ConversationList};
use wire::link::{Answer, ToBroker, ToNode};
use wire::log::Page;

use crate::node::{Link, accepted};
use crate::scene::Scene;

async fn token(owner: &mut Link, member: &str, scopes: &[Scope]) -> Token {
    let question = Question::TokenCreate { member: member.parse().unwrap(), scopes: scopes.to_vec() };
    owner.ask(question).await.unwrap()
}

/// A client that acts as `member`.
async fn caller(scene: &Scene, owner: &mut Link, member: &str, scopes: &[Scope]) -> Client {
    let token = token(owner, member, scopes).await;
    scene.client().with_bearer(&Secret::from(token.token))
}

const MESSAGES: &str = "/v1/meshes/home/messages";
const ALL: &[Scope] = &[Scope::Send, Scope::Read, Scope::Hub];

async fn post(client: &Client, path: &str, body: &Value) -> Result<(u16, AcceptAnswer), ClientError> {
    let answer = client.ask(Ask::new(Method::POST, path).json(body)).await?;
    Ok((answer.status.as_u16(), answer.json()?))
}

fn refused(result: Result<impl Sized, ClientError>) -> (u16, String, serde_json::Map<String, Value>) {
    match result {
        Err(ClientError::Refused { status, body, .. }) => (status, body.error, body.more),
        Err(other) => panic!("a refusal, not {other}"),
        Ok(_) => panic!("a refusal"),
    }
}

#[tokio::test]
async fn a_message_over_http_is_new_then_a_duplicate_then_a_conflict() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let body = json!({"to": "@jane", "body": "backup done", "client_message_id": "b1"});
    let (status, first) = post(&cron, MESSAGES, &body).await.unwrap();
    assert_eq!((status, first.duplicate, first.history_id, first.first_seen_at), (201, false, 1, None));
    let (status, again) = post(&cron, MESSAGES, &body).await.unwrap();
    assert_eq!((status, again.duplicate, again.history_available), (200, true, Some(true)));
    assert_eq!(
        (again.broker_message_id, again.first_seen_at),
        (first.broker_message_id, Some(first.created_at))
    );
    let other = json!({"to": "@jane", "body": "backup late", "client_message_id": "b1"});
    let (status, code, more) = refused(post(&cron, MESSAGES, &other).await);
    assert_eq!((status, code.as_str()), (409, "idempotency_key_reused"));
    assert_eq!(more["conflict"], "request_fingerprint_mismatch");
    assert_eq!(more["broker_fingerprint_prefix"].as_str().unwrap().len(), 16);
    assert_eq!(more["client_message_id"], "b1");
    let mail = owner.mail().await;
    assert_eq!((mail[0].message.sender.as_str(), mail[0].message.id), ("cron", first.broker_message_id));
}

/// The name of the mesh written otherwise goes through the routes, as everything else does.
#[tokio::test]
async fn a_message_is_answered_alike_before_the_routes_and_by_them() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let reader = caller(&scene, &mut owner, "r", &[Scope::Read]).await;
    let stranger = scene.client();
    let (good, bad) = (json!({"to": "#a", "body": "hi", "client_message_id": "b1"}), json!({"to": "#a"}));
    let cases = [
        (&stranger, &good, 401),
        (&stranger, &bad, 401),
        (&reader, &good, 403),
        (&cron, &bad, 400),
        (&cron, &good, 201),
    ];
    for (client, body, status) in cases {
        let told = async |path: &str| match client.ask(Ask::new(Method::POST, path).json(body)).await {
            Ok(answer) => (answer.status.as_u16(), answer.headers.clone(), String::new()),
            Err(ClientError::Refused { status, body, .. }) => (status, http::HeaderMap::new(), body.error),
            Err(other) => panic!("an answer, not {other}"),
        };
        let (before, by_routes) = (told(MESSAGES).await, told("/v1/meshes/h%6Fme/messages").await);
        assert_eq!(before.0, status, "{body}");
        // Whoever comes second has a duplicate.
        assert_eq!(by_routes.0, if status == 201 { 200 } else { status }, "{body}");
        assert_eq!(before.2, by_routes.2, "{body}");
        let names = |headers: &http::HeaderMap| headers.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&before.1), names(&by_routes.1));
    }
    for (method, path, status) in [
        (Method::GET, MESSAGES, 405),
        (Method::POST, "/v1/meshes/other/messages", 404),
        (Method::POST, "/v1/meshes//messages", 404),
        (Method::POST, "/v1/meshes/home/x/messages", 404),
    ] {
        assert_eq!(refused(cron.ask(Ask::new(method, path).json(&good)).await).0, status, "{path}");
    }
}

#[tokio::test]
async fn the_idempotency_key_is_the_id_and_must_agree_with_the_body() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let header = HeaderName::from_static("idempotency-key");
    let body = json!({"to": "#a", "body": "hi"});
    let ask = || Ask::new(Method::POST, MESSAGES).json(&body).header(header.clone(), "k1");
    let first: AcceptAnswer = cron.ask(ask()).await.unwrap().json().unwrap();
    assert_eq!(first.client_message_id.as_str(), "k1");
    let again: AcceptAnswer = cron.ask(ask()).await.unwrap().json().unwrap();
    assert!(again.duplicate);
    let differs = json!({"to": "#a", "body": "hi", "client_message_id": "k2"});
    let ask = Ask::new(Method::POST, MESSAGES).json(&differs).header(header, "k1");
    assert_eq!(refused(cron.ask(ask).await).0, 400);
    let (_, minted) = post(&cron, MESSAGES, &body).await.unwrap();
    assert_eq!((minted.duplicate, minted.client_message_id.as_str().len()), (false, 26));
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say_and_nothing_once_revoked() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let reader = caller(&scene, &mut owner, "r", &[Scope::Read]).await;
    let sender = caller(&scene, &mut owner, "s", &[Scope::Send]).await;
    let body = json!({"to": "#a", "body": "hi"});
    assert_eq!(refused(post(&reader, MESSAGES, &body).await).0, 403);
    assert_eq!(refused(sender.get::<ConversationList>("/v1/conversations").await).0, 403);
    assert_eq!(refused(scene.client().get::<ConversationList>("/v1/conversations").await).1, "unauthorized");
    let wrong = scene.client().with_bearer(&Secret::from("nonsense".to_owned()));
    assert_eq!(refused(post(&wrong, MESSAGES, &body).await).0, 401);
    let token = token(&mut owner, "gone", ALL).await;
    let gone = scene.client().with_bearer(&Secret::from(token.token));
    post(&gone, MESSAGES, &body).await.unwrap();
    owner.ask::<Done>(Question::TokenRevoke { id: token.row.id }).await.unwrap();
    assert_eq!(refused(post(&gone, MESSAGES, &body).await).0, 401);
}

#[tokio::test]
async fn what_the_request_gets_wrong_is_named_and_nothing_is_a_500() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let long = "x".repeat(65_537);
    for (body, status, code) in [
        (json!({"body": "hi"}), 400, "invalid_request"),
        (json!({"to": "nowhere", "body": "hi"}), 400, "invalid_request"),
        (json!({"to": "#a"}), 400, "invalid_request"),
        (json!({"to": "#a", "body": "hi", "surprise": 1}), 400, "invalid_request"),
        (json!({"to": "#a", "body": "hi", "client_message_id": "a b"}), 400, "invalid_request"),
        (json!({"to": "#a", "body": "a\u{0}b"}), 400, "invalid_request"),
        (json!({"to": "#a", "body": long}), 413, "too_large"),
        (json!({"to": "#a", "body": "hi", "hops": 65}), 422, "hop_limit"),
        (json!({"to": "#a", "body": "hi", "mentions": ["nobody"]}), 422, "mention_unknown"),
        (json!({"to": "#a", "body": "hi", "deliver_by": "2001-01-01T00:00:00Z"}), 422, "deliver_by_passed"),
        (json!({"to": "@nobody", "body": "hi"}), 404, "member_not_found"),
        (json!({"to": "#a", "body": "hi", "mesh": "elsewhere"}), 404, "not_found"),
    ] {
        let (got, name, _) = refused(post(&cron, MESSAGES, &body).await);
        assert_eq!(
            (got, name.as_str()),
            (status, code),
            "{}",
            &body.to_string()[..body.to_string().len().min(80)]
        );
    }
    let body = json!({"to": "#a", "body": "hi"});
    assert_eq!(refused(post(&cron, "/v1/meshes/elsewhere/messages", &body).await).0, 404);
    let by_id = format!("/v1/meshes/{}/messages", scene.broker.mesh().id);
    assert_eq!(post(&cron, &by_id, &body).await.unwrap().0, 201);
    let topics: Vec<wire::ask::TopicRow> = owner.ask(Question::Topics).await.unwrap();
    assert_eq!(topics[0].head, 1, "what was refused left nothing");
}

#[tokio::test]
async fn what_became_of_an_id_is_told_to_its_sender_alone() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", &[Scope::Send]).await;
    let other = caller(&scene, &mut owner, "other", ALL).await;
    let (_, row) =
        post(&cron, MESSAGES, &json!({"to": "#a", "body": "hi", "client_message_id": "m1"})).await.unwrap();
    let found: StatusAnswer = cron.get(&format!("{MESSAGES}/m1")).await.unwrap();
    let StatusAnswer::Accepted(found) = found else { panic!("accepted, not {found:?}") };
    assert_eq!((found.broker_message_id, found.history_available), (row.broker_message_id, true));
    let wrong = Fingerprint::from_bytes([1; 32]);
    let found: StatusAnswer = cron.get(&format!("{MESSAGES}/m1?request_fingerprint={wrong}")).await.unwrap();
    assert!(matches!(found, StatusAnswer::AcceptedOtherFingerprint));
    let absent: StatusAnswer = cron.get(&format!("{MESSAGES}/m2")).await.unwrap();
    assert!(matches!(absent, StatusAnswer::Absent));
    let old = "first_attempt_at=2001-01-01T00:00:00Z";
    let unknown: StatusAnswer = cron.get(&format!("{MESSAGES}/m2?{old}")).await.unwrap();
    assert!(matches!(unknown, StatusAnswer::Unknown), "the window may have passed since");
    let hidden: StatusAnswer = other.get(&format!("{MESSAGES}/m1")).await.unwrap();
    assert!(matches!(hidden, StatusAnswer::Absent), "ids are the sender's own");
    assert_eq!(refused(cron.get::<Value>(&format!("{MESSAGES}/m1?x=1")).await).0, 400);
    post(&cron, MESSAGES, &json!({"to": "#a", "body": "hi", "client_message_id": "m2"})).await.unwrap();
}

#[tokio::test]
async fn conversations_are_listed_read_and_written_by_their_members() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let eve = caller(&scene, &mut owner, "eve", ALL).await;
    for n in 1..=3 {
        post(&cron, MESSAGES, &json!({"to": "@jane", "body": format!("n{n}")})).await.unwrap();
    }
    let list: ConversationList = cron.get("/v1/conversations?limit=10").await.unwrap();
    let row = &list.conversations[0];
    assert_eq!((row.conversation_name.as_str(), row.kind.as_str(), row.head), ("@jane", "dm", 3));
    let path = format!("/v1/conversations/{}", row.conversation);
    let page: Page = cron.get(&format!("{path}?limit=2")).await.unwrap();
    let bodies = |page: &Page| page.messages.iter().map(|m| m.fields.body.clone()).collect::<Vec<_>>();
    assert_eq!((bodies(&page), page.has_more), (vec!["n2".to_owned(), "n3".to_owned()], true));
    let older: Page = cron.get(&format!("{path}?limit=2&before={}", page.before)).await.unwrap();
    assert_eq!((bodies(&older), older.has_more, &older.cursor), (vec!["n1".to_owned()], false, &page.cursor));
    let (status, posted) = post(&cron, &format!("{path}/messages"), &json!({"body": "n4"})).await.unwrap();
    assert_eq!((status, posted.history_id), (201, 4));
    let absent = "/v1/conversations/01890a5d-ac96-774b-bcce-b302099a8057";
    for (client, path) in
        [(&eve, path.as_str()), (&eve, absent), (&cron, absent), (&cron, "/v1/conversations/x")]
    {
        let text = client.ask(Ask::new(Method::GET, path)).await.unwrap().body;
        assert_eq!(text, r#"{"messages":[],"cursor":"","before":"","has_more":false}"#, "{path}");
        let (status, code, _) =
            refused(post(client, &format!("{path}/messages"), &json!({"body": "x"})).await);
        assert_eq!((status, code.as_str()), (404, "conversation_not_found"), "{path}");
    }
    for (cursor, status) in [("nonsense", 400), ("1.000000000:01890a5d-ac96-774b-bcce-b302099a8057:0", 410)] {
        assert_eq!(refused(cron.get::<Page>(&format!("{path}?before={cursor}")).await).0, status, "{cursor}");
    }
}

#[tokio::test]
async fn an_id_is_explained_to_those_concerned_and_never_seen_to_others() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let mut ann = scene.joined("ann").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let (_, row) =
        post(&cron, MESSAGES, &json!({"to": "@tom", "body": "hi", "client_message_id": "m1"})).await.unwrap();
    let mail = tom.mail().await;
    tom.ack(&mail, model::DeliveryRung::Delivered).await;
    let by_caller: BrokerExplained = cron.get("/v1/explain/m1").await.unwrap();
    let record = &by_caller.records[0];
    assert_eq!((by_caller.verdict.as_str(), record.state.as_str()), ("accepted", "accepted"));
    assert_eq!(
        (record.standing.as_deref(), record.broker_message_id),
        (Some("delivered"), Some(row.broker_message_id))
    );
    assert_eq!(record.recipients[0].name.as_str(), "tom");
    assert!(record.recipients[0].delivered_at.is_some() && record.recipients[0].notified_at.is_none());
    assert!(record.remembered_until.is_some());
    let id = row.broker_message_id.to_string();
    for link in [&mut owner, &mut tom] {
        let told: BrokerExplained = link.ask(Question::Explain { id: id.clone() }).await.unwrap();
        assert_eq!((told.verdict.as_str(), told.records.len()), ("accepted", 1));
    }
    let hidden: BrokerExplained = ann.ask(Question::Explain { id }).await.unwrap();
    let absent: BrokerExplained = ann.ask(Question::Explain { id: "nothing".into() }).await.unwrap();
    for told in [hidden, absent] {
        assert_eq!((told.verdict.as_str(), told.records.len()), ("never_seen", 0));
    }
    accepted(ann.send_one("#a", "m1", "other").await);
    let both: BrokerExplained = owner.ask(Question::Explain { id: "m1".into() }).await.unwrap();
    assert_eq!(both.records.len(), 2, "two senders used the id");
}

#[tokio::test]
async fn a_closed_conversation_takes_no_message() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let (_, row) = post(&cron, MESSAGES, &json!({"to": "#a", "body": "hi"})).await.unwrap();
    let closed = ledger::ConversationState::Closed;
    ledger::Ledger::set_conversation_state(scene.ledger.as_ref(), row.conversation, closed).await.unwrap();
    let path = format!("/v1/conversations/{}/messages", row.conversation);
    let (status, code, _) = refused(post(&cron, &path, &json!({"body": "more"})).await);
    assert_eq!((status, code.as_str()), (409, "conversation_closed"));
}

/// Answers the broker's next question with `records`.
async fn answer_next(link: &mut Link, records: &Value) -> NodeQuestion {
    let asked = link
        .await_frame(|frame| match frame {
            ToNode::Ask(asked) => Ok(asked),
            other => Err(other.into()),
        })
        .await;
    let result = AnswerResult::Ok(crate::node::raw(records));
    link.say(ToBroker::Answer(Answer { n: asked.n, result })).await;
    asked.question
}

#[tokio::test]
async fn the_homes_involved_are_asked_and_a_silent_one_is_named() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let mut tom = scene.joined("tom").await.link().await;
    let mut ann = scene.joined("ann").await.link().await;
    let cron = caller(&scene, &mut owner, "cron", ALL).await;
    let row = accepted(ann.send_one("@tom", "m1", "hi").await);
    let id = row.broker_message_id;
    let held = json!([{"held": "inbox", "recipient": "tom", "received_at": "2027-01-01T00:00:00.000000Z", "rung": "delivered"}]);
    let (told, asked) = tokio::join!(
        owner.ask::<BrokerExplained>(Question::Explain { id: id.to_string() }),
        answer_next(&mut tom, &held)
    );
    let NodeQuestion::Explain { client_message_id, sender, broker_message_id } = asked;
    assert_eq!((client_message_id.as_str(), sender, broker_message_id), ("m1", Some(ann.person), Some(id)));
    let homes = told.unwrap().homes;
    let home = |name: &str| homes.iter().find(|home| home.node.as_str() == name).unwrap();
    assert_eq!((home("tom").records.len(), home("tom").unreachable), (1, false));
    assert_eq!((home("ann").records.len(), home("ann").unreachable), (0, true), "it did not answer");
    let unseen: BrokerExplained = cron.get("/v1/explain/nothing").await.unwrap();
    assert!(unseen.homes.is_empty(), "only an owner has every home asked");
    drop((tom, ann));
}
