//! Handing requests on as they are.

use std::sync::Arc;

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use model::limits;

use super::dial::Dial;
use super::{ClientError, Target};
use crate::tls::Trust;

/// Hands requests on to one door: bodies are streamed both ways, connections are kept. Clones share them.
#[derive(Clone)]
pub struct Pass {
    target: Arc<Target>,
    http: legacy::Client<Dial, Body>,
}

impl Pass {
    /// To the door at `target`; `trust` says whose certificates are believed, else the public authorities'.
    pub fn to(target: Target, trust: Option<Trust>) -> Self {
        let target = Arc::new(target);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            // Well before the door would close it, or a request could meet the close on its way.
            .pool_idle_timeout(limits::IDLE_TIMEOUT / 2)
            .build(Dial::new(target.clone(), trust));
        Self { target, http }
    }

    /// Sends `request`, whose address is only a path and query: they follow the door's own. No bound of time is
    /// set here. `NotRunning` means that no byte of it left.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, ClientError> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = self.target.uri(path)?;
        self.http.request(request).await.map_err(|error| match ClientError::of(&self.target, &error) {
            // Only dialling has a bound of time here.
            ClientError::Timeout => ClientError::NotRunning {
                target: self.target.to_string(),
                cause: "connecting took too long".to_owned(),
            },
            other => other,
        })
    }

    /// The door.
    pub fn target(&self) -> &Target {
        &self.target
    }
}
