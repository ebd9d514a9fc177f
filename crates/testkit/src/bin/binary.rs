//! Which file the driver starts.

use std::path::{Path, PathBuf};

/// Names the binary with faults, for proofs that run outside cargo's integration tests.
pub const BIN_VARIABLE: &str = "POSTRIDER_BIN";
/// Names the binary as shipped, without faults; `cargo xtask test` sets it.
pub const SHIPPED_VARIABLE: &str = "POSTRIDER_SHIPPED";

/// The variable that should name the binary does not.
#[derive(Debug, thiserror::Error)]
#[error("{variable} names no file ({found:?}); run through `cargo xtask test`, which builds and names it")]
pub struct NoBinary {
    /// Which variable.
    pub variable: &'static str,
    /// What it held.
    pub found: Option<PathBuf>,
}

/// A `postrider` to drive.
#[derive(Clone, Debug)]
pub struct Binary {
    path: PathBuf,
}

impl Binary {
    /// The one at `path`; integration tests pass `env!("CARGO_BIN_EXE_postrider")`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The one [`BIN_VARIABLE`] names.
    pub fn from_env() -> Result<Self, NoBinary> {
        Self::named_by(BIN_VARIABLE)
    }

    /// The one without faults, to prove that it ignores what the other obeys.
    pub fn shipped() -> Result<Self, NoBinary> {
        Self::named_by(SHIPPED_VARIABLE)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn named_by(variable: &'static str) -> Result<Self, NoBinary> {
        let found = std::env::var_os(variable).map(PathBuf::from);
        match found {
            Some(path) if path.is_file() => Ok(Self { path }),
            found => Err(NoBinary { variable, found }),
        }
    }
}
