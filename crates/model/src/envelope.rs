//! A message as its sender asked for it, and where it wants to go.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::error::Malformed;
use crate::id::{ClientMessageId, MemberName, NodeKey, TopicName};
use crate::limits;
use crate::meta::Meta;

/// Where a message goes, as asked. Names resolve at the broker, never earlier, so that a node without
/// a network can accept any well-formed destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum To {
    /// `#topic`
    Topic(TopicName),
    /// `@name`
    Member(MemberName),
    /// `@me`: the sender.
    Me,
    /// 64 hexadecimal characters: that node's person.
    Key(NodeKey),
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// Words.
    #[default]
    Message,
    /// Words that answer another message.
    Reply,
}

/// Orders an agent's turns between conversations, never inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Priority {
    /// Before other conversations.
    Now,
    /// In turn.
    #[default]
    Next,
    /// After other conversations.
    Low,
}

/// Until when a message may be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Deadline {
    /// No time of its own.
    #[default]
    None,
    /// An instant, in broker time.
    DeliverBy(Timestamp),
    /// Seconds from the moment the daemon accepted it; fingerprinted as asked.
    Ttl {
        /// As asked.
        seconds: u32,
        /// The instant made from it.
        deliver_by: Timestamp,
    },
}

/// A message handed over by its sender, before any carrier touched it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The caller's key, or one minted for it.
    pub client_message_id: ClientMessageId,
    /// What it is for.
    pub kind: Kind,
    /// Where it goes.
    pub to: To,
    /// Its text.
    pub body: Body,
    /// Anything structured beside the text.
    pub meta: Option<Meta>,
    /// Members it names, in the given order.
    pub mentions: Vec<MemberName>,
    /// The message it answers, as given.
    pub reply_to: Option<Reference>,
    /// A conversation of the caller's own, as given.
    pub corr_id: Option<Reference>,
    /// See [`Priority`].
    pub priority: Priority,
    /// Whether the conversation now waits for an answer.
    pub expects_input: bool,
    /// See [`Deadline`].
    pub deadline: Deadline,
    /// Automatic replies before this one.
    pub hops: u8,
}

/// A message's text: at most 64 KiB, without NUL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Body(String);

/// A `reply_to` or `corr_id`: 1 to 128 bytes without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference(String);

/// Why a body was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyRefused {
    /// Over [`limits::BODY_BYTES_MAX`].
    #[error("body has {bytes} bytes, the limit is {max}", max = limits::BODY_BYTES_MAX)]
    TooLarge {
        /// What it had.
        bytes: usize,
    },
    /// A NUL, which separates fields in the fingerprint.
    #[error("body must be text without NUL characters")]
    Nul,
}

impl To {
    /// `topic` or `dm`, as the fingerprint and the dedupe row say it.
    pub const fn kind(&self) -> &'static str {
        match self {
            To::Topic(_) => "topic",
            To::Member(_) | To::Me | To::Key(_) => "dm",
        }
    }

    /// The destination as asked, without its sigil.
    pub fn reference(&self) -> String {
        match self {
            To::Topic(name) => name.to_string(),
            To::Member(name) => name.to_string(),
            To::Me => "me".to_owned(),
            To::Key(key) => key.to_string(),
        }
    }

    /// The lane of `sender`'s messages to this destination. `@me` is the sender's own name; other
    /// spellings of one member are other lanes, and order is promised per spelling.
    pub fn lane(&self, sender: &MemberName) -> String {
        match self {
            To::Me => To::Member(sender.clone()).to_string(),
            To::Topic(_) | To::Member(_) | To::Key(_) => self.to_string(),
        }
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            To::Topic(name) => write!(f, "#{name}"),
            To::Member(name) => write!(f, "@{name}"),
            To::Me => f.write_str("@me"),
            To::Key(key) => key.fmt(f),
        }
    }
}

