//! TLS: the certificate must be the host's, whatever address was dialled.

use std::sync::{Arc, OnceLock};

use model::DeliveryRung;
use net::tls::Trust;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

use super::receiver::{Accept, Receiver, status};
use super::scene::{Scene, Scripted};

#[derive(Clone)]
struct Secured(TlsAcceptor);

impl Accept for Secured {
    type Line = TlsStream<TcpStream>;
    async fn accept(&self, stream: TcpStream) -> Option<Self::Line> {
        self.0.accept(stream).await.ok()
    }
}

/// An endpoint with a certificate for `secure.example`, and a client's trust in it.
async fn endpoint() -> (Receiver, Trust) {
    let made = rcgen::generate_simple_self_signed(vec!["secure.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let receiver =
        Receiver::start_with(vec![status(200, &[])], Secured(TlsAcceptor::from(Arc::new(config)))).await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();
    (receiver, Trust::with_ca(&ca).unwrap())
}

async fn call(receiver: &Receiver, trust: Trust, host: &str) -> (DeliveryRung, Option<String>) {
    let mut scene = Scene::with(&[host], Scripted::new(&[&["127.0.0.1"]])).await;
    scene.webhooks.trust = OnceLock::from(trust);
    scene.hook(&format!("https://{host}:{}/", receiver.address.port())).await;
    let receipt = scene.send("@hook", "m", "hi").await;
    scene.push_due().await;
    (scene.rung(&receipt).await, scene.last_answer(&receipt).await)
}

#[tokio::test]
async fn a_call_is_made_to_who_proves_to_be_the_host_and_to_nobody_else() {
    let (receiver, trust) = endpoint().await;
    let taken = call(&receiver, trust.clone(), "secure.example").await;
    assert_eq!(taken, (DeliveryRung::Delivered, None));
    let not_taken = (DeliveryRung::Accepted, Some("tls".to_owned()));
    assert_eq!(call(&receiver, trust, "other.example").await, not_taken, "another's certificate");
    let stranger = call(&receiver, Trust::public(), "secure.example").await;
    assert_eq!(stranger, not_taken, "nobody vouches for it");
    assert_eq!(receiver.calls().len(), 1);
}
