//! The link to a mesh's broker: opened, negotiated, kept, and opened again.
//!
//! - The daemon starts, accepts and answers without any network; a link only empties the outbox and fills the
//!   inbox.
//! - Broker time is known only while a link is open, and no row leaves or ends without it.
//! - One mesh has one link; a refusal that would be repeated parks it.

mod explain;
mod keep;
mod live;
mod negotiate;
mod session;
mod terms;
mod verdict;
mod wayin;

pub(crate) use keep::{Keeper, keep, write_issuer};
pub(crate) use live::{AskError, Live, NoAnswer};

pub(crate) use terms::Terms;
pub(crate) use verdict::LinkEnd;
pub(crate) use wayin::{Credential, WayIn};
