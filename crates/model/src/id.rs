//! Ids and names. A value is proof of its form; two kinds of id cannot be swapped.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::clock::{Entropy, Timestamp};
use crate::error::Malformed;
use crate::{hex, limits};

macro_rules! uuid_id {
    ($($(#[doc = $doc:literal])+ $name:ident $field:literal;)*) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// A new time-ordered id (UUIDv7).
            pub fn mint(now: Timestamp, entropy: &dyn Entropy) -> Self {
                let mut random = [0; 10];
                entropy.fill(&mut random);
                Self(uuid::Builder::from_unix_timestamp_millis(now.as_millis_unsigned(), &random).into_uuid())
            }

            /// The id whose bytes are stored.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The sixteen bytes to store.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id as the library type databases take.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                // Only the hyphenated form: one id has one spelling.
                match Uuid::try_parse(text) {
                    Ok(id) if text.len() == 36 => Ok(Self(id)),
                    Ok(_) | Err(_) => Err(Malformed::new($field, "a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057")),
                }
            }
        }
    )*};
}

uuid_id! {
    /// A group with one carrier.
    MeshId "mesh";
    /// An address in a mesh.
    MemberId "member";
    /// A message the broker accepted (`broker_message_id`).
    MessageId "id";
    /// A log: one per topic, one per unordered pair of members.
    ConversationId "conversation";
}

macro_rules! ulid_id {
    ($($(#[doc = $doc:literal])+ $name:ident $field:literal;)*) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(ulid::Ulid);

        impl $name {
            /// A new time-ordered id (ULID).
            pub fn mint(now: Timestamp, entropy: &dyn Entropy) -> Self {
                let mut random = [0; 16];
                entropy.fill(&mut random);
                Self(ulid::Ulid::from_parts(now.as_millis_unsigned(), u128::from_le_bytes(random)))
            }

            /// The id whose bytes are stored.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(ulid::Ulid::from_bytes(bytes))
            }

            /// The sixteen bytes to store.
            pub fn to_bytes(&self) -> [u8; 16] {
                self.0.to_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                ulid::Ulid::from_string(text).map(Self).map_err(|_| Malformed::new($field, "a ULID"))
            }
        }
    )*};
}

ulid_id! {
    /// One row of an outbox.
    RowId "row";
    /// One claim of one row: only its holder may record a refusal.
    LeaseToken "lease_token";
    /// One attempt of an agent at one message.
    TurnId "turn_id";
}

/// The caller's idempotency key: 1 to 128 of `A-Z a-z 0-9 . _ : -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientMessageId(String);

/// A member's name, unique in its mesh.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName(String);

/// A topic's name; the grammar of members.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

/// A node's given name; the grammar of members.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(String);

/// A node's ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey([u8; 32]);

impl ClientMessageId {
    /// A new time-ordered key.
    pub fn mint(now: Timestamp, entropy: &dyn Entropy) -> Self {
        RowId::mint(now, entropy).into()
    }

    /// The text as the caller gave it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The key of a message that its caller did not name.
impl From<RowId> for ClientMessageId {
    fn from(row: RowId) -> Self {
        Self(row.to_string())
    }
}

impl FromStr for ClientMessageId {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        let fits = (1..=limits::CLIENT_MESSAGE_ID_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(legal) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Malformed::new("client_message_id", "1 to 128 characters of A-Z a-z 0-9 . _ : -"))
        }
    }
}

impl fmt::Display for ClientMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `[a-z0-9][a-z0-9._-]{0,62}`
fn is_name(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let fits = (1..=limits::NAME_BYTES_MAX).contains(&text.len());
    fits && legal(text.as_bytes()[0]) && text.bytes().all(|b| legal(b) || matches!(b, b'.' | b'_' | b'-'))
}

