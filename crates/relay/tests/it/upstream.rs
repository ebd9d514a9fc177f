//! A hub small enough to read, with the faults of a network in front of it.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// What happens to requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// Taken, never answered, not applied.
    Stall,
    /// Applied, then the connection is cut.
    CutAfter,
    /// Taken and kept; the connection is cut. [`Upstream::release`] applies it later.
    Hold,
    /// Answered so, not applied.
    Status(u16),
    /// Applied twice, as by a network that duplicates.
    Twice,
    /// Applied after a while.
    Slow(Duration),
}

#[derive(Clone, Debug)]
pub struct Letter {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

#[derive(Default)]
pub struct Books {
    pub records: BTreeMap<String, (u64, Value)>,
    /// Applied writes in order: key and body.
    pub applied: Vec<(String, Value)>,
    keys: HashMap<String, Option<(u16, u64)>>,
    held: Vec<Letter>,
    pub seen: Vec<Letter>,
}

pub struct Upstream {
    pub address: SocketAddr,
    pub books: Arc<Mutex<Books>>,
    fault: Arc<Mutex<Fault>>,
    instance: Arc<Mutex<String>>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

impl Upstream {
    pub async fn start() -> Self {
        let upstream = Self {
            address: ([127, 0, 0, 1], 0).into(),
            books: Arc::default(),
            fault: Arc::new(Mutex::new(Fault::None)),
            instance: Arc::new(Mutex::new("hub-1".into())),
            serving: Mutex::new(None),
        };
        let listener = TcpListener::bind(upstream.address).await.unwrap();
        let upstream = Self { address: listener.local_addr().unwrap(), ..upstream };
        upstream.serve(listener);
        upstream
    }

    fn serve(&self, listener: TcpListener) {
        let (books, fault, instance) = (self.books.clone(), self.fault.clone(), self.instance.clone());
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (books, fault, instance) = (books.clone(), fault.clone(), instance.clone());
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        meet(request, books.clone(), fault.clone(), instance.lock().unwrap().clone())
                    });
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        *self.serving.lock().unwrap() = Some(serving);
    }

    /// Connections are refused from now on, and open ones are cut.
    pub async fn leave(&self) {
        let serving = self.serving.lock().unwrap().take();
        if let Some(serving) = serving {
            serving.abort();
            let _ = serving.await;
        }
    }

    /// Back at the same address.
    pub async fn come_back(&self) {
        self.set(Fault::None);
        if self.serving.lock().unwrap().is_none() {
            self.serve(TcpListener::bind(self.address).await.unwrap());
        }
    }

    pub fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub fn call_itself(&self, name: &str) {
        *self.instance.lock().unwrap() = name.to_owned();
    }

    /// Applies what the network held back; answers with the statuses.
    pub fn release(&self) -> Vec<u16> {
        let mut books = self.books.lock().unwrap();
        let held = std::mem::take(&mut books.held);
        held.iter().map(|copy| apply(&mut books, copy).0).collect()
    }

    /// Somebody else writes.
    pub fn write(&self, path: &str, body: Value) -> u64 {
        let mut books = self.books.lock().unwrap();
        let version = books.records.get(path).map_or(0, |(version, _)| *version) + 1;
        books.records.insert(path.to_owned(), (version, body));
        version
    }

    pub fn applied(&self, key: &str) -> usize {
        self.books.lock().unwrap().applied.iter().filter(|(applied, _)| applied == key).count()
    }

    pub fn record(&self, path: &str) -> Option<Value> {
        self.books.lock().unwrap().records.get(path).map(|(_, body)| body.clone())
    }
}

