//! One message at the door: parsed, bounded, and proven to be what its fingerprint says.

use ledger::Submission;
use model::{Deadline, Draft, ErrorCode, Fingerprint, MemberName, Timestamp};
use wire::{MessageFields, Refused};

/// A message that may be looked up. Made only from fields whose fingerprint was recomputed.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) draft: Draft,
    pub(crate) fingerprint: Fingerprint,
    send_deadline: Option<Timestamp>,
    deliver_by: Option<Timestamp>,
    envelope: Vec<u8>,
}

/// What a carrier says about a message's time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// After which this copy is refused; HTTP callers have none.
    pub(crate) send_deadline: Option<Timestamp>,
    /// The instant a node made from a ttl when it accepted the message.
    pub(crate) ttl_ends_at: Option<Timestamp>,
}

impl Item {
    /// Checks `fields`. `claimed` is what the sender's node froze; a direct caller has frozen nothing. A ttl
    /// without an instant of its own counts from `now`.
    pub(crate) fn check(
        fields: MessageFields,
        claimed: Option<Fingerprint>,
        times: Times,
        now: Timestamp,
    ) -> Result<Item, Refused> {
        let draft = fields.into_draft(now)?;
        let fingerprint = Fingerprint::of(&draft);
        if claimed.is_some_and(|claimed| claimed != fingerprint) {
            return Err(Refused::plain(ErrorCode::FingerprintInvalid));
        }
        let deliver_by = match draft.deadline {
            Deadline::None => None,
            Deadline::DeliverBy(at) => Some(at),
            Deadline::Ttl { deliver_by, .. } => Some(times.ttl_ends_at.unwrap_or(deliver_by)),
        };
        // Written from the draft, so that nothing unread and nothing ambiguous is kept or carried on.
        let envelope =
            serde_json::to_vec(&MessageFields::from(&draft)).expect("fields hold only what JSON can say");
        Ok(Item { draft, fingerprint, send_deadline: times.send_deadline, deliver_by, envelope })
    }

    /// The lane it belongs to when `sender` sends it.
    pub(crate) fn lane(&self, sender: &MemberName) -> String {
        self.draft.to.lane(sender)
    }

    pub(super) fn fingerprint_prefix(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = *self.fingerprint.as_bytes();
        [a, b, c, d, e, f, g, h]
    }

    pub(super) fn submission(&self) -> Submission {
        Submission {
            client_message_id: self.draft.client_message_id.clone(),
            fingerprint: self.fingerprint,
            to: self.draft.to.clone(),
            mentions: self.draft.mentions.clone(),
            expects_input: self.draft.expects_input,
            send_deadline: self.send_deadline,
            deliver_by: self.deliver_by,
            envelope: self.envelope.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> MessageFields {
        serde_json::from_str(json).unwrap()
    }

    const fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn a_claimed_fingerprint_must_be_the_recomputed_one() {
        let plain = || fields(r#"{"client_message_id":"a","to":"@me","body":"hi"}"#);
        let right = Item::check(plain(), None, Times::default(), at(0)).unwrap().fingerprint;
        assert!(Item::check(plain(), Some(right), Times::default(), at(0)).is_ok());
        let wrong = Some(Fingerprint::from_bytes([0; 32]));
        let refused = Item::check(plain(), wrong, Times::default(), at(0)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::FingerprintInvalid);
    }

    #[test]
    fn the_deadline_in_force_is_the_asked_instant_or_the_one_made_from_the_ttl() {
        let told = Times { send_deadline: None, ttl_ends_at: Some(at(7)) };
        let quiet = Times::default();
        let instant = r#"{"client_message_id":"a","to":"@me","body":"","deliver_by":"1970-01-01T00:00:01Z"}"#;
        let ttl = r#"{"client_message_id":"a","to":"@me","body":"","ttl":2}"#;
        for (json, times, expected) in [
            (r#"{"client_message_id":"a","to":"@me","body":""}"#, told, None),
            (instant, told, Some(at(1_000_000))),
            (ttl, told, Some(at(7))),
            (ttl, quiet, Some(at(2_000_005))),
        ] {
            let item = Item::check(fields(json), None, times, at(5)).unwrap();
            assert_eq!(item.submission().deliver_by, expected, "{json}");
        }
    }

    #[test]
    fn what_nobody_asked_for_is_not_carried_on() {
        let item = Item::check(
            fields(r#"{"client_message_id":"a","to":"@me","body":"hi","from_the_future":1}"#),
            None,
            Times::default(),
            at(0),
        );
        let envelope = String::from_utf8(item.unwrap().submission().envelope).unwrap();
        assert_eq!(envelope, r#"{"client_message_id":"a","to":"@me","body":"hi","body_version":1}"#);
    }
}
