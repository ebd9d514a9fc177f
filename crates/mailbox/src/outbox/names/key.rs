//! What of a name is kept in order.

use model::{ClientMessageId, MemberId};
use rusqlite::ToSql;
use rusqlite::types::ToSqlOutput;
use sha2::{Digest, Sha256};

/// Sixty-four bits of a name and its sender. They are of a digest: nobody can choose names that share a key, and have all
/// be looked at for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(i64);

impl Key {
    pub(super) fn of(sender: &MemberId, name: &ClientMessageId) -> Self {
        let digest = Sha256::new().chain_update(sender.as_bytes()).chain_update(name.as_str()).finalize();
        Self(digest.iter().take(8).fold(0, |bits, byte| bits << 8 | i64::from(*byte)))
    }

    pub(super) const fn bits(self) -> i64 {
        self.0
    }

    #[cfg(test)]
    pub(super) const fn from_bits(bits: i64) -> Self {
        Self(bits)
    }
}

impl ToSql for Key {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::Key;
    use model::MemberId;

    /// It is stored: with another digest every name on disk would be free again.
    #[test]
    fn the_key_of_a_name_stays_what_it_was_and_is_its_senders() {
        let name = "order-17".parse().unwrap();
        let [ann, bob] = [0xA, 0xB].map(|byte| MemberId::from_bytes([byte; 16]));
        assert_eq!(Key::of(&ann, &name), Key(-2_503_871_410_921_681_173));
        assert_ne!(Key::of(&bob, &name), Key::of(&ann, &name));
    }
}
