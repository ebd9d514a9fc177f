//! A folder that is held open. What is done in it is done in this very folder, whatever its path names by then: whoever may
//! rename what `restore` works on, which root often runs, cannot lead it elsewhere.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::BackupError;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// See the module.
#[derive(Debug)]
pub struct Folder {
    opened: File,
    /// For errors.
    path: PathBuf,
}

impl Folder {
    /// Makes the folder at `path` for this account alone; what is there already is refused.
    pub fn make(path: &Path) -> Result<Folder, BackupError> {
        let files = |error: Errno| BackupError::files(path)(error.into());
        mkdirat(CWD, path, Mode::RWXU).map_err(files)?;
        let opened = openat(CWD, path, FOLDER, Mode::empty()).map_err(files)?;
        // Another one may have its name by now.
        if fstat(&opened).map_err(files)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(BackupError::files(path)(io::ErrorKind::PermissionDenied.into()));
        }
        Ok(Folder { opened: opened.into(), path: path.to_owned() })
    }

    /// Opens the folder at `path`. Its own name may be a link.
    pub fn open(path: &Path) -> Result<Folder, BackupError> {
        let opened = openat(CWD, path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty());
        let opened = opened.map_err(|error| BackupError::files(path)(error.into()))?;
        Ok(Folder { opened: opened.into(), path: path.to_owned() })
    }

    /// The folder at `below` it, through no link; `None` where there is none.
    pub fn find(&self, below: &Path) -> Result<Option<Folder>, BackupError> {
        match self.walk(below, |_, _| Ok(())) {
            Ok(folder) => Ok(Some(folder)),
            Err(BackupError::Files { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The folder at `below` it, through no link; what is missing is made for this account alone.
    pub fn make_below(&self, below: &Path) -> Result<Folder, BackupError> {
        self.walk(below, |folder, name| match mkdirat(&folder.opened, name, Mode::RWXU) {
            Err(error) if error != Errno::EXIST => Err(error),
            Ok(()) | Err(_) => Ok(()),
        })
    }

    fn walk(
        &self,
        below: &Path,
        before: impl Fn(&Folder, &Path) -> Result<(), Errno>,
    ) -> Result<Folder, BackupError> {
        let opened = self.opened.try_clone().map_err(BackupError::files(&self.path))?;
        let mut folder = Folder { opened, path: self.path.clone() };
        for part in below.components() {
            let Component::Normal(name) = part else { continue };
            let path = folder.path.join(name);
            let files = |error: Errno| BackupError::files(&path)(error.into());
            before(&folder, Path::new(name)).map_err(files)?;
            let opened = openat(&folder.opened, name, FOLDER, Mode::empty()).map_err(files)?;
            folder = Folder { opened: opened.into(), path };
        }
        Ok(folder)
    }

    /// A new file for this account alone; what has the name already is refused.
    pub fn create(&self, name: &str) -> Result<File, BackupError> {
        self.file(name, FILE.union(OFlags::EXCL))
    }

    /// The file of this name, or a new one for this account alone; a link is refused.
    pub fn open_or_create(&self, name: &str) -> Result<File, BackupError> {
        self.file(name, FILE)
    }

    fn file(&self, name: &str, flags: OFlags) -> Result<File, BackupError> {
        let mode = Mode::RUSR.union(Mode::WUSR);
        let opened = openat(&self.opened, name, flags, mode);
        opened.map(File::from).map_err(|error| BackupError::files(&self.path(name))(error.into()))
    }

    /// Removes a file; whether it was there.
    pub fn remove(&self, name: &str) -> Result<bool, BackupError> {
        match unlinkat(&self.opened, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(BackupError::files(&self.path(name))(error.into())),
        }
    }

    /// Makes its names durable.
    pub fn sync(&self) -> Result<(), BackupError> {
        self.opened.sync_all().map_err(BackupError::files(&self.path))
    }

    pub fn opened(&self) -> &File {
        &self.opened
    }

    /// What a name in it was called when it was opened.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
