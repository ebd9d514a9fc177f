//! What arrives, under which id, and what the ledger then holds.

use ledger::{Ledger, PushOutcome, PushSettled, WebhookState};
use model::DeliveryRung;
use model::limits::{WEBHOOK_ATTEMPTS_MAX, WEBHOOK_CLAIM_TTL, WEBHOOK_ROTATION};
use model::webhook::GAVE_UP;
use standardwebhooks::Webhook;

use super::receiver::{Arrived, Receiver, status};
use super::scene::Scene;
use crate::webhook::{enable, list, rotate};

/// Whether a receiver that has `secret` believes the call. The library compares timestamps with the machine's clock,
/// and this clock is the test's: so it signs, and one of the call's signatures must be that one.
fn believes(secret: &str, call: &Arrived) -> bool {
    let oracle = Webhook::new(secret).unwrap();
    let at = call.header("webhook-timestamp").parse().unwrap();
    let expected = oracle.sign(call.id(), at, call.body.as_bytes()).unwrap();
    call.header("webhook-signature").split(' ').any(|signature| signature == expected)
}

#[tokio::test]
async fn a_message_arrives_signed_and_whole_and_is_delivered() {
    let scene = Scene::open().await;
    let receiver = Receiver::start(vec![status(200, &["set-cookie: a=b"])]).await;
    let secret = scene.hook(&receiver.url()).await;
    let receipt = scene.send("@hook", "m1", "hello").await;
    assert_eq!(scene.push_due().await, 1);
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Delivered);
    let call = receiver.calls().remove(0);
    assert_eq!(call.line, "POST /hook?k=v HTTP/1.1");
    assert_eq!(call.header("host"), receiver.address.to_string());
    assert_eq!(call.header("content-type"), "application/json");
    assert_eq!(call.header("user-agent"), "postrider/test");
    assert_eq!(call.header("webhook-timestamp"), "1800000000");
    assert!(call.id().starts_with(&receipt.broker_message_id.to_string()));
    assert!(secret.starts_with("whsec_") && believes(&secret, &call));
    let forged = Arrived { body: call.body.replace("hello", "hullo"), ..call.clone() };
    assert!(!believes(&secret, &forged));
    let told: serde_json::Value = serde_json::from_str(&call.body).unwrap();
    assert_eq!(
        (&told["type"], &told["body"], &told["sender"]),
        (&"message".into(), &"hello".into(), &"jane".into())
    );
    assert_eq!(told["id"], receipt.broker_message_id.to_string());
    assert_eq!((&told["client_message_id"], &told["history_id"]), (&"m1".into(), &1.into()));
    assert_eq!(scene.metrics.webhook_delivered.get(), 1);
    scene.send("@hook", "m2", "again").await;
    scene.push_due().await;
    assert_eq!(receiver.calls()[1].headers.get("cookie"), None, "cookies are not kept");
}

#[tokio::test]
async fn a_refused_message_comes_again_under_the_same_id() {
    let scene = Scene::open().await;
    let receiver = Receiver::start(vec![status(500, &[]), status(200, &[])]).await;
    let secret = scene.hook(&receiver.url()).await;
    let receipt = scene.send("@hook", "m", "hi").await;
    assert_eq!(scene.push_due().await, 1);
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Accepted);
    assert_eq!(scene.last_answer(&receipt).await.as_deref(), Some("http_500"));
    scene.pass(4);
    assert_eq!(scene.push_due().await, 0, "not before the schedule says");
    scene.pass(2);
    assert_eq!(scene.push_due().await, 1);
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Delivered);
    let calls = receiver.calls();
    assert_eq!((calls.len(), calls[0].id()), (2, calls[1].id()));
    assert_eq!(calls[0].body, calls[1].body);
    assert_ne!(calls[0].header("webhook-timestamp"), calls[1].header("webhook-timestamp"));
    assert!(calls.iter().all(|call| believes(&secret, call)));
    assert_eq!((scene.metrics.webhook_retried.get(), scene.metrics.webhook_delivered.get()), (1, 1));
    assert_eq!(scene.push_due().await, 0);
}

