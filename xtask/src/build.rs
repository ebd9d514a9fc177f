//! The product's binary, in the two forms that tests and proofs drive.

use crate::workspace::{Workspace, cargo};
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::Command;

/// The package of the product's binary; parts of the project may be worked on before it exists.
pub const PRODUCT: &str = "postrider";
/// The feature with crash points, the settable clock and planted bugs.
pub const FAULTS: &str = "faults";

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
    build(&["--profile", "dist", "--package", PRODUCT], workspace)?;
    Ok(workspace.target.join("dist").join(PRODUCT))
}

fn build(args: &[&str], workspace: &Workspace) -> anyhow::Result<()> {
    let mut command = Command::new(cargo());
    command.arg("build").args(args).current_dir(&workspace.root);
    let status = command.status().context("cargo cannot be run")?;
    ensure!(status.success(), "`cargo build {}` ended with {status}", args.join(" "));
    Ok(())
}
