//! The folder that is a daemon's whole state, and where in it things are.
//!
//! - Folders are 0700, secrets 0600.
//! - A file that must survive is written beside its place, synced, renamed and its folder synced.

mod durable;

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use net::Secret;
use net::local::{PathTooLong, socket_path};

pub use durable::write_durably;

/// A home by its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The home at `root`, which need not exist.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Which meshes there are.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// What belongs to the daemon.
    pub fn daemon(&self) -> PathBuf {
        self.root.join("daemon")
    }

    /// Decides which process is the home's daemon.
    pub fn lock(&self) -> PathBuf {
        self.daemon().join("lock")
    }

    /// The local door's socket; in `runtime_dir` when the home's path is too long for an address.
    pub fn socket(&self, runtime_dir: Option<&Path>) -> Result<PathBuf, PathTooLong> {
        socket_path(&self.daemon().join("sock"), runtime_dir)
    }

    /// What belongs to a relay of this home.
    pub fn relay(&self) -> PathBuf {
        self.root.join("relay")
    }

    /// The relay's own socket, placed as the local door's.
    pub fn relay_socket(&self, runtime_dir: Option<&Path>) -> Result<PathBuf, PathTooLong> {
        socket_path(&self.relay().join("sock"), runtime_dir)
    }

    /// The local door's port.
    pub fn http_port(&self) -> PathBuf {
        self.daemon().join("http.port")
    }

    /// The local door's token.
    pub fn local_token(&self) -> PathBuf {
        self.daemon().join("local_token")
    }

    /// For people: the lock decides, not this.
    pub fn pid(&self) -> PathBuf {
        self.daemon().join("pid")
    }

    /// The machine this home was made on.
    pub fn host(&self) -> PathBuf {
        self.daemon().join("host.json")
    }

    /// One mesh's folder.
    pub fn mesh(&self, slug: &str) -> PathBuf {
        self.daemon().join(slug)
    }

    /// One mesh's outbox, inbox and what belongs to them.
    pub fn mailbox(&self, slug: &str) -> PathBuf {
        self.mesh(slug).join("mailbox.db")
    }

    /// One mesh's node key.
    pub fn keypair(&self, slug: &str) -> PathBuf {
        self.mesh(slug).join("keypair.json")
    }

    /// Whose signature one mesh's broker must show; kept beside the mailbox, which may be lost alone.
    pub fn issuer(&self, slug: &str) -> PathBuf {
        self.mesh(slug).join("issuer")
    }

    /// Makes the root and the daemon's folder, closed to others.
    pub fn prepare(&self) -> io::Result<()> {
        make_private(&self.root)?;
        make_private(&self.daemon())
    }

    /// The local door's token as it stands on disk.
    pub fn read_token(&self) -> io::Result<Secret> {
        Ok(Secret::from(std::fs::read_to_string(self.local_token())?.trim().to_owned()))
    }
}

/// Makes `folder` for this account alone; one that exists stays as it is.
pub fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
