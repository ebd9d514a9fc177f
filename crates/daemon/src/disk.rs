//! How full the disk is, and what still fits. Looked at now and then: a send must not cost a system call, and
//! whatever slips through meets the store's own refusal.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use model::{ErrorCode, limits};
use net::respond::Refusal;

use crate::metrics::Page;

/// How often it is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// From here on listeners are warned.
const HIGH_PERCENT: u8 = 80;
/// From here on nothing new is taken; what is queued still drains.
const FULL_PERCENT: u8 = 95;

/// From here on nothing new is begun.
const SPENT_PERCENT: u8 = 100;

/// Measures the room of a disk.
pub trait FreeSpace: Send + Sync {
    /// Bytes that this account may still write on the disk that holds `folder`.
    fn free_bytes(&self, folder: &Path) -> io::Result<u64>;
}

/// The file system's own figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl FreeSpace for SystemDisk {
    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// The pressure as last seen.
pub(crate) struct Disk {
    folder: PathBuf,
    free_space: Arc<dyn FreeSpace>,
    percent: AtomicU8,
    free_bytes: AtomicU64,
}

/// What the mailboxes' files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MailboxBytes {
    /// In use.
    pub(crate) used: u64,
    /// Free inside the files: written to before they grow.
    pub(crate) reusable: u64,
}

/// How the pressure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Room enough.
    Low,
    /// Getting full.
    High,
    /// Too full for new rows.
    Full,
}

impl Disk {
    /// The disk that holds `folder`, looked at once.
    pub(crate) fn of(folder: PathBuf, free_space: Arc<dyn FreeSpace>) -> Self {
        let (percent, free_bytes) = (AtomicU8::new(0), AtomicU64::new(u64::MAX));
        let disk = Self { folder, free_space, percent, free_bytes };
        disk.look(MailboxBytes::default());
        disk
    }

    /// The bytes that are free on the disk now; as many as there can be when the system does not say.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_space.free_bytes(&self.folder).unwrap_or_else(|error| {
            tracing::warn!(%error, "the disk's room cannot be told");
            u64::MAX
        })
    }

    /// Looks again.
    pub(crate) fn look(&self, mailboxes: MailboxBytes) -> Pressure {
        let free = self.free_bytes();
        self.free_bytes.store(free, Ordering::Relaxed);
        self.percent.store(percent(mailboxes, free), Ordering::Relaxed);
        self.pressure()
    }

    /// Refuses a new row when it might not fit. Its id stays unused.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self.pressure() {
            Pressure::Low | Pressure::High => Ok(()),
            Pressure::Full => Err(Refusal::plain(ErrorCode::InsufficientStorage)),
        }
    }

    /// Refuses a new event stream when nothing is left at all; mail that comes still finds its place.
    pub(crate) fn check_streams(&self) -> Result<(), Refusal> {
        if self.percent() >= SPENT_PERCENT {
            return Err(Refusal::plain(ErrorCode::InsufficientStorage));
        }
        Ok(())
    }

    /// The share of what may be used that is used.
    pub(crate) fn percent(&self) -> u8 {
        self.percent.load(Ordering::Relaxed)
    }

    /// What needs a person.
    pub(crate) fn problems(&self) -> Vec<String> {
        let percent = self.percent();
        match self.pressure() {
            Pressure::Low => Vec::new(),
            Pressure::High => vec![format!("the outbox may soon be full: {percent} % of its room is used")],
            Pressure::Full => {
                vec![format!(
                    "new sends are refused: {percent} % of the outbox's room is used; \
                     postrider daemon outbox prune says what can be freed"
                )]
            }
        }
    }

    /// Writes the gauges.
    pub(crate) fn print(&self, page: &mut Page) {
        page.gauge("cm_daemon_disk_pct", &[("kind", "outbox")], f64::from(self.percent()));
        let free = self.free_bytes.load(Ordering::Relaxed);
        page.gauge("cm_daemon_disk_free_bytes", &[], free as f64);
    }

    fn pressure(&self) -> Pressure {
        match self.percent() {
            FULL_PERCENT.. => Pressure::Full,
            HIGH_PERCENT.. => Pressure::High,
            _ => Pressure::Low,
        }
    }
}

/// Whichever is nearer: the outbox's own bound, or the reserve the disk must keep, beyond which the files' own free pages
/// are still written to.
fn percent(MailboxBytes { used, reusable }: MailboxBytes, free: u64) -> u8 {
    let beyond_reserve = free.saturating_sub(limits::DISK_RESERVE_BYTES).saturating_add(reusable);
    let room = limits::OUTBOX_BYTES_MAX.saturating_sub(used).min(beyond_reserve);
    let all = used.saturating_add(room);
    if room == 0 {
        return 100;
    }
    u8::try_from(used.saturating_mul(100) / all).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_nearer_of_the_two_bounds_counts() {
        for (used, reusable, free, expected) in [
            (0, 0, u64::MAX, 0),
            (GIB, 0, u64::MAX, 20),
            (4 * GIB, 0, u64::MAX, 80),
            (5 * GIB, 0, u64::MAX, 100),
            (9 * GIB, 0, u64::MAX, 100),
            (GIB, 0, limits::DISK_RESERVE_BYTES, 100),
            (GIB, 0, limits::DISK_RESERVE_BYTES + GIB, 50),
            (GIB, GIB, limits::DISK_RESERVE_BYTES, 50),
            (4 * GIB, 3 * GIB, limits::DISK_RESERVE_BYTES, 80),
            (0, 0, 0, 100),
            (0, 0, limits::DISK_RESERVE_BYTES + 1, 0),
        ] {
            let bytes = MailboxBytes { used, reusable };
            assert_eq!(percent(bytes, free), expected, "{bytes:?}, {free} free");
        }
    }

    #[test]
    fn a_full_disk_takes_nothing_new() {
        let disk = Disk::of(PathBuf::from("/"), Arc::new(SystemDisk));
        for (percent, taken) in [(0, true), (80, true), (94, true), (95, false), (100, false)] {
            disk.percent.store(percent, Ordering::Relaxed);
            assert_eq!(disk.check().is_ok(), taken, "{percent} %");
            assert_eq!(disk.check_streams().is_ok(), percent < 100, "{percent} %");
        }
        assert!(!disk.problems().is_empty());
    }
}
