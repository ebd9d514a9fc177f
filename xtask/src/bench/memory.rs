//! Memory at hand.
//!
//! A virtual machine has much of its memory on paper only: its host gives a page when somebody first touches it, which
//! takes longer than to fill it, and takes free pages back after a while. Whoever writes so much that the system's cache
//! of files grows into such pages waits for the host, in the midst of its writes: a fifth of what sends of 4 KiB cost here
//! was that. What was touched a moment ago is given out again first.

use std::hint::black_box;

/// More than one side writes in a round, to its log and to its file.
const BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Of what is free; the rest is other people's.
const SHARE: u64 = 2;

/// Touches memory and gives it back, so that whoever is measured next finds some. Nothing where the system does not tell
/// how much there is.
pub fn at_hand() {
    let Some(free) = std::fs::read_to_string("/proc/meminfo").ok().and_then(|told| free_in(&told)) else {
        return;
    };
    drop(black_box(vec![1_u8; touched_of(free)]));
}

fn touched_of(free: u64) -> usize {
    usize::try_from(BYTES.min(free / SHARE)).unwrap_or(0)
}

fn free_in(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_told_in_kilobytes() {
        let told = "MemTotal:       24652612 kB\nMemFree: 1 kB\nMemAvailable:   23839060 kB\n";
        assert_eq!(free_in(told), Some(23_839_060 * 1024));
        assert_eq!(free_in("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn half_of_what_is_free_is_touched_at_the_most() {
        assert_eq!(touched_of(6 << 30), 3 << 30);
        assert_eq!(touched_of(64 << 30), 4 << 30);
    }
}
