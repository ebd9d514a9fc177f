//! Writing a history while the run lasts, reading it afterwards.

use super::{Act, Event, Outcome};
use crate::stopwatch::Stopwatch;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One client's pen. Threads may share it; each line is one write to a file outside the faulted folder.
#[derive(Debug)]
pub struct Recorder {
    proc: String,
    file: Mutex<File>,
    watch: Stopwatch,
}

impl Recorder {
    /// Writes `folder/PROC.jsonl`, after what an earlier incarnation of the same client wrote.
    pub fn open(folder: &Path, proc: &str) -> Result<Self> {
        let path = folder.join(format!("{proc}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { proc: proc.to_owned(), file: Mutex::new(file), watch: Stopwatch::start() })
    }

    /// Writes one line about message `id`; `conv` is the conversation or, on a send, the destination as asked.
    pub fn note(
        &self,
        outcome: Outcome,
        id: &str,
        fp: Option<&str>,
        conv: Option<&str>,
        act: Act,
    ) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event {
            // Read under the lock, so that the order of lines is the order of times.
            t_mono: self.watch.elapsed_us(),
            proc: self.proc.clone(),
            id: id.to_owned(),
            fp: fp.map(str::to_owned),
            conv: conv.map(str::to_owned),
            outcome,
            act,
        };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

/// The events of one file, in the order they were written. A torn last line is left out: its writer was killed
/// before the line was whole, so what it announced had not happened yet.
pub fn read(path: &Path) -> Result<Vec<Event>> {
    let text = std::fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |(number, line): (usize, &str)| {
        let named = |error| {
            Error::new(ErrorKind::InvalidData, format!("{} line {}: {error}", path.display(), number + 1))
        };
        serde_json::from_str(line).map_err(named)
    };
    whole.lines().enumerate().map(parse).collect()
}

/// The events of every `.jsonl` file in `folder`, file after file.
pub fn read_folder(folder: &Path) -> Result<Vec<Event>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut events = Vec::new();
    for path in paths {
        events.extend(read(&path)?);
    }
    Ok(events)
}
