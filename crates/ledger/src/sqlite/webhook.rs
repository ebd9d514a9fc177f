//! Webhooks, as their owner makes, lists, rotates, starts again and removes them.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::limits::{SWEEP_ROWS_MAX, WEBHOOK_ROTATION, WEBHOOKS_MAX};
use model::webhook::{REMOVED, WebhookSecret};
use model::{DeliveryRung, MemberKind, MemberName, MessageId, Timestamp};

use super::row::{all, at, at_option, change, code, count, member, one, text};
use super::store::World;
use super::window::{self, bound};
use super::{accept, manage, sql};
use crate::types::webhook::{NewWebhook, PushFacts, Webhook, WebhookState};
use crate::{ManageError, StorageError, WebhookError};

/// What one round of a removal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// Rows are left.
    More,
    /// The webhook is gone.
    Done,
}

pub(super) fn create(conn: &Connection, world: &World, new: &NewWebhook) -> Result<Webhook, WebhookError> {
    let now = world.now();
    let mut logs = Vec::with_capacity(new.topics.len());
    for topic in &new.topics {
        let log = accept::topic(conn, topic)?.ok_or_else(|| ManageError::TopicNotFound(topic.clone()))?;
        logs.push(log.number);
    }
    let webhooks = one(conn, sql!("webhook_count"), [], |row| count(row, 0))?.unwrap_or_default();
    if webhooks >= WEBHOOKS_MAX as u64 {
        return Err(WebhookError::TooMany);
    }
    manage::host(conn, world, &new.name, MemberKind::Service)?;
    let number = number_of(conn, &new.name)?;
    let params = params![number, new.url, new.secret.as_bytes(), now.as_micros()];
    if change(conn, sql!("webhook_insert"), params)? == 0 {
        return Err(WebhookError::Exists(new.name.clone()));
    }
    change(conn, sql!("member_set_pushed"), params![number, true])?;
    for log in logs {
        accept::subscribe(conn, now, log, number)?;
    }
    named(conn, &new.name)
}

pub(super) fn list(conn: &Connection) -> Result<Vec<Webhook>, StorageError> {
    read(conn, None)
}

pub(super) fn rotate(
    conn: &Connection,
    now: Timestamp,
    name: &MemberName,
    secret: &WebhookSecret,
) -> Result<Webhook, WebhookError> {
    let until = (now + WEBHOOK_ROTATION).as_micros();
    let params = params![existing(conn, name)?, secret.as_bytes(), until];
    change(conn, sql!("webhook_rotate"), params)?;
    named(conn, name)
}

/// What waited is tried at once and as often as anything new.
pub(super) fn enable(conn: &Connection, name: &MemberName) -> Result<Webhook, WebhookError> {
    let number = existing(conn, name)?;
    change(conn, sql!("webhook_enable"), [number])?;
    change(conn, sql!("webhook_calls_delete"), [number])?;
    named(conn, name)
}

/// One bounded round; the last one takes the webhook itself. Until then it is off, so that nothing is pushed which
/// a later round would call removed.
pub(super) fn remove(conn: &Connection, now: Timestamp, name: &MemberName) -> Result<Removal, WebhookError> {
    let number = existing(conn, name)?;
    change(conn, sql!("webhook_disable"), params![number, now.as_micros(), REMOVED])?;
    let rows = all(conn, sql!("webhook_waiting"), params![number, bound(SWEEP_ROWS_MAX)], |row| {
        row.get::<_, i64>(0)
    })?;
    for message in &rows {
        window::end(conn, *message, number, DeliveryRung::DeadLetter, now, REMOVED)?;
    }
    if rows.len() == SWEEP_ROWS_MAX {
        return Ok(Removal::More);
    }
    change(conn, sql!("subscription_delete_all"), [number])?;
    change(conn, sql!("member_set_pushed"), params![number, false])?;
    forget(conn, number)?;
    Ok(Removal::Done)
}

/// The webhook of a member that goes, with its secrets.
pub(super) fn forget(conn: &Connection, member: i64) -> Result<(), StorageError> {
    change(conn, sql!("webhook_calls_delete"), [member])?;
    change(conn, sql!("webhook_delete"), [member])?;
    Ok(())
}

pub(super) fn pushes(conn: &Connection, message: MessageId) -> Result<Vec<PushFacts>, StorageError> {
    Ok(all(conn, sql!("webhook_pushes"), [message.as_bytes()], |row| {
        Ok(PushFacts {
            name: text(row, 0)?,
            rung: code(row, 1, DeliveryRung::from_code)?,
            attempts: row.get::<_, Option<u32>>(2)?.unwrap_or_default(),
            next_attempt_at: at_option(row, 3)?,
            last_answer: row.get(4)?,
        })
    })?)
}

fn read(conn: &Connection, name: Option<&MemberName>) -> Result<Vec<Webhook>, StorageError> {
    let found = all(conn, sql!("webhooks"), [name.map(MemberName::as_str)], webhook)?;
    let mut webhooks = Vec::with_capacity(found.len());
    for (number, webhook) in found {
        let topics = all(conn, sql!("webhook_topics"), [number], |row| text(row, 0))?;
        webhooks.push(Webhook { topics, ..webhook });
    }
    Ok(webhooks)
}

fn named(conn: &Connection, name: &MemberName) -> Result<Webhook, WebhookError> {
    read(conn, Some(name))?.pop().ok_or_else(|| WebhookError::NotFound(name.clone()))
}

/// The number of a member that has a webhook.
fn existing(conn: &Connection, name: &MemberName) -> Result<i64, WebhookError> {
    named(conn, name)?;
    number_of(conn, name)
}

fn number_of(conn: &Connection, name: &MemberName) -> Result<i64, WebhookError> {
    let facts = accept::member_by_name(conn, name)?;
    facts.map(|facts| facts.number).ok_or_else(|| WebhookError::NotFound(name.clone()))
}

fn webhook(row: &Row<'_>) -> ::sqlite::rusqlite::Result<(i64, Webhook)> {
    let state = match (at_option(row, 4)?, row.get::<_, Option<String>>(5)?) {
        (Some(at), Some(reason)) => WebhookState::Disabled { at, reason },
        (None, _) | (_, None) => WebhookState::Enabled,
    };
    let webhook = Webhook {
        member: member(row, 8)?,
        url: row.get(1)?,
        topics: Vec::new(),
        created_at: at(row, 2)?,
        old_secret_until: at_option(row, 3)?,
        state,
        waiting: count(row, 6)?,
        parked: count(row, 7)?,
    };
    Ok((row.get(0)?, webhook))
}
