//! What crosses a socket, one file per conversation between two parties.
//!
//! - The HTTP status of each [`model::ErrorCode`] stands in [`status`] and nowhere else.
//! - Callers' requests refuse unknown fields; link peers ignore them, so that a newer broker can talk
//!   to an older node.
//! - A type here holds what was said, not what it means: rules live in `model`.

pub mod ask;
pub mod auth;
pub mod chat;
pub mod direct;
pub mod error;
pub mod health;
pub mod hub;
mod json_text;
pub mod link;
pub mod local;
pub mod log;
pub mod message;
pub mod relay;
pub mod session;
pub mod status;
pub mod text;

pub use error::{ErrorBody, Refused};
pub use message::{MessageFields, written};
