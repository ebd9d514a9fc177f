//! A hub's process aborted around its commits: an effect and its key's record are there together or not at all, and a
//! copy under the same key makes exactly one change either way. On both stores.

use std::sync::Arc;

use ledger::conformance::town;
use ledger::planted::IDEM_OWN_TRANSACTION;
use ledger::{HubAnswer, HubApplied, HubEffect, HubKey, HubWrite, Ledger, Role};
use model::hub::{Change, Precondition, RecordKind};
use model::{Fingerprint, MemberId};

use crate::crash::{Store, given};

/// Every copy of every write adds one change to the same record, so that a doubled one shows in its version.
fn write(principal: MemberId, n: u8) -> HubWrite {
    let fields = serde_json::from_str(&format!(r#"{{"n":{n}}}"#)).unwrap();
    HubWrite {
        principal,
        key: Some(HubKey {
            key: format!("k{n}").parse().unwrap(),
            method: "POST".into(),
            path: "/hub/token-events/upsert".into(),
            fingerprint: Fingerprint::from_bytes([n; 32]),
            created_at: None,
        }),
        effect: HubEffect::Record {
            kind: RecordKind::TokenEvent,
            id: "e1".parse().unwrap(),
            change: Change::Replace(fields),
            precondition: Precondition::None,
        },
        render: |applied: &HubApplied| HubAnswer {
            changed_at: None,
            status: 200,
            etag: None,
            body: format!("{applied:?}").into_bytes(),
        },
    }
}

async fn jane(ledger: &Arc<dyn Ledger>) -> MemberId {
    let named = ledger.member_named(&town::member_name("jane")).await.unwrap();
    named.expect("she joined before the crash").id
}

async fn changes(ledger: &Arc<dyn Ledger>) -> u64 {
    let record = ledger.hub_record(RecordKind::TokenEvent, &"e1".parse().unwrap()).await.unwrap();
    record.map_or(0, |record| record.version)
}

/// Not a check of its own: the life of the process that the tests below start and crash.
#[tokio::test]
async fn crashing_hub() {
    let Some(ledger) = given().await else { return };
    let setup = ledger::MeshSetup { slug: "home".into(), policies: town::POLICIES };
    ledger.setup(setup).await.unwrap();
    let jane = town::join(&*ledger, "jane", Role::Owner).await;
    for n in 1..=3 {
        ledger.hub_write(write(jane.id(), n)).await.unwrap();
        println!("answered");
    }
}

/// Answers before the crash, changes found after it, and changes after every write was repeated.
async fn life_until(store: &Store, plan: &str) -> (usize, u64, u64) {
    let output = store.crash_in("hub_crash::crashing_hub", plan);
    let answered = String::from_utf8_lossy(&output.stdout).matches("answered").count();
    let ledger = store.open().await;
    let found = changes(&ledger).await;
    let jane = jane(&ledger).await;
    for n in 1..=3 {
        ledger.hub_write(write(jane, n)).await.unwrap();
    }
    (answered, found, changes(&ledger).await)
}

#[tokio::test]
async fn a_crash_before_the_commit_leaves_nothing_and_the_copy_makes_one() {
    for visit in [1, 3] {
        for store in Store::both() {
            let plan = format!("crash:ledger.hub_write.before_commit:{visit}");
            assert_eq!(life_until(&store, &plan).await, (visit - 1, visit as u64 - 1, 3));
        }
    }
}

#[tokio::test]
async fn a_crash_after_the_commit_leaves_it_whole_and_the_copy_makes_none() {
    for visit in [1, 3] {
        for store in Store::both() {
            let plan = format!("crash:ledger.hub_write.after_commit:{visit}");
            assert_eq!(life_until(&store, &plan).await, (visit - 1, visit as u64, 3));
        }
    }
}

#[tokio::test]
async fn the_planted_bug_shows_as_a_doubled_change() {
    for store in Store::both() {
        let plan = format!("bug:{IDEM_OWN_TRANSACTION},crash:ledger.hub_key.before_commit:2");
        assert_eq!(life_until(&store, &plan).await, (1, 2, 4));
    }
}
