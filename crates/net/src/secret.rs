//! Tokens: made from 256 random bits, kept as their SHA-256, compared in constant time, never printed.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Entropy;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A text that must not reach a log: `Debug` prints `[redacted]`, there is no `Display`, and its memory is
/// wiped when it goes.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// What is kept of a token: enough to recognise it, useless to whoever steals the store.
#[derive(Clone, Copy, Debug)]
pub struct TokenHash([u8; 32]);

impl Secret {
    /// A new token of 256 random bits, base64url.
    pub fn mint(entropy: &dyn Entropy) -> Self {
        let mut random = Zeroizing::new([0; 32]);
        entropy.fill(random.as_mut());
        Self::from(URL_SAFE_NO_PAD.encode(random.as_ref()))
    }

    /// The text itself, for the one place that must send or store it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What a store keeps and looks up.
    pub fn token_hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl TokenHash {
    /// SHA-256 of a token's text.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// A stored one.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes to store and to look up by.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether `token` is the one this was made of. Both sides are digests, so neither the length nor the
    /// place of the first difference shows in the time it takes.
    pub fn matches(&self, token: &str) -> bool {
        *self == Self::of(token)
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count;
    impl Entropy for Count {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.iter_mut().zip(0..).for_each(|(byte, n)| *byte = n);
        }
    }

    #[test]
    fn a_token_is_43_characters_of_base64url_and_is_never_printed() {
        let token = Secret::mint(&Count);
        assert_eq!(token.reveal(), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
        assert_eq!(format!("{token:?} {:?}", Some(&token)), "[redacted] Some([redacted])");
    }

    #[test]
    fn a_token_matches_its_own_hash_and_no_other_text_does() {
        let token = Secret::mint(&Count);
        let kept = TokenHash::from_bytes(*token.token_hash().as_bytes());
        assert!(kept.matches(token.reveal()));
        let right_prefix = format!("{}x", &token.reveal()[..42]);
        for wrong in ["", "AAEC", &right_prefix, &"A".repeat(1_000_000)] {
            assert!(!kept.matches(wrong));
        }
    }

    #[test]
    fn the_hash_is_sha_256_of_the_text() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(TokenHash::of("abc").as_bytes().map(|byte| format!("{byte:02x}")).concat(), abc);
    }
}
