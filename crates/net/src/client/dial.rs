//! Connecting: the one place where Unix and TCP, plain and TLS differ.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use model::limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::target::Target;
use crate::guard::Scheme;
use crate::tls::Trust;
use crate::watched::{Heard, Watched};

/// Opens connections to one door.
#[derive(Clone)]
pub(super) struct Dial {
    target: Arc<Target>,
    trust: Arc<OnceLock<Trust>>,
}

/// A connection of whatever kind.
pub(super) struct Line(Watched<Box<dyn TwoWay>>);

trait TwoWay: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> TwoWay for S {}

impl Dial {
    pub(super) fn new(target: Arc<Target>, trust: Option<Trust>) -> Self {
        let trust = Arc::new(trust.map_or_else(OnceLock::new, OnceLock::from));
        Self { target, trust }
    }

    /// A new connection.
    pub(super) async fn line(&self) -> io::Result<TokioIo<Line>> {
        let dialled = timeout(limits::CONNECT_TIMEOUT, dial(&self.target, &self.trust)).await;
        let stream = dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let line = Line(Watched::new(stream, Heard::default(), limits::WINDOW_STALL_TIMEOUT));
        Ok(TokioIo::new(line))
    }
}

impl tower::Service<Uri> for Dial {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Line>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The address is the target's; the request's URI only names it.
    fn call(&mut self, _: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move { dial.line().await })
    }
}

async fn dial(target: &Target, trust: &OnceLock<Trust>) -> io::Result<Box<dyn TwoWay>> {
    match target {
        Target::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        Target::Tcp { scheme, host, port, .. } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            // Requests are small and awaited: waiting to fill a segment only adds delay.
            stream.set_nodelay(true)?;
            match scheme {
                Scheme::Http => Ok(Box::new(stream)),
                // The public authorities take a moment to load; a client of a plain door never needs them.
                Scheme::Https => Ok(Box::new(trust.get_or_init(Trust::public).connect(host, stream).await?)),
            }
        }
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
