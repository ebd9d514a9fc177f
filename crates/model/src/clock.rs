//! Time and randomness as arguments, so that a simulation can own both.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::Malformed;

/// An instant: microseconds since 1970 UTC. Printed as RFC 3339 with six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// The world's time. `now` may jump; `monotonic` never goes back and counts from an arbitrary start.
pub trait Clock: Send + Sync {
    /// Wall clock.
    fn now(&self) -> Timestamp;
    /// Time since this clock was made, unaffected by steps of the wall clock.
    fn monotonic(&self) -> Duration;
}

/// Source of unpredictable bytes.
pub trait Entropy: Send + Sync {
    /// Fills `buffer`.
    fn fill(&self, buffer: &mut [u8]);

    /// Eight random bytes as a number.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// The machine's clock.
pub struct SystemClock {
    started: std::time::Instant,
}

/// The machine's random source.
pub struct OsEntropy;

/// Broker time as a node knows it: the broker's word at negotiation plus the monotonic time since,
/// so it is never ahead of the broker's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerClock {
    told: Timestamp,
    heard_at: Duration,
}

impl Timestamp {
    /// From microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970, for time-ordered ids; instants before 1970 count as 1970.
    pub fn as_millis_unsigned(self) -> u64 {
        u64::try_from(self.0 / 1_000).unwrap_or(0)
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(f, "{instant:.6}"),
            // Outside the calendar's range only a forged number can stand; print it as what it is.
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let instant: jiff::Timestamp = text
            .parse()
            .map_err(|_| Malformed::new("instant", "an RFC 3339 time such as 2027-01-01T00:00:00Z"))?;
        Ok(Self(instant.as_microsecond()))
    }
}

impl SystemClock {
    /// Starts the monotonic count.
    #[expect(clippy::disallowed_methods, reason = "this is the one place the machine's clock is read")]
    pub fn start() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place the machine's clock is read")]
    fn now(&self) -> Timestamp {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Entropy for OsEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        if buffer.len() > ID_BYTES_MAX {
            ask_system(buffer);
        } else {
            STOCK.with_borrow_mut(|stock| stock.fill(buffer));
        }
    }
}

/// More than an id needs is a secret: it comes from the system to its owner and lies nowhere in between.
const ID_BYTES_MAX: usize = 16;
/// Random bytes asked for at once: a call to the system for each id would cost more than the id.
const STOCK_BYTES: usize = 1024;

thread_local! {
    static STOCK: RefCell<Stock> = const { RefCell::new(Stock { bytes: [0; STOCK_BYTES], used: STOCK_BYTES }) };
}

/// Random bytes for ids, each given out once.
struct Stock {
    bytes: [u8; STOCK_BYTES],
    used: usize,
}

impl Stock {
    fn fill(&mut self, buffer: &mut [u8]) {
        if STOCK_BYTES - self.used < buffer.len() {
            ask_system(&mut self.bytes);
            self.used = 0;
        }
        let taken = &mut self.bytes[self.used..self.used + buffer.len()];
        buffer.copy_from_slice(taken);
        taken.fill(0);
        self.used += buffer.len();
    }
}

fn ask_system(buffer: &mut [u8]) {
    getrandom::fill(buffer).expect("the operating system provides random bytes");
}

impl BrokerClock {
    /// `told` is the broker's `now`, heard at `clock.monotonic()`.
    pub fn heard(told: Timestamp, clock: &dyn Clock) -> Self {
        Self { told, heard_at: clock.monotonic() }
    }

    /// Broker time now.
    pub fn now(&self, clock: &dyn Clock) -> Timestamp {
        self.told + clock.monotonic().saturating_sub(self.heard_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_random_bytes_are_given_out_twice() {
        let mut seen = std::collections::HashSet::new();
        for length in [16, 10, 8].into_iter().cycle().take(3 * STOCK_BYTES / 8) {
            let mut bytes = [0; 16];
            OsEntropy.fill(&mut bytes[..length]);
            assert!(seen.insert(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn instants_print_as_rfc_3339_with_six_decimals_and_parse_back() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_798_761_600_000_000, "2027-01-01T00:00:00.000000Z"),
            (1_798_761_600_000_001, "2027-01-01T00:00:00.000001Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).to_string(), text);
            assert_eq!(text.parse::<Timestamp>(), Ok(Timestamp::from_micros(micros)));
        }
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn time_since_a_later_instant_is_zero() {
        let (early, late) = (Timestamp::from_micros(5), Timestamp::from_micros(9));
        assert_eq!(late.since(early), Duration::from_micros(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    struct Stopped(std::sync::Mutex<(i64, u64)>);
    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.lock().unwrap().0)
        }
        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.lock().unwrap().1)
        }
    }

    #[test]
    fn broker_time_follows_the_monotonic_clock_and_ignores_wall_steps() {
        let clock = Stopped(std::sync::Mutex::new((1_000_000_000, 10)));
        let broker = BrokerClock::heard(Timestamp::from_micros(7_000_000), &clock);
        *clock.0.lock().unwrap() = (-5_000_000, 13);
        assert_eq!(broker.now(&clock), Timestamp::from_micros(10_000_000));
    }
}
