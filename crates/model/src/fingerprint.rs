//! The 32 bytes that freeze what was asked.
//!
//! Taken once, at the daemon's door; recomputed by the broker from what arrived. Fields are separated
//! by one zero byte, which is why no field may hold one. The extra fields came later than the first
//! form, so a message that uses none of them keeps form 1.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::envelope::{Deadline, Draft, Kind};
use crate::error::Malformed;
use crate::hex;

/// What was asked, in 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of `draft`.
    pub fn of(draft: &Draft) -> Fingerprint {
        let extra = extra_fields(draft);
        let form = if extra.is_some() { "2" } else { "1" };
        let (reference, body) = (draft.to.reference(), hex::encode(&Sha256::digest(draft.body.as_str())));
        let fields = [
            draft.to.kind(),
            &reference,
            draft.reply_to.as_ref().map_or("", |reply| reply.as_str()),
            draft.priority.word(),
            draft.meta.as_ref().map_or("", |meta| meta.as_str()),
            &body,
        ];
        let mut digest = Sha256::new_with_prefix(form);
        for field in fields.into_iter().chain(extra.as_deref()) {
            digest.update([0]);
            digest.update(field);
        }
        Fingerprint(digest.finalize().into())
    }

    /// The stored bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight bytes, enough to tell two requests apart in an answer.
    pub fn prefix(&self) -> String {
        hex::encode(&self.0[..8])
    }
}

/// The canonical JSON of the fields form 1 lacks, each only when it is not its default.
fn extra_fields(draft: &Draft) -> Option<String> {
    let mut extra = Map::new();
    if draft.kind != Kind::default() {
        extra.insert("kind".into(), draft.kind.word().into());
    }
    if !draft.mentions.is_empty() {
        let names = draft.mentions.iter().map(|name| Value::from(name.as_str())).collect();
        extra.insert("mentions".into(), Value::Array(names));
    }
    if draft.expects_input {
        extra.insert("expects_input".into(), true.into());
    }
    match draft.deadline {
        Deadline::None => {}
        Deadline::DeliverBy(at) => {
            extra.insert("deliver_by".into(), at.to_string().into());
        }
        // The instant made from a ttl depends on when it was made; only what was asked is frozen.
        Deadline::Ttl { seconds, .. } => {
            extra.insert("ttl".into(), seconds.into());
        }
    }
    if let Some(corr_id) = &draft.corr_id {
        extra.insert("corr_id".into(), corr_id.as_str().into());
    }
    if extra.is_empty() {
        return None;
    }
    Some(
        serde_json_canonicalizer::to_string(&extra)
            .expect("a map of strings, booleans and integers has a canonical form"),
    )
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::new("request_fingerprint", "64 hexadecimal characters");
        hex::decode(text).map(Self).ok_or_else(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Body, Priority, Reference};
    use crate::meta::Meta;

    fn draft(to: &str, body: &str) -> Draft {
        Draft {
            client_message_id: "x".parse().unwrap(),
            kind: Kind::Message,
            to: to.parse().unwrap(),
            body: Body::parse(body.into()).unwrap(),
            meta: None,
            mentions: vec![],
            reply_to: None,
            corr_id: None,
            priority: Priority::Next,
            expects_input: false,
            deadline: Deadline::None,
            hops: 0,
        }
    }

    #[test]
    fn golden_vector_a() {
        let fingerprint = Fingerprint::of(&draft("#alerts", "build done"));
        assert_eq!(
            fingerprint.to_string(),
            "555a51ef25d0379f30a37253d746dbebcb19fc16131806c187c8cef979690be4"
        );
        assert_eq!(fingerprint.prefix(), "555a51ef25d0379f");
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    }

    #[test]
    fn golden_vector_b() {
        let mut draft = draft(&"ab".repeat(32), "héllo");
        draft.reply_to = Some(Reference::parse("reply_to", "01890a5d-ac96-774b-bcce-b302099a8057").unwrap());
        draft.priority = Priority::Now;
        draft.meta = Meta::parse(r#"{"b":{"d":"é","c":[true,null]},"a":1}"#).unwrap();
        let expected = "e0e0ffa2296ca30d8bd4dd35c1118cc47f851a645f7b3377b4217b970ffca118";
        assert_eq!(Fingerprint::of(&draft).to_string(), expected);
    }

    #[test]
    fn golden_vector_c() {
        let mut draft = draft("#alerts", "build done");
        draft.deadline = Deadline::DeliverBy("2027-01-01T00:00:00Z".parse().unwrap());
        draft.mentions = vec!["ci".parse().unwrap(), "jane".parse().unwrap()];
        let expected = "46c140fc22e3da94e96d7df168dcb00d8658a559d3c8c426bed9ee9f67dbefab";
        assert_eq!(Fingerprint::of(&draft).to_string(), expected);
    }

    #[test]
    fn every_field_that_was_asked_changes_it_and_the_id_and_hops_do_not() {
        let plain = draft("#alerts", "build done");
        let base = Fingerprint::of(&plain);
        let changed = |change: &dyn Fn(&mut Draft)| {
            let mut other = plain.clone();
            change(&mut other);
            Fingerprint::of(&other)
        };
        let at = crate::Timestamp::from_micros(1);
        let variants: Vec<(&str, Fingerprint)> = vec![
            ("to", changed(&|d| d.to = "#alert".parse().unwrap())),
            ("to kind", changed(&|d| d.to = "@alerts".parse().unwrap())),
            ("body", changed(&|d| d.body = Body::parse("build".into()).unwrap())),
            ("meta", changed(&|d| d.meta = Meta::parse(r#"{"a":1}"#).unwrap())),
            ("mentions", changed(&|d| d.mentions = vec!["ci".parse().unwrap()])),
            ("reply_to", changed(&|d| d.reply_to = Some(Reference::parse("reply_to", "r").unwrap()))),
            ("corr_id", changed(&|d| d.corr_id = Some(Reference::parse("corr_id", "r").unwrap()))),
            ("priority", changed(&|d| d.priority = Priority::Low)),
            ("kind", changed(&|d| d.kind = Kind::Reply)),
            ("expects_input", changed(&|d| d.expects_input = true)),
            ("deliver_by", changed(&|d| d.deadline = Deadline::DeliverBy(at))),
            ("ttl", changed(&|d| d.deadline = Deadline::Ttl { seconds: 60, deliver_by: at })),
        ];
        for (place, (name, fingerprint)) in variants.iter().enumerate() {
            assert_ne!(*fingerprint, base, "{name}");
            assert!(variants[..place].iter().all(|(_, other)| other != fingerprint), "{name}");
        }
        assert_eq!(changed(&|d| d.client_message_id = "y".parse().unwrap()), base);
        assert_eq!(changed(&|d| d.hops = 3), base);
        let ttl =
            |deliver_by| changed(&|d: &mut Draft| d.deadline = Deadline::Ttl { seconds: 60, deliver_by });
        assert_eq!(ttl(at), ttl(crate::Timestamp::from_micros(2)));
    }
}
