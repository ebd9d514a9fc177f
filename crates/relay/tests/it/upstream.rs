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
use model::{Clock, Fingerprint, SystemClock, Timestamp, hub, limits};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use wire::hub::CREATED_HEADER;

/// Connections that wait to be accepted.
const LISTEN_BACKLOG: u32 = 1_024;

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
    /// Refused with secrets in its own words: code, message and tag.
    Leaky,
    /// Applied twice, as by a network that duplicates.
    Twice,
    /// Applied after a while.
    Slow(Duration),
    /// Reads are taken, and answered with what they saw when [`Upstream::answer_reads`] says so.
    LateReads,
    /// Writes are taken, and judged when [`Upstream::judge_write`] says so.
    LateWrites,
}

#[derive(Clone, Debug)]
pub struct Letter {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// How much the answer about a key says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAnswers {
    /// Also which request has the key, and since when.
    #[default]
    WithFingerprint,
    /// Only whether something was committed under it, as hubs said before they named the request.
    StateAlone,
}

#[derive(Clone, Copy, Debug)]
struct StoredKey {
    status: u16,
    version: u64,
    fingerprint: Fingerprint,
    recorded_at: Timestamp,
}

#[derive(Default)]
pub struct Books {
    pub records: BTreeMap<String, (u64, Value)>,
    /// When each record changed last.
    updated_at: HashMap<String, Timestamp>,
    /// Applied writes in order: key and body.
    pub applied: Vec<(String, Value)>,
    /// A key without a stored answer is retired.
    keys: HashMap<String, Option<StoredKey>>,
    pub key_answers: KeyAnswers,
    /// Writes are taken however old they say that they are, as by an API that does not read it.
    pub takes_old: bool,
    clock: Option<Arc<dyn Clock>>,
    held: Vec<Letter>,
    pub seen: Vec<Letter>,
    late_reads: Arc<Notify>,
    late_writes: Arc<Notify>,
}

pub struct Upstream {
    pub address: SocketAddr,
    pub books: Arc<Mutex<Books>>,
    fault: Arc<Mutex<Fault>>,
    instance: Arc<Mutex<String>>,
    serving: Mutex<Option<JoinHandle<()>>>,
    /// Bound to the address and never listening: nobody gets the port while the upstream is away, and whoever connects
    /// then is refused.
    _reserved: TcpSocket,
}

impl Upstream {
    pub async fn start() -> Self {
        let reserved = reusable();
        reserved.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let upstream = Self {
            address: reserved.local_addr().unwrap(),
            books: Arc::default(),
            fault: Arc::new(Mutex::new(Fault::None)),
            instance: Arc::new(Mutex::new("hub-1".into())),
            serving: Mutex::new(None),
            _reserved: reserved,
        };
        upstream.serve();
        upstream
    }

