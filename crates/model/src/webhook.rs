//! Webhooks: where they may go, what proves that they are ours, and when they come again.
//!
//! - [`url`] and [`address`] decide where a call may go; the broker asks them before every call.
//! - [`signature`] is the text of Standard Webhooks; [`schedule`] says when a call is repeated and when it is not.

pub mod address;
pub mod schedule;
pub mod signature;
pub mod url;

pub use address::NotPublic;
pub use schedule::{Heard, Verdict, judge, retry_after};
pub use signature::{WebhookSecret, delivery_id, sign};
pub use url::{Host, Scheme, WebhookUrl};

/// `ended_code` of a row that was tried as often as [`crate::limits::WEBHOOK_ATTEMPTS_MAX`] allows.
pub const GAVE_UP: &str = "webhook_gave_up";
/// `ended_code` of a row whose webhook was removed while it waited.
pub const REMOVED: &str = "webhook_removed";
/// Why a webhook is off when its endpoint said that it is gone.
pub const GONE: &str = "gone";
