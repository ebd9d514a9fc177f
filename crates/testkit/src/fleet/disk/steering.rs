//! The shim between the binary and the system's calls on its home, and the words that steer it.

use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const SOURCE: &str = include_str!("shim.c");
/// Words of the steering file, as the shim reads them.
const WORDS: usize = 10;
const FIRE_AT: usize = 2;
const SEEN: usize = 6;
const HITS: usize = 7;

/// A compiled shim with its steering file.
pub(super) struct SystemCallShim {
    files: TempDir,
    steering: File,
}

/// What is done to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SystemCall {
    Read = 1,
    Write = 2,
    Sync = 4,
    /// Cutting and extending.
    Size = 8,
    /// Renaming, linking and unlinking.
    Name = 16,
    Open = 32,
    Map = 64,
}

/// Files below the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HomeFile {
    /// Databases and their rollback journals.
    Data = 1,
    Log = 2,
    Index = 4,
    /// Everything else: configuration, keys, locks, lists of what happened.
    Other = 8,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StrikeError {
    /// `EIO`.
    Error,
    /// `ENOSPC`; until there is room, or once.
    NoSpace { lasts: bool },
    /// A part is written, then `ENOSPC`.
    ShortNoSpace,
    /// The process ends before the call.
    KillBefore,
    /// The process ends after it.
    KillAfter,
}

/// Which call is struck, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StrikePlan {
    pub call: SystemCall,
    pub file: HomeFile,
    /// From 1.
    pub nth: u64,
    pub strike: StrikeError,
}

impl SystemCallShim {
    /// Compiles it; a C compiler is needed to build the product, too.
    pub(super) fn compile() -> Result<Self> {
        let files = TempDir::new()?;
        let (source, object) = (files.path().join("shim.c"), files.path().join("shim.so"));
        std::fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&object).arg(&source);
        let output = compiler.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::other(format!("cc does not compile the shim: {said}")));
        }
        let steering = files.path().join("steering");
        std::fs::write(&steering, [0; WORDS * 8])?;
        let steering = OpenOptions::new().read(true).write(true).open(steering)?;
        Ok(Self { files, steering })
    }

    /// What a process below it needs in its environment; `home` is the folder whose files it strikes.
    pub(super) fn environment(&self, home: &Path) -> Vec<(String, String)> {
        let shown = |path: PathBuf| path.display().to_string();
        vec![
            ("LD_PRELOAD".to_owned(), shown(self.files.path().join("shim.so"))),
            ("SHIM_STEERING".to_owned(), shown(self.files.path().join("steering"))),
            ("SHIM_FOLDER".to_owned(), shown(home.to_owned())),
        ]
    }

    /// Strikes from now on.
    pub(super) fn arm(&self, aim: StrikePlan) -> Result<()> {
        self.disarm()?;
        let (error, times, short) = aim.strike.words();
        for (word, value) in [aim.call as u64, aim.file as u64].into_iter().enumerate() {
            self.put(word, value)?;
        }
        for (word, value) in [(3, error), (4, times), (5, short), (SEEN, 0), (HITS, 0)] {
            self.put(word, value)?;
        }
        self.put(FIRE_AT, aim.nth)
    }

    /// Strikes no more.
    pub(super) fn disarm(&self) -> Result<()> {
        self.put(FIRE_AT, 0)
    }

    /// Calls that were struck since it was armed.
    pub(super) fn hits(&self) -> Result<u64> {
        let mut word = [0; 8];
        self.steering.read_exact_at(&mut word, HITS as u64 * 8)?;
        Ok(u64::from_ne_bytes(word))
    }

    fn put(&self, word: usize, value: u64) -> Result<()> {
        self.steering.write_all_at(&value.to_ne_bytes(), word as u64 * 8)
    }
}

impl StrikeError {
    /// The shim's words for error, times and whether a part is written.
    fn words(self) -> (u64, u64, u64) {
        let (io, no_space) = (
            rustix::io::Errno::IO.raw_os_error().unsigned_abs(),
            rustix::io::Errno::NOSPC.raw_os_error().unsigned_abs(),
        );
        match self {
            Self::Error => (io.into(), 1, 0),
            Self::NoSpace { lasts } => (no_space.into(), if lasts { u64::MAX } else { 1 }, 0),
            Self::ShortNoSpace => (no_space.into(), 1, 1),
            Self::KillBefore => (1_000, 1, 0),
            Self::KillAfter => (1_001, 1, 0),
        }
    }
}

impl std::fmt::Display for StrikePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let strike = match self.strike {
            StrikeError::Error => "EIO",
            StrikeError::NoSpace { lasts: true } => "ENOSPC until there is room",
            StrikeError::NoSpace { lasts: false } => "ENOSPC",
            StrikeError::ShortNoSpace => "a part, then ENOSPC",
            StrikeError::KillBefore => "killed before",
            StrikeError::KillAfter => "killed after",
        };
        let call = match self.call {
            SystemCall::Read => "a read",
            SystemCall::Write => "a write",
            SystemCall::Sync => "a sync",
            SystemCall::Size => "a change of size",
            SystemCall::Name => "a rename, link or unlink",
            SystemCall::Open => "an opening",
            SystemCall::Map => "a mapping",
        };
        let file = match self.file {
            HomeFile::Data => "of a database",
            HomeFile::Log => "of a log",
            HomeFile::Index => "of a log's index",
            HomeFile::Other => "of another file",
        };
        write!(f, "{strike}: {call} {file}")
    }
}
