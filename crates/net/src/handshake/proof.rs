//! The joiner's proof: it holds the key, and means this exchange and no other.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Entropy, NodeKey, NodeName};

use super::{KeyPair, verifies};
use crate::Secret;

/// Everything a proof is for.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Whom the joiner means to talk to.
    pub issuer_key: &'a NodeKey,
    /// The invite's token, or the challenge.
    pub secret: &'a Secret,
    /// Who it says it is.
    pub node_id: &'a NodeName,
    /// Its key.
    pub public_key: &'a NodeKey,
    /// The surface the ticket is for.
    pub aud: &'a str,
    /// Fresh for every exchange.
    pub nonce: &'a str,
}

/// A nonce for one exchange.
pub fn mint_nonce(entropy: &dyn Entropy) -> String {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    URL_SAFE_NO_PAD.encode(random)
}

/// Whether the claim's own key signed it.
pub fn verify_proof(claim: &Claim<'_>, node_proof: &str) -> bool {
    claim.is_unambiguous() && verifies(claim.public_key, claim.text().reveal().as_bytes(), node_proof)
}

impl Claim<'_> {
    /// The proof of `pair`, whose public half the claim names.
    pub fn prove(&self, pair: &KeyPair) -> String {
        pair.sign(self.text().reveal().as_bytes())
    }

    fn text(&self) -> Secret {
        let Self { issuer_key, secret, node_id, public_key, aud, nonce } = self;
        let secret = secret.reveal();
        Secret::from(format!("postrider-exchange|{issuer_key}|{secret}|{node_id}|{public_key}|{aud}|{nonce}"))
    }

    /// A separator inside a free text would let two claims share one proof.
    fn is_unambiguous(&self) -> bool {
        [self.secret.reveal(), self.aud, self.nonce].iter().all(|text| !text.contains('|'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim that owns its parts, so that one of them can be changed.
    #[derive(Clone)]
    struct Owned {
        issuer_key: NodeKey,
        secret: Secret,
        node_id: NodeName,
        public_key: NodeKey,
        aud: String,
        nonce: String,
    }

    impl Owned {
        fn claim(&self) -> Claim<'_> {
            let Self { issuer_key, secret, node_id, public_key, aud, nonce } = self;
            Claim { issuer_key, secret, node_id, public_key, aud, nonce }
        }
    }

    fn jane() -> (KeyPair, Owned) {
        let pair = KeyPair::from_secret(&[7; 32]);
        let owned = Owned {
            issuer_key: NodeKey::from_bytes([0x11; 32]),
            secret: Secret::from("INVITE".to_owned()),
            node_id: "mbp-jane".parse().unwrap(),
            public_key: pair.public(),
            aud: "postrider-link".to_owned(),
            nonce: "n1".to_owned(),
        };
        (pair, owned)
    }

    #[test]
    fn the_proof_text_and_its_signature_are_fixed() {
        let (pair, jane) = jane();
        assert_eq!(
            jane.claim().text().reveal(),
            "postrider-exchange|1111111111111111111111111111111111111111111111111111111111111111|INVITE|mbp-jane|\
             ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c|postrider-link|n1"
        );
        assert_eq!(
            jane.claim().prove(&pair),
            "65326a0fad18aceee8aadf89c44e69ab5144da9af470e2bfc1eccbe1f26b0531\
             4632ff4a2f4e22f4be4bfdc57adcb7816fb30c9963eaa02e904f2b1a8cf01f0d"
        );
    }

    #[test]
    fn a_proof_fits_its_own_claim_and_no_other() {
        let (pair, jane) = jane();
        let proof = jane.claim().prove(&pair);
        assert!(verify_proof(&jane.claim(), &proof));
        let changes: [fn(&mut Owned); 7] = [
            |claim| claim.issuer_key = NodeKey::from_bytes([0x12; 32]),
            |claim| claim.secret = Secret::from("OTHER".to_owned()),
            |claim| claim.node_id = "mbp-joan".parse().unwrap(),
            |claim| claim.public_key = KeyPair::from_secret(&[8; 32]).public(),
            |claim| claim.aud = "postrider-pipe".to_owned(),
            |claim| claim.nonce = "n2".to_owned(),
            // No point of the curve at all.
            |claim| claim.public_key = NodeKey::from_bytes([2; 32]),
        ];
        for (place, change) in changes.iter().enumerate() {
            let mut other = jane.clone();
            change(&mut other);
            assert!(!verify_proof(&other.claim(), &proof), "change {place}");
        }
    }

    #[test]
    fn a_proof_that_is_no_signature_is_no_proof() {
        let (pair, jane) = jane();
        let proof = jane.claim().prove(&pair);
        for bad in ["", "00", &proof[1..], &format!("{proof}0"), &proof.replace('a', "g"), &"0".repeat(128)] {
            assert!(!verify_proof(&jane.claim(), bad), "{bad}");
        }
    }

    #[test]
    fn a_separator_inside_a_part_makes_no_second_meaning() {
        let (pair, mut shifted) = jane();
        shifted.aud = "postrider-link|n0".to_owned();
        let proof = shifted.claim().prove(&pair);
        assert!(!verify_proof(&shifted.claim(), &proof));
    }
}