impl FromStr for To {
    type Err = Malformed;
    /// The wire's form: `#topic`, `@name`, `@me` or a key.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = Malformed::new("to", "#topic, @name, @me or a 64-character key");
        if let Some(topic) = text.strip_prefix('#') {
            topic.parse().map(To::Topic).map_err(|_| malformed)
        } else if text == "@me" {
            Ok(To::Me)
        } else if let Some(name) = text.strip_prefix('@') {
            name.parse().map(To::Member).map_err(|_| malformed)
        } else {
            text.parse().map(To::Key).map_err(|_| malformed)
        }
    }
}

macro_rules! words {
    ($type:ident $field:literal $expected:literal { $($variant:ident $word:literal)* }) => {
        impl $type {
            /// Every value.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The word on the wire.
            pub const fn word(self) -> &'static str {
                match self { $($type::$variant => $word,)* }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }

        impl FromStr for $type {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                match text {
                    $($word => Ok($type::$variant),)*
                    _ => Err(Malformed::new($field, $expected)),
                }
            }
        }
    };
}
pub(crate) use words;

words! { Kind "kind" "message or reply" { Message "message" Reply "reply" } }
words! { Priority "priority" "now, next or low" { Now "now" Next "next" Low "low" } }

impl Deadline {
    /// The instant, when there is one.
    pub const fn deliver_by(&self) -> Option<Timestamp> {
        match self {
            Deadline::None => None,
            Deadline::DeliverBy(at) | Deadline::Ttl { deliver_by: at, .. } => Some(*at),
        }
    }
}

impl Body {
    /// Checks size and NUL.
    pub fn parse(text: String) -> Result<Body, BodyRefused> {
        if text.len() > limits::BODY_BYTES_MAX {
            Err(BodyRefused::TooLarge { bytes: text.len() })
        } else if text.contains('\0') {
            Err(BodyRefused::Nul)
        } else {
            Ok(Body(text))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Reference {
    /// Checks length and characters; `field` names it in the refusal.
    pub fn parse(field: &'static str, text: &str) -> Result<Reference, Malformed> {
        let fits = (1..=limits::REFERENCE_BYTES_MAX).contains(&text.len());
        if fits && !text.chars().any(char::is_control) {
            Ok(Reference(text.to_owned()))
        } else {
            Err(Malformed::new(field, "1 to 128 bytes without control characters"))
        }
    }

    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_parse_print_and_name_their_lane() {
        let jane: MemberName = "jane".parse().unwrap();
        let key = "ab".repeat(32);
        for (asked, kind, reference, lane) in [
            ("#alerts", "topic", "alerts", "#alerts"),
            ("@ci", "dm", "ci", "@ci"),
            ("@me", "dm", "me", "@jane"),
            ("@jane", "dm", "jane", "@jane"),
            (key.as_str(), "dm", key.as_str(), key.as_str()),
        ] {
            let to: To = asked.parse().unwrap();
            assert_eq!(to.to_string(), asked);
            assert_eq!((to.kind(), to.reference().as_str()), (kind, reference));
            assert_eq!(to.lane(&jane), lane);
        }
        for bad in ["", "#", "@", "alerts", "#Alerts", "@a b", "##a", "@@a", &"zz".repeat(32)] {
            assert!(bad.parse::<To>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_body_is_text_up_to_64_kib_without_nul() {
        let full = "x".repeat(limits::BODY_BYTES_MAX);
        assert!(Body::parse(full.clone()).is_ok());
        assert_eq!(Body::parse(full + "x"), Err(BodyRefused::TooLarge { bytes: limits::BODY_BYTES_MAX + 1 }));
        assert_eq!(Body::parse("a\0b".into()), Err(BodyRefused::Nul));
    }

    #[test]
    fn words_parse_back_to_their_value_and_nothing_else_does() {
        for kind in Kind::ALL {
            assert_eq!(kind.word().parse(), Ok(*kind));
        }
        for priority in Priority::ALL {
            assert_eq!(priority.word().parse(), Ok(*priority));
        }
        assert!("NOW".parse::<Priority>().is_err());
        assert!("".parse::<Kind>().is_err());
    }
}
