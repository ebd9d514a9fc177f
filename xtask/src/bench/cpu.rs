//! Processor time: what a call costs however busy the machine is with other things.

use std::collections::HashMap;
use std::time::Duration;
use testkit::wait_for;

/// The kernel counts in these.
const TICK: Duration = Duration::from_millis(10);
/// Looks in a row, some ticks in all, without a further tick.
const IDLE_LOOKS: u32 = 6;
/// Upkeep that takes longer belongs to the next round too.
const SETTLED: Duration = Duration::from_secs(2);

/// Waits until this process and everything it started is idle: what a side left to be done behind its round is not to
/// fall on the next side.
pub fn settle() {
    let (mut before, mut looks) = (spent(), 0);
    let _still_busy = wait_for("idle processes", SETTLED, || {
        let now = spent();
        looks = if now == before { looks + 1 } else { 0 };
        before = now;
        (looks >= IDLE_LOOKS).then_some(())
    });
}

/// What this process and everything it started has used so far, where the system tells.
pub fn spent() -> Option<Duration> {
    let mut processes: HashMap<u32, Times> = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let stat = id.and_then(|id| Some((id, std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)));
        // A process that ended meanwhile is counted with its parent.
        processes.extend(stat.and_then(|(id, stat)| Some((id, Times::of(&stat)?))));
    }
    let own = std::process::id();
    let ticks: u64 =
        processes.keys().filter(|id| descends(&processes, **id, own)).map(|id| processes[id].ticks).sum();
    Some(TICK * u32::try_from(ticks).ok()?)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    parent: u32,
    /// Its own, and those of children that ended.
    ticks: u64,
}

impl Times {
    /// The line of `/proc/PID/stat`: the name in parentheses may hold anything, so fields count from behind it.
    fn of(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let parent = fields.get(1)?.parse().ok()?;
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(Self { parent, ticks })
    }
}

fn descends(processes: &HashMap<u32, Times>, id: u32, from: u32) -> bool {
    let mut at = id;
    while at != from {
        match processes.get(&at) {
            Some(times) if times.parent != 0 => at = times.parent,
            Some(_) | None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_a_name_that_holds_anything() {
        let line = "12 (a) (b c) S 7 12 12 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 5 1000 10";
        assert_eq!(Times::of(line), Some(Times { parent: 7, ticks: 110 }));
        assert_eq!(Times::of("nonsense"), None);
    }

    #[test]
    fn grandchildren_count_and_strangers_do_not() {
        let times = |parent| Times { parent, ticks: 1 };
        let processes =
            HashMap::from([(1, times(0)), (5, times(1)), (6, times(5)), (7, times(6)), (9, times(1))]);
        let of_five: Vec<bool> = [5, 6, 7, 9, 1].map(|id| descends(&processes, id, 5)).to_vec();
        assert_eq!(of_five, [true, true, true, false, false]);
    }
}
