//! Putting a backup in the place of a home.
//!
//! - Nothing is touched before the whole backup was looked through.
//! - The new home is made beside the old one, under another name, and takes its place in one step. A home is the old one or
//!   the new one, and never a part of either.
//! - The old home is kept under a name that says so, and the new one belongs to whom the old one did.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use daemon::home::make_private;
use model::{Clock, Timestamp};
use net::local::{Lock, LockError, lock_exclusive};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sqlite::{FileMark, MarkedBy, fault};

use super::leftover::{Leftover, leftovers};
use super::manifest::{Manifest, TREE};
use super::owner::Owner;
use super::{BackupError, beside, parent_of, sync_folder, verify};

/// Behind the home's name while its successor is made.
pub(super) const RESTORING: &str = "restoring";
/// Behind the home's name once another took its place.
pub(super) const BEFORE: &str = "before-restore";
/// In a folder that is being restored: what has this file is no home's only copy.
pub(super) const MARK: &str = "restore-unfinished";
/// Databases whose process looks for a mark beside them.
const WITH_MARK: [&str; 3] = ["ledger.db", "mailbox.db", "outbox.db"];
/// What running processes hold in a home.
const LOCKS: [&str; 3] = ["daemon/lock", "relay/lock", "broker/ledger.db-lock"];

/// What becomes of a home that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldHome {
    /// The restore is refused.
    Refuse,
    /// It is kept under another name.
    SetAside,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What the home now holds.
    pub manifest: Manifest,
    /// Where the old home is.
    pub aside: Option<PathBuf>,
}

/// Puts the backup in `folder` in the place of `home`.
pub fn restore(folder: &Path, home: &Path, old: OldHome, clock: &dyn Clock) -> Result<Restored, BackupError> {
    let manifest = verify(folder)?;
    if let Some((_, error)) = finish_restore(home)?.into_iter().next() {
        return Err(error);
    }
    let is_there = is_filled(home)?;
    if is_there && old == OldHome::Refuse {
        return Err(BackupError::NotEmpty(home.to_owned()));
    }
    let parent = parent_of(home);
    fs::create_dir_all(&parent).map_err(BackupError::files(&parent))?;
    let owner = Owner::of(home)?;
    let _locks = if is_there { take_locks(home, owner)? } else { Vec::new() };
    let now = clock.now();
    let staged = stamped(home, RESTORING, now);
    // Until the end: whoever finds the mark held leaves it alone.
    let _mark = stage(&folder.join(TREE), &staged, &manifest, owner, now)?;
    fault::point("restore.staged");
    let aside = if is_there {
        exchange(&staged, home)?;
        fault::point("restore.exchanged");
        sync_folder(&parent)?;
        Some(set_aside(&staged, home, now)?)
    } else {
        // An empty folder gives way.
        fs::rename(&staged, home).map_err(BackupError::files(home))?;
        fault::point("restore.renamed");
        sync_folder(&parent)?;
        None
    };
    unmark(home)?;
    Ok(Restored { manifest, aside })
}

/// Ends a restore that was cut off: the home is whole either way. Answers with what it left beside the home that this account
/// cannot end, and why.
pub fn finish_restore(home: &Path) -> Result<Vec<(Leftover, BackupError)>, BackupError> {
    let mut kept = Vec::new();
    for leftover in leftovers(home) {
        match leftover.end() {
            Ok(()) => {}
            Err(error @ BackupError::Running(_)) => return Err(error),
            Err(error) => kept.push((leftover, error)),
        }
    }
    let mark = home.join(MARK);
    if mark.exists() {
        let _held = lock(&mark, home)?;
        unmark(home)?;
    }
    Ok(kept)
}

fn is_filled(home: &Path) -> Result<bool, BackupError> {
    match fs::read_dir(home) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(BackupError::files(home)(error)),
    }
}

/// Whatever runs on the home holds one of them.
fn take_locks(home: &Path, owner: Owner) -> Result<Vec<Lock>, BackupError> {
    let mut locks = Vec::new();
    for lock in LOCKS.map(|lock| home.join(lock)) {
        if !lock.parent().is_some_and(Path::is_dir) {
            continue;
        }
        locks.push(self::lock(&lock, home)?);
        owner.take(&lock)?;
    }
    Ok(locks)
}

pub(super) fn lock(file: &Path, home: &Path) -> Result<Lock, BackupError> {
    lock_exclusive(file).map_err(|error| match error {
        LockError::Held { .. } => BackupError::Running(home.to_owned()),
        LockError::Unusable { path, source } => BackupError::Files { path, source },
    })
}

/// The new home under another name, whole and synced, with its mark.
fn stage(
    copies: &Path,
    staged: &Path,
    manifest: &Manifest,
    owner: Owner,
    now: Timestamp,
) -> Result<Lock, BackupError> {
    make_private(staged).map_err(BackupError::files(staged))?;
    let mark = lock(&staged.join(MARK), staged)?;
    for path in [staged, &staged.join(MARK)] {
        owner.take(path)?;
    }
    sync_folder(staged)?;
    fault::point("restore.marked");
    let mut folders = vec![staged.to_owned()];
    for file in &manifest.files {
        let (from, to) = (copies.join(&file.path), staged.join(&file.path));
        let folder = parent_of(&to);
        make_private(&folder).map_err(BackupError::files(&folder))?;
        folders.extend(folder.ancestors().take_while(|above| *above != staged).map(Path::to_path_buf));
        let mut source = File::open(&from).map_err(BackupError::files(&from))?;
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&to);
        let mut target = opened.map_err(BackupError::files(&to))?;
        io::copy(&mut source, &mut target).map_err(BackupError::files(&to))?;
        target.sync_all().map_err(BackupError::files(&to))?;
        for path in to.ancestors().take_while(|path| *path != staged) {
            owner.take(path)?;
        }
        if WITH_MARK.iter().any(|name| to.ends_with(name)) {
            // Its next start says from when on it lacks what was given to it.
            let by = MarkedBy::Restore { backup_at_us: manifest.began_at.as_micros() };
            let mark = FileMark { place: 0, at_us: now.as_micros(), by };
            mark.write(&to).map_err(BackupError::files(&to))?;
            owner.take(&FileMark::path(&to))?;
        }
        fault::point("restore.copied");
    }
    folders.sort();
    folders.dedup();
    folders.iter().rev().try_for_each(|folder| sync_folder(folder))?;
    sync_folder(&parent_of(staged))?;
    Ok(mark)
}

/// One step: whoever looks finds the old home or the new one.
fn exchange(staged: &Path, home: &Path) -> Result<(), BackupError> {
    use rustix::io::Errno;
    match renameat_with(CWD, staged, CWD, home, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(BackupError::NoExchange(home.to_owned())),
        Err(error) => Err(BackupError::files(home)(error.into())),
    }
}

fn set_aside(staged: &Path, home: &Path, now: Timestamp) -> Result<PathBuf, BackupError> {
    let aside = stamped(home, BEFORE, now);
    fs::rename(staged, &aside).map_err(BackupError::files(staged))?;
    fault::point("restore.set_aside");
    sync_folder(&parent_of(home))?;
    Ok(aside)
}

pub(super) fn unmark(home: &Path) -> Result<(), BackupError> {
    let mark = home.join(MARK);
    match fs::remove_file(&mark) {
        Ok(()) => {
            fault::point("restore.unmarked");
            sync_folder(home)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(BackupError::files(&mark)(error)),
    }
}

fn stamped(home: &Path, word: &str, at: Timestamp) -> PathBuf {
    beside(home, &format!(".{word}-{}", at.as_micros()))
}
