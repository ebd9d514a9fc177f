//! What owners, operators and the janitor do.

use model::Timestamp;

use super::mesh::Member;
use super::wayin::SecretHash;

/// A token's number in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u64);

/// What a token's bearer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Scopes {
    /// Send messages.
    pub send: bool,
    /// Read conversations.
    pub read: bool,
    /// Use the hub.
    pub hub: bool,
}

/// A token to store.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Of the token.
    pub hash: SecretHash,
    /// As whom it acts.
    pub member: model::MemberId,
    /// What it may do.
    pub scopes: Scopes,
}

/// A token as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// Its number.
    pub id: TokenId,
    /// As whom it acts.
    pub member: Member,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

/// A member asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is new.
    New(Member),
    /// It was there already, at the same home.
    Known(Member),
}

/// Where a walk over all ids stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IdPlace {
    pub(crate) client_message_id: String,
    pub(crate) sender: i64,
}

/// What one step of a walk over all ids did.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// How many ids it forgot.
    pub ids: u64,
    /// Where the next step begins; nothing when every id was looked at.
    pub next: Option<IdPlace>,
}

/// What one round of pruning did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Messages removed.
    pub messages: u64,
    /// Whether a further round would find more.
    pub more: bool,
}

impl Registered {
    /// The member.
    pub fn member(&self) -> &Member {
        match self {
            Registered::New(member) | Registered::Known(member) => member,
        }
    }
}

impl Scopes {
    const SEND: u8 = 1;
    const READ: u8 = 2;
    const HUB: u8 = 4;

    /// The stored number.
    pub const fn code(self) -> u8 {
        (if self.send { Self::SEND } else { 0 })
            | (if self.read { Self::READ } else { 0 })
            | (if self.hub { Self::HUB } else { 0 })
    }

    /// The scopes stored as `code`.
    pub fn from_code(code: i64) -> Option<Scopes> {
        let code = u8::try_from(code).ok().filter(|code| *code <= Self::SEND | Self::READ | Self::HUB)?;
        Some(Scopes {
            send: code & Self::SEND != 0,
            read: code & Self::READ != 0,
            hub: code & Self::HUB != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Scopes;

    #[test]
    fn every_set_of_scopes_has_its_own_number() {
        for code in 0..8 {
            let scopes = Scopes::from_code(code).unwrap();
            assert_eq!(i64::from(scopes.code()), code);
        }
        assert_eq!(Scopes::from_code(8), None);
        assert_eq!(Scopes::from_code(-1), None);
    }
}
