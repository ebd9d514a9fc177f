//! Looking through a backup: every file is there, is what it was, and can be read by this program.

use std::fs;
use std::path::Path;

use serde::Serialize;
use sqlite::look_through;

use super::make::UNFINISHED;
use super::manifest::{BackupFile, FORM, FileKind, MANIFEST, Manifest, TREE, digest_of};
use super::{BackupError, tree};

/// A file that is not what the backup's list says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// Its path below the home.
    pub path: String,
    /// What is wrong with it.
    pub detail: String,
}

/// The list of a backup that is whole; any difference is an error that names every file.
pub fn verify(folder: &Path) -> Result<Manifest, BackupError> {
    let manifest = read(folder)?;
    let copies = folder.join(TREE);
    let mut wrong = Vec::new();
    for file in &manifest.files {
        if let Some(detail) = look(&copies.join(&file.path), file) {
            wrong.push(Wrong { path: file.path.clone(), detail });
        }
    }
    for found in tree::walk(&copies)?.files {
        let path = found.to_string_lossy().into_owned();
        if !manifest.files.iter().any(|file| file.path == path) {
            wrong.push(Wrong { path, detail: "not in the backup's list".to_owned() });
        }
    }
    if wrong.is_empty() { Ok(manifest) } else { Err(BackupError::Differs(wrong)) }
}

fn read(folder: &Path) -> Result<Manifest, BackupError> {
    let no_backup = |detail: String| BackupError::NoBackup { path: folder.to_owned(), detail };
    if folder.to_string_lossy().ends_with(UNFINISHED) {
        return Err(no_backup("it was cut off while it was made".to_owned()));
    }
    let list = folder.join(MANIFEST);
    let text = fs::read(&list).map_err(|error| no_backup(format!("{MANIFEST}: {error}")))?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| no_backup(format!("{MANIFEST}: {error}")))?;
    if manifest.form != FORM {
        return Err(no_backup(format!("its form is {}, this program knows {FORM}", manifest.form)));
    }
    if let Some(file) = manifest.files.iter().find(|file| !is_below(&file.path)) {
        return Err(no_backup(format!("{MANIFEST} names {}", file.path)));
    }
    Ok(manifest)
}

/// Whether a path of the list stays in the folder.
fn is_below(path: &str) -> bool {
    use std::path::Component;
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// What is wrong with a file.
fn look(copy: &Path, file: &BackupFile) -> Option<String> {
    let (bytes, sha256) = match digest_of(copy) {
        Ok(digest) => digest,
        Err(error) => return Some(error.to_string()),
    };
    if bytes != file.bytes {
        return Some(format!("{bytes} bytes, not {}", file.bytes));
    }
    if sha256 != file.sha256 {
        return Some("its bytes are others: the checksum differs".to_owned());
    }
    match file.kind {
        FileKind::Plain => None,
        FileKind::Database { schema } => look_at_database(copy, &file.path, schema),
    }
}

fn look_at_database(copy: &Path, path: &str, schema: u32) -> Option<String> {
    match look_through(copy) {
        Err(error) => Some(error.to_string()),
        Ok(found) if found != schema => Some(format!("schema {found}, not {schema}")),
        Ok(found) => {
            let known = known_schema(path)?;
            (found > known)
                .then(|| format!("schema {found} is newer than {known}, the newest this program knows"))
        }
    }
}

/// The newest schema of a database of ours, by its file's name.
fn known_schema(path: &str) -> Option<u32> {
    let newest = |schema: &sqlite::Schema| schema.migrations.last().map(|last| last.number);
    match Path::new(path).file_name()?.to_str()? {
        "mailbox.db" => newest(&mailbox::SCHEMA),
        "ledger.db" => newest(&ledger::SQLITE_SCHEMA),
        "outbox.db" => newest(&mailbox::relay::RELAY_SCHEMA),
        _ => None,
    }
}
