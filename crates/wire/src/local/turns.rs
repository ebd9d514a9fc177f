//! An agent's turns: begun, kept, ended.

use model::turn::TurnOutcome;
use model::{ClientMessageId, Kind, RowId, Timestamp, TurnId, limits};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{InboxItem, SendRequest};
use crate::error::Refused;
use crate::text;

/// `POST /v1/turns`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRequest {
    /// Seconds to wait for a message when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<u64>,
    /// This very message; without it the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The caller's own id for the turn (a ULID): asking again with it gives the same turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// Seconds the turn is the caller's without another word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
    /// Who holds it, in its own words: shown to whoever meets the open turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// A turn: the answer of `POST /v1/turns` and `GET /v1/turns/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnAnswer {
    /// The turn.
    #[serde(with = "text")]
    pub turn_id: TurnId,
    /// What it is about.
    pub message: InboxItem,
    /// From 1.
    pub attempt: u32,
    /// Whether an earlier attempt, or an earlier life of this inbox, may have had effects.
    pub redelivered: bool,
    /// Until when it is its holder's, while it is open.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// open, processed, failed or interrupted.
    pub state: String,
    /// Who holds it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// When it began.
    #[serde(with = "text")]
    pub began_at: Timestamp,
    /// When it ended or was interrupted.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The outbox row of its reply.
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<RowId>,
}

/// `GET /v1/turns`: what needs an eye.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnPage {
    /// The acting member's open turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<TurnAnswer>,
    /// Messages whose turns were interrupted once too often, by their last turn, oldest first.
    pub given_up: Vec<TurnAnswer>,
    /// Every turn of the message that was asked about, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<TurnAnswer>,
}

/// `POST /v1/turns/{id}/extend`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnExtend {
    /// Seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// `POST /v1/turns/{id}/interrupt`: a turn that is given back keeps no lease.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnInterrupt {
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// `POST /v1/turns/retry`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRetry {
    /// The message whose turns were given up.
    pub message_id: String,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// `POST /v1/turns/{id}/end`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnEnd {
    /// How it ended.
    #[serde(with = "text")]
    pub outcome: TurnOutcome,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What to answer; stored in the same transaction as the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<TurnReply>,
    /// Which mesh, when several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
}

/// A reply: where it goes, what it answers and how long the chain is follow from the turn's message.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnReply {
    /// The text.
    pub body: String,
    /// The caller's key; made from the turn when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_message_id: Option<String>,
    /// Elsewhere than where the message came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
    /// Members named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// now, next or low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Whether the conversation waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects_input: Option<bool>,
    /// An instant after which it must not be delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<String>,
    /// The same as seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
}

/// The answer of `POST /v1/turns/{id}/end`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnEnded {
    /// The turn.
    #[serde(with = "text")]
    pub turn_id: TurnId,
    /// How it ended.
    #[serde(with = "text")]
    pub outcome: TurnOutcome,
    /// Whether this very end had been taken before.
    #[serde(default)]
    pub duplicate: bool,
    /// The reply, queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<TurnReplied>,
}

/// A turn's reply as it was queued.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnReplied {
    /// The id in force.
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// Its outbox row.
    #[serde(with = "text")]
    pub row: RowId,
}

impl TurnReply {
    /// The reply as a send of its own: an answer to `answered`, one link longer than its chain.
    pub fn into_send(self, turn: TurnId, answered: &InboxItem) -> SendRequest {
        let to = self.to.unwrap_or_else(|| answered.reply_destination());
        SendRequest {
            to,
            body: Some(self.body),
            client_message_id: Some(self.client_message_id.unwrap_or_else(|| format!("reply-{turn}"))),
            kind: Some(Kind::Reply.to_string()),
            meta: self.meta,
            mentions: self.mentions,
            reply_to: Some(answered.message.id.to_string()),
            priority: self.priority,
            expects_input: self.expects_input,
            deliver_by: self.deliver_by,
            ttl: self.ttl,
            hops: Some(answered.message.fields.hops.saturating_add(1)),
            ..SendRequest::default()
        }
    }
}

impl InboxItem {
    /// Where an answer goes: a topic's message is answered in the topic, a direct one to its sender.
    pub fn reply_destination(&self) -> String {
        match &self.message.conversation_name {
            Some(name) if name.starts_with('#') => name.clone(),
            Some(_) | None => format!("@{}", self.message.sender),
        }
    }
}

/// The lease asked for, within its bounds.
pub fn lease(asked: Option<u64>) -> Result<std::time::Duration, Refused> {
    let (min, max) = (limits::TURN_LEASE_MIN.as_secs(), limits::TURN_LEASE_MAX.as_secs());
    match asked {
        None => Ok(limits::TURN_LEASE_DEFAULT),
        Some(seconds) if (min..=max).contains(&seconds) => Ok(std::time::Duration::from_secs(seconds)),
        Some(_) => {
            let message = format!("lease must be {min} to {max} seconds");
            Err(Refused::new(model::ErrorCode::InvalidRequest, message).with("field", "lease"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(conversation_name: &str, hops: u8) -> InboxItem {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let json = format!(
            r##"{{"id":"{id}","conversation":"{id}","conversation_name":"{conversation_name}","history_id":1,
            "sender":"tom","created_at":"2027-01-01T00:00:00Z","cursor":"","client_message_id":"a","to":"@jane",
            "body":"hi","hops":{hops},"recipient":"jane","inbox_seq":1,"received_at":"2027-01-01T00:00:00Z",
            "rung":"delivered","seen":false}}"##
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_reply_goes_where_its_message_came_from_and_lengthens_the_chain() {
        let turn: TurnId = "01M7GH3C2R6V0D9QK1TJX4N8YE".parse().unwrap();
        for (place, to) in [("@tom", "@tom"), ("#alerts", "#alerts")] {
            let send = TurnReply { body: "ok".to_owned(), ..TurnReply::default() };
            let send = send.into_send(turn, &answered(place, 4));
            assert_eq!((send.to.as_str(), send.hops, send.kind.as_deref()), (to, Some(5), Some("reply")));
            assert_eq!(send.client_message_id.as_deref(), Some("reply-01M7GH3C2R6V0D9QK1TJX4N8YE"));
            assert_eq!(send.reply_to.as_deref(), Some("01890a5d-ac96-774b-bcce-b302099a8057"));
        }
        let named = TurnReply {
            body: "ok".to_owned(),
            to: Some("@ci".to_owned()),
            client_message_id: Some("mine".to_owned()),
            ..TurnReply::default()
        };
        let send = named.into_send(turn, &answered("@tom", 64));
        assert_eq!((send.to.as_str(), send.client_message_id.as_deref()), ("@ci", Some("mine")));
        assert_eq!(send.hops, Some(65), "the door refuses it, not the arithmetic");
    }

    #[test]
    fn a_lease_has_bounds() {
        assert_eq!(lease(None).unwrap(), limits::TURN_LEASE_DEFAULT);
        assert_eq!(lease(Some(5)).unwrap().as_secs(), 5);
        assert!(lease(Some(0)).is_err() && lease(Some(3_601)).is_err());
    }
}
