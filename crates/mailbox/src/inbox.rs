//! What arrived for members at home here.

mod read;
mod record;
mod told;

pub(crate) use read::by_seq;
pub use read::{InboxCount, InboxPlace, InboxQuery, InboxRow, InboxShow};
pub use record::{Arrival, Arrived, Recorded};
pub use told::{AckRow, Confirmed};
