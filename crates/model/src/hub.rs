//! The hub's rules: versioned records, preconditions, and keys that make a write happen once.
//!
//! - A key is known for one request or for none; the same key with another request is refused, whatever it asks.
//! - A record's version only rises, also across its deletion, so that an old precondition can never fit by chance.
//! - A write is judged against what stands there in the transaction that would write it.

mod key;
mod precondition;
mod record;

pub use key::{
    KeyAnswer, KeyVerdict, KnownKey, canonical_path, is_too_old, key_expires_at, key_status, look_up,
    request_fingerprint,
};
pub use precondition::{Precondition, PreconditionFailed, instant_line, instant_of};
pub use record::{Change, Held, Judged, RecordId, RecordKind, Refusal, Standing, judge};
