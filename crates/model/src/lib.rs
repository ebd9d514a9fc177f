//! The words and rules of Postrider.
//!
//! Everything here is a type or a pure function: no runtime, no SQL, no HTTP. Invariants:
//!
//! - A value of a type from this crate is proof that its rule was checked; `parse` is the only way in.
//! - Time and randomness come in as arguments ([`Clock`], [`Entropy`]); the two impure implementations
//!   ([`SystemClock`], [`OsEntropy`]) are handed out by the binary alone.
//! - Every bound of the product is named once, in [`limits`].
//! - Every text a client may match is a row of [`ErrorCode`].

pub mod admission;
pub mod ageing;
pub mod backoff;
pub mod clock;
pub mod cursor;
pub mod envelope;
pub mod error;
pub mod fingerprint;
pub mod gcra;
pub mod hex;
pub mod hub;
pub mod id;
pub mod limits;
pub mod member;
pub mod meta;
pub mod operator;
pub mod outbox;
pub mod receipt;
pub mod relay;
pub mod route_class;
pub mod secrets;
pub mod turn;
pub mod webhook;

pub use clock::{BrokerClock, Clock, Entropy, OsEntropy, SystemClock, Timestamp};
pub use cursor::{Cursor, Epoch};
pub use envelope::{Deadline, Draft, Kind, Priority, To};
pub use error::{Class, ErrorCode};
pub use fingerprint::Fingerprint;
pub use id::{
    ClientMessageId, ConversationId, LeaseToken, MemberId, MemberName, MeshId, MessageId, NodeKey, NodeName,
    RowId, TopicName, TurnId,
};
pub use member::MemberKind;
pub use meta::Meta;
pub use receipt::{DeliveryRung, Rung};
