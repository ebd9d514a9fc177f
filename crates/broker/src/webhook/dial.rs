//! Connecting to an address that passed the gate.

use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;

use model::webhook::{Host, Scheme, WebhookUrl};
use net::tls::Trust;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

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

/// The first of `addresses` that answers. A certificate must be the host's, whatever address was dialled.
pub(super) async fn dial(
    trust: &OnceLock<Trust>,
    url: &WebhookUrl,
    addresses: &[SocketAddr],
) -> Result<Box<dyn TwoWay>, NoLine> {
    let stream = TcpStream::connect(addresses).await.map_err(|_| NoLine::Unreachable)?;
    match url.scheme() {
        Scheme::Http => Ok(Box::new(stream)),
        Scheme::Https => {
            let host = match url.host() {
                Host::Name(name) => name.clone(),
                Host::Address(address) => address.to_string(),
            };
            let secured = trust.get_or_init(Trust::public).connect(&host, stream).await;
            Ok(Box::new(secured.map_err(NoLine::Tls)?))
        }
    }
}
