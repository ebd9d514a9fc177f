//! Both limiters, and what they promise together.

mod agreement;
mod embedded;
mod outage;
mod planted;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use model::gcra::Quota;
use model::{Entropy, OsEntropy, Timestamp};
use testkit::ManualClock;

use super::*;

/// A mesh of its own for every test, so that one Redis serves them all.
fn mesh() -> MeshId {
    MeshId::mint(Timestamp::from_micros(0), &OsEntropy)
}

fn member(number: u8) -> MemberId {
    MemberId::from_bytes([number; 16])
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_micros(0)))
}

fn budgets(member: &str, mesh: &str) -> Budgets {
    let quota = |text: &str| text.parse::<Quota>().expect("the test names a legal quota");
    Budgets { member: quota(member), mesh: quota(mesh) }
}

fn ask(mesh: MeshId, member_number: u8, id: &str) -> Ask {
    Ask {
        mesh,
        member: member(member_number),
        client_message_id: id.parse().expect("the test names a legal id"),
        fingerprint_prefix: [7; 8],
        cost: 1,
    }
}

fn denied(millis: u64) -> Verdict {
    Verdict::Denied { retry_after: Duration::from_millis(millis) }
}

/// How many of many verdicts were charges.
fn charges(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| **verdict == Verdict::Granted).count()
}

fn random_id() -> String {
    format!("id-{:016x}", OsEntropy.next_u64())
}

/// 64 equal asks at once, on as many tasks.
async fn race(limiter: &Arc<dyn Limiter>, ask: &Ask) -> Vec<Verdict> {
    let gate = Arc::new(tokio::sync::Barrier::new(64));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (limiter, gate, ask) = (Arc::clone(limiter), Arc::clone(&gate), ask.clone());
            tokio::spawn(async move {
                gate.wait().await;
                limiter.consume(&ask).await
            })
        })
        .collect();
    let mut verdicts = Vec::new();
    for task in tasks {
        verdicts.push(task.await.expect("an ask does not panic"));
    }
    verdicts
}
