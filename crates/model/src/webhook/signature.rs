//! What proves to an endpoint that a call is ours: the signature of Standard Webhooks, version 1.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::clock::{Entropy, Timestamp};
use crate::id::{MemberId, MessageId};

/// What stands before a secret's text.
const PREFIX: &str = "whsec_";

/// 256 random bits shared with an endpoint. Wiped from memory when dropped, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Zeroizing<[u8; 32]>);

impl WebhookSecret {
    /// A new one.
    pub fn mint(entropy: &dyn Entropy) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        entropy.fill(bytes.as_mut());
        Self(bytes)
    }

    /// A stored one.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The text its owner is shown, once.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(self.0.as_ref())))
    }

    fn sign(&self, id: &str, at: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_ref()).expect("a key of any length will do");
        mac.update(format!("{id}.{at}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// The `webhook-id` of a message for a member: the same at every attempt, another for every delivery.
pub fn delivery_id(message: MessageId, recipient: MemberId) -> String {
    format!("{message}_{recipient}")
}

/// The `webhook-signature` header, and the `webhook-timestamp` it covers. During a rotation there are two secrets,
/// and an endpoint that knows either is content.
pub fn sign(secrets: &[WebhookSecret], id: &str, now: Timestamp, body: &[u8]) -> (String, i64) {
    let at = now.as_micros().div_euclid(1_000_000);
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, at, body)).collect();
    (signatures.join(" "), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification's reference libraries.
    #[test]
    fn the_signature_is_the_published_examples() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        // A published key of 24 bytes: HMAC pads a shorter key with zeros, so ours of 32 signs the same.
        let mut bytes = [0; 32];
        bytes[..key.len()].copy_from_slice(&key);
        let at = Timestamp::from_micros(1_614_265_330_000_000);
        let (signature, seconds) = sign(
            &[WebhookSecret::from_bytes(bytes)],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(seconds, 1_614_265_330);
    }

    #[test]
    fn two_secrets_give_two_signatures_in_their_order() {
        let (one, two) = (WebhookSecret::from_bytes([1; 32]), WebhookSecret::from_bytes([2; 32]));
        let at = Timestamp::from_micros(0);
        let alone = |secret: &WebhookSecret| sign(std::slice::from_ref(secret), "id", at, b"x").0;
        let (both, _) = sign(&[two.clone(), one.clone()], "id", at, b"x");
        assert_eq!(both, format!("{} {}", alone(&two), alone(&one)));
        assert_ne!(alone(&one), alone(&two));
    }

    #[test]
    fn a_secret_shows_its_text_when_asked_and_never_in_a_log() {
        let secret = WebhookSecret::from_bytes([0; 32]);
        assert_eq!(secret.reveal().as_str(), "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        assert_eq!(format!("{secret:?}"), "WebhookSecret(..)");
    }

    #[test]
    fn each_delivery_has_an_id_of_its_own_without_a_dot() {
        let (message, other) = (MessageId::from_bytes([1; 16]), MessageId::from_bytes([2; 16]));
        let (member, another) = (MemberId::from_bytes([3; 16]), MemberId::from_bytes([4; 16]));
        let ids = [delivery_id(message, member), delivery_id(message, another), delivery_id(other, member)];
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
        // The signed text joins its parts with dots.
        assert!(ids.iter().all(|id| !id.contains('.')));
    }
}
