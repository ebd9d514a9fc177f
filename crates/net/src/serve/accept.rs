//! Doors: a listener with its bounds.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{Bounds, Caller};
use crate::quiet::QuietStream;
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
        stream: Detached,
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
    Unix(QuietStream),
}

/// A stream on its way from the runtime that accepts to the one it will live on.
pub(super) enum Detached {
    Tcp(std::net::TcpStream),
    Tls(std::net::TcpStream, Identity),
    Unix(std::os::unix::net::UnixStream),
}

impl Detached {
    /// On the runtime that calls.
    pub(super) fn attach(self) -> io::Result<Stream> {
        Ok(match self {
            Detached::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Detached::Tls(stream, identity) => Stream::Tls(TcpStream::from_std(stream)?, identity),
            Detached::Unix(stream) => Stream::Unix(QuietStream::from_std(stream)?),
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
                listener.accept().await.map(|(stream, remote)| accepted_tcp(stream, remote, Detached::Tcp))
            }
            Listener::Tls(listener, identity) => listener.accept().await.map(|(stream, remote)| {
                accepted_tcp(stream, remote, |stream| Detached::Tls(stream, identity.clone()))
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

fn accepted_tcp(
    stream: TcpStream,
    remote: SocketAddr,
    kind: impl FnOnce(std::net::TcpStream) -> Detached,
) -> Accepted {
    // Answers are small and awaited: waiting to fill a segment only adds delay.
    let known = stream.set_nodelay(true).and_then(|()| stream.local_addr());
    match known.and_then(|local| Ok((local, stream.into_std()?))) {
        Ok((local, stream)) => Accepted::Here { stream: kind(stream), caller: Caller::Tcp { remote, local } },
        Err(_) => Accepted::Gone,
    }
}

fn accepted_unix(stream: UnixStream, own_uid: u32) -> Accepted {
    let known = stream.peer_cred().and_then(|caller| Ok((caller, stream.into_std()?)));
    match known {
        Ok((caller, stream)) if caller.uid() == own_uid => {
            Accepted::Here { stream: Detached::Unix(stream), caller: Caller::Unix { pid: caller.pid() } }
        }
        Ok((caller, _)) => Accepted::Foreign { uid: caller.uid() },
        Err(_) => Accepted::Gone,
    }
}
