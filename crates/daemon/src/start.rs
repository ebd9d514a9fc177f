//! From a home to a running daemon, and back.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use net::local::{BindError, Lock, LockError, PathTooLong, bind_unix, lock_exclusive};
use net::serve::{Door, serve};
use tokio::net::TcpListener;

use crate::attach::Attach;
use crate::events::Event;
use crate::ground::{Ground, Slot};
use crate::home::{Home, write_durably};
use crate::ipc::{self, Transport};
use crate::machine::{self, Here};
use crate::settings::{Carrier, MeshEntry, Settings, SettingsError};
use crate::token::LocalToken;
use crate::{Config, Join, JoinError, Joined, OwnMesh, disk, retention};

/// A running daemon.
pub struct Daemon {
    pub(crate) ground: Arc<Ground>,
    socket: PathBuf,
    http: Option<SocketAddr>,
    _lock: Lock,
}

/// Why a daemon did not start. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process is this home's daemon.
    #[error("a daemon already runs for {}", home.display())]
    AlreadyRunning {
        /// The home.
        home: PathBuf,
    },
    /// The home was copied or moved from another machine.
    #[error(
        "this home was made on another machine ({recorded}, this is {found}); \
         if it moved: postrider daemon accept-host; if it was copied: postrider daemon remint"
    )]
    OtherMachine {
        /// Whose it was.
        recorded: String,
        /// What this is.
        found: String,
    },
    /// The home cannot be used.
    #[error("{}: {source}; check the folder and its owner", path.display())]
    Home {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its lock cannot be used.
    #[error(transparent)]
    Lock(LockError),
    /// Its `config.toml` makes no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Its socket has no place.
    #[error(transparent)]
    SocketPath(#[from] PathTooLong),
    /// Its socket cannot be bound.
    #[error(transparent)]
    Socket(#[from] BindError),
}

impl Daemon {
    /// Takes the home, opens its meshes and its doors. Needs no network.
    pub async fn start(config: Config) -> Result<Daemon, StartError> {
        let home = Home::at(&config.home);
        home.prepare().map_err(|source| StartError::Home { path: home.root().to_owned(), source })?;
        let lock = lock_exclusive(&home.lock()).map_err(|error| match error {
            LockError::Held { .. } => StartError::AlreadyRunning { home: home.root().to_owned() },
            LockError::Unusable { .. } => StartError::Lock(error),
        })?;
        check_machine(&home, &config)?;
        let mut settings = Settings::read(&home.config())?;
        if let Some(own) = &config.own_mesh {
            enter_own(&home, &mut settings, own, &config)?;
        }
        let token = LocalToken::load_or_create(&home, &*config.entropy)
            .map_err(|source| StartError::Home { path: home.local_token(), source })?;
        let ground = Arc::new(Ground::new(&config, home, token));
        ground.change(|slots| slots.default_mesh = settings.default_mesh.clone());
        let socket = ground.home.socket(config.surroundings.runtime_dir.as_deref())?;
        let listener = bind_unix(&socket, &lock)?;
        for entry in settings.meshes {
            let own = config.own_mesh.as_ref().filter(|own| own.slug == entry.slug);
            let (url, invites) = (own.map(|own| own.url.clone()), own.map(|own| own.invites.clone()));
            ground.attach(Attach { entry, url, invites, person: None }).await;
        }
        let more = config.more_routes;
        let in_container = config.surroundings.container;
        let http = if in_container { None } else { open_http(&ground, more.clone()).await? };
        let unix = ipc::callers(ground.clone(), Transport::Unix, more);
        ground.spawn_door(Door::unix(listener), unix);
        write(&ground.home.pid(), &std::process::id().to_string(), 0o600)?;
        ground.tasks.spawn(disk_looks(ground.clone()));
        ground.tasks.spawn(retention::keep(ground.clone()));
        Ok(Daemon { ground, socket, http, _lock: lock })
    }

    /// The local door's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The local door on loopback TCP; none in a container.
    pub fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Reads `config.toml` again: meshes that are new are attached, those that are gone are left, and the links of
    /// the others stay open.
    pub async fn reload(&self) -> Result<(), SettingsError> {
        self.ground.reload().await
    }

    /// Joins another mesh by invite and attaches it.
    pub async fn join(&self, join: Join) -> Result<Joined, JoinError> {
        self.ground.join(join).await
    }

    /// Until the daemon was asked to stop and has: answers in flight ended, rows durable, files closed.
    pub async fn stopped(self) {
        self.ground.stop.cancelled().await;
        self.ground.tasks.close();
        self.ground.tasks.wait().await;
        let slots = self.ground.change(|slots| std::mem::take(&mut slots.all));
        for slot in slots {
            if let Slot::Open { mesh, .. } = slot {
                mesh.mailbox.clone().close().await;
            }
        }
        for gone in [self.ground.home.pid(), self.ground.home.http_port(), self.socket.clone()] {
            // What is already gone needs no removing, and the next start replaces what stays.
            let _ = std::fs::remove_file(gone);
        }
    }
}

impl Ground {
    fn spawn_door(self: &Arc<Self>, door: Door, callers: ipc::Callers) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let ended = serve(door, callers, stop).await;
            tracing::debug!(cut = ended.cut, "a local door is closed");
        });
    }
}

