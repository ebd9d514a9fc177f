//! Connecting to an address that passed the gate.

use std::io;
use std::net::SocketAddr;

use model::webhook::{Scheme, WebhookUrl};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::tls::Tls;

/// Plain or TLS.
pub(super) trait TwoWay: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> TwoWay for S {}

/// Why there is no connection.
pub(super) enum NoLine {
    /// Nobody listens, or nothing leads there.
    Unreachable,
    /// The other end is not who it should be, or does not speak TLS.
    Tls(io::Error),
}

/// The first of `addresses` that answers.
pub(super) async fn dial(
    tls: &Tls,
    url: &WebhookUrl,
    addresses: &[SocketAddr],
) -> Result<Box<dyn TwoWay>, NoLine> {
    let stream = TcpStream::connect(addresses).await.map_err(|_| NoLine::Unreachable)?;
    match url.scheme() {
        Scheme::Http => Ok(Box::new(stream)),
        Scheme::Https => Ok(Box::new(tls.wrap(url.host(), stream).await.map_err(NoLine::Tls)?)),
    }
}
