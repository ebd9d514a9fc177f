//! Joining a mesh by invite, from a running daemon.
//!
//! The key and the mesh's entry are durable before the invite is used up: a crash at any moment leaves either
//! nothing used, or a node that can come back by its key.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mailbox::Fact;
use model::id::sanitise_name;
use model::{ErrorCode, MemberName, MeshId, NodeName};
use net::client::Target;
use net::handshake::{Invite, KeyPair};
use tokio::time::timeout;

use crate::Invites;
use crate::attach::{Attach, client};
use crate::ground::{Ground, Slot};
use crate::home::make_private;
use crate::link::{Credential, LinkEnd, WayIn, write_issuer};
use crate::mesh::{LinkState, Mesh};
use crate::settings::{Carrier, MeshEntry, Settings, SettingsError};

/// How long a join waits for its link.
const JOIN_TIMEOUT: Duration = Duration::from_secs(15);
/// Holds the key until the mesh's alias is known; no mesh can be called so.
const JOINING: &str = ".joining";

/// What to join, and under which names.
#[derive(Clone, Debug)]
pub struct Join {
    /// As `postrider invite` printed it.
    pub invite: Invite,
    /// The mesh's local alias; its own name when none is given.
    pub mesh_as: Option<String>,
    /// This home's node there; the host's name when none is given.
    pub node: Option<NodeName>,
    /// The home's person there; the account's name when none is given.
    pub person: Option<String>,
    /// A plain address off this machine is meant.
    pub insecure_lan: bool,
    /// Certificates to believe beside the public ones.
    pub ca: Option<PathBuf>,
}

/// A mesh joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The local alias.
    pub mesh: String,
    /// The node.
    pub node: NodeName,
    /// The person.
    pub person: MemberName,
}

/// Why a mesh was not joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The address cannot be dialled.
    #[error("{0}")]
    Address(String),
    /// Words would cross a network in the clear.
    #[error("{url} is not on this machine and not encrypted; join with --insecure-lan if that is meant")]
    Plain {
        /// The address.
        url: String,
    },
    /// The alias cannot name a folder.
    #[error("a mesh is called 1 to 63 of a-z 0-9 . _ - beginning with a letter or digit")]
    AliasMalformed,
    /// The alias is another mesh's.
    #[error("this home already calls a mesh {mesh}; give another name with --mesh-as")]
    AliasTaken {
        /// The alias.
        mesh: String,
    },
    /// This home is in that mesh.
    #[error("this home is already in that mesh, as {mesh}")]
    AlreadyJoined {
        /// The local alias.
        mesh: String,
    },
    /// This home is not in that mesh.
    #[error("this home is in no mesh called {mesh}")]
    NotAttached {
        /// The local alias.
        mesh: String,
    },
    /// The broker said no.
    #[error("{code}: {message}")]
    Refused {
        /// What it said.
        code: ErrorCode,
        /// In its words.
        message: String,
    },
    /// The broker did not answer, or not in time.
    #[error("{0}")]
    Unreachable(String),
    /// The home's files.
    #[error("{0}")]
    Files(String),
    /// The home's `config.toml`.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// An invite that is there once.
struct Once(Mutex<Option<Invite>>);

