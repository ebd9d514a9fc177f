//! A home in a temporary folder and callers of its door.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use daemon::home::Home as Files;
use daemon::{Config, Daemon, FreeSpace, OwnMesh, StartError, Surroundings};
use http::{HeaderName, Method};
use mailbox::Mailbox;
use model::{Clock, OsEntropy, SystemClock};
use net::Secret;
use net::client::{Ask, Client, ClientError, Target};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::broker::{Broker, Letting, SOON};

/// A home and its running daemon.
pub struct Home {
    folder: TempDir,
    broker: Broker,
    clock: Arc<dyn Clock>,
    /// What the next start finds around itself.
    pub surroundings: Surroundings,
    /// The disk as the daemon measures it.
    pub disk: Arc<ScriptedDisk>,
    running: Option<(Daemon, CancellationToken)>,
}

/// A disk with as much room as a test says; endless at first.
pub struct ScriptedDisk(AtomicU64);

impl Default for ScriptedDisk {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl ScriptedDisk {
    pub fn leave(&self, free_bytes: u64) {
        self.0.store(free_bytes, SeqCst);
    }
}

impl FreeSpace for ScriptedDisk {
    fn free_bytes(&self, _folder: &Path) -> io::Result<u64> {
        Ok(self.0.load(SeqCst))
    }
}

/// An answer with its status, whatever it is.
#[derive(Debug, PartialEq)]
pub struct Said {
    pub status: u16,
    pub body: Value,
}

impl Home {
    /// A home whose daemon runs, as `postrider up` would start it beside `broker`.
    pub async fn of(broker: &Broker) -> Self {
        Self::with_clock(broker, Arc::new(SystemClock::start())).await
    }

    pub async fn with_clock(broker: &Broker, clock: Arc<dyn Clock>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            host: "mbp".to_owned(),
            account: "jane".to_owned(),
            machine_id: Some("linux:one".to_owned()),
            ..Surroundings::default()
        };
        let disk = Arc::new(ScriptedDisk::default());
        let mut home = Self { folder, broker: broker.clone(), clock, surroundings, disk, running: None };
        home.start().await;
        home
    }

    /// A home that has joined and is linked.
    pub async fn linked() -> (Broker, Self) {
        let broker = Broker::start().await;
        let home = Self::of(&broker).await;
        home.until_live().await;
        (broker, home)
    }

    pub async fn start(&mut self) {
        let stop = CancellationToken::new();
        let daemon = Daemon::start(self.config(stop.clone())).await.expect("the daemon starts");
        self.running = Some((daemon, stop));
    }

    pub async fn try_start(&self) -> Result<Daemon, StartError> {
        Daemon::start(self.config(CancellationToken::new())).await
    }

    /// Stops the daemon gracefully.
    pub async fn stop(&mut self) {
        let (daemon, stop) = self.running.take().expect("the daemon runs");
        stop.cancel();
        tokio::time::timeout(SOON, daemon.stopped()).await.expect("the daemon stops");
    }

    /// Until the daemon stopped by itself.
    pub async fn stopped(&mut self) {
        let (daemon, _) = self.running.take().expect("the daemon runs");
        tokio::time::timeout(SOON, daemon.stopped()).await.expect("the daemon stops");
    }

    pub fn daemon(&self) -> &Daemon {
        &self.running.as_ref().expect("the daemon runs").0
    }

