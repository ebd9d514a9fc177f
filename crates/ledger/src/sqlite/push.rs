//! Pushing: which calls are due, who makes them, and what became of them.
//!
//! - A call is about a log's oldest undelivered row, so what is delivered is delivered in log order.
//! - Attempts are counted with the claim: a crash during a call uses one up.
//! - Success is truth from any state; everything else is recorded by the claim's holder alone.

use std::collections::HashMap;

use ::sqlite::rusqlite::{Connection, Row, params};
use model::limits::{
    SWEEP_ROWS_MAX, WEBHOOK_ATTEMPTS_MAX, WEBHOOK_CALLS_PER_ENDPOINT_MAX, WEBHOOK_CLAIM_TTL,
};
use model::webhook::{GAVE_UP, WebhookSecret};
use model::{DeliveryRung, ErrorCode, LeaseToken, Timestamp};

use super::row::{all, at_option, change, one};
use super::sql;
use super::store::World;
use super::window::{self, Found, Told};
use crate::StorageError;
use crate::types::webhook::{Push, PushClaim, PushOutcome, PushSettled};

/// A log of a webhook's member in which something is due.
struct Due {
    member: i64,
    conversation: i64,
}

/// The row a call is about, and the calls before.
struct Head {
    message: i64,
    attempts: u32,
}

/// Where a webhook's calls go and with what they are signed.
struct Keys {
    url: String,
    secrets: Vec<WebhookSecret>,
}

/// Whether a claim would do anything: asked of a reader, so that a look in vain writes nothing and wakes nobody.
pub(super) fn is_due(conn: &Connection, now: Timestamp) -> Result<bool, StorageError> {
    Ok(!due(conn, now, 1)?.is_empty())
}

pub(super) fn claim(conn: &Connection, world: &World, limit: usize) -> Result<Vec<Push>, StorageError> {
    let now = world.now();
    let mut pushes = Vec::new();
    for due in due(conn, now, limit)? {
        pushes.extend(claim_one(conn, world, now, &due)?);
    }
    Ok(pushes)
}

pub(super) fn settle(
    conn: &Connection,
    now: Timestamp,
    claim: &PushClaim,
    outcome: &PushOutcome,
) -> Result<PushSettled, StorageError> {
    // Without its row the message was pruned, and nothing is left to record.
    let Some(found) = window::delivery(conn, claim.id, claim.recipient)? else {
        return Ok(PushSettled::Recorded);
    };
    let lease = claim.token.to_bytes();
    let held = match outcome {
        PushOutcome::Delivered => {
            window::climb(conn, &found, &Told::plain(DeliveryRung::Delivered, now))?;
            change(conn, sql!("webhook_call_done"), [found.recipient, found.message])?;
            true
        }
        PushOutcome::Again { after, answer } => {
            let due_at = again_at(conn, &found, now + *after)?;
            put_off(conn, &found, &lease, due_at, answer)?
        }
        PushOutcome::GaveUp => {
            let held =
                change(conn, sql!("webhook_call_end"), params![found.recipient, found.message, lease])? == 1;
            if held {
                window::climb(
                    conn,
                    &found,
                    &Told { why: Some(GAVE_UP), ..Told::plain(DeliveryRung::DeadLetter, now) },
                )?;
            }
            held
        }
        PushOutcome::Disabled { reason } => {
            let held = put_off(conn, &found, &lease, now, reason)?;
            if held {
                change(conn, sql!("webhook_disable"), params![found.recipient, now.as_micros(), reason])?;
            }
            held
        }
    };
    Ok(if held { PushSettled::Recorded } else { PushSettled::ClaimLost })
}

