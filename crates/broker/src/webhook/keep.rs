//! The task that pushes: claim what is due, make the calls, record what became of them.
//!
//! - Looks are woken by commits and paced, so that a busy ledger is not asked for every one of them.
//! - A stop takes no more calls; those under way end within their own deadline.
//! - What could not be recorded is called again once its claim lapses, under the same id.

use std::sync::Arc;

use ledger::{Ledger, Push, PushOutcome, PushSettled, StorageError};
use model::webhook::{self, Verdict};
use model::{Entropy, backoff, limits};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Webhooks;
use super::call::Called;
use crate::broker::Shared;
use crate::metrics::Metrics;

/// How often an outcome is told to a ledger that does not take it: a success forgotten is a call made twice.
const SETTLE_TRIES: u32 = 4;

/// Pushes until the broker stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let mut stirred = shared.ledger.stirred();
    let mut calls = JoinSet::new();
    let mut is_well = true;
    while !shared.stop.is_cancelled() {
        let looked = look(&shared, &mut calls).await;
        match &looked {
            Err(error) if is_well => tracing::warn!(%error, "due webhooks could not be claimed"),
            Err(_) | Ok(()) => {}
        }
        is_well = looked.is_ok();
        tokio::select! {
            () = shared.stop.cancelled() => break,
            () = sleep(limits::WEBHOOK_LOOK_EVERY) => {}
        }
        tokio::select! {
            () = shared.stop.cancelled() => break,
            Ok(()) = stirred.changed() => {}
            Some(_) = calls.join_next() => {}
            () = sleep(limits::SAFETY_POLL_EVERY) => {}
        }
    }
    while calls.join_next().await.is_some() {}
}

async fn look(shared: &Arc<Shared>, calls: &mut JoinSet<()>) -> Result<(), StorageError> {
    while calls.try_join_next().is_some() {}
    let free = limits::WEBHOOK_CALLS_MAX.saturating_sub(calls.len());
    if free == 0 {
        return Ok(());
    }
    for push in shared.ledger.claim_pushes(free).await? {
        let shared = shared.clone();
        calls.spawn(async move {
            let Shared { webhooks, ledger, entropy, metrics, .. } = &*shared;
            webhooks.push(ledger.as_ref(), entropy.as_ref(), metrics, push).await;
        });
    }
    Ok(())
}

impl Webhooks {
    /// Makes one claimed call and records what became of it.
    pub(super) async fn push(
        &self,
        ledger: &dyn Ledger,
        entropy: &dyn Entropy,
        metrics: &Metrics,
        push: Push,
    ) {
        let called = self.call(&push).await;
        let outcome = outcome(&push, &called, entropy.next_u64());
        let (id, member) = (push.claim.id, push.claim.recipient);
        match settle(ledger, entropy, &push, &outcome).await {
            Ok(PushSettled::Recorded) => tell(metrics, &push, &called, &outcome),
            Ok(PushSettled::ClaimLost) => {
                tracing::debug!(%id, %member, "a webhook's claim lapsed before its answer was heard");
            }
            Err(error) => {
                tracing::warn!(%id, %member, %error, "a webhook's answer was not recorded: it is called again");
            }
        }
    }
}

fn outcome(push: &Push, called: &Called, random: u64) -> PushOutcome {
    match webhook::judge(called.heard, push.claim.attempts, random) {
        Verdict::Delivered => PushOutcome::Delivered,
        Verdict::Again { after } => PushOutcome::Again { after, answer: called.answer.clone() },
        Verdict::GiveUp => PushOutcome::GaveUp,
        Verdict::Disable => PushOutcome::Disabled { reason: webhook::GONE.to_owned() },
    }
}

async fn settle(
    ledger: &dyn Ledger,
    entropy: &dyn Entropy,
    push: &Push,
    outcome: &PushOutcome,
) -> Result<PushSettled, StorageError> {
    let mut tries = 1;
    loop {
        let settled = ledger.settle_push(push.claim, outcome.clone()).await;
        if settled.is_ok() || tries == SETTLE_TRIES {
            return settled;
        }
        sleep(backoff::delay(tries, entropy.next_u64())).await;
        tries += 1;
    }
}

fn tell(metrics: &Metrics, push: &Push, called: &Called, outcome: &PushOutcome) {
    let (id, member, answer) = (push.claim.id, push.claim.recipient, called.answer.as_str());
    match outcome {
        PushOutcome::Delivered => metrics.webhook_delivered.add_one(),
        PushOutcome::Again { after, .. } => {
            metrics.webhook_retried.add_one();
            tracing::debug!(%id, %member, answer, ?after, "a webhook is called again later");
        }
        PushOutcome::GaveUp => {
            metrics.webhook_parked.add_one();
            tracing::warn!(%id, %member, answer, "a webhook was called for the last time: the message is given up");
        }
        PushOutcome::Disabled { .. } => {
            tracing::warn!(%id, %member, answer, "a webhook's endpoint says that it is gone: the webhook is off");
        }
    }
}
