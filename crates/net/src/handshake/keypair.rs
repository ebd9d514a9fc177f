//! A node's (or an issuer's) ed25519 key pair, and the file it lives in.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signer, SigningKey};
use model::{Entropy, NodeKey, hex};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use super::signature_to_text;

/// Signs for a node or an issuer. The secret half is wiped when it goes and is never printed.
#[derive(Clone)]
pub struct KeyPair(SigningKey);

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The system refused.
    #[error("{} cannot be read or written: {source}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a key file, or its two halves are not a pair. It is left as it is: a new key would be another
    /// node.
    #[error("{} is not a key pair; restore it from a backup, or move it away and join again", path.display())]
    NotAKeyPair {
        /// The file.
        path: PathBuf,
    },
    /// Others may read it.
    #[error("{} may be read by others; close it (chmod 600) and join again if it was read", path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
    },
}

/// The file's JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    public_key: String,
    secret_key: String,
}

impl KeyPair {
    /// A new pair.
    pub fn mint(entropy: &dyn Entropy) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        entropy.fill(secret.as_mut());
        Self(SigningKey::from_bytes(&secret))
    }

    /// The pair of a stored secret.
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The secret, for the store that must keep it.
    pub fn to_secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public half.
    pub fn public(&self) -> NodeKey {
        NodeKey::from_bytes(self.0.verifying_key().to_bytes())
    }

    /// The signature over `message`, in hex.
    pub fn sign(&self, message: &[u8]) -> String {
        signature_to_text(&self.0.sign(message))
    }

    /// The pair at `path`; when there is none, a new one, durably written before it is returned.
    pub fn load_or_create(path: &Path, entropy: &dyn Entropy) -> Result<Self, KeyFileError> {
        match Self::load(path) {
            Err(KeyFileError::Unusable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let pair = Self::mint(entropy);
                pair.create(path)
                    .map_err(|source| KeyFileError::Unusable { path: path.to_owned(), source })?;
                // Of two creators one wins; both go on with what stands there.
                Self::load(path)
            }
            loaded => loaded,
        }
    }

    /// The pair at `path`.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let unusable = |source| KeyFileError::Unusable { path: path.to_owned(), source };
        let not_a_pair = || KeyFileError::NotAKeyPair { path: path.to_owned() };
        let mode = fs::metadata(path).map_err(unusable)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(KeyFileError::OpenToOthers { path: path.to_owned() });
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(unusable)?);
        let mut file: KeyFile = serde_json::from_str(&text).map_err(|_| not_a_pair())?;
        let secret = hex::decode(&file.secret_key).map(Zeroizing::new);
        file.secret_key.zeroize();
        let pair = Self::from_secret(&*secret.ok_or_else(not_a_pair)?);
        if pair.public().to_string() == file.public_key { Ok(pair) } else { Err(not_a_pair()) }
    }

    /// Written aside, synced, then linked into place: the file is whole or absent, and never replaces another.
    fn create(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        let secret = self.to_secret();
        let mut file =
            KeyFile { public_key: self.public().to_string(), secret_key: hex::encode(secret.as_ref()) };
        let text = serde_json::to_string(&file).map(Zeroizing::new);
        file.secret_key.zeroize();
        match fs::remove_file(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        written.write_all(text?.as_bytes())?;
        written.sync_all()?;
        let linked = fs::hard_link(&aside, path);
        fs::remove_file(&aside)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => File::open(folder)?.sync_all(),
        }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({}, [redacted])", self.public())
    }
}
