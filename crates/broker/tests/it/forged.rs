//! Things that look like the broker's own: cursors, tickets, tokens, names, other meshes' ids.

use http::Method;
use net::Secret;
use net::client::{Ask, Client, ClientError};
use serde_json::{Value, json};
use wire::ask::{Question, Scope, Token};
use wire::direct::ConversationList;
use wire::log::Page;

use crate::node::Link;
use crate::scene::Scene;

async fn caller(scene: &Scene, owner: &mut Link, member: &str) -> Client {
    let scopes = vec![Scope::Send, Scope::Read];
    let token: Token =
        owner.ask(Question::TokenCreate { member: member.parse().unwrap(), scopes }).await.unwrap();
    scene.client().with_bearer(&Secret::from(token.token))
}

fn status<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> u16 {
    match answer {
        Err(ClientError::Refused { status, .. }) => status,
        other => panic!("a refusal, not {other:?}"),
    }
}

async fn post(client: &Client, to: &str, body: &str) {
    let message = json!({"to": to, "body": body});
    client.post::<Value>("/v1/meshes/home/messages", &message).await.unwrap();
}

#[tokio::test]
async fn a_forged_cursor_shows_no_row_that_was_not_the_readers() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron").await;
    let eve = caller(&scene, &mut owner, "eve").await;
    for n in 0..3 {
        post(&cron, "@jane", &format!("secret {n}")).await;
        post(&cron, "#open", &format!("open {n}")).await;
    }
    let list: ConversationList = cron.get("/v1/conversations?limit=10").await.unwrap();
    let named = |name: &str| {
        let row = list.conversations.iter().find(|row| row.conversation_name == name);
        format!("/v1/conversations/{}", row.expect("it was written to").conversation)
    };
    let (secret, open) = (named("@jane"), named("#open"));
    let page: Page = cron.get(&format!("{secret}?limit=1")).await.unwrap();
    let elsewhere = eve.get::<Page>(&format!("{open}?before={}", page.before)).await;
    assert!([400, 410].contains(&status(elsewhere)), "a place in one log is none in another");
    let hidden: Page = eve.get(&format!("{secret}?before={}", page.before)).await.unwrap();
    assert!(hidden.messages.is_empty(), "a right cursor opens no foreign log");
    let long = "9".repeat(7_000);
    for forged in ["-1.000000000:x:0", "0:0:0", "NaN:NaN:NaN", ":::", "%00", "1e400:x:0", long.as_str()] {
        let answered = status(cron.get::<Page>(&format!("{open}?before={forged}")).await);
        assert!([400, 410].contains(&answered), "{forged:.20} {answered}");
    }
}

#[tokio::test]
async fn a_name_that_looks_like_another_is_no_name() {
    let scene = Scene::open().await;
    for name in ["lab\0", "lab\u{202e}", "l\u{430}b", "LAB", " lab", "lab/..", "", &"l".repeat(10_000)] {
        let answer = scene.client().post::<Value>("/v1/auth/challenge", &json!({"nodeId": name})).await;
        assert!([400, 413].contains(&status(answer)), "{name:.20?}");
    }
}

#[tokio::test]
async fn no_text_in_the_shape_of_a_ticket_opens_a_link() {
    let scene = Scene::open().await;
    let node = scene.stranger("lab");
    for ticket in [
        "e30.e30.e30",
        "eyJhbGciOiJub25lIn0.eyJleHAiOjk5OTk5OTk5OTl9.",
        "v4.public.eyJleHAiOi0xfQ",
        "v4.local.AAAA",
        "..%2f..%2fkey",
        &"A".repeat(4_000),
    ] {
        let answer = node.upgrade(&ticket.to_owned().into()).await.map(drop);
        assert!([400, 401].contains(&status(answer)), "{ticket:.30}");
    }
}

#[tokio::test]
async fn a_token_is_whole_or_none() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let scopes = vec![Scope::Send, Scope::Read];
    let question = Question::TokenCreate { member: "cron".parse().unwrap(), scopes };
    let Token { token, .. } = owner.ask(question).await.unwrap();
    let half = &token[..token.len() / 2];
    let turned: String = token.chars().rev().collect();
    for wrong in [half, &format!("{half}{half}"), &format!("{token}x"), &turned, "x", &"x".repeat(8_000)] {
        let client = scene.client().with_bearer(&Secret::from(wrong.to_owned()));
        assert_eq!(status(client.get::<Value>("/v1/conversations").await), 401, "{wrong:.20}");
    }
    let right = scene.client().with_bearer(&Secret::from(token));
    assert!(right.get::<Value>("/v1/conversations").await.is_ok());
}

#[tokio::test]
async fn another_meshs_ids_cannot_be_probed() {
    let scene = Scene::open().await;
    let mut owner = scene.owner("jane").await.link().await;
    let cron = caller(&scene, &mut owner, "cron").await;
    post(&cron, "#a", "hi").await;
    for mesh in ["other", "01890a5d-ac96-774b-bcce-b302099a8057", "home%2f..%2fhome", "HOME"] {
        let path = format!("/v1/meshes/{mesh}/messages/m1");
        match cron.ask(Ask::new(Method::GET, path)).await {
            Err(ClientError::Refused { status: 404, body, .. }) => {
                assert!(!body.more.contains_key("broker_message_id"), "{mesh}");
            }
            other => panic!("404, not {other:?}"),
        }
        let stranger = scene.client().get::<Value>(&format!("/v1/meshes/{mesh}/messages/m1")).await;
        assert_eq!(status(stranger), 401, "who asks comes first: {mesh}");
    }
}
