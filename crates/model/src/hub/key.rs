//! Keys: what a principal's Idempotency-Key is known for, and for how long.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::admission::days_long;
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::limits::{HUB_COPY_DAYS_MAX, HUB_KEY_DAYS};

/// What is stored under a key. A record exists exactly when its effect committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownKey {
    /// A request was answered with success.
    Stored {
        /// Of that request.
        fingerprint: Fingerprint,
    },
    /// A message was accepted under it: the broker's own dedupe row answers copies of that.
    Message,
    /// A question with a fence found it unused; nothing will ever happen under it.
    Retired,
}

/// What becomes of a request under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyVerdict {
    /// It is looked at.
    Fresh,
    /// It happened before: the stored answer.
    Replay,
    /// Another request has the key.
    Reused,
    /// The key is retired.
    Retired,
}

/// What a question about a key is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// Its effect committed.
    Committed,
    /// Nothing happened under it and nothing ever will.
    Retired,
    /// Nothing happened under it yet; a copy may be under way.
    Absent,
    /// It is older than the memory: nobody can tell any more.
    Unknown,
}

/// The verdict on a request.
pub fn look_up(known: Option<&KnownKey>, incoming: &Fingerprint) -> KeyVerdict {
    match known {
        None => KeyVerdict::Fresh,
        Some(KnownKey::Stored { fingerprint }) if fingerprint == incoming => KeyVerdict::Replay,
        Some(KnownKey::Stored { .. } | KnownKey::Message) => KeyVerdict::Reused,
        Some(KnownKey::Retired) => KeyVerdict::Retired,
    }
}

/// Whether a copy first made at `created_at` comes so late that the record of an earlier one may soon be
/// forgotten. Asked after the look-up: what is known is answered at any age.
pub fn is_too_old(created_at: Option<Timestamp>, now: Timestamp) -> bool {
    created_at.is_some_and(|created_at| now >= created_at + days_long(HUB_COPY_DAYS_MAX))
}

/// When a record made at `at` may be forgotten.
pub fn key_expires_at(at: Timestamp) -> Timestamp {
    at + days_long(HUB_KEY_DAYS)
}

/// The answer to a question about a key whose request was first made at `created_at`. With a fence, `Absent` becomes
/// `Retired` once the key is.
pub fn key_status(known: Option<&KnownKey>, created_at: Option<Timestamp>, now: Timestamp) -> KeyAnswer {
    match known {
        Some(KnownKey::Stored { .. } | KnownKey::Message) => KeyAnswer::Committed,
        Some(KnownKey::Retired) => KeyAnswer::Retired,
        None => match created_at {
            Some(created_at) if now >= key_expires_at(created_at) => KeyAnswer::Unknown,
            Some(_) | None => KeyAnswer::Absent,
        },
    }
}

/// The address of a request under its newer name: `/hub/workstreams` is another name of `/hub/workplans`.
pub fn canonical_path(path: &str) -> String {
    path.replacen("/hub/workstreams", "/hub/workplans", 1)
}

/// What was asked, in 32 bytes: method, address without its last slash, query as given, body in canonical form.
/// Preconditions are no part of it: a copy is a copy whatever it was told to expect.
pub fn request_fingerprint(
    method: &str,
    path: &str,
    query: Option<&str>,
    body: Option<&Value>,
) -> Fingerprint {
    let body = body.map_or_else(Vec::new, |body| {
        serde_json_canonicalizer::to_vec(body).expect("parsed JSON has a canonical form")
    });
    let mut hash = Sha256::new();
    for field in ["hub-1", method, path.trim_end_matches('/'), query.unwrap_or_default()] {
        hash.update(field);
        hash.update(b"\0");
    }
    hash.update(&body);
    Fingerprint::from_bytes(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const fn print(byte: u8) -> Fingerprint {
        Fingerprint::from_bytes([byte; 32])
    }

    #[test]
    fn a_key_answers_its_own_request_and_refuses_every_other() {
        for (known, verdict) in [
            (None, KeyVerdict::Fresh),
            (Some(KnownKey::Stored { fingerprint: print(1) }), KeyVerdict::Replay),
            (Some(KnownKey::Stored { fingerprint: print(2) }), KeyVerdict::Reused),
            (Some(KnownKey::Message), KeyVerdict::Reused),
            (Some(KnownKey::Retired), KeyVerdict::Retired),
        ] {
            assert_eq!(look_up(known.as_ref(), &print(1)), verdict, "{known:?}");
        }
    }

    #[test]
    fn a_copy_is_too_old_a_day_before_its_record_may_be_gone() {
        let made = Timestamp::from_micros(1_000);
        let day = Duration::from_secs(24 * 3600);
        let end = made + day * (HUB_KEY_DAYS - 1);
        assert!(!is_too_old(None, end));
        assert!(!is_too_old(Some(made), made));
        assert!(is_too_old(Some(made), end));
        assert!(!is_too_old(Some(made), made + (day * (HUB_KEY_DAYS - 1) - Duration::from_micros(1))));
    }

    #[test]
    fn an_absent_key_older_than_the_memory_is_unknown() {
        let made = Timestamp::from_micros(1_000);
        let end = key_expires_at(made);
        for (known, created_at, now, answer) in [
            (None, None, end, KeyAnswer::Absent),
            (None, Some(made), Timestamp::from_micros(end.as_micros() - 1), KeyAnswer::Absent),
            (None, Some(made), end, KeyAnswer::Unknown),
            (Some(KnownKey::Retired), Some(made), end, KeyAnswer::Retired),
            (Some(KnownKey::Message), Some(made), end, KeyAnswer::Committed),
            (Some(KnownKey::Stored { fingerprint: print(1) }), Some(made), end, KeyAnswer::Committed),
        ] {
            assert_eq!(key_status(known.as_ref(), created_at, now), answer, "{known:?} {created_at:?}");
        }
    }

    #[test]
    fn spelling_does_not_change_a_request_and_its_parts_do() {
        let body = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        let of = |method, path, query, json| request_fingerprint(method, path, query, Some(&body(json)));
        let one = of("POST", "/hub/tasks/", None, r#"{"a":1,"b":2}"#);
        assert_eq!(one, of("POST", "/hub/tasks", None, r#"{ "b": 2.0, "a": 1 }"#));
        for other in [
            of("PATCH", "/hub/tasks/", None, r#"{"a":1,"b":2}"#),
            of("POST", "/hub/decisions/", None, r#"{"a":1,"b":2}"#),
            of("POST", "/hub/tasks/", Some("x=1"), r#"{"a":1,"b":2}"#),
            of("POST", "/hub/tasks/", None, r#"{"a":1,"b":3}"#),
            request_fingerprint("POST", "/hub/tasks/", None, None),
        ] {
            assert_ne!(one, other);
        }
    }
}
