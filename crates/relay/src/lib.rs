//! The edge relay: between callers on this host and an HTTP API elsewhere. Live traffic passes as it is. A write
//! that may wait is stored before its first byte leaves, and when the upstream is away it is replayed later, under
//! the same key, in its order, and under the condition it was asked with.
//!
//! ```text
//! request ─▶ classify ─▶ scan ─▶ board (older writes first) ─▶ write-ahead ─▶ forward ─▶ settle
//!               │          └ 422 when it cannot pass        └ 202 queued ◀─ upstream away        └ refused: forgotten
//!               └ online only: forward, or 503
//! drainer: probe ─▶ claim ─▶ send ─▶ settle;  ended, but it may have left ─▶ ask about its key ─▶ conclude
//! ```
//!
//! Invariants
//! - No credential is ever stored: not a header, not a field that looks like one, not in an error's text.
//! - 202 is given after the envelope was synced to disk, and says that nothing was committed yet. What it was given for is
//!   not forgotten before it is done.
//! - Writes to one resource never overtake each other; one that cannot wait its turn is refused.
//! - A body is altered nowhere: it passes, it is stored whole, or it is refused.
//! - Nothing is replayed to an upstream that says to be another than the one it was stored for.

mod ask;
mod board;
mod classify;
mod config;
mod drain;
mod explain;
mod forward;
mod head;
mod keep;
mod live;
mod mark;
mod memory;
mod online;
mod operator;
mod page;
mod receipt;
mod relay;
mod routes_file;
mod tags;
mod upstream;
mod versions;
mod view;

pub use config::{AuthMode, Config};
pub use operator::router as operator_router;
pub use page::router as page_router;
pub use relay::{Relay, StartError};
pub use routes_file::{RoutesError, parse_routes};
