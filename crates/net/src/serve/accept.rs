//! Doors: a listener with its bounds.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{Bounds, Caller};
use crate::tls::Identity;

/// A listener and its bounds.
pub struct Door {
    listener: Listener,
    pub(super) bounds: Bounds,
}

enum Listener {
    Tcp(TcpListener),
    Tls(TcpListener, Identity),
    /// Only callers of this account are let in.
    Unix(UnixListener, u32),
}

/// One connection, before anybody counted it.
pub(super) enum Accepted {
    Here {
        stream: Stream,
        caller: Caller,
    },
    Foreign {
        uid: u32,
    },
    /// It left before we looked.
    Gone,
}

/// How to speak to it.
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(TcpStream, Identity),
    Unix(UnixStream),
}

/// A stream on its way from one runtime to another.
pub(super) enum Detached {
    Tcp(std::net::TcpStream),
    Tls(std::net::TcpStream, Identity),
    Unix(std::os::unix::net::UnixStream),
}

impl Stream {
    pub(super) fn detach(self) -> io::Result<Detached> {
        Ok(match self {
            Stream::Tcp(stream) => Detached::Tcp(stream.into_std()?),
            Stream::Tls(stream, identity) => Detached::Tls(stream.into_std()?, identity),
            Stream::Unix(stream) => Detached::Unix(stream.into_std()?),
        })
    }
}

impl Detached {
    /// On the runtime that calls.
    pub(super) fn attach(self) -> io::Result<Stream> {
        Ok(match self {
            Detached::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Detached::Tls(stream, identity) => Stream::Tls(TcpStream::from_std(stream)?, identity),
            Detached::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl Door {
    /// A TCP door.
    pub fn tcp(listener: TcpListener) -> Self {
        Self { listener: Listener::Tcp(listener), bounds: Bounds::default() }
    }

    /// A TCP door behind TLS.
    pub fn tls(listener: TcpListener, identity: Identity) -> Self {
        Self { listener: Listener::Tls(listener, identity), bounds: Bounds::default() }
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
                listener.accept().await.map(|(stream, remote)| accepted_tcp(stream, remote, Stream::Tcp))
            }
            Listener::Tls(listener, identity) => listener.accept().await.map(|(stream, remote)| {
                accepted_tcp(stream, remote, |stream| Stream::Tls(stream, identity.clone()))
            }),
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

fn accepted_tcp(stream: TcpStream, remote: SocketAddr, kind: impl FnOnce(TcpStream) -> Stream) -> Accepted {
    // Answers are small and awaited: waiting to fill a segment only adds delay.
    match stream.set_nodelay(true).and_then(|()| stream.local_addr()) {
        Ok(local) => Accepted::Here { stream: kind(stream), caller: Caller::Tcp { remote, local } },
        Err(_) => Accepted::Gone,
    }
}

fn accepted_unix(stream: UnixStream, own_uid: u32) -> Accepted {
    match stream.peer_cred() {
        Ok(caller) if caller.uid() == own_uid => {
            Accepted::Here { stream: Stream::Unix(stream), caller: Caller::Unix { pid: caller.pid() } }
        }
        Ok(caller) => Accepted::Foreign { uid: caller.uid() },
        Err(_) => Accepted::Gone,
    }
}
