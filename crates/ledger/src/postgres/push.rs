//! Pushing: which calls are due, who makes them, and what became of them.
//!
//! - A call is about a log's oldest undelivered row, so what is delivered is delivered in log order.
//! - Attempts are counted with the claim: a crash during a call uses one up.
//! - Success is truth from any state; everything else is recorded by the claim's holder alone.
//! - Whoever claims or settles holds the webhook's row first, so two of them never meet further on.

use model::limits::{
    SWEEP_ROWS_MAX, WEBHOOK_ATTEMPTS_MAX, WEBHOOK_CALLS_PER_ENDPOINT_MAX, WEBHOOK_CLAIM_TTL,
};
use model::webhook::{GAVE_UP, WebhookSecret};
use model::{DeliveryRung, ErrorCode, LeaseToken, Timestamp};
use tokio_postgres::Row;

use super::row::{at_option, bytes, count};
use super::session::Tx;
use super::{sql, window};
use crate::StorageError;
use crate::types::webhook::{Push, PushClaim, PushOutcome, PushSettled};

/// The row a call is about, and the calls before.
struct Head {
    message: i64,
    attempts: i64,
}

/// Where a webhook's calls go and with what they are signed.
struct Keys {
    url: String,
    secrets: Vec<WebhookSecret>,
}

