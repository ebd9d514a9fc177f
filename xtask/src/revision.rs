//! Another commit of this repository, and what is built of it: its tree stands in a git worktree below `target/`,
//! which is kept, so that the next commit costs only what differs; binaries are kept by commit.

use crate::build::{LEDGER_ROUNDS, PRODUCT, Profile};
use crate::steps::step;
use crate::workspace::{Workspace, cargo};
use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// As it was asked for.
    pub asked: String,
    /// Its full name.
    pub commit: String,
}

impl Revision {
    /// Asks git.
    pub fn find(root: &Path, asked: &str) -> anyhow::Result<Self> {
        let commit = git(root, &["rev-parse", "--verify", "--quiet", &format!("{asked}^{{commit}}")])
            .with_context(|| format!("git knows no commit `{asked}`"))?;
        Ok(Self { asked: asked.to_owned(), commit })
    }

    /// As pages name it.
    pub fn short(&self) -> &str {
        &self.commit[..12.min(self.commit.len())]
    }

    /// The files below `folder` in this commit.
    pub fn files(&self, root: &Path, folder: &str) -> anyhow::Result<Vec<String>> {
        let names = git(root, &["ls-tree", "-r", "--name-only", &self.commit, "--", folder])?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// The product's binary of this commit.
    pub fn product(&self, workspace: &Workspace, profile: Profile) -> anyhow::Result<PathBuf> {
        self.built(workspace, profile, PRODUCT, None)
    }

    /// Rounds of accepts at this commit's ledger, driven by this checkout's crate.
    pub fn ledger_rounds(&self, workspace: &Workspace, profile: Profile) -> anyhow::Result<PathBuf> {
        let package = workspace.package(LEDGER_ROUNDS).context("no crate that runs rounds at a ledger")?;
        self.built(workspace, profile, LEDGER_ROUNDS, Some(package.folder()))
    }

    /// Builds `package` in this commit's tree, where its folder may be replaced by this checkout's, and keeps it under
    /// all that it depends on.
    fn built(
        &self,
        workspace: &Workspace,
        profile: Profile,
        package: &str,
        replaced: Option<&Path>,
    ) -> anyhow::Result<PathBuf> {
        let place = Place::of(workspace);
        let of_here = replaced.map(digest).transpose()?.unwrap_or_else(|| "own".to_owned());
        let kept = place.kept.join(self.short()).join(profile.name()).join(of_here).join(package);
        if kept.is_file() {
            return Ok(kept);
        }
        step(&format!("{package} of {} in the {} profile", self.short(), profile.name()), || {
            place.check_out(&workspace.root, self)?;
            if let Some(folder) = replaced {
                copy_crate(folder, &place.tree.join("crates").join(package))?;
            }
            place.build(workspace, profile, package)?;
            keep(&place.target.join(profile.name()).join(package), &kept)
        })?;
        Ok(kept)
    }
}

/// Where other commits stand.
struct Place {
    tree: PathBuf,
    /// What cargo builds in the tree, apart from this checkout's: cargo names the crates of both alike, and would take
    /// one for the other.
    target: PathBuf,
    kept: PathBuf,
}

impl Place {
    fn of(workspace: &Workspace) -> Self {
        let folder = workspace.target.join("revisions");
        Self { tree: folder.join("tree"), target: folder.join("target"), kept: folder.join("built") }
    }

    /// Makes the tree, or moves it to the commit: files that do not differ stay as they are, and so does what was
    /// built of them.
    fn check_out(&self, root: &Path, revision: &Revision) -> anyhow::Result<()> {
        let tree = self.tree.to_string_lossy();
        if self.tree.join(".git").exists() {
            git(&self.tree, &["checkout", "--quiet", "--force", "--detach", &revision.commit])?;
            git(&self.tree, &["clean", "--quiet", "--force", "-d"])?;
            return Ok(());
        }
        // A tree that went with an earlier target folder may still be listed.
        git(root, &["worktree", "prune"])?;
        git(root, &["worktree", "add", "--quiet", "--force", "--detach", &tree, &revision.commit])?;
        Ok(())
    }

    fn build(&self, workspace: &Workspace, profile: Profile, package: &str) -> anyhow::Result<()> {
        self.seed(workspace, profile)?;
        let mut command = Command::new(cargo());
        command.args(["build", "--profile", profile.name(), "--package", package]);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        for name in configured(&workspace.root)? {
            // Set by this checkout's configuration; the other commit has its own.
            command.env_remove(name);
        }
        let status = command.status().context("cargo cannot be run")?;
        ensure!(
            status.success(),
            "`cargo build --package {package}` of the other commit ended with {status}"
        );
        Ok(())
    }

