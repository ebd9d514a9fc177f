//! Real elapsed time, the one place where tests, proofs and benchmarks read the machine's clock.

use std::time::{Duration, Instant};

/// Measures from its start; monotonic, never a date.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started_at: Instant,
}

impl Stopwatch {
    /// Starts measuring now.
    #[expect(
        clippy::disallowed_methods,
        reason = "equipment that bounds and measures real processes needs real time"
    )]
    pub fn start() -> Self {
        Self { started_at: Instant::now() }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Whole microseconds since the start.
    pub fn elapsed_us(&self) -> u64 {
        u64::try_from(self.elapsed().as_micros()).expect("a run ends before 584,000 years have passed")
    }
}
