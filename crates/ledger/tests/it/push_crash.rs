//! A process that pushes, aborted around its commits: a call may be made twice under one id, and none is forgotten.
//! On both stores.

use ledger::conformance::town;
use ledger::{Ledger, MeshSetup, NewWebhook, PushOutcome, Role};
use model::limits::WEBHOOK_CLAIM_TTL;
use model::webhook::{WebhookSecret, delivery_id};

use crate::crash::{Store, given};

const LIFE: &str = "push_crash::pushing_process";
const MESSAGES: usize = 3;

/// Not a check of its own: the life of the process that the test below starts and crashes.
#[tokio::test]
async fn pushing_process() {
    let Some(ledger) = given().await else { return };
    ledger.setup(MeshSetup { slug: "home".into(), policies: town::POLICIES }).await.unwrap();
    let jane = town::join(&*ledger, "jane", Role::Owner).await;
    let hook = NewWebhook {
        name: town::member_name("hook"),
        url: "https://hooks.example/".into(),
        secret: WebhookSecret::from_bytes([1; 32]),
        topics: Vec::new(),
    };
    ledger.create_webhook(hook).await.unwrap();
    for n in 0..MESSAGES {
        town::accepted(&*ledger, &jane, town::text("@hook", &format!("m{n}"), &n.to_string())).await;
    }
    for id in push_all(&*ledger, |id| println!("called {id}")).await {
        println!("recorded {id}");
    }
}

/// Takes every call that is due, in order, as an endpoint that takes everything would; the ids recorded.
async fn push_all(ledger: &dyn Ledger, called: impl Fn(&str)) -> Vec<String> {
    let mut recorded = Vec::new();
    while let Some(push) = ledger.claim_pushes(1).await.unwrap().pop() {
        let id = delivery_id(push.claim.id, push.claim.recipient);
        called(&id);
        ledger.settle_push(push.claim, PushOutcome::Delivered).await.unwrap();
        recorded.push(id);
    }
    recorded
}

fn ids(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.strip_prefix("called ")).collect()
}

#[tokio::test]
async fn a_crash_around_a_push_repeats_its_id_at_most_and_loses_none() {
    for (moment, repeated) in [
        ("claim_pushes.before_commit:2", false),
        ("claim_pushes.after_commit:2", false),
        ("settle_push.before_commit:2", true),
        ("settle_push.after_commit:2", false),
    ] {
        for store in Store::both() {
            let output = store.crash_in(LIFE, &format!("crash:ledger.{moment}"));
            let output = String::from_utf8_lossy(&output.stdout).into_owned();
            let before = ids(&output);
            let ledger = store.open_after(WEBHOOK_CLAIM_TTL).await;
            let after = push_all(&*ledger, |_| {}).await;
            let again = after.iter().filter(|id| before.contains(&id.as_str())).count();
            assert_eq!(again, usize::from(repeated), "{moment}: {before:?} then {after:?}");
            let calls = before.len() + after.len();
            assert_eq!(calls, MESSAGES + usize::from(repeated), "{moment}: {before:?} then {after:?}");
            let row = ledger.webhooks().await.unwrap().remove(0);
            assert_eq!((row.waiting, row.parked), (0, 0), "{moment}");
        }
    }
}
