//! Where calls may not go: refused when a webhook is made, and at every call again.

use ledger::Ledger;
use model::{DeliveryRung, ErrorCode};

use super::receiver::{Receiver, status};
use super::scene::{Scene, Scripted};

/// An address of the public internet, for names that are not dialled.
const PUBLIC: &str = "93.184.216.34";

#[tokio::test]
async fn no_address_inside_is_accepted_in_any_spelling() {
    let scene = Scene::with(&[], Scripted::new(&[&["127.0.0.1"]])).await;
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1/",
        "http://10.0.0.1/",
        "http://192.168.1.1:8080/",
        "http://100.100.100.200/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::127.0.0.1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:7f00:1::]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "https://lvh.me/",
        "https://localhost/",
        "https://localhost./",
        "https://LOCALHOST:8443/",
    ] {
        let refused = scene.try_hook(url).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::WebhookUrlRefused, "{url}: {refused}");
    }
    for url in [
        "http://0177.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "gopher://example.org/",
        "file:///etc/passwd",
        "http://user@example.org/",
        "http://example.org@127.0.0.1/",
    ] {
        let refused = scene.try_hook(url).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest, "{url}: {refused}");
    }
    assert!(scene.ledger.webhooks().await.unwrap().is_empty());
}

#[tokio::test]
async fn one_address_inside_closes_the_gate_and_so_does_none() {
    for answers in [&[PUBLIC, "10.0.0.1"][..], &["2606:4700::1", "::1"], &[]] {
        let scene = Scene::with(&[], Scripted::new(&[answers])).await;
        let refused = scene.try_hook("https://example.org/").await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::WebhookUrlRefused, "{answers:?}");
    }
    let scene = Scene::with(&[], Scripted::new(&[&[PUBLIC, "2606:4700::1"]])).await;
    scene.try_hook("https://example.org/").await.unwrap();
}

#[tokio::test]
async fn a_name_that_changes_its_meaning_is_not_called() {
    let receiver = Receiver::start(vec![status(200, &[])]).await;
    let resolver = Scripted::new(&[&[PUBLIC], &["127.0.0.1"]]);
    let scene = Scene::with(&[], resolver.clone()).await;
    scene.hook(&format!("http://rebind.example:{}/", receiver.address.port())).await;
    let receipt = scene.send("@hook", "m", "hi").await;
    assert_eq!(scene.push_due().await, 1);
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Accepted);
    assert_eq!(scene.last_answer(&receipt).await.as_deref(), Some("address_refused"));
    assert!(receiver.calls().is_empty());
    assert_eq!(*resolver.asked.lock().unwrap(), ["rebind.example", "rebind.example"]);
}

#[tokio::test]
async fn an_address_that_was_public_when_stored_is_checked_at_the_call() {
    let receiver = Receiver::start(vec![status(200, &[])]).await;
    let mut scene = Scene::open().await;
    scene.hook(&receiver.url()).await;
    // The operator no longer names the host.
    scene.webhooks = crate::webhook::Webhooks::with(Vec::new(), Scripted::new(&[&[]]), "test");
    let receipt = scene.send("@hook", "m", "hi").await;
    scene.push_due().await;
    assert_eq!(scene.last_answer(&receipt).await.as_deref(), Some("address_refused"));
    assert!(receiver.calls().is_empty());
}

#[tokio::test]
async fn a_host_the_operator_named_is_called_at_the_address_it_resolved_to_once() {
    let receiver = Receiver::start(vec![status(200, &[])]).await;
    // A second question in one call would lead to an address nobody answers at.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.1"], &["192.0.2.1"]]);
    let scene = Scene::with(&["inside.example"], resolver.clone()).await;
    scene.hook(&format!("http://Inside.Example:{}/", receiver.address.port())).await;
    let receipt = scene.send("@hook", "m", "hi").await;
    scene.push_due().await;
    assert_eq!(scene.rung(&receipt).await, DeliveryRung::Delivered);
    assert_eq!(resolver.asked.lock().unwrap().len(), 2, "once to store it, once to call it");
    let host = format!("inside.example:{}", receiver.address.port());
    assert_eq!(receiver.calls()[0].header("host"), host);
}
