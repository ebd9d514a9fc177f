//! TLS at both ends.

use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use net::Secret;
use net::client::{Client, ClientError, Target};
use net::guard::{self, Hosts, Origins, Policy, Scheme};
use net::serve::{Bounds, Door, serve};
use net::socket::{self, Upgrade};
use net::tls::{Identity, TlsError, Trust};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// An authority of its own, a certificate for loopback from it, and the files they are in.
struct Papers {
    folder: TempDir,
}

impl Papers {
    fn new() -> Self {
        let papers = Self { folder: tempfile::tempdir().unwrap() };
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        papers.write("ca.pem", &authority.pem());
        papers.write("cert.pem", &certificate.pem());
        papers.write("key.pem", &key.serialize_pem());
        papers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn identity(&self) -> Identity {
        Identity::load(&self.path("cert.pem"), &self.path("key.pem")).unwrap()
    }
}

/// A guarded door behind TLS: its port, and what stops it.
async fn door(identity: Identity, bounds: Bounds) -> (u16, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router =
        Router::new().route("/", get(async || net::respond::json(http::StatusCode::OK, &"hello"))).route(
            "/socket",
            get(async |upgrade: Upgrade| {
                upgrade.accept(async |socket| {
                    let (mut reader, writer) = socket.split();
                    while let Ok(text) = reader.next().await {
                        writer.send(text).await.unwrap();
                    }
                })
            }),
        );
    let hosts = Hosts::listed(address, Scheme::Https, []);
    let router = guard::protect(router, Policy::new(hosts, Origins::Own));
    let stop = CancellationToken::new();
    tokio::spawn(serve(Door::tls(listener, identity).with_bounds(bounds), router, stop.clone()));
    (address.port(), stop.drop_guard())
}

#[tokio::test]
async fn requests_and_sockets_go_through_tls_to_a_believed_door() {
    let papers = Papers::new();
    let (port, _stop) = door(papers.identity(), Bounds::default()).await;
    let trust = Trust::with_ca(&papers.path("ca.pem")).unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let client =
            Client::trusting(Target::of_url(&format!("https://{host}:{port}")).unwrap(), trust.clone());
        assert_eq!(client.get::<Value>("/").await.unwrap(), json!("hello"));
        let ticket = Secret::from("T".to_owned());
        let socket = client.upgrade("/socket", &ticket, socket::Bounds::default()).await.unwrap();
        let (mut reader, writer) = socket.split();
        let large = "x".repeat(1 << 20);
        writer.send(large.clone()).await.unwrap();
        assert!(reader.next().await.unwrap().as_str() == large);
    }
}

#[tokio::test]
async fn a_door_nobody_vouches_for_is_not_spoken_to() {
    let papers = Papers::new();
    let (port, _stop) = door(papers.identity(), Bounds::default()).await;
    let target = Target::of_url(&format!("https://localhost:{port}")).unwrap();
    for client in [
        Client::new(target.clone()),
        Client::trusting(target, Trust::with_ca(&Papers::new().path("ca.pem")).unwrap()),
    ] {
        let error = client.get::<Value>("/").await.unwrap_err();
        assert!(
            matches!(&error, ClientError::NotRunning { cause, .. } if cause.contains("certificate")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_caller_that_does_not_speak_tls_or_speaks_slowly_is_closed() {
    let bounds = Bounds { header_timeout: Duration::from_millis(200), ..Bounds::default() };
    let (port, _stop) = door(Papers::new().identity(), bounds).await;
    let plain = Client::new(Target::of_url(&format!("http://127.0.0.1:{port}")).unwrap());
    assert!(matches!(plain.get::<Value>("/").await, Err(ClientError::Broken(_))));
    let mut mute = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut heard = Vec::new();
    mute.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"");
}

#[test]
fn files_that_are_no_papers_are_named() {
    let papers = Papers::new();
    let (cert, key) = (papers.path("cert.pem"), papers.path("key.pem"));
    let empty = papers.write("empty.pem", "");
    assert!(matches!(Identity::load(&empty, &key), Err(TlsError::NoCertificate { .. })));
    assert!(matches!(Identity::load(&papers.path("nowhere"), &key), Err(TlsError::Unreadable { .. })));
    assert!(matches!(Identity::load(&cert, &empty), Err(TlsError::Unreadable { .. })));
    let strange = Papers::new();
    assert!(matches!(Identity::load(&cert, &strange.path("key.pem")), Err(TlsError::Unusable { .. })));
    assert!(matches!(Trust::with_ca(&key), Err(TlsError::NoCertificate { .. })));
}
