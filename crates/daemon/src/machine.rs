//! Which machine a home belongs to. A copied disk carries a node's key with it, and two nodes with one key take
//! each other's link; so a home that wakes up on another machine asks a person first.

use std::io;
use std::path::{Path, PathBuf};

use model::{Clock, Entropy, Timestamp};
use net::local::{LockError, lock_exclusive};
use serde::{Deserialize, Serialize};

use crate::home::{Home, write_durably};
use crate::settings::{Settings, SettingsError};

/// A file of a later form is left alone: whoever wrote it knows more.
const FORM: u32 = 1;

/// `daemon/host.json`
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    schema_version: u32,
    host_id: String,
    written_at: String,
}

/// What the record says about this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Here {
    /// It is the one, or nobody can tell.
    Fine,
    /// There is no record yet.
    New,
    /// The home was another machine's.
    Elsewhere { recorded: String },
}

/// Why a home was not given to this machine.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its daemon runs.
    #[error("stop the daemon first: {}", home.display())]
    Running {
        /// The home.
        home: PathBuf,
    },
    /// This machine has no id to record.
    #[error("this machine has no /etc/machine-id to record; nothing was changed")]
    NoMachineId,
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its lock cannot be used.
    #[error(transparent)]
    Lock(LockError),
    /// Its `config.toml` makes no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// Compares the record with this machine; the first start makes it.
pub(crate) fn check(home: &Home, machine_id: Option<&str>, now: Timestamp) -> io::Result<Here> {
    let Some(machine_id) = machine_id else {
        tracing::warn!("fingerprint_host_id_unavailable: a copy of this home would not be noticed");
        return Ok(Here::Fine);
    };
    let here = compare(&read(home)?, machine_id);
    if here == Here::New {
        record(home, machine_id, now)?;
    }
    Ok(here)
}

/// The machine a home was made on, when that was another one. Looks and records nothing.
pub fn other_machine(root: &Path, machine_id: Option<&str>) -> io::Result<Option<String>> {
    let Some(machine_id) = machine_id else { return Ok(None) };
    Ok(match compare(&read(&Home::at(root))?, machine_id) {
        Here::Fine | Here::New => None,
        Here::Elsewhere { recorded } => Some(recorded),
    })
}

/// Keeps the home's keys and records this machine as its place: the disk moved.
pub fn accept_host(root: &Path, machine_id: Option<&str>, clock: &dyn Clock) -> Result<(), HostError> {
    let home = Home::at(root);
    let _lock = lock(&home)?;
    let machine_id = machine_id.ok_or(HostError::NoMachineId)?;
    record(&home, machine_id, clock.now()).map_err(|source| HostError::Files { path: home.host(), source })
}

/// Gives the home new nodes with new keys: the disk was copied and the other copy lives on. Each mesh's folder is
/// set aside whole and its node gets another name; it has to be let in anew. Answers what was set aside.
pub fn remint(
    root: &Path,
    machine_id: Option<&str>,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<Vec<PathBuf>, HostError> {
    let home = Home::at(root);
    let _lock = lock(&home)?;
    let machine_id = machine_id.ok_or(HostError::NoMachineId)?;
    let now = clock.now();
    let mut settings = Settings::read(&home.config())?;
    let mut aside = Vec::new();
    for mut entry in settings.meshes.clone() {
        let (from, to) =
            (home.mesh(&entry.slug), home.mesh(&format!("{}.cloned-{}", entry.slug, now.as_micros())));
        match std::fs::rename(&from, &to) {
            Ok(()) => aside.push(to),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(HostError::Files { path: from, source }),
        }
        let suffix = entropy.next_u64() & 0xffff;
        let base: String = entry.node.as_str().chars().take(model::limits::NAME_BYTES_MAX - 5).collect();
        entry.node = format!("{base}-{suffix:04x}").parse().expect("a name with a short tail is a name");
        settings.put(entry);
    }
    settings.write(&home.config())?;
    record(&home, machine_id, now).map_err(|source| HostError::Files { path: home.host(), source })?;
    Ok(aside)
}

fn lock(home: &Home) -> Result<net::local::Lock, HostError> {
    lock_exclusive(&home.lock()).map_err(|error| match error {
        LockError::Held { .. } => HostError::Running { home: home.root().to_owned() },
        LockError::Unusable { .. } => HostError::Lock(error),
    })
}

fn read(home: &Home) -> io::Result<Option<String>> {
    match std::fs::read_to_string(home.host()) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn compare(recorded: &Option<String>, machine_id: &str) -> Here {
    let Some(text) = recorded else { return Here::New };
    match serde_json::from_str::<Recorded>(text) {
        Ok(recorded) if recorded.schema_version != FORM => Here::Fine,
        Ok(recorded) if recorded.host_id == machine_id => Here::Fine,
        Ok(recorded) => Here::Elsewhere { recorded: recorded.host_id },
        Err(error) => {
            tracing::warn!(%error, "the record of this home's machine cannot be read and is made anew");
            Here::New
        }
    }
}

fn record(home: &Home, machine_id: &str, now: Timestamp) -> io::Result<()> {
    let recorded =
        Recorded { schema_version: FORM, host_id: machine_id.to_owned(), written_at: now.to_string() };
    let text = serde_json::to_vec(&recorded).expect("texts and numbers are JSON");
    write_durably(&home.host(), &text, 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_decides_and_one_of_a_later_form_is_believed() {
        let recorded = |form: u32, id: &str| {
            Some(format!(r#"{{"schema_version":{form},"host_id":"{id}","written_at":"x"}}"#))
        };
        for (text, expected) in [
            (None, Here::New),
            (recorded(1, "linux:a"), Here::Fine),
            (recorded(1, "linux:b"), Here::Elsewhere { recorded: "linux:b".to_owned() }),
            (recorded(2, "linux:b"), Here::Fine),
            (Some("nonsense".to_owned()), Here::New),
        ] {
            assert_eq!(compare(&text, "linux:a"), expected, "{text:?}");
        }
    }
}
