//! TLS at both ends: rustls with ring, versions 1.2 and 1.3, HTTP/1.1 inside.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// Who a door is: its certificates and the key to them.
#[derive(Clone)]
pub struct Identity(TlsAcceptor);

/// Whose certificates a client believes.
#[derive(Clone)]
pub struct Trust(TlsConnector);

/// Why a certificate or key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It cannot be read, or holds none of what it should.
    #[error("{} cannot be read as PEM: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// It holds no certificate.
    #[error("{} holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The certificate does not serve, or is not the key's.
    #[error("{} cannot be used: {source}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
}

impl Identity {
    /// From the PEM files of `--tls-cert` (the chain, own certificate first) and `--tls-key`.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = certificates(cert)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|source| TlsError::Unreadable { path: key.to_owned(), source })?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|source| TlsError::Unusable { path: cert.to_owned(), source })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<server::TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

impl Trust {
    /// The public certificate authorities.
    pub fn public() -> Self {
        Self::of(public_roots())
    }

    /// The public ones and those of the PEM file of `--ca`.
    pub fn with_ca(ca: &Path) -> Result<Self, TlsError> {
        let mut roots = public_roots();
        for certificate in certificates(ca)? {
            roots.add(certificate).map_err(|source| TlsError::Unusable { path: ca.to_owned(), source })?;
        }
        Ok(Self::of(roots))
    }

    fn of(roots: RootCertStore) -> Self {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring has the suites of both versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(TlsConnector::from(Arc::new(config)))
    }

    /// Speaks TLS over `stream`; the other end must prove that it is `host`, a name or an address.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<client::TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.0.connect(name, stream).await
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn public_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let read = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    let chain = read.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if chain.is_empty() { Err(TlsError::NoCertificate { path: path.to_owned() }) } else { Ok(chain) }
}