    /// Libraries from outside need not be compiled twice: those of this checkout are copied before the first build. Its
    /// own crates are compiled anew.
    fn seed(&self, workspace: &Workspace, profile: Profile) -> anyhow::Result<()> {
        let (from, to) = (workspace.target.join(profile.name()), self.target.join(profile.name()));
        if to.exists() || !from.exists() {
            return Ok(());
        }
        fs::create_dir_all(&self.target).context("target/revisions")?;
        let fresh = to.with_extension("new");
        let status =
            Command::new("cp").arg("-a").arg(&from).arg(&fresh).status().context("cp cannot be run")?;
        ensure!(status.success(), "copying {} ended with {status}", from.display());
        for entry in fs::read_dir(fresh.join(".fingerprint")).context("what cargo built")? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let package = name.rsplit_once('-').map_or(name.as_str(), |(package, _hash)| package);
            if workspace.package(package).is_some() {
                fs::remove_dir_all(entry.path()).with_context(|| entry.path().display().to_string())?;
            }
        }
        fs::rename(&fresh, &to).context("target/revisions")
    }
}

/// The variables that `.cargo/config.toml` sets.
fn configured(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(".cargo/config.toml")).context(".cargo/config.toml")?;
    let config: toml::Table = text.parse().context(".cargo/config.toml")?;
    let set = config.get("env").and_then(toml::Value::as_table);
    Ok(set.map(|set| set.keys().cloned().collect()).unwrap_or_default())
}

/// Over everything below `folder`, names and contents.
fn digest(folder: &Path) -> anyhow::Result<String> {
    let mut sum = Sha256::new();
    for path in files_below(folder)? {
        sum.update(path.to_string_lossy().as_bytes());
        sum.update([0]);
        sum.update(Sha256::digest(fs::read(folder.join(&path)).with_context(|| path.display().to_string())?));
    }
    Ok(sum.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect())
}

/// Instead of what is there.
fn copy_crate(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| to.display().to_string())?;
    }
    for path in files_below(from)? {
        let target = to.join(&path);
        fs::create_dir_all(target.with_file_name("")).with_context(|| target.display().to_string())?;
        fs::copy(from.join(&path), &target).with_context(|| target.display().to_string())?;
    }
    Ok(())
}

/// Sorted, from `folder` on.
fn files_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner)).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let path = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

fn keep(built: &Path, kept: &Path) -> anyhow::Result<()> {
    let fresh = kept.with_extension("new");
    fs::create_dir_all(kept.with_file_name("")).context("target/revisions")?;
    fs::copy(built, &fresh).with_context(|| format!("keeping {}", built.display()))?;
    fs::rename(&fresh, kept).with_context(|| format!("keeping {}", kept.display()))
}

fn git(folder: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(args).current_dir(folder).output().context("git cannot be run")?;
    let refusal = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`git {}` ended with {}: {refusal}", args.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a file in two commits.
    fn repository() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "--quiet"]).unwrap();
        for text in ["first", "second"] {
            fs::create_dir_all(root.path().join("crates")).unwrap();
            fs::write(root.path().join("crates/words"), text).unwrap();
            git(root.path(), &["add", "."]).unwrap();
            let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
            git(root.path(), &[&who[..], &["commit", "--quiet", "--message", text]].concat()).unwrap();
        }
        root
    }

    fn words(place: &Place) -> String {
        fs::read_to_string(place.tree.join("crates/words")).unwrap()
    }

    #[test]
    fn a_commit_is_found_by_any_of_its_names_and_an_unknown_one_is_named() {
        let root = repository();
        let head = Revision::find(root.path(), "HEAD").unwrap();
        assert_eq!(head.commit.len(), 40);
        assert_eq!(Revision::find(root.path(), head.short()).unwrap().commit, head.commit);
        let refusal = Revision::find(root.path(), "nothing").unwrap_err();
        assert_eq!(refusal.to_string(), "git knows no commit `nothing`");
    }

    #[test]
    fn the_tree_moves_between_commits_and_keeps_nothing_that_was_put_into_it() {
        let root = repository();
        let below = |name: &str| root.path().join("target").join(name);
        let place = Place { tree: below("tree"), target: below("target"), kept: below("built") };
        let at = |name| Revision::find(root.path(), name).unwrap();
        place.check_out(root.path(), &at("HEAD~1")).unwrap();
        assert_eq!(words(&place), "first");
        fs::write(place.tree.join("crates/words"), "changed").unwrap();
        fs::write(place.tree.join("crates/more"), "").unwrap();
        place.check_out(root.path(), &at("HEAD")).unwrap();
        assert_eq!(words(&place), "second");
        assert!(!place.tree.join("crates/more").exists());
        // The whole target folder was deleted by hand.
        fs::remove_dir_all(&place.tree).unwrap();
        place.check_out(root.path(), &at("HEAD~1")).unwrap();
        assert_eq!(words(&place), "first");
    }

    #[test]
    fn a_copied_crate_is_the_same_to_the_last_file_and_another_has_another_digest() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for root in [&from, &to] {
            fs::create_dir_all(root.join("src")).unwrap();
            fs::write(root.join("src/lib.rs"), "").unwrap();
        }
        assert_eq!(digest(&from).unwrap(), digest(&to).unwrap());
        fs::write(to.join("src/old.rs"), "").unwrap();
        assert_ne!(digest(&from).unwrap(), digest(&to).unwrap());
        copy_crate(&from, &to).unwrap();
        assert_eq!(files_below(&to).unwrap(), [PathBuf::from("src/lib.rs")]);
    }
}
