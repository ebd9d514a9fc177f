//! Making a backup while the home's processes run.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use daemon::home::{make_private, write_durably};
use model::Clock;
use net::local::{Lock, lock_exclusive};
use sqlite::{CopySource, fault, look_through};

use super::manifest::{BackupFile, FORM, FileKind, MANIFEST, Manifest, TREE, digest_of};
use super::{BackupError, beside, parent_of, sync_folder, tree};

/// Behind the name of a backup that is being made; what has this name is never read.
pub const UNFINISHED: &str = ".unfinished";
/// Held while a backup is being made, so that what a killed one left is told apart.
const LOCK: &str = "lock";

/// What is told while a backup is made.
pub trait Progress: Send + Sync {
    /// A file is being copied, and its copy is so long by now.
    fn copying(&self, path: &Path, bytes: u64);
    /// A file is copied, looked through and synced.
    fn copied(&self, file: &BackupFile);
}

/// Copies the home to `folder`, which must not exist. A backup that is cut off leaves only the folder with
/// `.unfinished` behind its name, which the next one of that name removes.
pub fn make(
    home: &Path,
    folder: &Path,
    version: &str,
    clock: &dyn Clock,
    progress: &Arc<dyn Progress>,
) -> Result<Manifest, BackupError> {
    let found = tree::walk(home)?;
    if found.files.is_empty() {
        return Err(BackupError::NoHome(home.to_owned()));
    }
    refuse_place(home, folder)?;
    let unfinished = beside(folder, UNFINISHED);
    let lock = begin(folder, &unfinished)?;
    let copies = unfinished.join(TREE);
    let began_at = clock.now();
    let databases: Vec<PathBuf> =
        found.files.iter().filter(|path| tree::is_database(path)).cloned().collect();
    prepare_folders(&copies, &found.files)?;
    let mut files = copy_databases(home, &copies, &databases, progress)?;
    for path in found.files.iter().filter(|path| !tree::is_database(path)) {
        if let Some(file) = copy_plain(home, &copies, path)? {
            progress.copied(&file);
            fault::point("backup.copied");
            files.push(file);
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    sync_folders(&copies, &found.files)?;
    let manifest =
        Manifest { form: FORM, version: version.to_owned(), began_at, ended_at: clock.now(), files };
    finish(folder, &unfinished, lock, &manifest)?;
    Ok(manifest)
}

fn refuse_place(home: &Path, folder: &Path) -> Result<(), BackupError> {
    if fs::symlink_metadata(folder).is_ok() {
        return Err(BackupError::Taken(folder.to_owned()));
    }
    let parent = parent_of(folder);
    let whole = |path: &Path| fs::canonicalize(path).map_err(BackupError::files(path));
    if whole(&parent)?.starts_with(whole(home)?) {
        return Err(BackupError::Inside(folder.to_owned()));
    }
    Ok(())
}

/// An empty folder under the unfinished name, whose lock is ours.
fn begin(folder: &Path, unfinished: &Path) -> Result<Lock, BackupError> {
    let held = |_| BackupError::Taken(folder.to_owned());
    if unfinished.exists() {
        // Held by a backup that still runs.
        let _lock = lock_exclusive(&unfinished.join(LOCK)).map_err(held)?;
        fs::remove_dir_all(unfinished).map_err(BackupError::files(unfinished))?;
    }
    make_private(unfinished).map_err(BackupError::files(unfinished))?;
    lock_exclusive(&unfinished.join(LOCK)).map_err(held)
}

fn prepare_folders(copies: &Path, files: &[PathBuf]) -> Result<(), BackupError> {
    make_private(copies).map_err(BackupError::files(copies))?;
    for file in files {
        let folder = parent_of(&copies.join(file));
        make_private(&folder).map_err(BackupError::files(&folder))?;
    }
    Ok(())
}

/// All at once: what one file speaks of another has, as far as moments allow.
fn copy_databases(
    home: &Path,
    copies: &Path,
    databases: &[PathBuf],
    progress: &Arc<dyn Progress>,
) -> Result<Vec<BackupFile>, BackupError> {
    let mut opened = Vec::with_capacity(databases.len());
    for path in databases {
        let from = home.join(path);
        let source =
            CopySource::open(&from).map_err(|source| BackupError::Database { path: from, source })?;
        opened.push((path, source));
    }
    let together = Barrier::new(opened.len());
    std::thread::scope(|scope| {
        let copying: Vec<_> = opened
            .into_iter()
            .map(|(path, source)| {
                let together = &together;
                scope.spawn(move || copy_database(home, copies, path, source, together, progress))
            })
            .collect();
        copying.into_iter().map(|copied| copied.join().expect("a copy ends with an answer")).collect()
    })
}

fn copy_database(
    home: &Path,
    copies: &Path,
    path: &Path,
    source: CopySource,
    together: &Barrier,
    progress: &Arc<dyn Progress>,
) -> Result<BackupFile, BackupError> {
    let to = copies.join(path);
    let made = make_file(&to);
    together.wait();
    let file = made?;
    let failed = |path: PathBuf| move |source| BackupError::Database { path, source };
    let (telling, told) = (Arc::clone(progress), path.to_owned());
    let copied = source.copy_into(&to, move |bytes| telling.copying(&told, bytes));
    copied.map_err(failed(home.join(path)))?;
    file.sync_all().map_err(BackupError::files(&to))?;
    let schema = look_through(&to).map_err(failed(home.join(path)))?;
    let copied = described(&to, path, FileKind::Database { schema })?;
    progress.copied(&copied);
    fault::point("backup.copied");
    Ok(copied)
}

/// None: it went away since the walk.
fn copy_plain(home: &Path, copies: &Path, path: &Path) -> Result<Option<BackupFile>, BackupError> {
    let (from, to) = (home.join(path), copies.join(path));
    let mut source = match File::open(&from) {
        Ok(source) => source,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BackupError::files(&from)(error)),
    };
    let mut file = make_file(&to)?;
    io::copy(&mut source, &mut file).map_err(BackupError::files(&to))?;
    file.sync_all().map_err(BackupError::files(&to))?;
    described(&to, path, FileKind::Plain).map(Some)
}

fn make_file(path: &Path) -> Result<File, BackupError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path).map_err(BackupError::files(path))
}

