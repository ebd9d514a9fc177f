//! Which files of a home belong into its backup.

use std::fs;
use std::path::{Path, PathBuf};

use super::BackupError;

/// The parts of a home; anything else in its folder is its owner's own.
const PARTS: [&str; 4] = ["config.toml", "daemon", "broker", "relay"];
/// What only a running process needs.
const OF_A_PROCESS: [&str; 5] = ["lock", "pid", "http.port", "sock", "daemon.log"];
/// What belongs to a database and is in its copy, and what a write or a repair left beside its file.
const BESIDE: [&str; 6] = ["-wal", "-shm", "-lock", "-journal", "-mark", ".new"];
/// What a repair or a new identity set aside.
const SET_ASIDE: [&str; 5] = [".corrupt-", ".recovering", ".cloned-", ".damaged-", ".shrinking"];
/// The record of a repair that was cut off between two renames.
const EXCHANGE: &str = ".exchange";
/// The one file of a mesh that a repair takes away for a moment.
const MAILBOX: &str = "mailbox.db";

/// Paths below `home`, in order: files to copy, and names that are left out on purpose.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HomeTree {
    pub files: Vec<PathBuf>,
    pub left_out: Vec<PathBuf>,
}

/// Walks the parts of the home.
pub fn walk(home: &Path) -> Result<HomeTree, BackupError> {
    let mut tree = HomeTree::default();
    let mut waiting: Vec<PathBuf> = PARTS.iter().map(PathBuf::from).collect();
    while let Some(path) = waiting.pop() {
        let whole = home.join(&path);
        let found = match fs::symlink_metadata(&whole) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(BackupError::files(&whole)(error)),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if found.is_symlink() {
            return Err(BackupError::Link(whole));
        }
        if is_unrecovered(&whole, &name) {
            return Err(BackupError::Unrecovered(whole));
        }
        if SET_ASIDE.iter().any(|part| name.contains(part)) {
            tree.left_out.push(path);
        } else if found.is_dir() {
            for entry in fs::read_dir(&whole).map_err(BackupError::files(&whole))? {
                waiting.push(path.join(entry.map_err(BackupError::files(&whole))?.file_name()));
            }
        } else if found.is_file() && !is_of_a_process(&name) {
            tree.files.push(path);
        }
    }
    tree.files.sort();
    tree.left_out.sort();
    Ok(tree)
}

/// Whether a file says that its mailbox is still to be repaired: its ids stand in what a backup would leave out.
fn is_unrecovered(whole: &Path, name: &str) -> bool {
    let of_a_repair = [".corrupt-", ".recovering"].iter().any(|part| name.contains(part));
    name == format!("{MAILBOX}{EXCHANGE}")
        || of_a_repair && name.starts_with(MAILBOX) && !whole.with_file_name(MAILBOX).exists()
}

/// Whether a file is a database of ours.
pub fn is_database(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "db")
}

fn is_of_a_process(name: &str) -> bool {
    OF_A_PROCESS.contains(&name) || BESIDE.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_takes_what_a_home_is_made_of_and_nothing_of_its_processes() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        for (file, _) in [
            ("config.toml", true),
            ("notes.txt", false),
            ("daemon/local_token", true),
            ("daemon/lock", false),
            ("daemon/http.port", false),
            ("daemon/home/mailbox.db", true),
            ("daemon/home/mailbox.db-wal", false),
            ("daemon/home/mailbox.db-lock", false),
            ("broker/ledger.db-mark", false),
            ("daemon/home/mailbox.db.corrupt-7", false),
            ("daemon/home.cloned-7/mailbox.db", false),
            ("daemon/home/keypair.json", true),
            ("broker/ledger.db", true),
            ("relay/outbox.db", true),
        ] {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let tree = walk(home).unwrap();
        let named =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(
            named(&tree.files),
            [
                "broker/ledger.db",
                "config.toml",
                "daemon/home/keypair.json",
                "daemon/home/mailbox.db",
                "daemon/local_token",
                "relay/outbox.db"
            ]
        );
        assert_eq!(named(&tree.left_out), ["daemon/home/mailbox.db.corrupt-7", "daemon/home.cloned-7"]);
        assert!(is_database(Path::new("a/mailbox.db")) && !is_database(Path::new("a/db")));
    }

    #[test]
    fn a_home_with_a_link_or_an_unfinished_repair_is_not_copied_in_part() {
        let made = |files: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("daemon/home")).unwrap();
            files.iter().for_each(|file| fs::write(folder.path().join(file), "x").unwrap());
            folder
        };
        let mailbox = "daemon/home/mailbox.db";
        let cut_off = made(&[mailbox, "daemon/home/mailbox.db.exchange"]);
        assert!(matches!(walk(cut_off.path()), Err(BackupError::Unrecovered(_))));
        let aside = made(&["daemon/home/mailbox.db.corrupt-7"]);
        assert!(matches!(walk(aside.path()), Err(BackupError::Unrecovered(_))));
        let linked = made(&[mailbox]);
        std::os::unix::fs::symlink("/etc/hostname", linked.path().join("config.toml")).unwrap();
        assert!(matches!(walk(linked.path()), Err(BackupError::Link(_))));
    }
}
