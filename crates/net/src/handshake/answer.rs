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

#[cfg(test)]
mod tests {
    use super::*;
    use model::{MeshId, Timestamp};
    use wire::auth::MeshRef;

    fn issuer() -> KeyPair {
        KeyPair::from_secret(&[3; 32])
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
            String::from_utf8(signed_text(&answer())).unwrap(),
            "{\"expiresAt\":\"2027-01-01T00:00:30.000000Z\",\
             \"issuerKey\":\"ed4928c628d1c2c6eae90338905995612959273a5c63f93636c14614ac8737d1\",\
             \"mesh\":{\"id\":\"01010101-0101-0101-0101-010101010101\",\"slug\":\"home\"},\
             \"now\":\"2027-01-01T00:00:00.000000Z\",\"rooms\":[],\"sessionId\":\"S\",\"wsTicket\":\"T\"}"
        );
    }

    #[test]
    fn an_answer_survives_the_wire_and_counts() {
        let sent = serde_json::to_string(&answer()).unwrap();
        let heard: ExchangeAnswer = serde_json::from_str(&sent).unwrap();
        assert_eq!(verify_answer(&heard, &issuer().public()), Ok(()));
    }

    #[test]
    fn an_answer_of_another_issuer_or_with_another_word_does_not_count() {
        let stranger = KeyPair::from_secret(&[4; 32]);
        assert_eq!(verify_answer(&answer(), &stranger.public()), Err(AnswerError::OtherIssuer));
        let posing = ExchangeAnswer { issuer_key: issuer().public(), ..sign_answer(answer(), &stranger) };
        assert_eq!(verify_answer(&posing, &issuer().public()), Err(AnswerError::BadSignature));
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
            assert_eq!(
                verify_answer(&changed, &issuer().public()),
                Err(AnswerError::BadSignature),
                "change {place}"
            );
        }
    }
}
