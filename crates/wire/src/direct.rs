//! Direct HTTP at the fabric door: scripts and services with an API token.

use model::{ClientMessageId, ConversationId, Fingerprint, MessageId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::ask::{ConversationRow, MemberRow};
use crate::local::SendRequest;
use crate::text;

/// `POST /v1/conversations/{id}/messages`: a [`SendRequest`] whose destination the address names.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PostRequest {
    /// The text.
    #[schema(max_length = 65536)]
    pub body: String,
    /// The caller's key; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub client_message_id: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Box<RawValue>>,
    /// Members named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub mentions: Vec<String>,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub reply_to: Option<String>,
    /// A conversation of the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub corr_id: Option<String>,
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
    /// Automatic replies before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 64)]
    pub hops: Option<u8>,
}

/// 201 for a new message, 200 for one accepted before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptAnswer {
    /// The broker's id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub broker_message_id: MessageId,
    /// The caller's key.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// Its log.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub conversation: ConversationId,
    /// Its place there.
    pub history_id: u64,
    /// When it was accepted.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// Whether an earlier copy did it.
    pub duplicate: bool,
    /// For a duplicate: whether the message row still exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_available: Option<bool>,
    /// For a duplicate: when the first copy came.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub first_seen_at: Option<Timestamp>,
}

/// The query of `GET /v1/meshes/{mesh}/messages/{client_message_id}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatusQuery {
    /// What was asked under the id; without it any message under the id counts.
    #[param(value_type = Option<String>, pattern = "^[0-9A-Fa-f]{64}$")]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub request_fingerprint: Option<Fingerprint>,
    /// When it was first tried; without it, within the window.
    #[param(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub first_attempt_at: Option<Timestamp>,
}

/// The query of a page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// How many rows, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// Rows before this cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The oldest rows after this cursor instead; `cursor` is then the place after the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// With `after`: seconds to wait for a row when there is none, at most 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(maximum = 60)]
    pub wait: Option<u64>,
}

/// The query of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// How many rows, at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

/// `GET /v1/conversations`
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ConversationList {
    /// Last active first.
    pub conversations: Vec<ConversationRow>,
}

/// `PATCH /v1/conversations/{id}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationChange {
    /// `active`, `paused` or `closed`.
    pub state: String,
}

/// `POST /v1/conversations/{id}/read`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadRequest {
    /// Everything up to this place was read.
    pub cursor: String,
}

/// What is left to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadAnswer {
    /// The last place this reader has read; it never goes back.
    pub read: u64,
    /// Others' messages after that, counted up to 100.
    pub unread: u64,
}

/// `DELETE /v1/conversations/{id}/messages`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResetAnswer {
    /// The log's generation from now on.
    pub generation: u32,
    /// How many messages it had.
    pub removed: u64,
}

/// The query of `GET /v1/conversations/{id}/events`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Where to begin; `Last-Event-ID` wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// `GET /v1/members`
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MemberList {
    /// By name.
    pub members: Vec<MemberRow>,
    /// By name.
    pub nodes: Vec<NodeRow>,
}

/// A node as members see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeRow {
    /// Its name.
    pub node: String,
    /// Whether its link is held by the broker that answers; another broker of the mesh may hold it.
    pub linked: bool,
    /// The last time a link of it was opened or used.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub last_seen_at: Timestamp,
    /// Messages held for its members.
    pub held: u64,
}

impl PostRequest {
    /// The same towards `to`.
    pub fn towards(self, to: String) -> SendRequest {
        SendRequest {
            to,
            body: Some(self.body),
            message: None,
            client_message_id: self.client_message_id,
            kind: self.kind,
            meta: self.meta,
            mentions: self.mentions,
            reply_to: self.reply_to,
            corr_id: self.corr_id,
            priority: self.priority,
            expects_input: self.expects_input,
            deliver_by: self.deliver_by,
            ttl: self.ttl,
            hops: self.hops,
            mesh: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_a_send_to_the_conversation_it_names() {
        let json = r#"{"body":"hi","client_message_id":"a","kind":"reply","meta":{"x":1},"mentions":["ci"],"reply_to":"r",
            "corr_id":"c","priority":"now","expects_input":true,"ttl":5,"hops":1}"#;
        let post: PostRequest = serde_json::from_str(json).unwrap();
        let send = post.towards("#alerts".into());
        let fields = send.into_fields("a".parse().unwrap()).unwrap();
        assert_eq!((fields.to.to_string().as_str(), fields.body.as_str(), fields.hops), ("#alerts", "hi", 1));
        assert_eq!((fields.kind.word(), fields.priority.word(), fields.ttl), ("reply", "now", Some(5)));
        assert!(fields.expects_input && fields.meta.is_some());
        assert_eq!((fields.reply_to.as_deref(), fields.corr_id.as_deref()), (Some("r"), Some("c")));
        assert!(serde_json::from_str::<PostRequest>(r##"{"body":"hi","to":"#x"}"##).is_err());
    }

    #[test]
    fn only_a_duplicate_says_when_it_was_first_seen() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let mut answer = AcceptAnswer {
            broker_message_id: id.parse().unwrap(),
            client_message_id: "a".parse().unwrap(),
            conversation: id.parse().unwrap(),
            history_id: 3,
            created_at: Timestamp::from_micros(0),
            duplicate: false,
            history_available: None,
            first_seen_at: None,
        };
        let json = serde_json::to_value(&answer).unwrap();
        assert!(json.get("first_seen_at").is_none() && json.get("history_available").is_none());
        answer.first_seen_at = Some(answer.created_at);
        let json = serde_json::to_value(&answer).unwrap();
        assert_eq!(json["first_seen_at"], "1970-01-01T00:00:00.000000Z");
    }
}