async fn meet(
    request: Request<Incoming>,
    books: Arc<Mutex<Books>>,
    fault: Arc<Mutex<Fault>>,
    instance: String,
) -> Result<Response<Body>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().trim_end_matches('/').to_owned();
    if path == "/health" {
        let fault = *fault.lock().unwrap();
        return match fault {
            Fault::Stall => std::future::pending().await,
            Fault::Status(status @ 502..=504) => Ok(answer(status, None, &json!({}))),
            _ => Ok(answer(200, None, &json!({"status": "ok", "instance": instance}))),
        };
    }
    if path == "/endless" {
        let stream =
            futures_util::stream::repeat_with(|| Ok::<_, Infallible>(bytes::Bytes::from(vec![b'x'; 65_536])));
        return Ok(Response::new(Body::from_stream(stream)));
    }
    let body = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()));
    let copy = Letter { method: parts.method.to_string(), path, headers: headers.collect(), body };
    books.lock().unwrap().seen.push(copy.clone());
    if let Some(key) = copy.path.strip_prefix("/idempotency/") {
        return Ok(fence(&mut books.lock().unwrap(), key));
    }
    let cut = || Err(std::io::ErrorKind::ConnectionReset.into());
    let now = *fault.lock().unwrap();
    match now {
        Fault::None => {}
        Fault::Stall => return std::future::pending().await,
        Fault::CutAfter => {
            apply(&mut books.lock().unwrap(), &copy);
            return cut();
        }
        Fault::Hold => {
            books.lock().unwrap().held.push(copy);
            return cut();
        }
        Fault::Status(status) => return Ok(answer(status, None, &json!({"error": "planted"}))),
        Fault::Twice => {
            apply(&mut books.lock().unwrap(), &copy);
        }
        Fault::Slow(pause) => tokio::time::sleep(pause).await,
    }
    let (status, version, said) = apply(&mut books.lock().unwrap(), &copy);
    Ok(answer(status, version, &said))
}

fn fence(books: &mut Books, key: &str) -> Response<Body> {
    let state = match books.keys.get(key) {
        Some(Some(_)) => "committed",
        Some(None) => "retired",
        None => {
            books.keys.insert(key.to_owned(), None);
            "retired"
        }
    };
    answer(200, None, &json!({"key": key, "state": state}))
}

/// One transaction: known key, precondition, effect.
fn apply(books: &mut Books, copy: &Letter) -> (u16, Option<u64>, Value) {
    if copy.method == "GET" {
        return match books.records.get(&copy.path) {
            Some((version, body)) => (200, Some(*version), body.clone()),
            None => (404, None, json!({"error": "not_found"})),
        };
    }
    let header = |name: &str| copy.headers.get(name).cloned();
    let key = header("idempotency-key").unwrap_or_default();
    match books.keys.get(&key) {
        Some(Some((status, version))) => return (*status, Some(*version), json!({"replayed": true})),
        Some(None) => return (409, None, json!({"error": "idempotency_key_retired"})),
        None => {}
    }
    let current = books.records.get(&copy.path).map_or(0, |(version, _)| *version);
    if let Some(wanted) = header("if-match")
        && wanted != format!("\"{current}\"")
    {
        return (409, None, json!({"error": "state_conflict", "current_version": current}));
    }
    let body: Value = serde_json::from_slice(&copy.body).unwrap_or_default();
    if body["invalid"] == true {
        return (422, None, json!({"error": "invalid"}));
    }
    let version = current + 1;
    if copy.method == "DELETE" {
        books.records.remove(&copy.path);
    } else {
        books.records.insert(copy.path.clone(), (version, body.clone()));
    }
    books.applied.push((key.clone(), body));
    if !key.is_empty() {
        books.keys.insert(key, Some((201, version)));
    }
    (201, Some(version), json!({"version": version}))
}

fn answer(status: u16, version: Option<u64>, body: &Value) -> Response<Body> {
    let mut answer = Response::builder().status(status).header("content-type", "application/json");
    if let Some(version) = version {
        answer = answer.header("etag", format!("\"{version}\""));
    }
    answer.body(Body::from(body.to_string())).unwrap()
}

impl Letter {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}
