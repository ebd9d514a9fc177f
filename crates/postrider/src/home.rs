//! Which home a command speaks of, and how its paths are shown.

use std::path::{Path, PathBuf};

use daemon::home::Home;

use crate::failure::Failure;

/// `--home`, else `$POSTRIDER_HOME`, else `~/.postrider`; the argument parser has merged the first two.
pub fn resolve(named: Option<&Path>) -> Result<Home, Failure> {
    let path = match named {
        Some(path) => std::path::absolute(path).map_err(anyhow::Error::from)?.components().collect(),
        None => std::env::home_dir()
            .ok_or_else(|| Failure::usage("this account has no home folder").fix("postrider --home DIR up"))?
            .join(".postrider"),
    };
    Ok(Home::at(path))
}

/// Where the local door's socket is; elsewhere than in the home when its path is too long for an address.
pub fn socket(home: &Home) -> Result<PathBuf, Failure> {
    let runtime = runtime_dir();
    home.socket(runtime.as_deref()).map_err(|error| Failure::usage(error.to_string()))
}

/// The account's folder for sockets.
pub fn runtime_dir() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
}

/// The broker's books.
pub fn ledger(home: &Home) -> PathBuf {
    home.root().join("broker").join("ledger.db")
}

/// The broker's audit stream.
pub fn audit(home: &Home) -> PathBuf {
    home.root().join("broker").join("audit.log")
}

/// What a detached process says.
pub fn log(home: &Home) -> PathBuf {
    home.daemon().join("daemon.log")
}

/// A path for people: below the account's folder it begins with `~`.
pub fn shown(path: &Path) -> String {
    let below = std::env::home_dir().and_then(|home| path.strip_prefix(home).ok().map(Path::to_path_buf));
    match below {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}
