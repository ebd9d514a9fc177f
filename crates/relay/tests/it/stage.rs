//! A relay on free ports, with hands for callers and operators.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt;
use model::{Clock, OsEntropy, SystemClock, limits};
use net::client::{Pass, Target};
use net::serve::{Answers, Door, serve};
use relay::{Config, Relay};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::upstream::Upstream;

/// Longer than anything here should take.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Stage {
    pub upstream: Upstream,
    pub folder: tempfile::TempDir,
    pub config: Config,
    pub clock: Arc<dyn Clock>,
    running: Option<Running>,
}

struct Running {
    relay: Relay,
    callers: Pass,
    address: SocketAddr,
    operators: Pass,
    stop: CancellationToken,
    doors: Vec<JoinHandle<()>>,
    drainer: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
pub struct Told {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
}

impl Told {
    pub fn code(&self) -> &str {
        self.body["error"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Stage {
    pub async fn open() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let upstream = Upstream::start().await;
        let target = Target::of_url(&format!("http://{}", upstream.address)).unwrap();
        Self::before(upstream, target, Arc::new(SystemClock::start()), change).await
    }

    pub async fn before(
        upstream: Upstream,
        target: Target,
        clock: Arc<dyn Clock>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new(target, folder.path().join("outbox.db"));
        config.answer_timeout = Duration::from_millis(300);
        config.drain_per_second = 5_000;
        change(&mut config);
        let mut stage = Self { upstream, folder, config, clock, running: None };
        stage.start().await;
        stage
    }

    pub async fn start(&mut self) {
        let relay =
            Relay::open(self.config.clone(), Arc::clone(&self.clock), Arc::new(OsEntropy)).await.unwrap();
        let stop = CancellationToken::new();
        let (address, serving) = door(relay.callers(), &stop).await;
        let (operator, operating) = door(relay::operator_router(&relay), &stop).await;
        let doors = vec![serving, operating];
        let (drained, ended) = (relay.clone(), stop.clone());
        let drainer = tokio::spawn(async move { drained.drain(ended).await });
        let to = |address| Pass::to(Target::of_url(&format!("http://{address}")).unwrap(), None);
        self.running = Some(Running {
            relay,
            callers: to(address),
            address,
            operators: to(operator),
            stop,
            doors,
            drainer,
        });
    }

    /// The process ends and everything of it with it.
    pub async fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.stop.cancel();
        for task in running.doors.into_iter().chain([running.drainer]) {
            task.abort();
            let _ = task.await;
        }
        running.relay.close().await;
    }

    /// Tells the relay to stop and waits for the end of its replay.
    pub async fn drainer_ends(mut self) {
        let running = self.running.take().unwrap();
        running.stop.cancel();
        running.drainer.await.unwrap();
    }

    pub fn address(&self) -> SocketAddr {
        self.running.as_ref().unwrap().address
    }

    pub async fn raw(&self, request: Request<Body>) -> http::Response<hyper::body::Incoming> {
        self.running.as_ref().unwrap().callers.send(request, limits::ANSWER_TIMEOUT).await.unwrap()
    }

    pub async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Told {
        told(self.raw(request(method, path, headers, body)).await).await
    }

    pub async fn post(&self, path: &str, key: &str, body: &str) -> Told {
        self.call(Method::POST, path, &[("idempotency-key", key)], body).await
    }

    pub async fn patch(&self, path: &str, key: &str, body: &str) -> Told {
        self.call(Method::PATCH, path, &[("idempotency-key", key)], body).await
    }

    pub async fn operate(&self, method: Method, path: &str, body: &str) -> Told {
        let operators = &self.running.as_ref().unwrap().operators;
        let request = request(method, &format!("/v1/relay{path}"), &[], body);
        told(operators.send(request, limits::ANSWER_TIMEOUT).await.unwrap()).await
    }

    pub async fn status(&self) -> Value {
        self.operate(Method::GET, "/status", "").await.body
    }

    /// Waits until the upstream counts as away.
    pub async fn away(&self) -> Value {
        let look = async {
            loop {
                let status = self.status().await;
                if status["away_seconds"].is_number() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(status) => status,
            Err(_) => panic!("the upstream does not count as away: {}", self.status().await),
        }
    }

    pub async fn replay(&self) -> Told {
        self.operate(Method::POST, "/replay", "{}").await
    }

    /// The envelope of that key.
    pub async fn envelope(&self, key: &str) -> Option<Value> {
        let page = self.operate(Method::GET, "/envelopes?limit=1000&bodies=true", "").await.body;
        page["envelopes"].as_array().unwrap().iter().find(|row| row["idempotency_key"] == key).cloned()
    }

    /// Waits until the envelope of that key stands so.
    pub async fn until(&self, key: &str, status: &str) -> Value {
        let look = async {
            loop {
                match self.envelope(key).await {
                    Some(row) if row["status"] == status => return row,
                    _ => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(row) => row,
            Err(_) => panic!("{key} is not {status}: {:?}", self.envelope(key).await),
        }
    }

    /// Asks for a replay until nothing waits.
    pub async fn drained(&self) -> Value {
        let look = async {
            loop {
                self.replay().await;
                let status = self.status().await;
                if status["queued"].as_u64() == status["blocked"].as_u64() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE * 3, look).await {
            Ok(status) => status,
            Err(_) => panic!("still queued: {}", self.status().await),
        }
    }
}

async fn door(answers: impl Answers, stop: &CancellationToken) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), stop.clone());
    (
        address,
        tokio::spawn(async move {
            let _ = serve(Door::tcp(listener), answers, stop).await;
        }),
    )
}

pub fn request(method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

pub async fn told(answer: http::Response<hyper::body::Incoming>) -> Told {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Told { status: parts.status.as_u16(), headers: parts.headers, body }
}