macro_rules! name {
    ($($name:ident $field:literal $expected:literal reserved $reserved:expr;)*) => {$(
        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                if is_name(text) && !$reserved.contains(&text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(Malformed::new($field, $expected))
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

const NO_NAMES: [&str; 0] = [];

name! {
    MemberName "name" "1 to 63 of a-z 0-9 . _ - beginning with a letter or digit, and not \"me\"" reserved ["me"];
    TopicName "topic" "1 to 63 of a-z 0-9 . _ - beginning with a letter or digit" reserved NO_NAMES;
    NodeName "nodeId" "1 to 63 of a-z 0-9 . _ - beginning with a letter or digit" reserved NO_NAMES;
}

/// The nearest legal name to `text` (a host or an account), or `fallback` when nothing legal is left.
pub fn sanitise_name(text: &str, fallback: &str) -> String {
    let lowered = text.to_ascii_lowercase();
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let kept: String = lowered.chars().map(|c| if legal(c) { c } else { '-' }).collect();
    let trimmed = kept.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let cut: String = trimmed.chars().take(limits::NAME_BYTES_MAX).collect();
    if is_name(&cut) && cut != "me" { cut } else { fallback.to_owned() }
}

impl NodeKey {
    /// The key's bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl FromStr for NodeKey {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::new("publicKey", "64 hexadecimal characters");
        hex::decode(text).map(Self).ok_or_else(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Zeros;
    impl Entropy for Zeros {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(0);
        }
    }

    #[test]
    fn a_client_message_id_is_1_to_128_plain_characters_and_never_trimmed() {
        for good in ["a", "ci-4127-done", "A.b_c:d-9", &"x".repeat(128)] {
            assert_eq!(good.parse::<ClientMessageId>().unwrap().as_str(), good);
        }
        for bad in ["", " a", "a ", "a\n", "ä", "a/b", "a\0", &"x".repeat(129)] {
            assert!(bad.parse::<ClientMessageId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_follow_the_grammar_and_me_is_reserved_for_members_only() {
        for good in ["a", "0", "ci", "mbp-jane", "a.b_c-d", &"x".repeat(63)] {
            assert!(good.parse::<MemberName>().is_ok(), "{good:?}");
        }
        for bad in ["", "-a", ".a", "A", "a b", "ä", "a\u{202e}", &"x".repeat(64)] {
            assert!(bad.parse::<MemberName>().is_err(), "{bad:?}");
            assert!(bad.parse::<TopicName>().is_err(), "{bad:?}");
        }
        assert!("me".parse::<MemberName>().is_err());
        assert!("me".parse::<TopicName>().is_ok());
    }

    #[test]
    fn a_host_name_becomes_the_nearest_legal_name() {
        for (host, name) in [
            ("MBP-Jane.local", "mbp-jane.local"),
            ("Jane's Mac", "jane-s-mac"),
            ("--", "node"),
            ("", "node"),
            ("me", "node"),
            ("日本", "node"),
        ] {
            assert_eq!(sanitise_name(host, "node"), name, "{host:?}");
        }
        assert!(is_name(&sanitise_name(&"x".repeat(300), "node")));
    }

    #[test]
    fn ids_are_time_ordered_and_have_one_spelling() {
        let early = MessageId::mint(Timestamp::from_micros(1_000_000), &Zeros);
        let late = MessageId::mint(Timestamp::from_micros(2_000_000), &Zeros);
        assert!(early < late);
        let text = late.to_string();
        assert_eq!(text.parse(), Ok(late));
        assert!(text.replace('-', "").parse::<MessageId>().is_err());
        assert_eq!(MessageId::from_bytes(*late.as_bytes()), late);
    }

    #[test]
    fn a_node_key_is_64_hexadecimal_characters() {
        let key: NodeKey = "AB".repeat(32).parse().unwrap();
        assert_eq!(key.to_string(), "ab".repeat(32));
        for bad in ["", &"ab".repeat(31), &"zz".repeat(32), &format!("+a{}", "ab".repeat(31))] {
            assert!(bad.parse::<NodeKey>().is_err(), "{bad:?}");
        }
    }
}
