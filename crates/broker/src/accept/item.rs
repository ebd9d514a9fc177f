//! One message at the door: parsed, bounded, and proven to be what its fingerprint says.

use ledger::Submission;
use model::{Deadline, Draft, ErrorCode, Fingerprint, MemberName, Timestamp};
use wire::{MessageFields, Refused, written};

/// A message that may be looked up. Made only from fields whose fingerprint was recomputed.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) draft: Draft,
    pub(crate) fingerprint: Fingerprint,
    send_deadline: Option<Timestamp>,
    deliver_by: Option<Timestamp>,
    envelope: Vec<u8>,
}

/// A message's time, as its carrier knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// After which this copy is refused; HTTP callers have none.
    send_deadline: Option<Timestamp>,
    /// When a ttl ends.
    ttl_ends_at: TtlEnd,
}

#[derive(Clone, Copy, Debug)]
enum TtlEnd {
    /// At this instant, which the node made when it accepted the message.
    At(Timestamp),
    /// So long after this instant, when the broker heard of it.
    From(Timestamp),
}

impl Times {
    /// Over a link: the node has turned a ttl into an instant.
    pub(crate) fn of_node(
        fields: &MessageFields,
        send_deadline: Timestamp,
        deliver_by: Option<Timestamp>,
    ) -> Result<Self, Refused> {
        match (fields.ttl, deliver_by) {
            (Some(_), None) => {
                Err(Refused::new(ErrorCode::InvalidRequest, "a ttl comes with the deliver_by made from it"))
            }
            (None, _) | (_, Some(_)) => {
                let ends_at = TtlEnd::At(deliver_by.unwrap_or_default());
                Ok(Self { send_deadline: Some(send_deadline), ttl_ends_at: ends_at })
            }
        }
    }

    /// Directly: a ttl counts from `now`.
    pub(crate) const fn of_caller(now: Timestamp) -> Self {
        Self { send_deadline: None, ttl_ends_at: TtlEnd::From(now) }
    }
}

impl Item {
    /// Checks `fields`. `claimed` is what the sender's node froze; a direct caller has frozen nothing.
    pub(crate) fn check(
        fields: MessageFields,
        claimed: Option<Fingerprint>,
        times: Times,
    ) -> Result<Item, Refused> {
        let draft = fields.into_draft(match times.ttl_ends_at {
            TtlEnd::From(now) => now,
            TtlEnd::At(_) => Timestamp::default(),
        })?;
        let fingerprint = Fingerprint::of(&draft);
        if claimed.is_some_and(|claimed| claimed != fingerprint) {
            return Err(Refused::plain(ErrorCode::FingerprintInvalid));
        }
        let deliver_by = match draft.deadline {
            Deadline::None => None,
            Deadline::DeliverBy(at) => Some(at),
            Deadline::Ttl { deliver_by, .. } => Some(match times.ttl_ends_at {
                TtlEnd::At(instant) => instant,
                TtlEnd::From(_) => deliver_by,
            }),
        };
        let envelope = written(&draft);
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

    /// The sender's fields, as the ledger keeps them.
    pub(super) fn envelope(&self) -> &[u8] {
        &self.envelope
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
        let times = Times::of_caller(at(0));
        let right = Item::check(plain(), None, times).unwrap().fingerprint;
        assert!(Item::check(plain(), Some(right), times).is_ok());
        let wrong = Some(Fingerprint::from_bytes([0; 32]));
        assert_eq!(Item::check(plain(), wrong, times).unwrap_err().code, ErrorCode::FingerprintInvalid);
    }

    #[test]
    fn the_deadline_in_force_is_the_asked_instant_or_the_one_made_from_the_ttl() {
        let none = r#"{"client_message_id":"a","to":"@me","body":""}"#;
        let instant = r#"{"client_message_id":"a","to":"@me","body":"","deliver_by":"1970-01-01T00:00:01Z"}"#;
        let ttl = r#"{"client_message_id":"a","to":"@me","body":"","ttl":2}"#;
        let of_node = |json, told| Times::of_node(&fields(json), at(9), told);
        for (json, times, expected) in [
            (none, of_node(none, Some(at(7))).unwrap(), None),
            (instant, of_node(instant, Some(at(7))).unwrap(), Some(at(1_000_000))),
            (instant, Times::of_caller(at(5)), Some(at(1_000_000))),
            (ttl, of_node(ttl, Some(at(7))).unwrap(), Some(at(7))),
            (ttl, Times::of_caller(at(5)), Some(at(2_000_005))),
        ] {
            let item = Item::check(fields(json), None, times).unwrap();
            assert_eq!(item.submission().deliver_by, expected, "{json}");
        }
        assert_eq!(of_node(ttl, None).unwrap_err().code, ErrorCode::InvalidRequest);
        assert_eq!(of_node(none, None).unwrap().send_deadline, Some(at(9)));
    }

    #[test]
    fn what_nobody_asked_for_is_not_carried_on() {
        let asked = fields(r#"{"client_message_id":"a","to":"@me","body":"hi","from_the_future":1}"#);
        let item = Item::check(asked, None, Times::of_caller(at(0)));
        let envelope = String::from_utf8(item.unwrap().submission().envelope).unwrap();
        assert_eq!(envelope, r#"{"client_message_id":"a","to":"@me","body":"hi","body_version":1}"#);
    }
}
