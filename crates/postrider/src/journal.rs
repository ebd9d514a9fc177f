//! Where a running process writes what happened: stderr, one line an event; a broker also its audit stream, one JSON
//! object a line in a file of the home, whatever stderr is told.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use model::limits::AUDIT_BYTES_MAX;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt};

use crate::failure::Failure;

/// Starts the journal of a process without a broker.
pub fn start() {
    init(None);
}

/// Starts the journal, with the audit stream behind what `path` holds already.
pub fn start_audited(path: &Path) -> Result<(), Failure> {
    let stream = Stream::open(path)
        .map_err(|error| Failure::usage(format!("{} cannot be written: {error}", path.display())))?;
    init(Some(stream));
    Ok(())
}

/// `POSTRIDER_LOG` chooses what stderr is told; without it, what a person should know.
fn init(audit: Option<Stream>) {
    let filter = EnvFilter::try_from_env("POSTRIDER_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let told = fmt::layer().with_writer(io::stderr).with_filter(filter);
    let audit = audit.map(|stream| {
        let audited = Targets::new().with_target(broker::AUDIT_TARGET, Level::INFO);
        let lines = fmt::layer().json().flatten_event(true).with_target(false).with_level(false);
        lines.with_writer(Mutex::new(stream)).with_filter(audited)
    });
    // A second start in one process (tests) keeps the first journal.
    let _ = tracing_subscriber::registry().with(told).with(audit).try_init();
}

/// A file that is set aside once, when it is full: two of them are kept.
struct Stream {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Stream {
    fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes })
    }
}

impl Write for Stream {
    /// One call a line, so that a line is never cut by the change of files.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.bytes >= AUDIT_BYTES_MAX {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_stream_is_set_aside_whole_and_the_next_line_begins_a_new_one() {
        let folder = std::env::temp_dir().join(format!("pr-audit-{}", std::process::id()));
        let path = folder.join("audit.log");
        let mut stream = Stream::open(&path).expect("a stream");
        stream.write_all(b"first\n").expect("a line");
        stream.bytes = AUDIT_BYTES_MAX;
        stream.write_all(b"second\n").expect("a line");
        let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
        assert_eq!((read(&folder.join("audit.log.1")), read(&path)), ("first\n".into(), "second\n".into()));
        std::fs::remove_dir_all(&folder).expect("the test's own folder");
    }
}
