//! Whose request the upstream holds under a key.

use super::Fenced;
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::limits;

/// The upstream's answer to the question about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// A request was committed under it.
    Committed(Option<CommittedRequest>),
    /// Nothing was and nothing will be.
    Retired,
    /// It cannot say.
    Unknown,
}

/// The request that an upstream names as the one it committed under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedRequest {
    /// What it asked.
    pub fingerprint: Fingerprint,
    /// When it was committed, in the upstream's time.
    pub recorded_at: Option<Timestamp>,
}

/// The write for which a key is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedWrite {
    /// What it asks, as the upstream would record it; nothing when that cannot be told.
    pub fingerprint: Option<Fingerprint>,
    /// When it was stored, in the upstream's time. It left no earlier.
    pub created_at: Timestamp,
    /// The upstream's last answer to it was that its key belongs to another request.
    pub was_refused_as_reused: bool,
}

/// What the upstream's answer about a key says of the write it was asked for.
///
/// A key holds one request for as long as the upstream remembers it. While a record of this write could not have been
/// forgotten yet, another request's record proves that this write was not committed; later it proves nothing. An
/// upstream that does not name the request is believed when it refused this write for its key.
pub fn fenced(answer: KeyAnswer, write: &KeyedWrite) -> Fenced {
    match (answer, write.fingerprint) {
        (KeyAnswer::Committed(Some(request)), Some(own)) if request.fingerprint == own => Fenced::Committed,
        (KeyAnswer::Committed(Some(CommittedRequest { recorded_at: Some(at), .. })), Some(_))
            if at < write.created_at + limits::IDEMPOTENCY_KEPT =>
        {
            Fenced::AnotherRequest
        }
        (KeyAnswer::Committed(None), _) | (KeyAnswer::Committed(Some(_)), None)
            if write.was_refused_as_reused =>
        {
            Fenced::AnotherRequest
        }
        (KeyAnswer::Committed(_) | KeyAnswer::Unknown, _) => Fenced::Unknown,
        (KeyAnswer::Retired, _) => Fenced::Retired,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED_AT: Timestamp = Timestamp::from_micros(1_000);

    const fn print(byte: u8) -> Fingerprint {
        Fingerprint::from_bytes([byte; 32])
    }

    fn committed(byte: u8, recorded_at: Option<Timestamp>) -> KeyAnswer {
        KeyAnswer::Committed(Some(CommittedRequest { fingerprint: print(byte), recorded_at }))
    }

    #[test]
    fn a_committed_key_is_this_writes_only_when_the_request_is_named_as_its_own() {
        let (early, forgotten) = (Some(Timestamp::from_micros(0)), CREATED_AT + limits::IDEMPOTENCY_KEPT);
        let last = Timestamp::from_micros(forgotten.as_micros() - 1);
        let (own, unnamed) = (Some(print(1)), KeyAnswer::Committed(None));
        for (answer, fingerprint, was_refused_as_reused, expected) in [
            (committed(1, early), own, false, Fenced::Committed),
            (committed(1, None), own, true, Fenced::Committed),
            (committed(1, Some(forgotten)), own, false, Fenced::Committed),
            (committed(2, early), own, false, Fenced::AnotherRequest),
            (committed(2, Some(last)), own, false, Fenced::AnotherRequest),
            (committed(2, Some(forgotten)), own, true, Fenced::Unknown),
            (committed(2, None), own, false, Fenced::Unknown),
            (committed(2, early), None, false, Fenced::Unknown),
            (committed(2, early), None, true, Fenced::AnotherRequest),
            (unnamed, own, false, Fenced::Unknown),
            (unnamed, own, true, Fenced::AnotherRequest),
            (unnamed, None, true, Fenced::AnotherRequest),
            (KeyAnswer::Retired, own, true, Fenced::Retired),
            (KeyAnswer::Unknown, own, true, Fenced::Unknown),
        ] {
            let write = KeyedWrite { fingerprint, created_at: CREATED_AT, was_refused_as_reused };
            assert_eq!(fenced(answer, &write), expected, "{answer:?} {write:?}");
        }
    }
}
