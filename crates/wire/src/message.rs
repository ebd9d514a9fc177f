//! The sender's fields of a message, the same on every surface, and the message as a carrier hands it on.

use model::envelope::{Body, BodyRefused, Reference};
use model::{
    ClientMessageId, ConversationId, Deadline, Draft, ErrorCode, Kind, MemberName, MessageId, Meta, Priority,
    Timestamp, To, limits,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::Refused;
use crate::{json_text, text};

/// The only body version there is; sealed bodies will bring another.
pub const BODY_VERSION: u8 = 1;

/// What the sender asked, as it is kept in the outbox and carried to the recipient.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageFields {
    /// The sender's idempotency key.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub client_message_id: ClientMessageId,
    /// Where it goes, as asked.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub to: To,
    /// What it is for.
    #[schema(value_type = String)]
    #[serde(with = "text", default, skip_serializing_if = "is_default")]
    pub kind: Kind,
    /// The text.
    pub body: String,
    /// How to read the body.
    #[serde(default = "body_version")]
    pub body_version: u8,
    /// Anything structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Value>,
    /// Members named, in order.
    #[schema(value_type = Vec<String>)]
    #[serde(with = "text::list", default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<MemberName>,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// A conversation of the caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corr_id: Option<String>,
    /// Order between conversations.
    #[schema(value_type = String)]
    #[serde(with = "text", default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// Whether the conversation waits for an answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expects_input: bool,
    /// An instant after which it must not be delivered.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub deliver_by: Option<Timestamp>,
    /// The same as seconds from the accept; never together with `deliver_by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// Automatic replies before this one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hops: u8,
}

/// A message as a carrier hands it on: the sender's fields and what the broker added.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// The broker's id.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub id: MessageId,
    /// Its log.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub conversation: ConversationId,
    /// The log as this reader calls it: `#topic` or `@other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_name: Option<String>,
    /// Its place in the log.
    pub history_id: u64,
    /// Who sent it.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub sender: MemberName,
    /// When the broker committed it.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// The place after it in its log.
    pub cursor: String,
    /// Whether this recipient may have seen it before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub redelivered: bool,
    /// What the sender asked.
    #[serde(flatten)]
    pub fields: MessageFields,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn body_version() -> u8 {
    BODY_VERSION
}

impl MessageFields {
    /// Checks every rule a draft must keep. `made_at` turns a ttl into an instant.
    pub fn into_draft(self, made_at: Timestamp) -> Result<Draft, Refused> {
        if self.body_version != BODY_VERSION {
            return Err(Refused::new(ErrorCode::InvalidRequest, "body_version must be 1")
                .with("field", "body_version"));
        }
        if self.mentions.len() > limits::MENTIONS_MAX {
            return Err(Refused::new(
                ErrorCode::TooLarge,
                format!("mentions has more than {} names", limits::MENTIONS_MAX),
            ));
        }
        if self.hops > limits::HOPS_MAX {
            return Err(Refused::plain(ErrorCode::HopLimit));
        }
        let deadline = match (self.deliver_by, self.ttl) {
            (None, None) => Deadline::None,
            (Some(at), None) => Deadline::DeliverBy(at),
            (None, Some(seconds)) => Deadline::Ttl {
                seconds,
                deliver_by: made_at + std::time::Duration::from_secs(seconds.into()),
            },
            (Some(_), Some(_)) => {
                return Err(Refused::new(ErrorCode::InvalidRequest, "give deliver_by or ttl, not both"));
            }
        };
        Ok(Draft {
            client_message_id: self.client_message_id,
            kind: self.kind,
            to: self.to,
            body: Body::parse(self.body).map_err(body_refused)?,
            meta: self.meta.map_or(Ok(None), |meta| Meta::parse(&meta.to_string()))?,
            mentions: self.mentions,
            reply_to: self.reply_to.map(|text| Reference::parse("reply_to", &text)).transpose()?,
            corr_id: self.corr_id.map(|text| Reference::parse("corr_id", &text)).transpose()?,
            priority: self.priority,
            expects_input: self.expects_input,
            deadline,
            hops: self.hops,
        })
    }
}

/// What the JSON of a message has around its body, where it has nothing unusual.
const AROUND_BODY_BYTES: usize = 192;

/// Where the body goes. No text holds this: in text a quote has a stroke before it.
const NO_BODY: &[u8] = br#","body":"""#;

