//! What kind of address a member is.

use std::fmt;
use std::str::FromStr;

use crate::envelope::words;
use crate::error::Malformed;

/// Who answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberKind {
    /// Somebody.
    Person,
    /// A program that takes turns.
    Agent,
    /// A program that only sends, or is hosted by the broker.
    Service,
}

words! { MemberKind "kind" "person, agent or service" {
    Person "person" Agent "agent" Service "service"
} }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_parses_back_from_its_word() {
        for kind in MemberKind::ALL {
            assert_eq!(kind.word().parse(), Ok(*kind));
        }
        assert!("user".parse::<MemberKind>().is_err());
    }
}
