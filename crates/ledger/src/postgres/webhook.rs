//! Webhooks, as their owner makes, lists, rotates, starts again and removes them.

use model::limits::{SWEEP_ROWS_MAX, WEBHOOK_ROTATION, WEBHOOKS_MAX};
use model::webhook::{REMOVED, WebhookSecret};
use model::{DeliveryRung, MemberKind, MemberName, MessageId};
use tokio_postgres::Row;

use super::row::{at, at_option, bound, code, count, member, text};
use super::session::Tx;
use super::{manage, sql, window};
use crate::types::webhook::{NewWebhook, PushFacts, Webhook, WebhookState};
use crate::{StorageError, WebhookError};

/// What one round of a removal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// Rows are left.
    More,
    /// The webhook is gone.
    Done,
}

pub(super) async fn create(tx: &Tx, new: &NewWebhook) -> Result<Webhook, WebhookError> {
    let mut logs = Vec::with_capacity(new.topics.len());
    for topic in &new.topics {
        logs.push(manage::found(tx, topic).await?.number);
    }
    let counted = tx.one(sql!("webhook_count"), &[]).await?;
    if counted.map_or(Ok(0), |row| count(&row, 0))? >= WEBHOOKS_MAX as u64 {
        return Err(WebhookError::TooMany);
    }
    manage::host(tx, &new.name, MemberKind::Service).await?;
    let number = number_of(tx, &new.name).await?;
    let (secret, now) = (new.secret.as_bytes().as_slice(), tx.now.as_micros());
    if tx.change(sql!("webhook_insert"), &[&number, &new.url, &secret, &now]).await? == 0 {
        return Err(WebhookError::Exists(new.name.clone()));
    }
    tx.change(sql!("member_set_pushed"), &[&number, &true]).await?;
    for log in logs {
        tx.change(sql!("subscription_insert"), &[&log, &number, &now]).await?;
    }
    named(tx, &new.name).await
}

pub(super) async fn list(tx: &Tx) -> Result<Vec<Webhook>, StorageError> {
    read(tx, None).await
}

pub(super) async fn rotate(
    tx: &Tx,
    name: &MemberName,
    secret: &WebhookSecret,
) -> Result<Webhook, WebhookError> {
    let until = (tx.now + WEBHOOK_ROTATION).as_micros();
    let number = existing(tx, name).await?;
    tx.change(sql!("webhook_rotate"), &[&number, &secret.as_bytes().as_slice(), &until]).await?;
    named(tx, name).await
}

/// What waited is tried at once and as often as anything new.
pub(super) async fn enable(tx: &Tx, name: &MemberName) -> Result<Webhook, WebhookError> {
    let number = existing(tx, name).await?;
    tx.change(sql!("webhook_enable"), &[&number]).await?;
    tx.change(sql!("webhook_calls_delete"), &[&number]).await?;
    named(tx, name).await
}

/// One bounded round; the last one takes the webhook itself. Until then it is off, so that nothing is pushed which
/// a later round would call removed.
pub(super) async fn remove(tx: &Tx, name: &MemberName) -> Result<Removal, WebhookError> {
    let number = existing(tx, name).await?;
    tx.change(sql!("webhook_disable"), &[&number, &tx.now.as_micros(), &REMOVED]).await?;
    let rows = tx.all(sql!("webhook_waiting"), &[&number, &bound(SWEEP_ROWS_MAX)]).await?;
    let messages = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>();
    let messages = messages.map_err(StorageError::from)?;
    window::end(tx, &messages, number, DeliveryRung::DeadLetter, REMOVED).await?;
    if rows.len() == SWEEP_ROWS_MAX {
        return Ok(Removal::More);
    }
    tx.change(sql!("subscription_delete_all"), &[&number]).await?;
    tx.change(sql!("member_set_pushed"), &[&number, &false]).await?;
    forget(tx, number).await?;
    Ok(Removal::Done)
}

/// The webhook of a member that goes, with its secrets.
pub(super) async fn forget(tx: &Tx, member: i64) -> Result<(), StorageError> {
    tx.one(sql!("webhook_lock"), &[&member]).await?;
    tx.change(sql!("webhook_calls_delete"), &[&member]).await?;
    tx.change(sql!("webhook_delete"), &[&member]).await?;
    Ok(())
}

pub(super) async fn pushes(tx: &Tx, message: MessageId) -> Result<Vec<PushFacts>, StorageError> {
    let rows = tx.all(sql!("webhook_pushes"), &[&message.as_uuid()]).await?;
    let read = |row: &Row| {
        let attempts = row.try_get::<_, Option<i64>>(2)?.unwrap_or_default();
        Ok(PushFacts {
            name: text(row, 0)?,
            rung: code(row, 1, DeliveryRung::from_code)?,
            attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
            next_attempt_at: at_option(row, 3)?,
            last_answer: row.try_get(4)?,
        })
    };
    rows.iter().map(read).collect()
}

async fn read(tx: &Tx, name: Option<&MemberName>) -> Result<Vec<Webhook>, StorageError> {
    let found = tx.all(sql!("webhooks"), &[&name.map(MemberName::as_str)]).await?;
    let mut webhooks = Vec::with_capacity(found.len());
    for row in &found {
        let number: i64 = row.try_get(0)?;
        let topics = tx.all(sql!("webhook_topics"), &[&number]).await?;
        let topics = topics.iter().map(|row| text(row, 0)).collect::<Result<_, _>>()?;
        webhooks.push(Webhook { topics, ..webhook(row)? });
    }
    Ok(webhooks)
}

async fn named(tx: &Tx, name: &MemberName) -> Result<Webhook, WebhookError> {
    read(tx, Some(name)).await?.pop().ok_or_else(|| WebhookError::NotFound(name.clone()))
}

/// The number of a member that has a webhook; the webhook is this transaction's until it ends.
async fn existing(tx: &Tx, name: &MemberName) -> Result<i64, WebhookError> {
    let number = number_of(tx, name).await?;
    let locked = tx.one(sql!("webhook_lock"), &[&number]).await?;
    locked.map(|_| number).ok_or_else(|| WebhookError::NotFound(name.clone()))
}

async fn number_of(tx: &Tx, name: &MemberName) -> Result<i64, WebhookError> {
    let row = tx.one(sql!("member_facts_by_name"), &[&name.as_str()]).await?;
    let row = row.ok_or_else(|| WebhookError::NotFound(name.clone()))?;
    Ok(row.try_get(0).map_err(StorageError::from)?)
}

fn webhook(row: &Row) -> Result<Webhook, StorageError> {
    let state = match (at_option(row, 4)?, row.try_get::<_, Option<String>>(5)?) {
        (Some(at), Some(reason)) => WebhookState::Disabled { at, reason },
        (None, _) | (_, None) => WebhookState::Enabled,
    };
    Ok(Webhook {
        member: member(row, 8)?,
        url: row.try_get(1)?,
        topics: Vec::new(),
        created_at: at(row, 2)?,
        old_secret_until: at_option(row, 3)?,
        state,
        waiting: count(row, 6)?,
        parked: count(row, 7)?,
    })
}
