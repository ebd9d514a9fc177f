//! Putting a backup in the place of a home.
//!
//! - Nothing is touched before the whole backup was looked through.
//! - The new home is made beside the old one, under another name, and takes its place in one step. A home is the old one or
//!   the new one, and never a part of either.
//! - The old home is kept under a name that says so, and the new one belongs to whom the old one did.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use model::{Clock, Timestamp};
use net::local::{Lock, LockError, lock_exclusive, lock_opened};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sqlite::{FileMark, MarkedBy, fault};

use super::folder::Folder;
use super::leftover::{Leftover, leftovers};
use super::manifest::{BackupFile, Manifest, TREE, digest_of_opened};
use super::owner::Owner;
use super::{BackupError, Wrong, beside, parent_of, sync_folder, verify};

/// Behind the home's name while its successor is made.
pub(super) const RESTORING: &str = "restoring";
/// Behind the home's name once another took its place.
pub(super) const BEFORE: &str = "before-restore";
/// In a folder that is being restored: what has this file is no home's only copy.
pub(super) const MARK: &str = "restore-unfinished";
/// Databases whose process looks for a mark beside them.
const WITH_MARK: [&str; 3] = ["ledger.db", "mailbox.db", "outbox.db"];
/// What running processes hold in a home.
const LOCKS: [(&str, &str); 3] = [("daemon", "lock"), ("relay", "lock"), ("broker", "ledger.db-lock")];

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
    let (whole, _mark) = stage(&folder.join(TREE), &staged, &manifest, owner, now)?;
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
    unmark(&whole)?;
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
        unmark(&Folder::open(home)?)?;
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

/// Whatever runs on the home holds one of them. The home is its owner's: what is made in it is made behind no link.
fn take_locks(home: &Path, owner: Owner) -> Result<Vec<Lock>, BackupError> {
    let opened = Folder::open(home)?;
    let mut locks = Vec::new();
    for (folder, name) in LOCKS {
        let Some(folder) = opened.find(Path::new(folder))? else { continue };
        let (file, path) = (folder.open_or_create(name)?, folder.path(name));
        owner.take(&file).map_err(BackupError::files(&path))?;
        locks.push(lock_opened(file, &path).map_err(refused(home))?);
    }
    Ok(locks)
}

pub(super) fn lock(file: &Path, home: &Path) -> Result<Lock, BackupError> {
    lock_exclusive(file).map_err(refused(home))
}

fn refused(home: &Path) -> impl Fn(LockError) -> BackupError {
    move |error| match error {
        LockError::Held { .. } => BackupError::Running(home.to_owned()),
        LockError::Unusable { path, source } => BackupError::Files { path, source },
    }
}

/// The new home under another name, whole and synced, with its mark. Until all of it is there it is closed to everybody but
/// this account; its owner gets what is in it first, and itself last.
fn stage(
    copies: &Path,
    staged: &Path,
    manifest: &Manifest,
    owner: Owner,
    now: Timestamp,
) -> Result<(Folder, Lock), BackupError> {
    let whole = Folder::make(staged)?;
    let mark = whole.create(MARK)?;
    owner.take(&mark).map_err(BackupError::files(&whole.path(MARK)))?;
    let mark = lock_opened(mark, &whole.path(MARK)).map_err(refused(staged))?;
    whole.sync()?;
    fault::point("restore.marked");
    let mut folders = BTreeSet::new();
    for file in &manifest.files {
        let below = Path::new(&file.path);
        let (above, name) = (below.parent().unwrap_or(Path::new("")), last_name(below));
        let folder = whole.make_below(above)?;
        folders.extend(above.ancestors().filter(|above| !above.as_os_str().is_empty()));
        let (mut target, to) = (folder.create(&name)?, folder.path(&name));
        copy(&copies.join(below), &mut target, &to, file)?;
        let mut given = vec![(target, to)];
        if WITH_MARK.contains(&name.as_str()) {
            // Its next start says from when on it lacks what was given to it.
            let by = MarkedBy::Restore { backup_at_us: manifest.began_at.as_micros() };
            let mark = FileMark { place: 0, at_us: now.as_micros(), by };
            let beside = last_name(&FileMark::path(below));
            let (mut target, to) = (folder.create(&beside)?, folder.path(&beside));
            target.write_all(mark.text().as_bytes()).map_err(BackupError::files(&to))?;
            given.push((target, to));
        }
        for (target, to) in given {
            owner.take(&target).and_then(|()| target.sync_all()).map_err(BackupError::files(&to))?;
        }
        fault::point("restore.copied");
    }
    for below in folders.into_iter().rev() {
        let folder = whole.make_below(below)?;
        owner.take(folder.opened()).map_err(BackupError::files(&staged.join(below)))?;
        folder.sync()?;
    }
    owner.take(whole.opened()).map_err(BackupError::files(staged))?;
    whole.sync()?;
    sync_folder(&parent_of(staged))?;
    Ok((whole, mark))
}

/// Copies one file of the backup. Its bytes are those that were looked through: whoever may change the backup meanwhile does
/// not choose what is read for him.
fn copy(from: &Path, target: &mut File, to: &Path, file: &BackupFile) -> Result<(), BackupError> {
    let mut source = File::open(from).map_err(BackupError::files(from))?;
    io::copy(&mut source, target).map_err(BackupError::files(to))?;
    target.seek(SeekFrom::Start(0)).map_err(BackupError::files(to))?;
    let copied = digest_of_opened(target).map_err(BackupError::files(to))?;
    if copied == (file.bytes, file.sha256.clone()) {
        return Ok(());
    }
    let detail = "it was changed while it was put back".to_owned();
    Err(BackupError::Differs(vec![Wrong { path: file.path.clone(), detail }]))
}

fn last_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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

pub(super) fn unmark(home: &Folder) -> Result<(), BackupError> {
    if home.remove(MARK)? {
        fault::point("restore.unmarked");
        home.sync()?;
    }
    Ok(())
}

fn stamped(home: &Path, word: &str, at: Timestamp) -> PathBuf {
    beside(home, &format!(".{word}-{}", at.as_micros()))
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
