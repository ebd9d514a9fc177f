//! Attaching a mesh: its files opened, its link kept. What goes wrong shuts that mesh alone.

use std::path::Path;
use std::sync::Arc;

use mailbox::{Mailbox, ShrinkBounds, ShrunkFile};
use net::client::{Client, Target};
use net::handshake::KeyPair;
use net::tls::Trust;
use tokio::sync::Notify;

use crate::Invites;
use crate::ground::{Ground, Slot};
use crate::home::make_private;
use crate::link::{Keeper, WayIn, keep};
use crate::mesh::Mesh;
use crate::recover;
use crate::settings::{Carrier, MeshEntry, Settings, SettingsError};

/// Speaks to a mesh's broker; `ca` names certificates to believe beside the public ones.
pub(crate) fn client(target: Target, ca: Option<&Path>) -> Result<Client, String> {
    match ca {
        None => Ok(Client::new(target)),
        Some(ca) => {
            let trust = Trust::with_ca(ca).map_err(|error| error.to_string())?;
            Ok(Client::trusting(target, trust))
        }
    }
}

/// What attaching needs beside the mesh's entry.
pub(crate) struct Attach {
    pub(crate) entry: MeshEntry,
    /// The live listener's address instead of the entry's.
    pub(crate) url: Option<String>,
    pub(crate) invites: Option<Arc<dyn Invites>>,
    /// The person a first join makes, when one was asked for.
    pub(crate) person: Option<String>,
}

impl Ground {
    /// Opens the mesh and begins to keep its link; the slot says how that went.
    pub(crate) async fn attach(self: &Arc<Self>, attach: Attach) -> Slot {
        let MeshEntry { slug, node, .. } = attach.entry.clone();
        let slot = match self.try_attach(attach).await {
            Ok(slot) => slot,
            Err(problem) => {
                tracing::error!(mesh = slug, problem, "the mesh cannot be opened");
                Slot::Shut { slug: slug.clone(), node: node.to_string(), problem }
            }
        };
        self.change(|slots| {
            slots.all.retain(|known| known.slug() != slug);
            slots.all.push(slot.clone());
        });
        slot
    }

    async fn try_attach(self: &Arc<Self>, attach: Attach) -> Result<Slot, String> {
        let Attach { entry, url, invites, person } = attach;
        match entry.carrier {
            Carrier::Broker => {}
            Carrier::Pipes => return Err("this process runs no gateway for a pipes mesh".to_owned()),
        }
        let target =
            Target::of_url(url.as_deref().unwrap_or(&entry.url)).map_err(|error| error.to_string())?;
        make_private(&self.home.mesh(&entry.slug)).map_err(|error| error.to_string())?;
        let key = KeyPair::load_or_create(&self.home.keypair(&entry.slug), &*self.entropy)
            .map_err(|error| error.to_string())?;
        let (mailbox, issuer) = (self.open_mailbox(&entry.slug).await?, self.home.issuer(&entry.slug));
        let clock = self.clock.clone();
        let mesh = Mesh::over(entry.slug, entry.node.clone(), mailbox, clock, self.entropy.clone()).await;
        let mesh = mesh.map_err(|error| error.to_string())?;
        let resume = Arc::new(Notify::new());
        let leave = self.stop.child_token();
        let way = WayIn {
            client: client(target, entry.ca.as_deref())?,
            node: entry.node,
            key,
            person: Some(person.unwrap_or_else(|| self.surroundings.person_name())),
            entropy: self.entropy.clone(),
        };
        let keeper = Keeper { way, invites, issuer, resume: resume.clone(), version: self.version.clone() };
        self.tasks.spawn(keep(mesh.clone(), keeper, leave.clone()));
        Ok(Slot::Open { mesh, resume, leave })
    }

    /// Follows `config.toml`: attaches what is new, leaves what is gone, and touches nothing else.
    pub(crate) async fn reload(self: &Arc<Self>) -> Result<(), SettingsError> {
        let _turn = self.joining.lock().await;
        let settings = Settings::read(&self.home.config())?;
        let attached: Vec<String> = self.slots().all.iter().map(|slot| slot.slug().to_owned()).collect();
        for slug in attached.iter().filter(|slug| settings.mesh(slug).is_none()) {
            self.detach(slug).await;
        }
        self.change(|slots| slots.default_mesh = settings.default_mesh.clone());
        for entry in settings.meshes.into_iter().filter(|entry| !attached.contains(&entry.slug)) {
            self.attach(Attach { entry, url: None, invites: None, person: None }).await;
        }
        Ok(())
    }

    /// Ends a mesh's link and closes its file; its rows stay where they are.
    pub(crate) async fn detach(&self, slug: &str) {
        let slot = self.change(|slots| {
            let place = slots.all.iter().position(|slot| slot.slug() == slug);
            place.map(|place| slots.all.remove(place))
        });
        if let Some(Slot::Open { mesh, leave, .. }) = slot {
            leave.cancel();
            mesh.mailbox.clone().close().await;
        }
    }

    pub(crate) async fn open_mailbox(&self, slug: &str) -> Result<Mailbox, String> {
        let (home, slug, entropy) = (self.home.clone(), slug.to_owned(), self.entropy.clone());
        let disk_free = self.disk.free_bytes();
        // Opening checks and may migrate the file, which takes as long as the disk does.
        let mesh = slug.clone();
        let opened = tokio::task::spawn_blocking(move || {
            recover::before_open(&home, &slug)?;
            give_back_room(&home.mailbox(&slug), disk_free);
            Mailbox::open(home.mailbox(&slug), entropy).map_err(|error| error.to_string())
        });
        let mailbox = opened.await.map_err(|error| error.to_string())??;
        mailbox.enter(&self.stores, format!("mailbox of mesh {mesh}"));
        Ok(mailbox)
    }
}

/// Before a mailbox is opened: makes its file anew when most of it is free. One that cannot be made anew is used as it is.
fn give_back_room(mailbox: &Path, disk_free: u64) {
    match mailbox::shrink(mailbox, disk_free, ShrinkBounds::default()) {
        Ok(None) => {}
        Ok(Some(ShrunkFile { bytes_before, bytes_after })) => {
            tracing::info!(path = %mailbox.display(), bytes_before, bytes_after, "a mailbox gave back room");
        }
        Err(error) => {
            tracing::warn!(path = %mailbox.display(), %error, "a mailbox could not give back its free room");
        }
    }
}