/// The first `limit` that are due and whose endpoint has room.
fn due(conn: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Due>, StorageError> {
    let waiting = all(conn, sql!("webhook_due"), [now.as_micros()], |row| {
        Ok(Due { member: row.get(0)?, conversation: row.get(1)? })
    })?;
    let mut room = HashMap::new();
    let mut chosen = Vec::new();
    for due in waiting {
        if chosen.len() == limit {
            break;
        }
        let left = match room.get(&due.member) {
            Some(left) => *left,
            None => room_of(conn, now, due.member)?,
        };
        room.insert(due.member, left.saturating_sub(1));
        if left > 0 {
            chosen.push(due);
        }
    }
    Ok(chosen)
}

/// How many more calls the webhook's endpoint gets at once.
fn room_of(conn: &Connection, now: Timestamp, member: i64) -> Result<usize, StorageError> {
    let params = params![member, now.as_micros()];
    let claimed = one(conn, sql!("webhook_calls_claimed"), params, |row| row.get::<_, i64>(0))?;
    let claimed = usize::try_from(claimed.unwrap_or_default()).unwrap_or(usize::MAX);
    Ok(WEBHOOK_CALLS_PER_ENDPOINT_MAX.saturating_sub(claimed))
}

fn claim_one(
    conn: &Connection,
    world: &World,
    now: Timestamp,
    due: &Due,
) -> Result<Option<Push>, StorageError> {
    let Some(head) = live_head(conn, now, due)? else { return Ok(None) };
    let Some(keys) = one(conn, sql!("webhook_keys"), [due.member], |row| keys(row, now))? else {
        return Ok(None);
    };
    let row =
        one(conn, sql!("mail_row"), params![head.message, due.member], |row| window::mail_row(row, false))?;
    let Some(row) = row else { return Ok(None) };
    let token = LeaseToken::mint(now, &*world.entropy);
    let attempts = head.attempts + 1;
    let until = (now + WEBHOOK_CLAIM_TTL).as_micros();
    let params = params![due.member, due.conversation, head.message, attempts, until, token.to_bytes()];
    change(conn, sql!("webhook_call_claim"), params)?;
    change(conn, sql!("webhook_served"), params![due.member, now.as_micros()])?;
    let claim = PushClaim { id: row.id, recipient: row.recipient, token, attempts };
    Ok(Some(Push { claim, row, url: keys.url, secrets: keys.secrets, now }))
}

/// The log's oldest row that may still be tried; those before it end here.
fn live_head(conn: &Connection, now: Timestamp, due: &Due) -> Result<Option<Head>, StorageError> {
    let place = params![due.member, due.conversation];
    for _ in 0..SWEEP_ROWS_MAX {
        let oldest =
            one(conn, sql!("webhook_oldest"), place, |row| Ok((row.get::<_, i64>(0)?, at_option(row, 1)?)))?;
        let Some((message, deliver_by)) = oldest else { return Ok(None) };
        let call = one(conn, sql!("webhook_call"), place, |row| {
            Ok(Head { message: row.get(0)?, attempts: row.get(1)? })
        })?;
        let head = call.filter(|call| call.message == message).unwrap_or(Head { message, attempts: 0 });
        let (rung, why) = if deliver_by.is_some_and(|deliver_by| deliver_by <= now) {
            (DeliveryRung::Expired, ErrorCode::DeliverByPassed.code())
        } else if head.attempts >= WEBHOOK_ATTEMPTS_MAX {
            // Its last claim lapsed: nobody lived to record what became of the call.
            (DeliveryRung::DeadLetter, GAVE_UP)
        } else {
            return Ok(Some(head));
        };
        window::end(conn, message, due.member, rung, now, why)?;
        change(conn, sql!("webhook_call_drop"), place)?;
    }
    Ok(None)
}

/// A row that may not be handed on any more must not hold up its log until its next attempt.
fn again_at(conn: &Connection, found: &Found, due_at: Timestamp) -> Result<Timestamp, StorageError> {
    let deliver_by =
        one(conn, sql!("message_deliver_by"), [found.message], |row| at_option(row, 0))?.flatten();
    Ok(deliver_by.map_or(due_at, |deliver_by| due_at.min(deliver_by)))
}

fn put_off(
    conn: &Connection,
    found: &Found,
    lease: &[u8; 16],
    due_at: Timestamp,
    answer: &str,
) -> Result<bool, StorageError> {
    let params = params![found.recipient, found.message, lease, due_at.as_micros(), answer];
    Ok(change(conn, sql!("webhook_call_again"), params)? == 1)
}

fn keys(row: &Row<'_>, now: Timestamp) -> ::sqlite::rusqlite::Result<Keys> {
    let mut secrets = vec![WebhookSecret::from_bytes(row.get(1)?)];
    let old = row.get::<_, Option<[u8; 32]>>(2)?;
    let signs = at_option(row, 3)?.is_some_and(|until| now < until);
    secrets.extend(old.filter(|_| signs).map(WebhookSecret::from_bytes));
    Ok(Keys { url: row.get(0)?, secrets })
}

#[cfg(test)]
mod tests {
    use ::sqlite::rusqlite::Connection;

    use super::super::schema::SCHEMA;
    use super::sql;

    #[test]
    fn a_look_for_due_calls_never_walks_all_deliveries() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(SCHEMA.sum).unwrap();
        for text in [sql!("webhook_due"), sql!("webhook_oldest"), sql!("webhook_waiting"), sql!("webhooks")] {
            let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
            let unbound = plan.parameter_count();
            for place in 1..=unbound {
                plan.raw_bind_parameter(place, 1).unwrap();
            }
            let mut rows = plan.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                steps.push(row.get::<_, String>(3).unwrap());
            }
            assert!(
                steps.iter().any(|step| step.contains("SEARCH d") || step.contains("SEARCH delivery")),
                "{steps:?}"
            );
            assert!(!steps.iter().any(|step| step.starts_with("SCAN d")), "{steps:?}");
        }
    }
}
