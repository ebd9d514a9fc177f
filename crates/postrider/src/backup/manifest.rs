//! What a backup holds, file by file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use model::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::BackupError;

/// The name of the list in a backup's folder.
pub const MANIFEST: &str = "manifest.json";
/// The name of the copied home in a backup's folder.
pub const TREE: &str = "home";
/// The form of the list that this program writes and reads.
pub const FORM: u32 = 1;

/// The list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Which form this is.
    pub form: u32,
    /// The program that made it.
    pub version: String,
    /// When the copies began: what was committed by then is in them.
    #[serde(with = "wire::text")]
    pub began_at: Timestamp,
    /// When the last file was synced.
    #[serde(with = "wire::text")]
    pub ended_at: Timestamp,
    /// Every file, by its path.
    pub files: Vec<BackupFile>,
}

/// One file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Its path below the home.
    pub path: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: FileKind,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

/// What a file of a backup is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileKind {
    /// A database.
    Database {
        /// The last step of its schema.
        schema: u32,
    },
    /// Any other file.
    Plain,
}

/// Length and SHA-256 of a file.
pub fn digest_of(path: &Path) -> Result<(u64, String), BackupError> {
    File::open(path).and_then(|mut file| digest_of_opened(&mut file)).map_err(BackupError::files(path))
}

/// [`digest_of`] an open file, from where it stands.
pub fn digest_of_opened(file: &mut File) -> io::Result<(u64, String)> {
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok((bytes, model::hex::encode(&digest.finalize())));
        }
        digest.update(&buffer[..count]);
        bytes += count as u64;
    }
}
