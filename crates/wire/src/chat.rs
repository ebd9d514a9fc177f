//! `/v1/subscribe`: the frames between a broker and whoever follows conversations.
//!
//! - A client tags each subscribe with its own `sub`; every frame of that subscription carries it back, so that a
//!   client can tell frames of a subscription it has replaced.
//! - `cursor` in a message is the place after it; whoever subscribes again with the cursor of the last message it
//!   kept misses nothing and sees nothing twice.
//! - A frame that cannot be understood is answered with `error`; the socket stays open.

use model::{ConversationId, ErrorCode, MemberName, MessageId, Timestamp, limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::message::Message;
use crate::text;

/// Audience of a subscriber's ticket.
pub const AUDIENCE_SUBSCRIBE: &str = "postrider-subscribe";
/// The close code of a reader that did not take what it was sent.
pub const CLOSE_SLOW_CONSUMER: u16 = 4408;
/// The close code of a reader whose credential is gone.
pub const CLOSE_UNAUTHORIZED: u16 = 4401;

/// What a subscriber says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromSubscriber {
    /// Send what follows `since_cursor`, and go on. Replaces an earlier subscription to the same conversation.
    Subscribe {
        /// Which log.
        conversation_id: String,
        /// Where to begin: empty or absent is the start.
        #[serde(default)]
        since_cursor: String,
        /// The client's own tag for this subscription.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub: Option<String>,
    },
    /// Send no more of it. A `pong` to a later ping says that none follows.
    Unsubscribe {
        /// Which log.
        conversation_id: String,
    },
    /// Answered with `pong`, after everything that came before it.
    Ping,
}

/// What the broker says.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToSubscriber {
    /// The next message of a subscription.
    Message(Box<SubscribedMessage>),
    /// Everything that stood in the log was sent; what follows is new.
    Subscribed {
        /// As it was asked for.
        conversation_id: String,
        /// The subscription's tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub: Option<String>,
        /// The place that was reached.
        cursor: String,
        /// The log's generation.
        generation: u32,
    },
    /// The log was emptied: drop the view and read again. The subscription is over.
    Reset {
        /// As it was asked for.
        conversation_id: String,
        /// The subscription's tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub: Option<String>,
        /// The log's generation from now on.
        generation: u32,
    },
    /// A frame was not understood, or a subscription ended.
    Error {
        /// See [`FrameError`].
        #[schema(value_type = String)]
        #[serde(with = "text")]
        code: FrameError,
        /// One sentence.
        message: String,
        /// Of which conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
        /// Of which subscription.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub: Option<String>,
        /// With `cursor_expired`: where the log begins now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_available: Option<String>,
    },
    /// The answer to a ping.
    Pong,
    /// Every conversation of this reader that waits for an answer, at connect.
    Escalations {
        /// Oldest question first.
        escalations: Vec<Escalation>,
    },
    /// A conversation began to wait for an answer, or waits for another one.
    InputRequested(Escalation),
    /// A conversation waits no more.
    EscalationCleared {
        /// Which.
        #[schema(value_type = String)]
        #[serde(with = "text")]
        conversation_id: ConversationId,
        /// `#topic` or `@other`, as this reader calls it.
        conversation_name: String,
        /// How often it changed: a later fact has a higher number.
        rev: u64,
    },
}

/// A message as a subscription hands it on.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SubscribedMessage {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// The subscription's tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
}

/// A conversation that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Escalation {
    /// Which.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub conversation_id: ConversationId,
    /// `#topic` or `@other`, as this reader calls it.
    pub conversation_name: String,
    /// How often it changed: a later fact has a higher number.
    pub rev: u64,
    /// The question; nothing when its message was pruned.
    #[schema(value_type = Option<String>)]
    #[serde(with = "text::option", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The question's place in its log.
    pub history_id: u64,
    /// Who asks.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub sender: MemberName,
    /// The question's first words.
    pub question: String,
    /// When it was asked.
    #[schema(value_type = String)]
    #[serde(with = "text")]
    pub created_at: Timestamp,
}

/// Why a frame or a subscription was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameError {
    /// Not JSON, not an object, or a field of another form.
    BadFrame,
    /// No such `type`.
    UnknownType,
    /// No `conversation_id`, or not text.
    MissingConversationId,
    /// Not a cursor of this log.
    InvalidCursor,
    /// The place is gone.
    CursorExpired,
    /// The connection has as many as it may have.
    TooManySubscriptions,
    /// The store does not serve it now; the subscription is over.
    Unavailable,
}

impl FrameError {
    /// Every code.
    pub const ALL: [FrameError; 7] = [
        FrameError::BadFrame,
        FrameError::UnknownType,
        FrameError::MissingConversationId,
        FrameError::InvalidCursor,
        FrameError::CursorExpired,
        FrameError::TooManySubscriptions,
        FrameError::Unavailable,
    ];

