//! What an owner decides: invites, tokens, policies, webhooks.

use model::{MemberName, NodeKey, NodeName, Timestamp, TopicName};
use serde::{Deserialize, Serialize};

use crate::text;

/// An invite, shown once.
#[derive(Serialize, Deserialize)]
pub struct Invite {
    /// The secret.
    pub token: String,
    /// Whose signature the joiner must see.
    #[serde(with = "text")]
    pub issuer_key: NodeKey,
    /// Where the broker says it is reached; without it, where the asker reached it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its end.
    #[serde(with = "text")]
    pub expires_at: Timestamp,
    /// The only node that may use it.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
}

/// An invite in a list; the secret is not there.
#[derive(Debug, Serialize, Deserialize)]
pub struct InviteRow {
    /// Names it for a revocation.
    pub id: String,
    /// The only node that may use it.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// What its person may decide.
    pub role: String,
    /// Its end.
    #[serde(with = "text")]
    pub expires_at: Timestamp,
    /// When a node joined by it.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// When it was taken back.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// What a token's bearer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Send messages.
    Send,
    /// Read conversations.
    Read,
    /// Use the hub.
    Hub,
}

/// A token, shown once.
#[derive(Serialize, Deserialize)]
pub struct Token {
    /// The secret.
    pub token: String,
    /// What lists show of it.
    #[serde(flatten)]
    pub row: TokenRow,
}

/// A token in a list; the secret is not there.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenRow {
    /// Its number.
    pub id: u64,
    /// As whom it acts.
    #[serde(with = "text")]
    pub member: MemberName,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// When it was taken back.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// What a mesh's owner decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policies {
    /// `open` or `declared`.
    pub topics: String,
    /// Days an accepted id is remembered; nothing means for ever.
    pub dedupe_days: Option<u32>,
    /// `prefer_newest` or `prefer_oldest`.
    pub connections: String,
}

/// A change of policies; what is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PolicyChange {
    /// `open` or `declared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<String>,
    /// Days an accepted id is remembered, or `permanent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe: Option<String>,
    /// `prefer_newest` or `prefer_oldest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<String>,
}

/// A webhook with its secret, shown once.
#[derive(Serialize, Deserialize)]
pub struct Webhook {
    /// `whsec_` and base64, as Standard Webhooks has it.
    pub secret: String,
    /// What lists show of it.
    #[serde(flatten)]
    pub row: WebhookRow,
}

/// A webhook in a list; the secret is not there.
#[derive(Debug, Serialize, Deserialize)]
pub struct WebhookRow {
    /// The member whose deliveries it gets.
    #[serde(with = "text")]
    pub name: MemberName,
    /// Where it goes.
    pub url: String,
    /// Topics delivered to it.
    #[serde(with = "text::list", default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<TopicName>,
    /// When it was made.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// Until when the secret before the last rotation signs too.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<Timestamp>,
    /// When it stopped, because the endpoint said that it is gone.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<Timestamp>,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Rows not delivered yet.
    pub waiting: u64,
    /// Rows given up.
    pub parked: u64,
}