/// `draft` as it is stored and carried on: nothing unread and nothing ambiguous is in it.
pub fn written(draft: &Draft) -> Vec<u8> {
    let body = draft.body.as_str();
    let mut json = Vec::with_capacity(body.len() + AROUND_BODY_BYTES);
    serde_json::to_writer(&mut json, &MessageFields::around(draft, String::new()))
        .expect("fields hold only what JSON can say");
    let place = json.windows(NO_BODY.len()).position(|bytes| bytes == NO_BODY);
    let behind = place.expect("a message has a body") + NO_BODY.len();
    let rest = json[behind..].to_vec();
    json.truncate(behind - r#""""#.len());
    json_text::push(&mut json, body);
    json.extend(rest);
    json
}

impl MessageFields {
    /// The fields of `draft` with another body.
    fn around(draft: &Draft, body: String) -> Self {
        let (deliver_by, ttl) = match draft.deadline {
            Deadline::None => (None, None),
            Deadline::DeliverBy(at) => (Some(at), None),
            Deadline::Ttl { seconds, .. } => (None, Some(seconds)),
        };
        let meta = draft
            .meta
            .as_ref()
            .map(|meta| serde_json::from_str(meta.as_str()).expect("canonical JSON is JSON"));
        Self {
            client_message_id: draft.client_message_id.clone(),
            to: draft.to.clone(),
            kind: draft.kind,
            body,
            body_version: BODY_VERSION,
            meta,
            mentions: draft.mentions.clone(),
            reply_to: draft.reply_to.as_ref().map(|reference| reference.as_str().to_owned()),
            corr_id: draft.corr_id.as_ref().map(|reference| reference.as_str().to_owned()),
            priority: draft.priority,
            expects_input: draft.expects_input,
            deliver_by,
            ttl,
            hops: draft.hops,
        }
    }
}

fn body_refused(refused: BodyRefused) -> Refused {
    let code = match refused {
        BodyRefused::TooLarge { .. } => ErrorCode::TooLarge,
        BodyRefused::Nul => ErrorCode::InvalidRequest,
    };
    Refused::new(code, refused.to_string()).with("field", "body")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Fingerprint;

    fn parse(json: &str) -> Result<Draft, Refused> {
        serde_json::from_str::<MessageFields>(json)
            .map_err(|error| Refused::new(ErrorCode::InvalidRequest, error.to_string()))?
            .into_draft(Timestamp::from_micros(0))
    }

    fn text(draft: &Draft) -> String {
        String::from_utf8(written(draft)).unwrap()
    }

    #[test]
    fn a_body_stands_in_its_place_whatever_the_other_fields_say() {
        let tricky = r#"{"client_message_id":"a","to":"@me","kind":"reply","body":"say \"hi\"\n\u0001",
            "meta":{"body":"","x":{"body":""}},"corr_id":",\"body\":\"\""}"#;
        let draft = parse(tricky).unwrap();
        let fields = MessageFields::around(&draft, draft.body.as_str().to_owned());
        assert_eq!(text(&draft), serde_json::to_string(&fields).unwrap());
        assert_eq!(parse(&text(&draft)).unwrap(), draft);
    }

    #[test]
    fn fields_survive_the_way_to_a_draft_and_back_with_one_fingerprint() {
        let json = r##"{"client_message_id":"a","to":"#alerts","kind":"reply","body":"hi","meta":{"b":1.0,"a":2},
            "mentions":["ci"],"reply_to":"r","corr_id":"c","priority":"now","expects_input":true,"ttl":60,"hops":3}"##;
        let draft = parse(json).unwrap();
        let again = text(&draft);
        let back = parse(&again).unwrap();
        assert_eq!(back, draft);
        assert_eq!(Fingerprint::of(&back), Fingerprint::of(&draft));
        assert_eq!(
            draft.deadline,
            Deadline::Ttl { seconds: 60, deliver_by: Timestamp::from_micros(60_000_000) }
        );
    }

    #[test]
    fn a_plain_message_is_written_without_its_defaults() {
        let draft = parse(r#"{"client_message_id":"a","to":"@me","body":"hi"}"#).unwrap();
        assert_eq!(text(&draft), r#"{"client_message_id":"a","to":"@me","body":"hi","body_version":1}"#);
    }

    #[test]
    fn each_broken_rule_has_its_code() {
        let long = "x".repeat(limits::BODY_BYTES_MAX + 1);
        for (json, code) in [
            (r#"{"client_message_id":"a","to":"@me"}"#.to_owned(), ErrorCode::InvalidRequest),
            (r#"{"client_message_id":"a b","to":"@me","body":""}"#.to_owned(), ErrorCode::InvalidRequest),
            (r#"{"client_message_id":"a","to":"me","body":""}"#.to_owned(), ErrorCode::InvalidRequest),
            (format!(r#"{{"client_message_id":"a","to":"@me","body":"{long}"}}"#), ErrorCode::TooLarge),
            (r#"{"client_message_id":"a","to":"@me","body":"\u0000"}"#.to_owned(), ErrorCode::InvalidRequest),
            (r#"{"client_message_id":"a","to":"@me","body":"","meta":[1]}"#.to_owned(), ErrorCode::InvalidRequest),
            (r#"{"client_message_id":"a","to":"@me","body":"","body_version":2}"#.to_owned(), ErrorCode::InvalidRequest),
            (r#"{"client_message_id":"a","to":"@me","body":"","hops":65}"#.to_owned(), ErrorCode::HopLimit),
            (
                r#"{"client_message_id":"a","to":"@me","body":"","ttl":1,"deliver_by":"2027-01-01T00:00:00Z"}"#.to_owned(),
                ErrorCode::InvalidRequest,
            ),
            (
                format!(r#"{{"client_message_id":"a","to":"@me","body":"","mentions":[{}]}}"#, vec![r#""x""#; 17].join(",")),
                ErrorCode::TooLarge,
            ),
        ] {
            assert_eq!(parse(&json).unwrap_err().code, code, "{}", &json[..json.len().min(90)]);
        }
    }
}
