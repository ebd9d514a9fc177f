//! The workspace as cargo sees it.

use anyhow::{Context, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Members and folders.
#[derive(Clone, Debug, Deserialize)]
pub struct Workspace {
    /// The repository's folder.
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    /// Where cargo puts what it builds.
    #[serde(rename = "target_directory")]
    pub target: PathBuf,
    /// The members.
    pub packages: Vec<Package>,
}

/// A member.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its Cargo.toml.
    pub manifest_path: PathBuf,
    /// What it names as dependencies.
    pub dependencies: Vec<Dependency>,
    /// Its features.
    pub features: BTreeMap<String, Vec<String>>,
    /// What it builds.
    pub targets: Vec<Target>,
}

/// A dependency as named in a Cargo.toml.
#[derive(Clone, Debug, Deserialize)]
pub struct Dependency {
    /// The package.
    pub name: String,
    /// Which table of the manifest.
    #[serde(default, deserialize_with = "kind")]
    pub kind: Kind,
}

/// The table a dependency stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// `[dependencies]`
    #[default]
    Normal,
    /// `[dev-dependencies]`
    Dev,
    /// `[build-dependencies]`
    Build,
}

/// Something a member builds.
#[derive(Clone, Debug, Deserialize)]
pub struct Target {
    /// `lib`, `bin`, `test`, …
    pub kind: Vec<String>,
}

impl Workspace {
    /// Asks cargo, offline: only the members' own manifests matter.
    pub fn read() -> anyhow::Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new(cargo())
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(here)
            .output()
            .context("cargo cannot be run")?;
        let refusal = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cargo metadata: {refusal}");
        serde_json::from_slice(&output.stdout).context("cargo metadata printed something else")
    }

    /// The member `name`.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// `path` as the repository names it.
    pub fn relative<'path>(&self, path: &'path Path) -> &'path Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

impl Package {
    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("/"))
    }

    /// True when others can depend on it.
    pub fn is_library(&self) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "lib"))
    }
}

/// The cargo that runs this command, or the one in PATH.
pub fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn kind<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    Ok(match Option::<String>::deserialize(deserializer)?.as_deref() {
        None => Kind::Normal,
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        Some(other) => return Err(serde::de::Error::custom(format!("unknown kind of dependency {other}"))),
    })
}