    fn serve(&self) {
        let socket = reusable();
        socket.bind(self.address).unwrap();
        let listener = socket.listen(LISTEN_BACKLOG).unwrap();
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
            self.serve();
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

    /// Answers the read that waits.
    pub fn answer_reads(&self) {
        self.books.lock().unwrap().late_reads.notify_one();
    }

    /// Judges the write that waits, under `fault`.
    pub fn judge_write(&self, fault: Fault) {
        self.set(fault);
        self.books.lock().unwrap().late_writes.notify_one();
    }

    /// Somebody else writes.
    pub fn write(&self, path: &str, body: Value) -> u64 {
        self.books.lock().unwrap().put(path, body)
    }

    /// A request of the same member that does not pass the relay.
    pub fn direct(&self, method: &str, path: &str, key: &str, body: &Value) -> u16 {
        let headers = HashMap::from([("idempotency-key".to_owned(), key.to_owned())]);
        let copy = Letter {
            method: method.to_owned(),
            path: path.trim_end_matches('/').to_owned(),
            headers,
            body: body.to_string().into_bytes(),
        };
        apply(&mut self.books.lock().unwrap(), &copy).0
    }

    /// The record of `path` is stamped in the future, as by a clock that was wrong when it was changed.
    pub fn stamp_ahead(&self, path: &str, ahead: Duration) {
        let mut books = self.books.lock().unwrap();
        let at = books.now() + ahead;
        books.updated_at.insert(path.to_owned(), at);
    }

    /// Its memory of keys ends.
    pub fn forget_keys(&self) {
        self.books.lock().unwrap().keys.clear();
    }

    /// Lives by another clock than the machine's.
    pub fn by(&self, clock: Arc<dyn Clock>) {
        self.books.lock().unwrap().clock = Some(clock);
    }

    pub fn applied(&self, key: &str) -> usize {
        self.books.lock().unwrap().applied.iter().filter(|(applied, _)| applied == key).count()
    }

    pub fn record(&self, path: &str) -> Option<Value> {
        self.books.lock().unwrap().records.get(path).map(|(_, body)| body.clone())
    }
}

/// A socket that may share its address with one that does not listen.
fn reusable() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket
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
            _ => {
                let now = books.lock().unwrap().now().to_string();
                Ok(answer(200, None, &json!({"status": "ok", "instance": instance, "now": now})))
            }
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
        let query = parts.uri.query().unwrap_or_default();
        let created_at = query.split('&').find_map(|part| part.strip_prefix("created=")?.parse().ok());
        return Ok(fence(&mut books.lock().unwrap(), key, created_at));
    }
    let cut = || Err(std::io::ErrorKind::ConnectionReset.into());
    if *fault.lock().unwrap() == Fault::LateWrites && copy.method != "GET" {
        let judged = Arc::clone(&books.lock().unwrap().late_writes);
        judged.notified().await;
    }
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
        Fault::Leaky => {
            let said =
                json!({"error": "ghp_CANARY7abcdefghijklmnop", "message": "Bearer CANARY7abc123DEF456"});
            let mut leaky = answer(422, None, &said);
            leaky
                .headers_mut()
                .insert("etag", http::HeaderValue::from_static("\"ghp_CANARY7abcdefghijklmnop\""));
            return Ok(leaky);
        }
        Fault::Twice => {
            apply(&mut books.lock().unwrap(), &copy);
        }
        Fault::Slow(pause) => tokio::time::sleep(pause).await,
        Fault::LateReads if copy.method == "GET" => {
            let (said, answered) = {
                let mut books = books.lock().unwrap();
                (apply(&mut books, &copy), Arc::clone(&books.late_reads))
            };
            answered.notified().await;
            return Ok(answer(said.0, said.1, &said.2));
        }
        Fault::LateReads | Fault::LateWrites => {}
    }
    let (status, version, said) = apply(&mut books.lock().unwrap(), &copy);
    let mut answer = answer(status, version, &said);
    if status == 201 {
        let changed_at = books.lock().unwrap().changed_at(&copy).to_string();
        answer.headers_mut().insert("postrider-changed-at", changed_at.parse().unwrap());
    }
    Ok(answer)
}

fn fence(books: &mut Books, key: &str, created_at: Option<Timestamp>) -> Response<Body> {
    let now = books.now();
    if !books.keys.contains_key(key)
        && created_at.is_some_and(|created_at| now >= created_at + limits::IDEMPOTENCY_KEPT)
    {
        return answer(200, None, &json!({"key": key, "state": "unknown"}));
    }
    let told = match *books.keys.entry(key.to_owned()).or_insert(None) {
        Some(stored) if books.key_answers == KeyAnswers::WithFingerprint => json!({
            "key": key, "state": "committed", "fingerprint": stored.fingerprint.to_string(),
            "recorded_at": stored.recorded_at.to_string(),
        }),
        Some(_) => json!({"key": key, "state": "committed"}),
        None => json!({"key": key, "state": "retired"}),
    };
    answer(200, None, &told)
}

impl Books {
    fn now(&self) -> Timestamp {
        self.clock.as_ref().map_or_else(|| SystemClock::start().now(), |clock| clock.now())
    }

    fn version(&self, path: &str) -> u64 {
        self.records.get(path).map_or(0, |(version, _)| *version)
    }

    fn put(&mut self, path: &str, body: Value) -> u64 {
        let version = self.version(path) + 1;
        let rising = self.updated_at.get(path).map(|at| *at + Duration::from_micros(1));
        let at = self.now().max(rising.unwrap_or(Timestamp::from_micros(0)));
        self.records.insert(path.to_owned(), (version, body));
        self.updated_at.insert(path.to_owned(), at);
        version
    }

    /// The latest stamp of what the copy changed.
    fn changed_at(&self, copy: &Letter) -> Timestamp {
        let body = serde_json::from_slice(&copy.body).unwrap_or_default();
        let tasks = tasks_of(&body).into_iter().map(|task| named(&task));
        let stamps =
            tasks.chain([record_of(&copy.path)]).filter_map(|path| self.updated_at.get(&path).copied());
        stamps.max().unwrap_or_else(|| self.now())
    }

