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
use model::NodeKey;

/// A signature on the wire: 128 hexadecimal characters.
fn signature_to_text(signature: &Signature) -> String {
    to_hex(&signature.to_bytes())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? * 16 + digit(pair[1])?;
    }
    Some(bytes)
}

/// Whether `key` signed `message`.
fn verifies(key: &NodeKey, message: &[u8], signature: &str) -> bool {
    let key = VerifyingKey::from_bytes(key.as_bytes());
    let signature = from_hex(signature).map(|bytes| Signature::from_bytes(&bytes));
    match (key, signature) {
        (Ok(key), Some(signature)) => key.verify_strict(message, &signature).is_ok(),
        (Ok(_) | Err(_), _) => false,
    }
}