fn described(copy: &Path, path: &Path, kind: FileKind) -> Result<BackupFile, BackupError> {
    let (bytes, sha256) = digest_of(copy)?;
    Ok(BackupFile { path: path.to_string_lossy().into_owned(), kind, bytes, sha256 })
}

/// Every folder that holds a copy, and those above it.
fn sync_folders(copies: &Path, files: &[PathBuf]) -> Result<(), BackupError> {
    let mut folders: Vec<PathBuf> = files
        .iter()
        .flat_map(|file| file.ancestors().skip(1).map(|folder| copies.join(folder)).collect::<Vec<_>>())
        .collect();
    folders.sort();
    folders.dedup();
    folders.iter().rev().try_for_each(|folder| sync_folder(folder))
}

/// The list is written last, and the name comes after everything is synced.
fn finish(folder: &Path, unfinished: &Path, lock: Lock, manifest: &Manifest) -> Result<(), BackupError> {
    let text = serde_json::to_vec_pretty(manifest).expect("a manifest holds only what JSON can say");
    let list = unfinished.join(MANIFEST);
    write_durably(&list, &text, 0o600).map_err(BackupError::files(&list))?;
    fault::point("backup.manifest");
    let held = unfinished.join(LOCK);
    fs::remove_file(&held).map_err(BackupError::files(&held))?;
    sync_folder(unfinished)?;
    fault::point("backup.before_rename");
    fs::rename(unfinished, folder).map_err(BackupError::files(folder))?;
    fault::point("backup.after_rename");
    drop(lock);
    sync_folder(&parent_of(folder))
}