    /// Whether the record is as the copy's condition says.
    fn fits(&self, path: &str, copy: &Letter) -> bool {
        if let Some(wanted) = copy.header("if-match") {
            return wanted == format!("\"{}\"", self.version(path));
        }
        let since = copy.header("if-unmodified-since").and_then(|since| hub::instant_of(since).ok());
        let updated_at = self.updated_at.get(path);
        since.is_none_or(|since| updated_at.is_none_or(|updated_at| *updated_at <= since))
    }
}

/// The record that a path names: some records have several.
fn record_of(path: &str) -> String {
    match path.strip_suffix("/resolve") {
        Some(decision) => decision.to_owned(),
        None => path.replacen("/workstreams/", "/workplans/", 1),
    }
}

fn tasks_of(body: &Value) -> Vec<Value> {
    body["tasks"].as_array().cloned().unwrap_or_default()
}

fn named(task: &Value) -> String {
    format!("/tasks/{}", task["id"].as_str().unwrap_or_default())
}

/// Changes the tasks that a batch names, all or none.
fn apply_batch(books: &mut Books, copy: &Letter, body: &Value) -> Result<Value, Value> {
    let tasks = tasks_of(body);
    let refused: Vec<Value> = tasks
        .iter()
        .filter(|task| !books.fits(&named(task), copy))
        .map(|task| {
            let current = books.version(&named(task));
            json!({"id": task["id"], "error": "state_conflict", "current_version": current})
        })
        .collect();
    if !refused.is_empty() {
        return Err(json!({"error": "state_conflict", "refused": refused}));
    }
    let changed = tasks.iter().map(|task| {
        let version = books.put(&named(task), task.clone());
        json!({"id": task["id"], "version": version})
    });
    Ok(json!({"tasks": changed.collect::<Vec<_>>()}))
}

/// One transaction: known key, precondition, effect.
fn apply(books: &mut Books, copy: &Letter) -> (u16, Option<u64>, Value) {
    let record = record_of(&copy.path);
    if copy.method == "GET" {
        return match books.records.get(&record) {
            Some((version, body)) => (200, Some(*version), body.clone()),
            None => (404, None, json!({"error": "not_found"})),
        };
    }
    let key = copy.header("idempotency-key").unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&copy.body).unwrap_or_default();
    let path = hub::canonical_path(&format!("/hub{}", copy.path));
    let fingerprint = hub::request_fingerprint(&copy.method, &path, None, Some(&body));
    match books.keys.get(&key) {
        Some(Some(stored)) if stored.fingerprint != fingerprint => {
            return (409, None, json!({"error": "idempotency_key_reused"}));
        }
        Some(Some(stored)) => return (stored.status, Some(stored.version), json!({"replayed": true})),
        Some(None) => return (409, None, json!({"error": "idempotency_key_retired"})),
        None => {
            let created = copy.header(CREATED_HEADER).and_then(|at| at.parse::<Timestamp>().ok());
            if !books.takes_old
                && created.is_some_and(|created_at| books.now() >= created_at + limits::RELAY_AGE_MAX)
            {
                return (422, None, json!({"error": "idempotency_key_expired"}));
            }
        }
    }
    let is_batch = copy.path == "/tasks/bulk-status-sync";
    if !is_batch && !books.fits(&record, copy) {
        let current = books.version(&record);
        return (409, None, json!({"error": "state_conflict", "current_version": current}));
    }
    if body["invalid"] == true {
        return (422, None, json!({"error": "invalid"}));
    }
    let (version, said) = if is_batch {
        match apply_batch(books, copy, &body) {
            Ok(said) => (None, said),
            Err(said) => return (409, None, said),
        }
    } else if copy.method == "DELETE" {
        let version = books.version(&record) + 1;
        books.records.remove(&record);
        (Some(version), json!({"version": version}))
    } else {
        let version = books.put(&record, body.clone());
        (Some(version), json!({"version": version}))
    };
    books.applied.push((key.clone(), body));
    if !key.is_empty() {
        let (version, recorded_at) = (version.unwrap_or_default(), books.now());
        books.keys.insert(key, Some(StoredKey { status: 201, version, fingerprint, recorded_at }));
    }
    (201, version, said)
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