#[async_trait]
impl Invites for Once {
    async fn fresh(&self) -> Option<Invite> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Ground {
    /// Joins, attaches and waits for the link.
    pub(crate) async fn join(self: &Arc<Self>, join: Join) -> Result<Joined, JoinError> {
        // One at a time: two joins must not choose one alias.
        let _turn = self.joining.lock().await;
        check_address(&join)?;
        let settings = Settings::read(&self.home.config())?;
        let entry = self.prepare(&join, settings).await?;
        let slug = entry.slug.clone();
        let invites: Arc<dyn Invites> = Arc::new(Once(Mutex::new(Some(join.invite.clone()))));
        let attach = Attach { entry, url: None, invites: Some(invites), person: join.person.clone() };
        match self.attach(attach).await {
            Slot::Open { mesh, .. } => match linked(&mesh).await {
                Ok(person) => Ok(Joined { mesh: slug, node: mesh.node.clone(), person }),
                Err(error @ JoinError::Refused { .. }) => {
                    self.forget(&slug).await?;
                    Err(error)
                }
                Err(error) => Err(error),
            },
            Slot::Shut { problem, .. } => Err(JoinError::Files(problem)),
        }
    }

    /// Leaves a mesh: its link ends and it is no longer attached. Its folder stays, with its rows and its key.
    pub(crate) async fn leave(&self, slug: &str) -> Result<(), JoinError> {
        let _turn = self.joining.lock().await;
        let mut settings = Settings::read(&self.home.config())?;
        if settings.mesh(slug).is_none() {
            return Err(JoinError::NotAttached { mesh: slug.to_owned() });
        }
        settings.remove(slug);
        settings.write(&self.home.config())?;
        self.change(|slots| slots.default_mesh = settings.default_mesh.clone());
        self.detach(slug).await;
        Ok(())
    }

    /// Asks the broker which mesh it is, then makes key, entry and trust durable. The invite is not used up yet.
    async fn prepare(&self, join: &Join, mut settings: Settings) -> Result<MeshEntry, JoinError> {
        let node = match &join.node {
            Some(node) => node.clone(),
            None => self.surroundings.node_name().parse().expect("a sanitised name has a name's form"),
        };
        let (key, target) = (self.joining_key()?, target(&join.invite)?);
        let way = WayIn {
            client: client(target, join.ca.as_deref()).map_err(JoinError::Files)?,
            node: node.clone(),
            key,
            person: join.person.clone(),
            entropy: self.entropy.clone(),
        };
        let answer = way.exchange(&join.invite.issuer_key, Credential::Invite(&join.invite.token)).await;
        let mesh = answer.map_err(refused)?.mesh;
        self.refuse_known(mesh.id).await?;
        let slug = self.alias(join, &settings, &mesh.slug)?;
        let entry = MeshEntry {
            slug,
            url: join.invite.url.clone(),
            carrier: Carrier::Broker,
            node,
            insecure_lan: join.insecure_lan,
            ca: join.ca.clone(),
        };
        self.store(&entry, join).await?;
        settings.put(entry.clone());
        settings.write(&self.home.config())?;
        self.change(|slots| slots.default_mesh = settings.default_mesh.clone());
        Ok(entry)
    }

    /// A key for a mesh whose name is not known yet. One left by a join that was cut off is used again.
    fn joining_key(&self) -> Result<KeyPair, JoinError> {
        let folder = self.home.mesh(JOINING);
        make_private(&folder).map_err(files)?;
        KeyPair::load_or_create(&self.home.keypair(JOINING), &*self.entropy).map_err(files)
    }

    async fn refuse_known(&self, id: MeshId) -> Result<(), JoinError> {
        for mesh in self.open_meshes() {
            if mesh.mailbox.meta().await.map_err(files)?.mesh == Some(id) {
                return Err(JoinError::AlreadyJoined { mesh: mesh.slug.clone() });
            }
        }
        Ok(())
    }

    /// The folder decides too: one that a mesh left behind holds that mesh's rows.
    fn alias(&self, join: &Join, settings: &Settings, own_name: &str) -> Result<String, JoinError> {
        let taken = |slug: &str| settings.mesh(slug).is_some() || self.home.mesh(slug).exists();
        match &join.mesh_as {
            Some(wanted) if taken(wanted) => Err(JoinError::AliasTaken { mesh: wanted.clone() }),
            Some(wanted) => {
                let legal = wanted.parse::<NodeName>().map_err(|_| JoinError::AliasMalformed)?;
                Ok(legal.to_string())
            }
            None => Ok(free_name(&sanitise_name(own_name, "mesh"), taken)),
        }
    }

    /// The key takes its place and the issuer is trusted, before the invite is used up.
    async fn store(&self, entry: &MeshEntry, join: &Join) -> Result<(), JoinError> {
        std::fs::rename(self.home.mesh(JOINING), self.home.mesh(&entry.slug)).map_err(files)?;
        std::fs::File::open(self.home.daemon()).and_then(|folder| folder.sync_all()).map_err(files)?;
        write_issuer(&self.home.issuer(&entry.slug), join.invite.issuer_key).map_err(files)?;
        let mailbox = self.open_mailbox(&entry.slug).await.map_err(JoinError::Files)?;
        let facts = vec![Fact::IssuerKey(join.invite.issuer_key), Fact::Node(entry.node.clone())];
        let kept = mailbox.put_meta(facts).await;
        mailbox.close().await;
        kept.map_err(files)
    }

    /// Undoes a join the broker refused: nothing was used up and nobody knows this node.
    async fn forget(&self, slug: &str) -> Result<(), JoinError> {
        self.detach(slug).await;
        let mut settings = Settings::read(&self.home.config())?;
        settings.remove(slug);
        settings.write(&self.home.config())?;
        std::fs::remove_dir_all(self.home.mesh(slug)).map_err(files)
    }
}

/// `wanted`, or `wanted-2`, `wanted-3` … when it is taken.
fn free_name(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|n| format!("{wanted}-{n}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(|name| !taken(name)).expect("the numbers do not end")
}

fn files(error: impl std::fmt::Display) -> JoinError {
    JoinError::Files(error.to_string())
}

/// Until the link is open, or will not be.
async fn linked(mesh: &Mesh) -> Result<MemberName, JoinError> {
    let mut link = mesh.watch_link();
    let settled = link.wait_for(|view| !matches!(view.state, LinkState::Away { .. }));
    match timeout(JOIN_TIMEOUT, settled).await {
        Ok(Ok(view)) => match &view.state {
            LinkState::Live => {}
            LinkState::Away { .. } => return Err(JoinError::Unreachable("the link is away".to_owned())),
            LinkState::Parked { reason, detail } => {
                let code = ErrorCode::parse(reason).unwrap_or(ErrorCode::Forbidden);
                return Err(JoinError::Refused { code, message: detail.clone() });
            }
        },
        Ok(Err(_)) | Err(_) => {
            let message = "the broker did not answer in time; the daemon goes on trying";
            return Err(JoinError::Unreachable(message.to_owned()));
        }
    }
    let person = mesh.person().map(|person| person.name);
    person
        .ok_or_else(|| JoinError::Unreachable("the broker did not say who this home's person is".to_owned()))
}

fn refused(end: LinkEnd) -> JoinError {
    match end {
        LinkEnd::Refused { code, message, .. } => JoinError::Refused { code, message },
        LinkEnd::IssuerChanged => JoinError::Refused {
            code: ErrorCode::Forbidden,
            message: "the answer was not signed by the key the invite names; do not trust that address"
                .to_owned(),
        },
        LinkEnd::Lost(_)
        | LinkEnd::Closed { .. }
        | LinkEnd::AnswerLate
        | LinkEnd::Terms(_)
        | LinkEnd::Storage(_)
        | LinkEnd::StorageStopped(_)
        | LinkEnd::Stopped => JoinError::Unreachable(end.to_string()),
    }
}

/// Off this machine, words and tickets in the clear must be meant.
fn check_address(join: &Join) -> Result<(), JoinError> {
    let target = target(&join.invite)?;
    let plain = target.to_string().starts_with("http://");
    let local = match &target {
        Target::Tcp { host, .. } => {
            host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        Target::Unix(_) => true,
    };
    if plain && !local && !join.insecure_lan {
        return Err(JoinError::Plain { url: join.invite.url.clone() });
    }
    Ok(())
}

fn target(invite: &Invite) -> Result<Target, JoinError> {
    Target::of_url(&invite.url).map_err(|error| JoinError::Address(error.to_string()))
}
