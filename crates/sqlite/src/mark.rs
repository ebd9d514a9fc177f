//! A mark beside a database file: how far the file had come, outside of it, or that it was restored. A file that has not
//! come so far is an older copy that was put back.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Behind the name of the database.
const SUFFIX: &str = "-mark";

/// How far a file had come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMark {
    /// A number that only rises with the file.
    pub place: u64,
    /// When this was written, in microseconds since 1970.
    pub at_us: i64,
    /// Who wrote it.
    pub by: MarkedBy,
}

/// See [`FileMark::by`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkedBy {
    /// The process that has the file open.
    Process,
    /// A restore: the file is a copy, whatever its place.
    Restore {
        /// When the backup was begun, in microseconds since 1970.
        backup_at_us: i64,
    },
}

impl FileMark {
    /// Where the mark beside `database` is.
    pub fn path(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(SUFFIX);
        PathBuf::from(name)
    }

    /// The mark beside `database`. One that cannot be understood counts as none.
    pub fn read(database: &Path) -> io::Result<Option<FileMark>> {
        match fs::read_to_string(Self::path(database)) {
            Ok(text) => Ok(parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts this mark in the place of the last one, durably.
    pub fn write(&self, database: &Path) -> io::Result<()> {
        let path = Self::path(database);
        let mut name: OsString = path.clone().into_os_string();
        name.push(".new");
        let beside = PathBuf::from(name);
        // What is left of a write that was cut off, or was put there: it is not written through.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        File::open(crate::folder::folder_of(&path))?.sync_all()
    }

    /// What the file of this mark holds.
    pub fn text(&self) -> String {
        let Self { place, at_us, by } = self;
        match by {
            MarkedBy::Process => format!("{place} {at_us} process\n"),
            MarkedBy::Restore { backup_at_us } => format!("{place} {at_us} restore {backup_at_us}\n"),
        }
    }

    /// Takes the mark beside `database` away, if there is one.
    pub fn remove(database: &Path) -> io::Result<()> {
        match fs::remove_file(Self::path(database)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether a file that has come to `place` is an older copy.
    pub fn is_ahead_of(&self, place: u64) -> bool {
        match self.by {
            MarkedBy::Process => self.place > place,
            MarkedBy::Restore { .. } => true,
        }
    }
}

fn parse(text: &str) -> Option<FileMark> {
    let mut words = text.split_whitespace();
    let (place, at_us) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let by = match words.next()? {
        "process" => MarkedBy::Process,
        "restore" => MarkedBy::Restore { backup_at_us: words.next()?.parse().ok()? },
        _ => return None,
    };
    Some(FileMark { place, at_us, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_nonsense_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        assert_eq!(FileMark::read(&database).unwrap(), None);
        for by in [MarkedBy::Process, MarkedBy::Restore { backup_at_us: -10 }] {
            let mark = FileMark { place: 7, at_us: -9, by };
            mark.write(&database).unwrap();
            assert_eq!(FileMark::read(&database).unwrap(), Some(mark));
        }
        for _ in 0..2 {
            FileMark::remove(&database).unwrap();
            assert_eq!(FileMark::read(&database).unwrap(), None);
        }
        for bad in ["", "7", "7 8", "7 8 nobody", "x 8 process", "7 8 restore"] {
            fs::write(FileMark::path(&database), bad).unwrap();
            assert_eq!(FileMark::read(&database).unwrap(), None, "{bad}");
        }
    }

    #[test]
    fn what_stands_where_a_mark_is_made_is_replaced_and_never_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (database, others) = (folder.path().join("a.db"), folder.path().join("others"));
        fs::write(&others, "kept").unwrap();
        std::os::unix::fs::symlink(&others, folder.path().join("a.db-mark.new")).unwrap();
        let mark = FileMark { place: 7, at_us: 9, by: MarkedBy::Process };
        mark.write(&database).unwrap();
        assert_eq!(fs::read_to_string(&others).unwrap(), "kept");
        assert_eq!(FileMark::read(&database).unwrap(), Some(mark));
    }

    #[test]
    fn a_file_behind_its_mark_is_older_and_a_restored_one_always_is() {
        let mark = |by| FileMark { place: 7, at_us: 0, by };
        for (place, expected) in [(6, true), (7, false), (8, false)] {
            assert_eq!(mark(MarkedBy::Process).is_ahead_of(place), expected, "{place}");
            assert!(mark(MarkedBy::Restore { backup_at_us: 0 }).is_ahead_of(place), "{place}");
        }
    }
}
