//! How long a strand stays awake.
//!
//! A strand with one request at a time looks for what comes next for a moment before it sleeps: falling asleep and being
//! woken costs as much as what it does for the request.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::Instant;

/// How long a strand looks for more: about as long as a server beside it takes to answer.
const AWAKE_FOR: Duration = Duration::from_micros(60);

thread_local! {
    static VIGIL: Vigil = Vigil::default();
}

/// What a strand knows of its requests.
#[derive(Default)]
struct Vigil {
    in_flight: Cell<usize>,
    /// When the last one began or ended.
    moved_at: Cell<Option<Instant>>,
    is_asleep: Cell<bool>,
    bell: Arc<Notify>,
}

/// One request, from its head to its answer.
pub(super) struct InFlight(());

impl InFlight {
    pub(super) fn begin() -> Self {
        VIGIL.with(|vigil| vigil.moved(vigil.in_flight.get() + 1));
        Self(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        VIGIL.with(|vigil| vigil.moved(vigil.in_flight.get().saturating_sub(1)));
    }
}

impl Vigil {
    fn moved(&self, in_flight: usize) {
        self.in_flight.set(in_flight);
        if in_flight > 1 {
            return;
        }
        self.moved_at.set(Some(Instant::now()));
        if self.is_asleep.take() {
            self.bell.notify_one();
        }
    }

    fn is_awake(&self) -> bool {
        let lately = || self.moved_at.get().is_some_and(|at| at.elapsed() < AWAKE_FOR);
        self.in_flight.get() <= 1 && lately()
    }
}

/// Keeps its strand from sleeping while it is awake: whoever yields is asked again after a look at the sockets.
pub(super) async fn keep() {
    let bell = VIGIL.with(|vigil| vigil.bell.clone());
    loop {
        if VIGIL.with(Vigil::is_awake) {
            yield_now().await;
        } else {
            VIGIL.with(|vigil| vigil.is_asleep.set(true));
            bell.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_awake() -> bool {
        VIGIL.with(Vigil::is_awake)
    }

    #[tokio::test(start_paused = true)]
    async fn a_strand_stays_awake_for_a_moment_around_one_request_and_not_among_many() {
        assert!(!is_awake(), "nothing came yet");
        let one = InFlight::begin();
        assert!(is_awake());
        tokio::time::advance(AWAKE_FOR).await;
        assert!(!is_awake(), "whatever it waits for takes long");
        drop(one);
        assert!(is_awake(), "the same caller may ask again");
        let several = [InFlight::begin(), InFlight::begin()];
        assert!(!is_awake(), "others bring the next work soon enough");
        drop(several);
        tokio::time::advance(AWAKE_FOR).await;
        assert!(!is_awake());
    }

    #[tokio::test(start_paused = true)]
    async fn a_strand_that_sleeps_is_woken_by_its_next_request() {
        let looks = tokio::task::LocalSet::new();
        looks.spawn_local(keep());
        looks.run_until(yield_now()).await;
        assert!(VIGIL.with(|vigil| vigil.is_asleep.get()));
        let request = InFlight::begin();
        looks.run_until(yield_now()).await;
        assert!(!VIGIL.with(|vigil| vigil.is_asleep.get()), "it looks again");
        drop(request);
    }
}