/// Whether a claim would do anything: asked of a snapshot, so that a look in vain writes nothing and wakes nobody.
pub(super) async fn is_due(tx: &Tx) -> Result<bool, StorageError> {
    for member in members_due(tx).await? {
        if room_of(tx, member).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) async fn claim(tx: &Tx, limit: usize) -> Result<Vec<Push>, StorageError> {
    let mut pushes = Vec::new();
    for member in members_due(tx).await? {
        if pushes.len() >= limit || tx.one(sql!("webhook_take"), &[&member]).await?.is_none() {
            continue;
        }
        // Looked at again under the lock: another claim may have ended since.
        let room = room_of(tx, member).await?.min(limit - pushes.len());
        for (_, conversation) in due(tx, Some(member)).await?.into_iter().take(room) {
            pushes.extend(claim_one(tx, member, conversation).await?);
        }
    }
    Ok(pushes)
}

pub(super) async fn settle(
    tx: &Tx,
    claim: &PushClaim,
    outcome: &PushOutcome,
) -> Result<PushSettled, StorageError> {
    let Some(found) = window::delivery(tx, claim.id, claim.recipient).await? else {
        // Without its row the message was pruned, and nothing is left to record.
        return Ok(PushSettled::Recorded);
    };
    tx.one(sql!("webhook_lock"), &[&found.recipient]).await?;
    let (member, message) = (found.recipient, found.message);
    let lease = claim.token.to_bytes();
    let lease = lease.as_slice();
    let held = match outcome {
        PushOutcome::Delivered => {
            window::tell(tx, claim.id, claim.recipient, DeliveryRung::Delivered, None).await?;
            tx.change(sql!("webhook_call_done"), &[&member, &message]).await?;
            true
        }
        PushOutcome::Again { after, answer } => {
            let due_at = again_at(tx, message, tx.now + *after).await?;
            put_off(tx, (member, message), lease, due_at, answer).await?
        }
        PushOutcome::GaveUp => {
            let held = tx.change(sql!("webhook_call_end"), &[&member, &message, &lease]).await? == 1;
            if held {
                let why = Some(GAVE_UP.to_owned());
                window::tell(tx, claim.id, claim.recipient, DeliveryRung::DeadLetter, why).await?;
            }
            held
        }
        PushOutcome::Disabled { reason } => {
            let held = put_off(tx, (member, message), lease, tx.now, reason).await?;
            if held {
                tx.change(sql!("webhook_disable"), &[&member, &tx.now.as_micros(), reason]).await?;
            }
            held
        }
    };
    Ok(if held { PushSettled::Recorded } else { PushSettled::ClaimLost })
}

/// Members for whom something is due, each once, however many logs wait for its endpoint.
async fn members_due(tx: &Tx) -> Result<Vec<i64>, StorageError> {
    let mut members: Vec<i64> = due(tx, None).await?.into_iter().map(|(member, _)| member).collect();
    members.dedup();
    Ok(members)
}

/// Members and their logs in which something is due, who waited longest first.
async fn due(tx: &Tx, member: Option<i64>) -> Result<Vec<(i64, i64)>, StorageError> {
    let rows = tx.all(sql!("webhook_due"), &[&tx.now.as_micros(), &member]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// How many more calls the webhook's endpoint gets at once.
async fn room_of(tx: &Tx, member: i64) -> Result<usize, StorageError> {
    let row = tx.one(sql!("webhook_calls_claimed"), &[&member, &tx.now.as_micros()]).await?;
    let claimed = row.map_or(Ok(0), |row| count(&row, 0))?;
    Ok(WEBHOOK_CALLS_PER_ENDPOINT_MAX.saturating_sub(usize::try_from(claimed).unwrap_or(usize::MAX)))
}

async fn claim_one(tx: &Tx, member: i64, conversation: i64) -> Result<Option<Push>, StorageError> {
    let Some(head) = live_head(tx, member, conversation).await? else { return Ok(None) };
    let keys = tx.one(sql!("webhook_keys"), &[&member]).await?;
    let Some(keys) = keys.map(|row| keys_of(&row, tx.now)).transpose()? else { return Ok(None) };
    let row = tx.one(sql!("mail_row"), &[&head.message, &member]).await?;
    let Some(row) = row.map(|row| window::mail_row(&row, 0)).transpose()? else { return Ok(None) };
    let token = LeaseToken::mint(tx.now, tx.entropy());
    let attempts = head.attempts + 1;
    let until = (tx.now + WEBHOOK_CLAIM_TTL).as_micros();
    let lease = token.to_bytes();
    tx.change(
        sql!("webhook_call_claim"),
        &[&member, &conversation, &head.message, &attempts, &until, &lease.as_slice()],
    )
    .await?;
    tx.change(sql!("webhook_served"), &[&member, &tx.now.as_micros()]).await?;
    let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    let claim = PushClaim { id: row.id, recipient: row.recipient, token, attempts };
    Ok(Some(Push { claim, row, url: keys.url, secrets: keys.secrets, now: tx.now }))
}

/// The log's oldest row that may still be tried; those before it end here.
async fn live_head(tx: &Tx, member: i64, conversation: i64) -> Result<Option<Head>, StorageError> {
    for _ in 0..SWEEP_ROWS_MAX {
        let Some(oldest) = tx.one(sql!("webhook_oldest"), &[&member, &conversation]).await? else {
            return Ok(None);
        };
        let (message, deliver_by) = (oldest.try_get::<_, i64>(0)?, at_option(&oldest, 1)?);
        let call = tx.one(sql!("webhook_call"), &[&member, &conversation]).await?;
        let attempts = match call {
            Some(call) if call.try_get::<_, i64>(0)? == message => call.try_get(1)?,
            Some(_) | None => 0,
        };
        let (rung, why) = if deliver_by.is_some_and(|deliver_by| deliver_by <= tx.now) {
            (DeliveryRung::Expired, ErrorCode::DeliverByPassed.code())
        } else if attempts >= i64::from(WEBHOOK_ATTEMPTS_MAX) {
            // Its last claim lapsed: nobody lived to record what became of the call.
            (DeliveryRung::DeadLetter, GAVE_UP)
        } else {
            return Ok(Some(Head { message, attempts }));
        };
        window::end(tx, &[message], member, rung, why).await?;
        tx.change(sql!("webhook_call_drop"), &[&member, &conversation]).await?;
    }
    Ok(None)
}

/// A row that may not be handed on any more must not hold up its log until its next attempt.
async fn again_at(tx: &Tx, message: i64, due_at: Timestamp) -> Result<Timestamp, StorageError> {
    let row = tx.one(sql!("message_deliver_by"), &[&message]).await?;
    let deliver_by = row.map_or(Ok(None), |row| at_option(&row, 0))?;
    Ok(deliver_by.map_or(due_at, |deliver_by| due_at.min(deliver_by)))
}

async fn put_off(
    tx: &Tx,
    (member, message): (i64, i64),
    lease: &[u8],
    due_at: Timestamp,
    answer: &str,
) -> Result<bool, StorageError> {
    let due_at = due_at.as_micros();
    Ok(tx.change(sql!("webhook_call_again"), &[&member, &message, &lease, &due_at, &answer]).await? == 1)
}

fn keys_of(row: &Row, now: Timestamp) -> Result<Keys, StorageError> {
    let mut secrets = vec![WebhookSecret::from_bytes(bytes(row, 1)?)];
    let signs = at_option(row, 3)?.is_some_and(|until| now < until);
    if signs {
        secrets.push(WebhookSecret::from_bytes(bytes(row, 2)?));
    }
    Ok(Keys { url: row.try_get(0)?, secrets })
}
