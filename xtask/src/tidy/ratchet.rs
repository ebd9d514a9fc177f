//! `xtask/tidy-ratchet.toml`: limits for the figures that are beyond taste today.

use super::figures::Figure;
use crate::workspace::Workspace;
use anyhow::Context;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

const HEAD: &str =
    "# Limits of the figures that are beyond the project's taste; a figure without a line must meet it.
# They may shrink and not grow: `cargo xtask tidy --ratchet` writes better ones down.
";

type Limits = BTreeMap<String, f64>;

/// Figures beyond their limit, a sentence each.
pub(super) fn check(workspace: &Workspace, figures: &[Figure]) -> anyhow::Result<Vec<String>> {
    let limits = read(workspace)?;
    let beyond = figures.iter().filter(|figure| !figure.is_within(limits.get(figure.name).copied()));
    Ok(beyond.map(|figure| sentence(figure, limits.get(figure.name).copied())).collect())
}

/// Writes the better limits.
pub(super) fn tighten(workspace: &Workspace, figures: &[Figure]) -> anyhow::Result<()> {
    let limits = read(workspace)?;
    let mut text = HEAD.to_owned();
    for figure in figures {
        if let Some(limit) = figure.tightened(limits.get(figure.name).copied()) {
            let _infallible = writeln!(text, "{} = {limit:?}", figure.name);
        }
    }
    std::fs::write(path(workspace), text).context("xtask/tidy-ratchet.toml")
}

fn read(workspace: &Workspace) -> anyhow::Result<Limits> {
    match std::fs::read_to_string(path(workspace)) {
        Ok(text) => toml::from_str(&text).context("xtask/tidy-ratchet.toml"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Limits::new()),
        Err(error) => Err(error).context("xtask/tidy-ratchet.toml"),
    }
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.root.join("xtask/tidy-ratchet.toml")
}

fn sentence(figure: &Figure, limit: Option<f64>) -> String {
    match limit {
        Some(limit) => format!("{figure}, and its ratchet stands at {limit}"),
        None => format!("{figure}, and it has no ratchet"),
    }
}
