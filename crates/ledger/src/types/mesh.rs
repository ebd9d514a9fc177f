//! The mesh a ledger holds, its policies and its members.

use std::fmt;

use model::outbox::DedupeWindow;
use model::{MemberId, MemberKind, MemberName, MeshId, NodeName, Timestamp};
use zeroize::Zeroizing;

/// The one mesh of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Its id, the only name the wire knows.
    pub id: MeshId,
    /// What the place that made it calls it.
    pub slug: String,
    /// What its owner decided.
    pub policies: Policies,
}

/// What a mesh is made from on first start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshSetup {
    /// Its slug.
    pub slug: String,
    /// Its first policies.
    pub policies: Policies,
}

/// What a mesh's owner decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// See [`TopicPolicy`].
    pub topics: TopicPolicy,
    /// How long accepted ids are remembered. A lower value never shortens rows that exist.
    pub dedupe: DedupeWindow,
    /// See [`ConnectionPolicy`].
    pub connections: ConnectionPolicy,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            topics: TopicPolicy::Open,
            dedupe: DedupeWindow::Days(model::limits::DEDUPE_DAYS_DEFAULT),
            connections: ConnectionPolicy::PreferNewest,
        }
    }
}

/// What a post to an unknown topic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TopicPolicy {
    /// It creates the topic.
    Open = 0,
    /// It is refused.
    Declared = 1,
}

/// Which of two connections of one node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ConnectionPolicy {
    /// The later one.
    PreferNewest = 0,
    /// The earlier one.
    PreferOldest = 1,
}

/// An address in the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// Its name, never changed and never given to another.
    pub name: MemberName,
    /// What it is.
    pub kind: MemberKind,
    /// Its node; `None` when the broker hosts it.
    pub home: Option<NodeName>,
    /// What it may decide.
    pub role: Role,
    /// When it was removed from the mesh.
    pub removed_at: Option<Timestamp>,
}

/// What a member may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// Sends and reads.
    Member = 0,
    /// Also invites, tokens, policies, webhooks and declared topics.
    Owner = 1,
}

/// The ed25519 seed with which the mesh signs; wiped from memory when dropped.
pub struct IssuerSeed(pub Zeroizing<[u8; 32]>);

impl fmt::Debug for IssuerSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuerSeed(..)")
    }
}

macro_rules! stored_words {
    ($($type:ident $field:literal $expected:literal { $($variant:ident $word:literal)* })*) => {$(
        impl $type {
            /// Every value, in the order of the stored numbers.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The stored number.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The value stored as `code`.
            pub fn from_code(code: i64) -> Option<$type> {
                $type::ALL.iter().copied().find(|value| i64::from(value.code()) == code)
            }

            /// The word for people and JSON.
            pub const fn word(self) -> &'static str {
                match self { $($type::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl std::str::FromStr for $type {
            type Err = model::error::Malformed;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok($type::$variant),)*
                    _ => Err(model::error::Malformed::new($field, $expected)),
                }
            }
        }
    )*};
}
pub(crate) use stored_words;

stored_words! {
    TopicPolicy "topics" "open or declared" { Open "open" Declared "declared" }
    ConnectionPolicy "connections" "prefer_newest or prefer_oldest" {
        PreferNewest "prefer_newest" PreferOldest "prefer_oldest"
    }
    Role "role" "member or owner" { Member "member" Owner "owner" }
}

/// The stored number of a kind.
pub(crate) const fn kind_code(kind: MemberKind) -> u8 {
    match kind {
        MemberKind::Person => 0,
        MemberKind::Agent => 1,
        MemberKind::Service => 2,
    }
}

/// The kind stored as `code`.
pub(crate) fn kind_from_code(code: i64) -> Option<MemberKind> {
    MemberKind::ALL.iter().copied().find(|kind| i64::from(kind_code(*kind)) == code)
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use model::error::Malformed;

    use super::*;

    fn each_survives<T>(
        all: &[T],
        code: fn(T) -> u8,
        from_code: fn(i64) -> Option<T>,
        word: fn(T) -> &'static str,
    ) where
        T: Copy + fmt::Debug + PartialEq + FromStr<Err = Malformed>,
    {
        for value in all {
            assert_eq!(from_code(code(*value).into()), Some(*value));
            assert_eq!(word(*value).parse(), Ok(*value));
        }
        assert_eq!(from_code(99), None);
        assert!("".parse::<T>().is_err());
    }

    #[test]
    fn stored_numbers_and_words_lead_back_to_their_value() {
        each_survives(TopicPolicy::ALL, TopicPolicy::code, TopicPolicy::from_code, TopicPolicy::word);
        each_survives(
            ConnectionPolicy::ALL,
            ConnectionPolicy::code,
            ConnectionPolicy::from_code,
            ConnectionPolicy::word,
        );
        each_survives(MemberKind::ALL, kind_code, kind_from_code, MemberKind::word);
        each_survives(Role::ALL, Role::code, Role::from_code, Role::word);
    }

    #[test]
    fn a_seed_does_not_show_itself_in_logs() {
        assert_eq!(format!("{:?}", IssuerSeed(Zeroizing::new([7; 32]))), "IssuerSeed(..)");
    }
}
