//! How long to wait before trying again.

use std::time::Duration;

use crate::limits::{RETRY_DELAY_FLOOR, RETRY_DELAY_MAX, RETRY_DELAY_MIN};

/// Full jitter over a doubling ceiling: many nodes that lost one broker come back spread out.
/// `attempts` counts the tries so far; `random` is any uniform number.
pub fn delay(attempts: u32, random: u64) -> Duration {
    let ceiling =
        RETRY_DELAY_MIN.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(RETRY_DELAY_MAX);
    let micros = u64::try_from(ceiling.as_micros()).expect("a delay of seconds fits 64 bits");
    Duration::from_micros(random % (micros + 1)).max(RETRY_DELAY_FLOOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_doubles_from_half_a_second_to_thirty() {
        for (attempts, ceiling_ms) in
            [(0, 500), (1, 500), (2, 1_000), (3, 2_000), (6, 16_000), (7, 30_000), (u32::MAX, 30_000)]
        {
            let ceiling = Duration::from_millis(ceiling_ms);
            let micros = u64::try_from(ceiling.as_micros()).unwrap();
            assert_eq!(delay(attempts, micros), ceiling, "{attempts}");
            assert_eq!(
                delay(attempts, micros + 1),
                RETRY_DELAY_FLOOR,
                "{attempts}: one past the ceiling wraps to none"
            );
            assert!(delay(attempts, u64::MAX) <= ceiling);
        }
    }
}