#[tokio::test]
async fn an_endpoint_is_left_alone_for_as_long_as_it_asks() {
    let scene = Scene::open().await;
    let receiver = Receiver::start(vec![status(503, &["retry-after: 90"]), status(204, &[])]).await;
    scene.hook(&receiver.url()).await;
    let receipt = scene.send("@hook", "m", "hi").await;
    scene.push_due().await;
    scene.pass(89);
    assert_eq!(scene.push_due().await, 0);
    scene.pass(1);
    assert_eq!(scene.push_due().await, 1);
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Delivered);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_not_called_until_its_owner_says_so() {
    let scene = Scene::open().await;
    let receiver = Receiver::start(vec![status(410, &[]), status(200, &[])]).await;
    scene.hook(&receiver.url()).await;
    let first = scene.send("@hook", "m1", "1").await;
    scene.push_due().await;
    let second = scene.send("@hook", "m2", "2").await;
    scene.pass(48 * 3_600);
    assert_eq!(scene.push_due().await, 0);
    let row = list(&*scene.ledger).await.unwrap().remove(0);
    assert_eq!((row.disabled_reason.as_deref(), row.waiting), (Some("gone"), 2));
    assert!(row.disabled_at.is_some());
    let hook = "hook".parse().unwrap();
    assert!(enable(&*scene.ledger, &hook).await.unwrap().disabled_at.is_none());
    while scene.push_due().await > 0 {}
    for receipt in [first, second] {
        assert_eq!(scene.rung(&receipt).await, DeliveryRung::Delivered);
    }
    assert_eq!(receiver.calls().len(), 3);
}

#[tokio::test]
async fn both_secrets_of_a_rotation_prove_a_call_and_later_only_the_new_one_does() {
    let scene = Scene::open().await;
    let receiver = Receiver::start(vec![status(200, &[])]).await;
    let old = scene.hook(&receiver.url()).await;
    let rotated = rotate(&*scene.ledger, &scene.entropy, &"hook".parse().unwrap()).await.unwrap();
    assert_ne!(rotated.secret, old);
    assert!(rotated.row.old_secret_until.is_some());
    scene.send("@hook", "m1", "during").await;
    scene.push_due().await;
    scene.clock.advance(WEBHOOK_ROTATION);
    scene.send("@hook", "m2", "after").await;
    scene.push_due().await;
    let calls = receiver.calls();
    assert!(believes(&old, &calls[0]) && believes(&rotated.secret, &calls[0]));
    assert!(!believes(&old, &calls[1]) && believes(&rotated.secret, &calls[1]));
}

#[tokio::test]
async fn the_last_refusal_parks_the_message_and_the_next_one_is_called() {
    let scene = Scene::open().await;
    let receiver = Receiver::start(vec![status(500, &[])]).await;
    scene.hook(&receiver.url()).await;
    let parked = scene.send("@hook", "m1", "poison").await;
    scene.send("@hook", "m2", "next").await;
    for attempts in 1..=WEBHOOK_ATTEMPTS_MAX {
        assert_eq!(scene.push_due().await, 1, "attempt {attempts}");
        scene.pass(30 * 3_600);
    }
    assert_eq!(scene.rung(&parked).await, DeliveryRung::DeadLetter);
    assert_eq!(scene.metrics.webhook_parked.get(), 1);
    let row = scene.ledger.webhooks().await.unwrap().remove(0);
    assert_eq!((row.waiting, row.parked, row.state), (1, 1, WebhookState::Enabled));
    let untold = ledger::conformance::town::receipts(&*scene.ledger, &scene.jane).await;
    assert_eq!(untold[0].ended_code.as_deref(), Some(GAVE_UP), "the sender is told");
    scene.push_due().await;
    let bodies: Vec<bool> = receiver.calls().iter().map(|call| call.body.contains("poison")).collect();
    assert_eq!(bodies.iter().filter(|poison| **poison).count(), WEBHOOK_ATTEMPTS_MAX as usize);
    assert_eq!(bodies.last(), Some(&false));
}

#[tokio::test]
async fn a_process_killed_between_call_and_record_calls_again_under_the_same_id() {
    let scene = Scene::open().await;
    let receiver = Receiver::start(vec![status(200, &[])]).await;
    scene.hook(&receiver.url()).await;
    let receipt = scene.send("@hook", "m", "hi").await;
    let push = scene.claim().await.remove(0);
    assert_eq!(scene.webhooks.call(&push).await.answer, "http_200");
    // Nothing was recorded when the process went.
    let scene = scene.restarted().await;
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Accepted);
    assert_eq!(scene.push_due().await, 0, "the claim still stands: its holder may live");
    scene.clock.advance(WEBHOOK_CLAIM_TTL);
    assert_eq!(scene.push_due().await, 1);
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Delivered);
    let calls = receiver.calls();
    assert_eq!((calls.len(), calls[0].id()), (2, calls[1].id()));
    // The first holder's word, if it comes after all, changes nothing.
    let late = scene.ledger.settle_push(push.claim, PushOutcome::GaveUp).await.unwrap();
    assert_eq!(late, PushSettled::ClaimLost);
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Delivered);
}
