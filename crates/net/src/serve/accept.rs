//! Doors: a listener with its bounds.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::Bounds;

/// A listener and its bounds.
pub struct Door {
    listener: Listener,
    pub(super) bounds: Bounds,
}

enum Listener {
    Tcp(TcpListener),
    /// Only callers of this account are let in.
    Unix(UnixListener, u32),
}

/// One connection, before anybody counted it.
pub(super) enum Accepted {
    Tcp {
        stream: TcpStream,
        remote: SocketAddr,
        local: SocketAddr,
    },
    Unix {
        stream: UnixStream,
        pid: Option<i32>,
    },
    Foreign {
        uid: u32,
    },
    /// It left before we looked.
    Gone,
}

impl Door {
    /// A TCP door.
    pub fn tcp(listener: TcpListener) -> Self {
        Self { listener: Listener::Tcp(listener), bounds: Bounds::default() }
    }

    /// A Unix door for callers of this process's account.
    pub fn unix(listener: UnixListener) -> Self {
        Self::unix_for(listener, rustix::process::geteuid().as_raw())
    }

    /// A Unix door for callers of account `uid`.
    pub fn unix_for(listener: UnixListener, uid: u32) -> Self {
        Self { listener: Listener::Unix(listener, uid), bounds: Bounds::default() }
    }

    /// The same door with other bounds.
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        let accepted = match &self.listener {
            Listener::Tcp(listener) => {
                listener.accept().await.map(|(stream, remote)| accepted_tcp(stream, remote))
            }
            Listener::Unix(listener, own_uid) => {
                listener.accept().await.map(|(stream, _)| accepted_unix(stream, *own_uid))
            }
        };
        match accepted {
            // The caller's doing, not ours: the next one need not wait for it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(Accepted::Gone),
            accepted => accepted,
        }
    }
}

fn accepted_tcp(stream: TcpStream, remote: SocketAddr) -> Accepted {
    // Answers are small and awaited: waiting to fill a segment only adds delay.
    match stream.set_nodelay(true).and_then(|()| stream.local_addr()) {
        Ok(local) => Accepted::Tcp { stream, remote, local },
        Err(_) => Accepted::Gone,
    }
}

fn accepted_unix(stream: UnixStream, own_uid: u32) -> Accepted {
    match stream.peer_cred() {
        Ok(caller) if caller.uid() == own_uid => Accepted::Unix { stream, pid: caller.pid() },
        Ok(caller) => Accepted::Foreign { uid: caller.uid() },
        Err(_) => Accepted::Gone,
    }
}
