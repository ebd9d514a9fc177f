//! The clock every command lives by.
//!
//! Shipped binaries have the machine's clock. A build with `faults` may be told to live ahead of it, so that proofs
//! let days pass in seconds, or behind it, beside state that was stored then (`sqlite::fault`, word `clock:<file>`).

use std::sync::Arc;

use model::{Clock, SystemClock};

/// The clock of this process.
pub fn clock() -> Arc<dyn Clock> {
    #[cfg(feature = "faults")]
    if let Some(file) = sqlite::fault::clock_file() {
        return Arc::new(ahead::AheadClock::start(file));
    }
    Arc::new(SystemClock::start())
}

#[cfg(feature = "faults")]
mod ahead {
    use std::path::Path;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use model::{Clock, SystemClock, Timestamp};
    use sqlite::fault::clock_us;

    /// The machine's clock plus what a file says, looked up at every question. Its first number is time that passes, for
    /// both clocks; a process lives in the past when it is negative. A second one is how far the date alone stands ahead,
    /// and may be taken back.
    pub(super) struct AheadClock {
        machine: SystemClock,
        file: &'static Path,
        /// The furthest ahead seen, in microseconds: time that has passed does not come back when a reader
        /// meets the file half written.
        furthest_us: AtomicI64,
        ahead_at_start_us: i64,
    }

    impl AheadClock {
        pub(super) fn start(file: &'static Path) -> Self {
            let ahead_at_start_us = told(file).unwrap_or(0);
            let furthest_us = AtomicI64::new(ahead_at_start_us);
            Self { machine: SystemClock::start(), file, furthest_us, ahead_at_start_us }
        }

        fn ahead_us(&self) -> i64 {
            let told = told(self.file).unwrap_or(i64::MIN);
            self.furthest_us.fetch_max(told, Ordering::SeqCst).max(told)
        }

        /// How far the date alone is wrong.
        fn misdated_us(&self) -> i64 {
            clock_us(self.file, 1).unwrap_or(0)
        }
    }

    fn told(file: &Path) -> Option<i64> {
        clock_us(file, 0)
    }

    impl Clock for AheadClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.machine.now().as_micros() + self.ahead_us() + self.misdated_us())
        }

        // Days that pass, pass for both clocks: only so do waits counted in monotonic time end.
        fn monotonic(&self) -> Duration {
            let passed_us = u64::try_from(self.ahead_us() - self.ahead_at_start_us).unwrap_or(0);
            self.machine.monotonic() + Duration::from_micros(passed_us)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::AheadClock;
        use model::Clock;
        use std::time::Duration;

        const DAY: Duration = Duration::from_secs(86_400);

        #[test]
        fn a_day_written_to_the_file_passes_for_both_clocks_and_never_comes_back() {
            let folder = tempfile::tempdir().unwrap();
            let file: &'static std::path::Path = Box::leak(folder.path().join("ahead").into_boxed_path());
            let clock = AheadClock::start(file);
            let (noon, counted) = (clock.now(), clock.monotonic());
            std::fs::write(file, DAY.as_micros().to_string()).unwrap();
            assert!(clock.now().since(noon) >= DAY);
            assert!(clock.monotonic() - counted >= DAY);
            std::fs::write(file, "").unwrap();
            assert!(clock.now().since(noon) >= DAY);
        }

        #[test]
        fn a_wrong_date_moves_the_wall_clock_alone_and_is_taken_back() {
            let folder = tempfile::tempdir().unwrap();
            let file: &'static std::path::Path = Box::leak(folder.path().join("ahead").into_boxed_path());
            let clock = AheadClock::start(file);
            let (noon, counted) = (clock.now(), clock.monotonic());
            std::fs::write(file, format!("0 {}", DAY.as_micros())).unwrap();
            assert!(clock.now().since(noon) >= DAY);
            assert!(clock.monotonic() - counted < DAY);
            std::fs::write(file, "0 0").unwrap();
            assert!(clock.now().since(noon) < DAY);
        }

        #[test]
        fn a_process_that_lives_in_the_past_stays_there_when_its_file_is_met_half_written() {
            let folder = tempfile::tempdir().unwrap();
            let file: &'static std::path::Path = Box::leak(folder.path().join("behind").into_boxed_path());
            std::fs::write(file, format!("-{}", DAY.as_micros())).unwrap();
            let clock = AheadClock::start(file);
            let behind = || clock.machine.now().since(clock.now());
            assert!(behind() >= DAY - Duration::from_secs(1) && behind() <= DAY);
            std::fs::write(file, "").unwrap();
            assert!(behind() >= DAY - Duration::from_secs(1));
        }
    }
}
