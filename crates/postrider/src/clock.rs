//! The clock every command lives by.
//!
//! Shipped binaries have the machine's clock. A build with `faults` may be told to live ahead of it, so that proofs
//! let days pass in seconds (`sqlite::fault`, word `clock:<file>`).

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
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use model::{Clock, SystemClock, Timestamp};

    /// The machine's clock plus what a file says, looked up at every question.
    pub(super) struct AheadClock {
        machine: SystemClock,
        file: &'static Path,
        /// The furthest ahead seen, in microseconds: time that has passed does not come back when a reader
        /// meets the file half written.
        furthest: AtomicU64,
        ahead_at_start: Duration,
    }

    impl AheadClock {
        pub(super) fn start(file: &'static Path) -> Self {
            let mut clock = Self {
                machine: SystemClock::start(),
                file,
                furthest: AtomicU64::new(0),
                ahead_at_start: Duration::ZERO,
            };
            clock.ahead_at_start = clock.ahead();
            clock
        }

        fn ahead(&self) -> Duration {
            let told = std::fs::read_to_string(self.file).ok().and_then(|text| text.trim().parse().ok());
            let told = told.unwrap_or(0);
            Duration::from_micros(self.furthest.fetch_max(told, Ordering::SeqCst).max(told))
        }
    }

    impl Clock for AheadClock {
        fn now(&self) -> Timestamp {
            self.machine.now() + self.ahead()
        }

        // Days that pass, pass for both clocks: only so do waits counted in monotonic time end.
        fn monotonic(&self) -> Duration {
            self.machine.monotonic() + self.ahead().saturating_sub(self.ahead_at_start)
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
    }
}
