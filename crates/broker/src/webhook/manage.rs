//! What the owner asks about webhooks.

use std::time::Duration;

use ledger::{Ledger, NewWebhook, PushFacts, StorageError, WebhookError, WebhookState};
use model::webhook::{WebhookSecret, WebhookUrl};
use model::{DeliveryRung, Entropy, ErrorCode, MemberName, MessageId, TopicName, limits};
use tokio::time::timeout;
use wire::Refused;
use wire::ask::{Done, ExplainedWebhook, Webhook, WebhookRow};

use super::Webhooks;

/// The owner's node waits no longer than [`limits::ASK_TIMEOUT`] for the whole answer.
const SAVE_TIMEOUT: Duration = Duration::from_secs(1);

impl Webhooks {
    /// Makes a webhook. Its address passes the gate before it is stored, and before every call again.
    pub(crate) async fn create(
        &self,
        ledger: &dyn Ledger,
        entropy: &dyn Entropy,
        name: MemberName,
        url: &str,
        topics: Vec<TopicName>,
    ) -> Result<Webhook, Refused> {
        if topics.len() > limits::WEBHOOK_TOPICS_MAX {
            let most = limits::WEBHOOK_TOPICS_MAX;
            return Err(Refused::new(
                ErrorCode::TooLarge,
                format!("A webhook is made with at most {most} topics."),
            ));
        }
        let url = self.checked(url).await?;
        let secret = WebhookSecret::mint(entropy);
        let new = NewWebhook { name, url: url.to_string(), secret: secret.clone(), topics };
        let row = ledger.create_webhook(new).await.map_err(refused)?;
        Ok(shown_once(&secret, row))
    }

    async fn checked(&self, url: &str) -> Result<WebhookUrl, Refused> {
        let url: WebhookUrl = url.parse()?;
        match timeout(SAVE_TIMEOUT, self.gate.pass(&url)).await {
            Ok(Ok(_)) => Ok(url),
            Ok(Err(closed)) => {
                Err(Refused::new(ErrorCode::WebhookUrlRefused, format!("Not called: {closed}.")))
            }
            Err(_) => Err(Refused::new(
                ErrorCode::WebhookUrlRefused,
                "Not called: the host did not resolve in time.",
            )),
        }
    }
}

pub(crate) async fn list(ledger: &dyn Ledger) -> Result<Vec<WebhookRow>, Refused> {
    let rows = ledger.webhooks().await.map_err(crate::ask::storage)?;
    Ok(rows.into_iter().map(row).collect())
}

pub(crate) async fn rotate(
    ledger: &dyn Ledger,
    entropy: &dyn Entropy,
    name: &MemberName,
) -> Result<Webhook, Refused> {
    let secret = WebhookSecret::mint(entropy);
    let row = ledger.rotate_webhook(name, secret.clone()).await.map_err(refused)?;
    Ok(shown_once(&secret, row))
}

pub(crate) async fn enable(ledger: &dyn Ledger, name: &MemberName) -> Result<WebhookRow, Refused> {
    ledger.enable_webhook(name).await.map(row).map_err(refused)
}

pub(crate) async fn remove(ledger: &dyn Ledger, name: &MemberName) -> Result<Done, Refused> {
    ledger.remove_webhook(name).await.map_err(refused)?;
    Ok(Done {})
}

/// How far the pushes of a message came.
pub(crate) async fn explained(
    ledger: &dyn Ledger,
    id: MessageId,
) -> Result<Vec<ExplainedWebhook>, StorageError> {
    let pushes = ledger.pushes(id).await?;
    Ok(pushes.into_iter().map(explained_push).collect())
}

fn explained_push(push: PushFacts) -> ExplainedWebhook {
    let state = match push.rung {
        DeliveryRung::Accepted => "waiting",
        DeliveryRung::Expired | DeliveryRung::DeadLetter => "parked",
        DeliveryRung::Delivered
        | DeliveryRung::Notified
        | DeliveryRung::Engaged
        | DeliveryRung::Processed => "delivered",
    };
    ExplainedWebhook {
        name: push.name,
        state: state.to_owned(),
        attempts: push.attempts,
        last_answer: push.last_answer,
    }
}

fn refused(error: WebhookError) -> Refused {
    match error {
        WebhookError::Storage(error) => crate::ask::storage(error),
        WebhookError::Manage(error) => crate::ask::managed(error),
        WebhookError::Exists(_) | WebhookError::NotFound(_) | WebhookError::TooMany => {
            Refused::new(error.code(), error.to_string())
        }
    }
}

fn shown_once(secret: &WebhookSecret, webhook: ledger::Webhook) -> Webhook {
    Webhook { secret: secret.reveal().to_string(), row: row(webhook) }
}

fn row(webhook: ledger::Webhook) -> WebhookRow {
    let (disabled_at, disabled_reason) = match webhook.state {
        WebhookState::Enabled => (None, None),
        WebhookState::Disabled { at, reason } => (Some(at), Some(reason)),
    };
    WebhookRow {
        name: webhook.member.name,
        url: webhook.url,
        topics: webhook.topics,
        created_at: webhook.created_at,
        old_secret_until: webhook.old_secret_until,
        disabled_at,
        disabled_reason,
        waiting: webhook.waiting,
        parked: webhook.parked,
    }
}
