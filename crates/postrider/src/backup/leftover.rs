//! What a restore that was cut off left beside the home.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sqlite::fault;

use super::folder::Folder;
use super::restore::{BEFORE, MARK, RESTORING, lock, unmark};
use super::{BackupError, beside, parent_of, sync_folder};

/// A folder beside the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub path: PathBuf,
    pub kind: LeftoverKind,
}

/// See [`Leftover::kind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftoverKind {
    /// A copy of a backup that never became a home.
    Copy,
    /// The home that was replaced, without its new name.
    OldHome {
        /// Its new name.
        aside: PathBuf,
    },
    /// This account may not look into it.
    Unreadable,
}

/// All of them; one may belong to a restore that is under way.
pub fn leftovers(home: &Path) -> Vec<Leftover> {
    let name = home.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let begins = format!("{name}.{RESTORING}-");
    let mut found = Vec::new();
    for entry in fs::read_dir(parent_of(home)).into_iter().flatten().flatten() {
        // A link is none of ours: what it leads to is not looked at, and not removed.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && let Some(at) = entry.file_name().to_string_lossy().strip_prefix(&begins) {
            let path = entry.path();
            found.push(Leftover { kind: LeftoverKind::of(&path, home, at), path });
        }
    }
    found
}

impl LeftoverKind {
    fn of(path: &Path, home: &Path, at: &str) -> Self {
        let is_empty = || fs::read_dir(path).map(|mut entries| entries.next().is_none());
        match fs::symlink_metadata(path.join(MARK)) {
            Ok(_) => LeftoverKind::Copy,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match is_empty() {
                Ok(true) => LeftoverKind::Copy,
                Ok(false) => LeftoverKind::OldHome { aside: beside(home, &format!(".{BEFORE}-{at}")) },
                Err(_) => LeftoverKind::Unreadable,
            },
            Err(_) => LeftoverKind::Unreadable,
        }
    }
}

impl Leftover {
    /// Removes a copy, and gives the old home its name.
    pub fn end(&self) -> Result<(), BackupError> {
        match &self.kind {
            LeftoverKind::Copy => remove(&self.path)?,
            LeftoverKind::OldHome { aside } => {
                fs::rename(&self.path, aside).map_err(BackupError::files(&self.path))?;
            }
            LeftoverKind::Unreadable => {
                let source = io::ErrorKind::PermissionDenied.into();
                return Err(BackupError::Files { path: self.path.clone(), source });
            }
        }
        fault::point("restore.finished_one");
        sync_folder(&parent_of(&self.path))
    }
}

/// A copy that never became a home. Its mark goes last, so that what is left of it is known for what it is.
fn remove(staged: &Path) -> Result<(), BackupError> {
    let mark = staged.join(MARK);
    let _held = if mark.exists() { Some(lock(&mark, staged)?) } else { None };
    for entry in fs::read_dir(staged).map_err(BackupError::files(staged))?.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match path == mark {
            true => {}
            false if is_folder => fs::remove_dir_all(&path).map_err(BackupError::files(&path))?,
            false => fs::remove_file(&path).map_err(BackupError::files(&path))?,
        }
    }
    fault::point("restore.removing");
    unmark(&Folder::open(staged)?)?;
    fs::remove_dir(staged).map_err(BackupError::files(staged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_restore_left_is_a_copy_while_it_is_marked_or_empty_and_else_the_home_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("h");
        for (name, file) in [
            ("h", "config.toml"),
            ("h.restoring-1", MARK),
            ("h.restoring-2", "config.toml"),
            ("h.restoring-3", ""),
            ("h.before-restore-4", "config.toml"),
            ("other.restoring-5", "config.toml"),
        ] {
            fs::create_dir(folder.path().join(name)).unwrap();
            if !file.is_empty() {
                fs::write(folder.path().join(name).join(file), "").unwrap();
            }
        }
        let mut found = leftovers(&home);
        found.sort_by(|one, other| one.path.cmp(&other.path));
        let path = |n: u8| folder.path().join(format!("h.restoring-{n}"));
        let aside = folder.path().join("h.before-restore-2");
        let kinds = [LeftoverKind::Copy, LeftoverKind::OldHome { aside }, LeftoverKind::Copy];
        let expected = (1..).zip(kinds).map(|(n, kind)| Leftover { path: path(n), kind });
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
}