/// Refuses a home that was another machine's.
fn check_machine(home: &Home, config: &Config) -> Result<(), StartError> {
    let machine_id = config.surroundings.machine_id.as_deref();
    let here = machine::check(home, machine_id, config.clock.now());
    match here.map_err(|source| StartError::Home { path: home.host(), source })? {
        Here::Fine | Here::New => Ok(()),
        Here::Elsewhere { recorded } => {
            Err(StartError::OtherMachine { recorded, found: machine_id.unwrap_or_default().to_owned() })
        }
    }
}

/// The entry of the mesh whose broker runs in this process, made at the first start.
fn enter_own(home: &Home, settings: &mut Settings, own: &OwnMesh, config: &Config) -> Result<(), StartError> {
    if settings.mesh(&own.slug).is_some() {
        return Ok(());
    }
    let node = config.surroundings.node_name();
    settings.put(MeshEntry {
        slug: own.slug.clone(),
        url: own.url.clone(),
        carrier: Carrier::Broker,
        node: node.parse().expect("a sanitised name has a name's form"),
        insecure_lan: false,
        ca: None,
    });
    Ok(settings.write(&home.config())?)
}

/// The port of a process that was killed, when it is free, so that callers that read it find us; else any.
async fn open_http(ground: &Arc<Ground>, more: axum::Router) -> Result<Option<SocketAddr>, StartError> {
    let path = ground.home.http_port();
    let last: Option<u16> = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, last.unwrap_or(0))).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
    };
    let home = |source| StartError::Home { path: path.clone(), source };
    let listener = listener.map_err(home)?;
    let address = listener.local_addr().map_err(home)?;
    write(&path, &address.port().to_string(), 0o644)?;
    let callers = ipc::callers(ground.clone(), Transport::Tcp(address), more);
    ground.spawn_door(Door::tcp(listener), callers);
    Ok(Some(address))
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), StartError> {
    write_durably(path, text.as_bytes(), mode)
        .map_err(|source| StartError::Home { path: path.to_owned(), source })
}

/// Looks at the disk as long as the daemon runs.
async fn disk_looks(ground: Arc<Ground>) {
    let mut warned = false;
    loop {
        let high = ground.look_at_disk().await != disk::Pressure::Low;
        if high && !warned {
            let percent = ground.disk.percent();
            tracing::warn!(percent, "outbox_pressure_high");
            ground.open_meshes().iter().for_each(|mesh| mesh.events.tell(Event::PressureHigh { percent }));
        }
        warned = high;
        tokio::select! {
            () = tokio::time::sleep(disk::LOOK_EVERY) => {}
            () = ground.stop.cancelled() => return,
        }
    }
}