    pub fn files(&self) -> Files {
        Files::at(self.folder.path())
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn mailbox_path(&self) -> PathBuf {
        self.files().mailbox("home")
    }

    /// The mailbox of a home whose daemon does not run.
    pub fn mailbox(&self) -> Mailbox {
        assert!(self.running.is_none(), "the daemon holds the mailbox");
        Mailbox::open(self.mailbox_path(), Arc::new(OsEntropy)).unwrap()
    }

    fn config(&self, stop: CancellationToken) -> Config {
        Config {
            home: self.folder.path().to_owned(),
            clock: self.clock.clone(),
            entropy: Arc::new(OsEntropy),
            version: "0.0.0-test".to_owned(),
            roles: vec!["daemon".to_owned()],
            page_url: None,
            own_mesh: Some(OwnMesh {
                slug: "home".to_owned(),
                url: self.broker.url(),
                invites: Arc::new(Letting(self.broker.clone())),
            }),
            more_routes: axum::Router::new(),
            surroundings: self.surroundings.clone(),
            free_space: self.disk.clone(),
            stores: sqlite::Stores::default(),
            stop,
        }
    }

    /// A caller on the socket.
    pub fn unix(&self) -> Caller {
        Caller { client: Client::new(Target::Unix(self.daemon().socket().to_owned())) }
    }

    /// A caller on loopback TCP with the home's token.
    pub fn tcp(&self) -> Caller {
        let token = self.files().read_token().unwrap();
        Caller { client: self.tcp_client().with_bearer(&token) }
    }

    /// A caller on loopback TCP without any token.
    pub fn stranger(&self) -> Caller {
        Caller { client: self.tcp_client() }
    }

    /// An agent on the socket.
    pub fn agent(&self, token: &str) -> Caller {
        Caller { client: self.unix().client.with_bearer(&Secret::from(token.to_owned())) }
    }

    fn tcp_client(&self) -> Client {
        let address = self.daemon().http().expect("the daemon listens on loopback");
        Client::new(Target::of_url(&format!("http://{address}")).unwrap())
    }

    /// Until the link is open.
    pub async fn until_live(&self) {
        self.until_link("live").await;
    }

    /// Until the link is in that state; the mesh's health.
    pub async fn until_link(&self, state: &str) -> Value {
        let caller = self.unix();
        let mut mesh = Value::Null;
        let found = async {
            while mesh["link"] != state {
                mesh = caller.get("/v1/health").await.body["meshes"][0].clone();
                look_again().await;
            }
        };
        let waited = tokio::time::timeout(SOON, found).await;
        assert!(waited.is_ok(), "the link does not become {state}: {mesh}");
        mesh
    }

    /// Until a message's life is `enough`.
    pub async fn until_life(&self, id: &str, enough: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let life = self.unix().get(&format!("/v1/messages/{id}")).await.body;
                if enough(&life) {
                    return life;
                }
                look_again().await;
            }
        };
        tokio::time::timeout(SOON, found).await.unwrap_or_else(|_| panic!("{id} does not get there"))
    }

    /// Until a row has reached a rung or ended.
    pub async fn until_rung(&self, id: &str, rung: &str) -> Value {
        let said = self.unix().get(&format!("/v1/messages/{id}?rung={rung}&wait=60")).await;
        assert_eq!(said.status, 200, "{said:?}");
        said.body
    }
}

/// Between two looks through the door: a loop without it would take the processor from what it waits for.
pub async fn look_again() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// Somebody who calls the local door.
#[derive(Clone)]
pub struct Caller {
    client: Client,
}

impl Caller {
    pub async fn get(&self, path: &str) -> Said {
        self.ask(Ask::new(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Said {
        self.ask(Ask::new(Method::POST, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Said {
        self.ask(Ask::new(Method::DELETE, path)).await
    }

    pub async fn post_with(&self, path: &str, header: (&'static str, &str), body: &Value) -> Said {
        let (name, value) = header;
        self.ask(Ask::new(Method::POST, path).header(HeaderName::from_static(name), value).json(body)).await
    }

    pub async fn get_with(&self, path: &str, header: (&'static str, &str)) -> Said {
        let (name, value) = header;
        self.ask(Ask::new(Method::GET, path).header(HeaderName::from_static(name), value)).await
    }

    /// Sends `body` under `id`.
    pub async fn send(&self, id: &str, to: &str, body: &str) -> Said {
        self.post("/v1/send", &json!({"to": to, "body": body, "client_message_id": id})).await
    }

    async fn ask(&self, ask: Ask) -> Said {
        match self.client.ask(ask.timeout(SOON * 2)).await {
            Ok(answer) => {
                let body = answer.json().unwrap_or_else(|_| json!(String::from_utf8_lossy(&answer.body)));
                Said { status: answer.status.as_u16(), body }
            }
            Err(ClientError::Refused { status, body, .. }) => {
                Said { status, body: serde_json::to_value(&*body).unwrap() }
            }
            Err(error) => panic!("no answer: {error}"),
        }
    }
}
