//! The product's binary, in the two forms that tests and proofs drive.

use crate::workspace::{Workspace, cargo};
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;

/// The package of the product's binary; parts of the project may be worked on before it exists.
pub const PRODUCT: &str = "postrider";
/// The feature with crash points, the settable clock and planted bugs.
pub const FAULTS: &str = "faults";

/// The crate whose binary runs rounds of accepts at a ledger.
pub const LEDGER_ROUNDS: &str = "ledger-rounds";

/// How a binary is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// As it is shipped to others.
    Dist,
    /// Optimised, and built faster.
    Release,
}

impl Profile {
    /// As cargo calls it, and its folder below the target folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dist => "dist",
            Self::Release => "release",
        }
    }
}

/// Builds the binary as shipped, without faults, and keeps it where the later build with faults does not reach.
/// `None` while there is no such package.
pub fn shipped(workspace: &Workspace) -> anyhow::Result<Option<PathBuf>> {
    if workspace.package(PRODUCT).is_none() {
        return Ok(None);
    }
    build(&["--package", PRODUCT], workspace)?;
    let folder = workspace.target.join("shipped");
    std::fs::create_dir_all(&folder).context("target/shipped")?;
    // Renamed into place: a copy over a binary that still runs would be refused.
    let (fresh, kept) = (folder.join("postrider.new"), folder.join("postrider"));
    std::fs::copy(workspace.target.join("debug").join(PRODUCT), &fresh)
        .context("copying the shipped binary")?;
    std::fs::rename(&fresh, &kept).context("keeping the shipped binary")?;
    Ok(Some(kept))
}

/// Builds the binary with faults, optimised, for proofs.
pub fn faulted(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    ensure!(workspace.package(PRODUCT).is_some(), "there is no package `{PRODUCT}` in this workspace");
    build(&["--release", "--package", PRODUCT, "--features", FAULTS], workspace)?;
    Ok(workspace.target.join("release").join(PRODUCT))
}

/// Builds the binary as it is shipped to others, for benchmarks.
pub fn dist(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    in_profile(workspace, Profile::Dist, PRODUCT)
}

/// Builds the binary of the same name as its package.
pub fn in_profile(workspace: &Workspace, profile: Profile, package: &str) -> anyhow::Result<PathBuf> {
    build(&["--profile", profile.name(), "--package", package], workspace)?;
    Ok(workspace.target.join(profile.name()).join(package))
}

fn build(args: &[&str], workspace: &Workspace) -> anyhow::Result<()> {
    let mut command = Command::new(cargo());
    command.arg("build").args(args).current_dir(&workspace.root);
    let status = command.status().context("cargo cannot be run")?;
    ensure!(status.success(), "`cargo build {}` ended with {status}", args.join(" "));
    Ok(())
}
