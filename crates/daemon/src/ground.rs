//! What the local door stands on: the home's meshes, its tokens, and who acts in a request.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use mailbox::Member;
use model::{Clock, Entropy, ErrorCode, MemberName, limits};
use net::respond::Refusal;
use sqlite::Stores;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wire::Refused;

use crate::disk::{Disk, MailboxBytes, Pressure};
use crate::home::Home;
use crate::mesh::Mesh;
use crate::metrics::IpcTally;
use crate::token::LocalToken;
use crate::{Config, Surroundings};

/// Shared by every request.
pub(crate) struct Ground {
    pub(crate) home: Home,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) version: String,
    pub(crate) roles: Vec<String>,
    pub(crate) page_url: Option<String>,
    pub(crate) token: LocalToken,
    pub(crate) ipc: IpcTally,
    pub(crate) disk: Disk,
    /// Event streams that may still be opened.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) surroundings: Surroundings,
    pub(crate) stores: Stores,
    pub(crate) stop: CancellationToken,
    /// Everything that must end before the daemon has stopped.
    pub(crate) tasks: TaskTracker,
    /// Held while a mesh is joined or left.
    pub(crate) joining: tokio::sync::Mutex<()>,
    started: Duration,
    slots: RwLock<Slots>,
}

/// The home's meshes.
#[derive(Default)]
pub(crate) struct Slots {
    pub(crate) default_mesh: Option<String>,
    pub(crate) all: Vec<Slot>,
}

/// One mesh, usable or not.
#[derive(Clone)]
pub(crate) enum Slot {
    /// Its mailbox is open.
    Open {
        mesh: Arc<Mesh>,
        /// Tries a parked or waiting link again now.
        resume: Arc<Notify>,
        /// Ends this mesh's link alone.
        leave: CancellationToken,
    },
    /// Its mailbox cannot be used; the rest of the home goes on.
    Shut { slug: String, node: String, problem: String },
}

/// Who calls, as the listener and the token say.
#[derive(Clone)]
pub(crate) enum Caller {
    /// The account this home belongs to.
    Operator,
    /// One agent at home here, and nothing else.
    Agent { mesh: Arc<Mesh>, member: Member },
}

/// As whom a request acts.
pub(crate) struct Actor {
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) member: Member,
    /// Whether the caller is this member, not an operator acting as it: only then is mail handed over.
    pub(crate) own: bool,
}

impl Ground {
    /// The ground of a daemon that starts now.
    pub(crate) fn new(config: &Config, home: Home, token: LocalToken) -> Self {
        Self {
            disk: Disk::of(home.root().to_owned(), config.free_space.clone()),
            home,
            clock: config.clock.clone(),
            entropy: config.entropy.clone(),
            version: config.version.clone(),
            roles: config.roles.clone(),
            page_url: config.page_url.clone(),
            token,
            ipc: IpcTally::default(),
            streams: Arc::new(Semaphore::new(limits::EVENT_STREAMS_MAX)),
            surroundings: config.surroundings.clone(),
            stores: config.stores.clone(),
            stop: config.stop.clone(),
            tasks: TaskTracker::new(),
            joining: tokio::sync::Mutex::default(),
            started: config.clock.monotonic(),
            slots: RwLock::default(),
        }
    }

    /// Since the start.
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.started)
    }

    /// The meshes as they are now.
    pub(crate) fn slots(&self) -> RwLockReadGuard<'_, Slots> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes which meshes there are.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Slots) -> T) -> T {
        change(&mut self.slots.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Every mesh whose mailbox is open.
    pub(crate) fn open_meshes(&self) -> Vec<Arc<Mesh>> {
        self.slots().all.iter().filter_map(Slot::mesh).collect()
    }

    /// Measures the disk and the mailboxes on it now.
    pub(crate) async fn look_at_disk(&self) -> Pressure {
        let mut bytes = MailboxBytes::default();
        for mesh in self.open_meshes() {
            match (mesh.mailbox.bytes_in_use().await, mesh.mailbox.bytes_reusable().await) {
                (Ok(used), Ok(reusable)) => {
                    bytes.used += used;
                    bytes.reusable += reusable;
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::warn!(mesh = mesh.slug, %error, "a mailbox's size cannot be told");
                }
            }
        }
        self.disk.look(bytes)
    }

    /// The mesh a request means: the named one, else the default, else the only one.
    pub(crate) fn mesh(&self, named: Option<&str>) -> Result<Arc<Mesh>, Refusal> {
        let slots = self.slots();
        let wanted = named.or(slots.default_mesh.as_deref());
        let slot = match (wanted, &slots.all[..]) {
            (Some(slug), all) => all.iter().find(|slot| slot.slug() == slug),
            (None, [only]) => Some(only),
            (None, []) => None,
            (None, all) => {
                let attached: Vec<&str> = all.iter().map(Slot::slug).collect();
                return Err(Refused::plain(ErrorCode::MeshRequired).with("attached", attached).into());
            }
        };
        match slot {
            Some(Slot::Open { mesh, .. }) => Ok(mesh.clone()),
            Some(Slot::Shut { problem, .. }) => Err(Refusal::new(ErrorCode::StorageStopped, problem.clone())),
            None => Err(Refusal::plain(ErrorCode::MeshNotAttached)),
        }
    }

    /// As whom `caller` acts in the mesh `named`; `acting_as` is the Postrider-As line.
    pub(crate) fn act(
        &self,
        caller: &Caller,
        named: Option<&str>,
        acting_as: Option<&str>,
    ) -> Result<Actor, Refusal> {
        match (caller, acting_as) {
            (Caller::Agent { .. }, Some(_)) => {
                Err(Refusal::new(ErrorCode::Forbidden, "An agent's token acts as that agent alone."))
            }
            (Caller::Agent { mesh, member }, None) => {
                if named.is_some_and(|named| named != mesh.slug) {
                    return Err(Refusal::plain(ErrorCode::Forbidden));
                }
                Ok(Actor { mesh: mesh.clone(), member: member.clone(), own: true })
            }
            (Caller::Operator, None) => {
                let mesh = self.mesh(named)?;
                let member = mesh.person().ok_or_else(not_joined)?;
                Ok(Actor { mesh, member, own: true })
            }
            (Caller::Operator, Some(name)) => {
                let mesh = self.mesh(named)?;
                let name: MemberName = name.strip_prefix('@').unwrap_or(name).parse()?;
                let member = mesh.member(&name).ok_or_else(|| Refusal::plain(ErrorCode::NotAtHome))?;
                Ok(Actor { mesh, member, own: false })
            }
        }
    }
}

fn not_joined() -> Refusal {
    Refusal::new(ErrorCode::Unavailable, "This home has not joined the mesh yet; postrider status shows why.")
}

impl Slot {
    /// The local alias.
    pub(crate) fn slug(&self) -> &str {
        match self {
            Slot::Open { mesh, .. } => &mesh.slug,
            Slot::Shut { slug, .. } => slug,
        }
    }

    /// The mesh, when it is usable.
    pub(crate) fn mesh(&self) -> Option<Arc<Mesh>> {
        match self {
            Slot::Open { mesh, .. } => Some(mesh.clone()),
            Slot::Shut { .. } => None,
        }
    }
}

impl Caller {
    /// Refuses what only the home's owner may do.
    pub(crate) fn must_be_operator(&self) -> Result<(), Refusal> {
        match self {
            Caller::Operator => Ok(()),
            Caller::Agent { .. } => Err(Refusal::plain(ErrorCode::Forbidden)),
        }
    }
}
