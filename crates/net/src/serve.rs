//! The accept loop.
//!
//! - A connection that does not say what it wants is closed: a slow head after the header timeout, an idle one
//!   after the idle timeout, one that does not read its answer after the stall timeout.
//! - Over a bound a connection is closed without a byte; a Unix caller of another account too.
//! - Stop accepts no more, lets answers in flight end, waits for WebSocket tasks, and cuts what is left when
//!   the drain timeout passed. When [`serve`] returns, nothing of the door runs any more.

mod accept;
mod answers;
mod census;
mod connection;
mod pace;
pub(crate) mod strands;
mod visit;

use std::sync::Arc;
use std::time::Duration;

use model::limits;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use accept::Accepted;
use census::Census;
use connection::Life;
use visit::Visit;

pub use accept::Door;
pub use answers::Answers;
pub use connection::{Caller, Connection};
pub use strands::spread_over_strands;

/// After an accept that did not work (out of descriptors) the next one waits this long: the kernel would
/// report the same at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The bounds of one door; the defaults are `model::limits`.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// For a request's head.
    pub header_timeout: Duration,
    /// For a kept connection without a request.
    pub idle_timeout: Duration,
    /// For an answer of which the caller takes no byte.
    pub stall_timeout: Duration,
    /// For what is in flight at a stop.
    pub drain_timeout: Duration,
    /// Connections of the door.
    pub connections_max: usize,
    /// Connections of one address that have not proven who they are.
    pub unauthenticated_per_address_max: usize,
}

/// How a door ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Connections and sockets that did not end by themselves within the drain timeout.
    pub cut: usize,
}

/// Lets `answers` answer at `door` until `stop`, then drains.
pub async fn serve(door: Door, answers: impl Answers, stop: CancellationToken) -> Ended {
    let hall = Hall::new(door.bounds, answers, stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = hall.life.stop.cancelled() => break,
            accepted = door.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => hall.admit(accepted),
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::select! {
                    () = hall.life.stop.cancelled() => break,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
    }
    // Closed before the drain: a new caller is refused at once instead of waiting in the backlog.
    drop(door);
    hall.drain().await
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            header_timeout: limits::HEADER_TIMEOUT,
            idle_timeout: limits::IDLE_TIMEOUT,
            stall_timeout: limits::WINDOW_STALL_TIMEOUT,
            drain_timeout: limits::DRAIN_TIMEOUT,
            connections_max: limits::CONNECTIONS_MAX,
            unauthenticated_per_address_max: limits::UNAUTHENTICATED_PER_ADDRESS_MAX,
        }
    }
}

/// Where accepted connections live.
struct Hall<A> {
    bounds: Bounds,
    answers: A,
    census: Arc<Census>,
    life: Life,
}

impl<A: Answers> Hall<A> {
    fn new(bounds: Bounds, answers: A, stop: CancellationToken) -> Self {
        let census = Census::new(bounds.connections_max, bounds.unauthenticated_per_address_max);
        let life = Life { stop, cut: CancellationToken::new(), tasks: TaskTracker::new() };
        Self { bounds, answers, census, life }
    }

    fn admit(&self, accepted: Accepted) {
        let (stream, caller) = match accepted {
            Accepted::Here { stream, caller } => (stream, caller),
            Accepted::Foreign { uid } => {
                return warn!(uid, "a process of another account knocked and was closed");
            }
            Accepted::Gone => return debug!("a caller left before it was looked at"),
        };
        let stranger = match caller {
            Caller::Tcp { remote, .. } => Some(remote.ip()),
            Caller::Unix { .. } => None,
        };
        let Some(place) = self.census.admit(stranger) else {
            return debug!(?caller, "a connection over the bound was closed");
        };
        let Self { bounds, answers, life, .. } = self;
        let connection = Connection::new(caller, place, life.clone());
        let visit = Visit { bounds: *bounds, answers: answers.clone(), connection, life: life.clone() };
        match strands::next() {
            Some(strand) => drop(life.tasks.spawn_on(visit.serve(stream), strand)),
            None => drop(life.tasks.spawn(visit.serve(stream))),
        }
    }

    async fn drain(self) -> Ended {
        self.life.tasks.close();
        if tokio::time::timeout(self.bounds.drain_timeout, self.life.tasks.wait()).await.is_ok() {
            return Ended { cut: 0 };
        }
        let cut = self.life.tasks.len();
        warn!(cut, "connections did not end in time and were cut");
        self.life.cut.cancel();
        self.life.tasks.wait().await;
        Ended { cut }
    }
}
