//! What the machine gives a home: room, a disk that keeps what was synced, and open files.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use daemon::home::Home;
use model::Clock;

use super::finding::Finding;

const MIB: u64 = 1024 * 1024;
/// Below it the next checkpoint may not fit.
const FREE_ACT: u64 = 256 * MIB;
/// Below it somebody should look.
const FREE_WARN: u64 = 2048 * MIB;
/// Every answer waits for one sync.
const SYNC_WARN: Duration = Duration::from_millis(100);
/// What a door may have open, and the store beside it.
const FILES_WARN: u64 = 1024;

/// What a file system is, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// A disk of this machine, as far as one can tell.
    Local,
    /// Gone with the next start of the machine.
    Memory,
    /// Another machine's, whose locks and syncs are its own.
    Network,
}

/// Every check of the machine. A home that is not there yet has no ground to look at.
pub fn look(home: &Home, clock: &dyn Clock) -> Vec<Finding> {
    let root = home.root();
    let mut findings = vec![judge_files(files_max())];
    if !root.is_dir() {
        return findings;
    }
    match rustix::fs::statvfs(root) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            findings.push(judge_room(free, stat.f_blocks.saturating_mul(stat.f_frsize)));
        }
        Err(error) => {
            findings.push(Finding::warn("disk", format!("the disk's room cannot be told: {error}")))
        }
    }
    findings.push(judge_ground(ground(root)));
    findings.push(judge_sync(sync_time(&home.daemon(), clock)));
    findings
}

fn judge_room(free: u64, total: u64) -> Finding {
    let percent = free.saturating_mul(100).checked_div(total).unwrap_or(0);
    let shown = format!("{} MiB free of {} MiB", free / MIB, total / MIB);
    let fix = "df -h ~/.postrider";
    match free {
        0..FREE_ACT => Finding::act("disk", format!("the disk is all but full: {shown}"))
            .line("New sends are refused soon; what was accepted is safe.")
            .fix(fix),
        FREE_ACT..FREE_WARN => Finding::warn("disk", format!("the disk fills up: {shown}")).fix(fix),
        FREE_WARN.. => Finding::fine("disk", format!("disk {percent} % free")),
    }
}

fn judge_ground(ground: Ground) -> Finding {
    match ground {
        Ground::Local => Finding::fine("filesystem", "a disk of this machine"),
        Ground::Memory => Finding::warn("filesystem", "the home is in memory, not on a disk")
            .line("What was accepted does not survive a restart of the machine.")
            .fix("postrider --home DIR up"),
        Ground::Network => Finding::act("filesystem", "the home is on a network file system")
            .line("Its locks and syncs are not this machine's; the store may be damaged.")
            .fix("postrider --home DIR up"),
    }
}

fn judge_sync(measured: io::Result<Duration>) -> Finding {
    match measured {
        Ok(took) if took >= SYNC_WARN => {
            Finding::warn("sync", format!("one synced write takes {} ms here", took.as_millis()))
                .line("Every answer waits for one; nothing is wrong, everything is slow.")
                .fix("postrider --home DIR up")
        }
        Ok(took) => Finding::fine("sync", format!("sync {:.1} ms", took.as_secs_f64() * 1_000.0)),
        Err(error) => Finding::act("sync", format!("the home cannot be written: {error}"))
            .fix("df -h ~/.postrider; mount | grep -w ro"),
    }
}

fn judge_files(max: Option<u64>) -> Finding {
    match max {
        Some(max) if max < FILES_WARN => {
            Finding::warn("files", format!("this account may have {max} files open at once"))
                .line("A busy door needs more; connections would be refused.")
                .fix("ulimit -n 8192")
        }
        Some(max) => Finding::fine("files", format!("{max} open files")),
        None => Finding::fine("files", "open files without a bound"),
    }
}

fn files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(target_os = "linux")]
fn ground(path: &Path) -> Ground {
    /// The magic numbers of the kernel: tmpfs, ramfs; nfs, smb, cifs, smb2, 9p, fuse of a network.
    const MEMORY: &[i64] = &[0x0102_1994, 0x8584_58f6];
    const NETWORK: &[i64] = &[0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997];
    let kind = rustix::fs::statfs(path).map_or(0, |stat| stat.f_type & 0xffff_ffff);
    if MEMORY.contains(&kind) {
        Ground::Memory
    } else if NETWORK.contains(&kind) {
        Ground::Network
    } else {
        Ground::Local
    }
}

#[cfg(not(target_os = "linux"))]
fn ground(_: &Path) -> Ground {
    Ground::Local
}

/// What one synced write costs in `folder`.
fn sync_time(folder: &Path, clock: &dyn Clock) -> io::Result<Duration> {
    let path = folder.join("doctor-probe");
    let measured = File::create(&path).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        let began = clock.monotonic();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        Ok(clock.monotonic().saturating_sub(began))
    });
    // A probe that cannot be removed is replaced by the next one.
    let _ = std::fs::remove_file(&path);
    measured
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn little_room_is_found_before_none_is_left() {
        for (free, level) in [
            (0, Level::Act),
            (FREE_ACT - 1, Level::Act),
            (FREE_ACT, Level::Warn),
            (FREE_WARN - 1, Level::Warn),
            (FREE_WARN, Level::Fine),
        ] {
            let found = judge_room(free, 100 * 1024 * MIB);
            assert_eq!(found.level, level, "{free}");
            assert_eq!(found.fix.is_empty(), level == Level::Fine, "{free}");
        }
        assert_eq!(judge_room(u64::MAX, 0).level, Level::Fine, "a disk without a size divides nothing");
    }

    #[test]
    fn a_ground_that_forgets_or_is_not_ours_is_found() {
        assert_eq!(judge_ground(Ground::Local).level, Level::Fine);
        assert_eq!(judge_ground(Ground::Memory).level, Level::Warn);
        assert_eq!(judge_ground(Ground::Network).level, Level::Act);
    }

    #[test]
    fn a_slow_or_refused_sync_is_found() {
        assert_eq!(judge_sync(Ok(Duration::from_millis(1))).level, Level::Fine);
        assert_eq!(judge_sync(Ok(SYNC_WARN)).level, Level::Warn);
        assert_eq!(judge_sync(Err(io::ErrorKind::PermissionDenied.into())).level, Level::Act);
    }

    #[test]
    fn few_open_files_are_found() {
        assert_eq!(judge_files(Some(FILES_WARN - 1)).level, Level::Warn);
        assert_eq!(judge_files(Some(FILES_WARN)).level, Level::Fine);
        assert_eq!(judge_files(None).level, Level::Fine);
    }
}
