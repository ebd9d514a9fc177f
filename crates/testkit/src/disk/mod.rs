//! Disks that remember and disks that fail, under the real engine.
//!
//! A shim between SQLite and the system's VFS shows every write, sync and delete to a [`Watcher`], which may
//! let it pass, note it or refuse it. Upon it stand the recorder, whose notes can be replayed up to any
//! moment as a power loss would leave them, and the faulty disk, which fails at a chosen act.
//!
//! [`campaign`] lets a store live through one fault after the other: it asks a store many things at once, fails one act,
//! abandons the store as a kill would, opens it again and compares what it holds with every answer, refusals included.
//!
//! Invariants:
//! - What the recorder noted is in the order in which it happened: one act at a time passes.
//! - A replayed state holds only bytes that were synced, plus a chosen part of those that were not.

pub mod campaign;
mod faulty;
mod holding;
mod image;
mod newer;
mod power_loss;
mod recorder;
mod second_crash;
mod vfs;

pub use faulty::{ActPlace, FaultyDisk, FileRole, Kind, Repeat, Trouble};
pub use holding::HoldingDisk;
pub use image::{Image, Survivors};
pub use newer::raise_schema_version;
pub use power_loss::{Control, PowerLoss, PowerLossError, Report, power_loss};
pub use recorder::{Event, Recorder};
pub use second_crash::{SecondCrashReport, second_crash};
pub use vfs::{Act, Portion, Watcher, mount};
