//! The issuer's answer: signed over the canonical JSON of everything it says.
//!
//! What is checked is the text as heard, not what this version understands of it: a newer issuer signs fields that
//! are unknown here.

use model::NodeKey;
use serde_json::Value;
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
    /// It is not the JSON of an answer.
    #[error("the answer is not one to an exchange")]
    Malformed,
}

/// The answer with the issuer's key and signature in it.
pub fn sign_answer(mut answer: ExchangeAnswer, issuer: &KeyPair) -> ExchangeAnswer {
    answer.issuer_key = issuer.public();
    let said =
        serde_json::to_value(&answer).expect("an answer's fields are strings, lists and objects of them");
    answer.signature = issuer.sign(&signed_text(said));
    answer
}

/// The answer, if `issuer` said it.
pub fn believe_answer(heard: Value, issuer: &NodeKey) -> Result<ExchangeAnswer, AnswerError> {
    let answer: ExchangeAnswer = serde_json::from_value(heard.clone()).map_err(|_| AnswerError::Malformed)?;
    if answer.issuer_key != *issuer {
        return Err(AnswerError::OtherIssuer);
    }
    if verifies(issuer, &signed_text(heard), &answer.signature) {
        Ok(answer)
    } else {
        Err(AnswerError::BadSignature)
    }
}

/// All fields but the signature.
fn signed_text(mut said: Value) -> Vec<u8> {
    if let Some(fields) = said.as_object_mut() {
        fields.remove("signature");
    }
    serde_json_canonicalizer::to_vec(&said).expect("a JSON value has a canonical form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{MeshId, Timestamp};
    use wire::auth::MeshRef;

    fn issuer() -> KeyPair {
        KeyPair::from_secret(&[3; 32])
    }

    fn said(answer: &ExchangeAnswer) -> Value {
        serde_json::to_value(answer).unwrap()
    }

    /// The believed answer by its ticket: the whole of it cannot be printed, because a ticket is a secret.
    fn ticket_of(heard: Value, issuer: &NodeKey) -> Result<String, AnswerError> {
        believe_answer(heard, issuer).map(|answer| answer.ws_ticket)
    }

    fn answer() -> ExchangeAnswer {
        let unsigned = ExchangeAnswer {
            ws_ticket: "T".to_owned(),
            expires_at: Timestamp::from_micros(1_798_761_630_000_000),
            rooms: Vec::new(),
            session_id: "S".to_owned(),
            mesh: MeshRef { id: MeshId::from_bytes([1; 16]), slug: "home".to_owned() },
            member: None,
            now: Timestamp::from_micros(1_798_761_600_000_000),
            issuer_key: NodeKey::from_bytes([0; 32]),
            signature: String::new(),
        };
        sign_answer(unsigned, &issuer())
    }

    #[test]
    fn the_signed_text_is_the_canonical_json_of_all_but_the_signature() {
        assert_eq!(
            String::from_utf8(signed_text(said(&answer()))).unwrap(),
            "{\"expiresAt\":\"2027-01-01T00:00:30.000000Z\",\
             \"issuerKey\":\"ed4928c628d1c2c6eae90338905995612959273a5c63f93636c14614ac8737d1\",\
             \"mesh\":{\"id\":\"01010101-0101-0101-0101-010101010101\",\"slug\":\"home\"},\
             \"now\":\"2027-01-01T00:00:00.000000Z\",\"rooms\":[],\"sessionId\":\"S\",\"wsTicket\":\"T\"}"
        );
    }

    #[test]
    fn an_answer_survives_the_wire_and_counts() {
        let told = serde_json::to_string(&answer()).unwrap();
        let heard = serde_json::from_str(&told).unwrap();
        assert_eq!(ticket_of(heard, &issuer().public()), Ok("T".to_owned()));
    }

    #[test]
    fn a_field_of_a_newer_issuer_is_signed_with_the_rest() {
        let mut newer = said(&answer());
        newer["limits"] = serde_json::json!({"inline_bytes": 65_536});
        assert_eq!(ticket_of(newer.clone(), &issuer().public()), Err(AnswerError::BadSignature));
        newer["signature"] = issuer().sign(&signed_text(newer.clone())).into();
        assert_eq!(ticket_of(newer, &issuer().public()), Ok("T".to_owned()));
    }

    #[test]
    fn what_is_no_answer_is_not_believed() {
        for heard in [serde_json::json!(null), serde_json::json!([]), serde_json::json!({"signature": "00"})]
        {
            assert_eq!(ticket_of(heard, &issuer().public()), Err(AnswerError::Malformed));
        }
    }

    #[test]
    fn an_answer_of_another_issuer_or_with_another_word_does_not_count() {
        let stranger = KeyPair::from_secret(&[4; 32]);
        let believed = |answer: &ExchangeAnswer, issuer: &KeyPair| ticket_of(said(answer), &issuer.public());
        assert_eq!(believed(&answer(), &stranger), Err(AnswerError::OtherIssuer));
        let posing = ExchangeAnswer { issuer_key: issuer().public(), ..sign_answer(answer(), &stranger) };
        assert_eq!(believed(&posing, &issuer()), Err(AnswerError::BadSignature));
        let changes: [fn(&mut ExchangeAnswer); 5] = [
            |answer| answer.ws_ticket = "U".to_owned(),
            |answer| answer.mesh.slug = "work".to_owned(),
            |answer| answer.now = Timestamp::from_micros(0),
            |answer| answer.rooms = vec!["r".to_owned()],
            |answer| answer.signature.clear(),
        ];
        for (place, change) in changes.iter().enumerate() {
            let mut changed = answer();
            change(&mut changed);
            assert_eq!(believed(&changed, &issuer()), Err(AnswerError::BadSignature), "change {place}");
        }
    }
}