    /// The text on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            FrameError::BadFrame => "bad_frame",
            FrameError::UnknownType => "unknown_type",
            FrameError::MissingConversationId => "missing_conversation_id",
            FrameError::InvalidCursor => ErrorCode::InvalidCursor.code(),
            FrameError::CursorExpired => ErrorCode::CursorExpired.code(),
            FrameError::TooManySubscriptions => "too_many_subscriptions",
            FrameError::Unavailable => ErrorCode::Unavailable.code(),
        }
    }

    /// One sentence for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            FrameError::BadFrame => "A frame is a JSON object with fields of the form this door asks for.",
            FrameError::UnknownType => "The type is none of subscribe, unsubscribe and ping.",
            FrameError::MissingConversationId => "The frame names no conversation.",
            FrameError::InvalidCursor => ErrorCode::InvalidCursor.meaning(),
            FrameError::CursorExpired => ErrorCode::CursorExpired.meaning(),
            FrameError::TooManySubscriptions => "This connection follows as many conversations as it may.",
            FrameError::Unavailable => "The broker cannot read the log now; subscribe again.",
        }
    }
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl std::str::FromStr for FrameError {
    type Err = model::error::Malformed;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = FrameError::ALL.into_iter().find(|code| code.word() == text);
        known.ok_or(model::error::Malformed::new("code", "a code of a frame"))
    }
}

impl FromSubscriber {
    /// Reads a frame. A refusal names the conversation and the tag when those could be read.
    pub fn parse(frame: &str) -> Result<Self, Box<ToSubscriber>> {
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(frame) else {
            return Err(Box::new(ToSubscriber::refused(FrameError::BadFrame, None, None)));
        };
        let word = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let (conversation_id, sub) = (word("conversation_id"), word("sub"));
        let refused = |code| Err(Box::new(ToSubscriber::refused(code, conversation_id.clone(), sub.clone())));
        match fields.get("type").and_then(Value::as_str) {
            Some("ping") => return Ok(Self::Ping),
            Some("subscribe" | "unsubscribe") => {}
            Some(_) | None => return refused(FrameError::UnknownType),
        }
        let Some(conversation) = conversation_id.clone() else {
            return refused(FrameError::MissingConversationId);
        };
        if conversation.len() > limits::REFERENCE_BYTES_MAX {
            return Err(Box::new(ToSubscriber::refused(FrameError::BadFrame, None, None)));
        }
        if word("type").as_deref() == Some("unsubscribe") {
            return Ok(Self::Unsubscribe { conversation_id: conversation });
        }
        let tag_fits = match fields.get("sub") {
            None | Some(Value::Null) => true,
            Some(Value::String(tag)) => tag.len() <= limits::REFERENCE_BYTES_MAX,
            Some(_) => false,
        };
        if !tag_fits {
            return Err(Box::new(ToSubscriber::refused(FrameError::BadFrame, conversation_id, None)));
        }
        let since_cursor = match fields.get("since_cursor") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(cursor)) => cursor.clone(),
            Some(_) => return refused(FrameError::InvalidCursor),
        };
        Ok(Self::Subscribe { conversation_id: conversation, since_cursor, sub })
    }
}

impl ToSubscriber {
    /// An `error` in the code's own words.
    pub fn refused(code: FrameError, conversation_id: Option<String>, sub: Option<String>) -> Self {
        let message = code.meaning().to_owned();
        Self::Error { code, message, conversation_id, sub, first_available: None }
    }

    /// The frame's text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("frames are made of maps with text keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(frame: &str) -> FrameError {
        match *FromSubscriber::parse(frame).unwrap_err() {
            ToSubscriber::Error { code, .. } => code,
            other => panic!("an error, not {other:?}"),
        }
    }

    #[test]
    fn a_subscribe_without_cursor_or_tag_begins_at_the_start() {
        let frame = FromSubscriber::parse(r#"{"type":"subscribe","conversation_id":"c","extra":1}"#).unwrap();
        let expected =
            FromSubscriber::Subscribe { conversation_id: "c".into(), since_cursor: String::new(), sub: None };
        assert_eq!(frame, expected);
        assert_eq!(FromSubscriber::parse(r#"{"type":"ping"}"#).unwrap(), FromSubscriber::Ping);
    }

    #[test]
    fn what_cannot_be_understood_has_its_own_code() {
        let long = "c".repeat(200);
        for (frame, code) in [
            ("", FrameError::BadFrame),
            ("nonsense", FrameError::BadFrame),
            ("[]", FrameError::BadFrame),
            ("\"ping\"", FrameError::BadFrame),
            ("{}", FrameError::UnknownType),
            (r#"{"type":7}"#, FrameError::UnknownType),
            (r#"{"type":"shout"}"#, FrameError::UnknownType),
            (r#"{"type":"subscribe"}"#, FrameError::MissingConversationId),
            (r#"{"type":"unsubscribe","conversation_id":5}"#, FrameError::MissingConversationId),
            (&format!(r#"{{"type":"subscribe","conversation_id":"{long}"}}"#), FrameError::BadFrame),
            (r#"{"type":"subscribe","conversation_id":"c","sub":3}"#, FrameError::BadFrame),
            (
                &format!(r#"{{"type":"subscribe","conversation_id":"c","sub":"{long}"}}"#),
                FrameError::BadFrame,
            ),
            (r#"{"type":"subscribe","conversation_id":"c","since_cursor":-1}"#, FrameError::InvalidCursor),
        ] {
            assert_eq!(refusal(frame), code, "{frame}");
        }
    }

    #[test]
    fn a_refusal_names_its_subscription() {
        let frame = r#"{"type":"subscribe","conversation_id":"c","sub":"s","since_cursor":[]}"#;
        let text = FromSubscriber::parse(frame).unwrap_err().text();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["type"], &value["code"]), (&"error".into(), &"invalid_cursor".into()));
        assert_eq!((&value["conversation_id"], &value["sub"]), (&"c".into(), &"s".into()));
    }

    #[test]
    fn codes_are_read_back_as_they_are_written() {
        for code in FrameError::ALL {
            assert_eq!(code.word().parse(), Ok(code));
        }
    }
}
