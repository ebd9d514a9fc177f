//! Keys, proofs and invites of the one way in: invite or challenge → exchange → ticket → upgrade.
//!
//! - A proof names everything it is for (issuer, secret, node, key, surface, nonce), so it fits nowhere else.
//! - An answer counts only when the issuer that the invite named has signed it.
//! - Signatures are checked strictly: one message, one key, one signature.
//! - Pure but for [`KeyPair::load_or_create`]: the broker's books and the HTTP calls are elsewhere.

mod answer;
mod invite;
mod keypair;
mod proof;

pub use answer::{AnswerError, believe_answer, sign_answer};
pub use invite::Invite;
pub use keypair::{KeyFileError, KeyPair};
pub use proof::{Claim, mint_nonce, verify_proof};

use ed25519_dalek::{Signature, VerifyingKey};
use model::{NodeKey, hex};

/// A signature on the wire: 128 hexadecimal characters.
fn signature_to_text(signature: &Signature) -> String {
    hex::encode(&signature.to_bytes())
}

/// Whether `key` signed `message`.
fn verifies(key: &NodeKey, message: &[u8], signature: &str) -> bool {
    let key = VerifyingKey::from_bytes(key.as_bytes());
    let signature = hex::decode(signature).map(|bytes| Signature::from_bytes(&bytes));
    match (key, signature) {
        (Ok(key), Some(signature)) => key.verify_strict(message, &signature).is_ok(),
        (Ok(_) | Err(_), _) => false,
    }
}
