//! Node.js for the tools of the page: the machine's own where it is new enough, else one below `target/`. Debian 12
//! has Node.js 18, with which Vite ends in a syntax error.

use crate::workspace::Workspace;
use anyhow::{Context, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed where the machine's own is too old.
const INSTALLED: &str = "node@22.23.3";

/// The folder that must stand first in PATH; nothing where the machine's own Node.js is new enough.
pub fn provide(workspace: &Workspace) -> anyhow::Result<Option<PathBuf>> {
    let said = Command::new("node").arg("--version").output().context("node cannot be run")?;
    if is_enough(&String::from_utf8_lossy(&said.stdout)) {
        return Ok(None);
    }
    let folder = workspace.target.join("node");
    let programs = folder.join("node_modules/node/bin");
    if !programs.join("node").is_file() {
        install(&folder)?;
    }
    ensure!(
        programs.join("node").is_file(),
        "{INSTALLED} is installed, but {} has no node",
        programs.display()
    );
    Ok(Some(programs))
}

/// PATH with `folder` first.
pub fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder of PATH has a colon in its name")
}

fn install(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // Without it npm looks for a project further up.
    fs::write(folder.join("package.json"), r#"{"private":true}"#).context("target/node/package.json")?;
    let status = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", INSTALLED])
        .current_dir(folder)
        .status()
        .context("npm cannot be run")?;
    ensure!(status.success(), "`npm install {INSTALLED}` in {} ended with {status}", folder.display());
    Ok(())
}

/// Whether the page's tools run with this version: Vite asks for 20.19, or 22.12 and newer.
fn is_enough(version: &str) -> bool {
    let mut parts = version.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(20)), Some(Ok(minor))) => minor >= 19,
        (Some(Ok(22)), Some(Ok(minor))) => minor >= 12,
        (Some(Ok(major)), Some(Ok(_))) => major > 22,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_the_tools_of_the_page_cannot_run_with_are_not_enough() {
        for (version, enough) in [
            ("v18.19.0\n", false),
            ("v20.18.3", false),
            ("v20.19.0", true),
            ("v21.7.3", false),
            ("v22.11.0", false),
            ("v22.12.0", true),
            ("v24.1.0", true),
            ("", false),
            ("no version", false),
        ] {
            assert_eq!(is_enough(version), enough, "{version}");
        }
    }

    #[test]
    fn the_folder_given_stands_first() {
        let path = path_with(Path::new("/somewhere/bin")).unwrap();
        assert_eq!(std::env::split_paths(&path).next(), Some(PathBuf::from("/somewhere/bin")));
    }
}
