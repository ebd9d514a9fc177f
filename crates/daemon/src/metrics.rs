//! What is counted, and how Prometheus reads it. No label ever holds an id.

mod page;
mod tally;

pub(crate) use page::Page;
pub(crate) use tally::{IpcTally, Tally};
