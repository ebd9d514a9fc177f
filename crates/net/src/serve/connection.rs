//! What a handler may know of the connection its request came on, and do to it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use model::ErrorCode;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wire::Refused;

use super::census::Place;
use crate::respond::Refusal;

/// The other end, as the operating system tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Through TCP.
    Tcp {
        /// Where the caller is.
        remote: SocketAddr,
        /// Which of our addresses it dialled.
        local: SocketAddr,
    },
    /// Through a Unix socket: a process of this process's own account.
    Unix {
        /// Its process id at the time it connected, where the system tells it.
        pid: Option<i32>,
    },
}

/// The connection a request came on. An extractor; in the extensions of every request that a router is asked.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    caller: Caller,
    place: Place,
    life: Life,
}

/// The two stages of a stop, and the tasks it waits for.
#[derive(Clone)]
pub(super) struct Life {
    pub(super) stop: CancellationToken,
    pub(super) cut: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl Connection {
    pub(super) fn new(caller: Caller, place: Place, life: Life) -> Self {
        Self(Arc::new(Inner { caller, place, life }))
    }

    /// The other end.
    pub fn caller(&self) -> Caller {
        self.0.caller
    }

    /// The caller proved who it is: the connection stops counting as a stranger of its address.
    pub fn authenticated(&self) {
        self.0.place.authenticated();
    }

    /// Cancelled when the door stops. Long polls, event streams and sockets end themselves then; whatever
    /// has not after the drain timeout is cut.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.life.stop
    }

    /// Runs `work` as part of this connection: it keeps the connection's place, the door's stop waits for
    /// it, and the end of the drain cuts it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let connection = self.clone();
        self.0.life.tasks.spawn(async move {
            tokio::select! {
                () = work => {}
                () = connection.0.life.cut.cancelled() => {}
            }
        });
    }
}

impl<S: Sync> FromRequestParts<S> for Connection {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let connection = parts.extensions.get::<Connection>().cloned();
        connection.ok_or_else(|| Refusal::from(Refused::plain(ErrorCode::Internal)))
    }
}
