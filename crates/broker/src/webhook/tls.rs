//! TLS towards endpoints: certificates are checked against what the machine trusts, for the host's name, whatever
//! address was dialled.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use model::webhook::Host;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Speaks TLS; reads the machine's certificates when it first has to.
pub(super) struct Tls {
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    /// Trusts what the machine trusts.
    pub(super) fn of_the_machine() -> Self {
        Self { connector: OnceCell::new() }
    }

    /// Trusts `roots` and nothing else.
    #[cfg(test)]
    pub(super) fn trusting(roots: RootCertStore) -> Self {
        Self { connector: OnceCell::new_with(Some(connector(roots))) }
    }

    /// Speaks TLS over `stream` with `host`.
    pub(super) async fn wrap(&self, host: &Host, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let connector = self.connector.get_or_init(of_the_machine).await;
        connector.connect(name_of(host)?, stream).await
    }
}

async fn of_the_machine() -> TlsConnector {
    let read = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
    let found = read.map(|found| found.certs).unwrap_or_default();
    let mut roots = RootCertStore::empty();
    let (added, unreadable) = roots.add_parsable_certificates(found);
    if added == 0 {
        tracing::warn!(unreadable, "this machine trusts no certificate: webhooks over https will not be taken");
    }
    connector(roots)
}

fn connector(roots: RootCertStore) -> TlsConnector {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks the versions this library was built with")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

fn name_of(host: &Host) -> io::Result<ServerName<'static>> {
    match host {
        Host::Name(name) => ServerName::try_from(name.clone())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "no certificate can have this name")),
        Host::Address(IpAddr::V4(address)) => Ok(ServerName::IpAddress((*address).into())),
        Host::Address(IpAddr::V6(address)) => Ok(ServerName::IpAddress((*address).into())),
    }
}
