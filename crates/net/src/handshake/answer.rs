//! The issuer's answer: signed over the canonical JSON of everything it says.

use model::NodeKey;
use wire::auth::ExchangeAnswer;

use super::{KeyPair, verifies};

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It names another issuer than the invite, or than the one this mesh had.
    #[error("the answer is from another issuer")]
    OtherIssuer,
    /// The signature does not fit.
    #[error("the answer's signature does not fit")]
    BadSignature,
}

/// The answer with the issuer's key and signature in it.
pub fn sign_answer(mut answer: ExchangeAnswer, issuer: &KeyPair) -> ExchangeAnswer {
    answer.issuer_key = issuer.public();
    answer.signature = issuer.sign(&signed_text(&answer));
    answer
}

/// Whether `issuer` said this.
pub fn verify_answer(answer: &ExchangeAnswer, issuer: &NodeKey) -> Result<(), AnswerError> {
    if answer.issuer_key != *issuer {
        return Err(AnswerError::OtherIssuer);
    }
    if verifies(issuer, &signed_text(answer), &answer.signature) {
        Ok(())
    } else {
        Err(AnswerError::BadSignature)
    }
}

/// All fields but the signature, which is left out of the JSON while it is empty.
fn signed_text(answer: &ExchangeAnswer) -> Vec<u8> {
    let unsigned = ExchangeAnswer { signature: String::new(), ..answer.clone() };
    serde_json_canonicalizer::to_vec(&unsigned)
        .expect("strings, lists and objects of them have a canonical form")
}
