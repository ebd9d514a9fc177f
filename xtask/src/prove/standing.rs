//! Whether a proof's page still speaks of the code as it is: by the page's commit, and by the commits since then that
//! changed a crate which the proof covers.

use super::{PROOFS, Proof};
use crate::workspace::Workspace;
use anyhow::Context;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// How a page stands to the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// None of its crates changed since its commit.
    Current,
    /// There is no page, or it names no commit.
    Missing,
    /// The proof ran on files that differed from the commit.
    Uncommitted {
        /// The commit below those files.
        commit: String,
    },
    /// Its commit is not in this repository: it was rebased away, or the clone is shallow.
    Unknown {
        /// What the page says.
        commit: String,
    },
    /// These crates changed since.
    Older {
        /// The page's.
        commit: String,
        /// In the order in which the proof names them.
        changed: Vec<&'static str>,
    },
}

/// What a page says about its run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PageCommit {
    name: String,
    is_dirty: bool,
}

/// Every proof with the standing of its page.
pub fn standings(workspace: &Workspace) -> anyhow::Result<Vec<(&'static Proof, Standing)>> {
    let root = &workspace.root;
    let standing_of = |proof: &'static Proof| {
        let page = std::fs::read_to_string(proof.page(workspace)).unwrap_or_default();
        let page = commit_in(&page);
        let known = page.as_ref().is_some_and(|page| is_known(root, &page.name));
        let mut changed = Vec::new();
        if let Some(page) = page.as_ref().filter(|_| known) {
            for name in proof.covers {
                if is_changed_since(root, &page.name, name)? {
                    changed.push(*name);
                }
            }
        }
        Ok((proof, standing(page, known, changed)))
    };
    PROOFS.iter().map(standing_of).collect()
}

/// The rule.
fn standing(page: Option<PageCommit>, is_known: bool, changed: Vec<&'static str>) -> Standing {
    match page {
        None => Standing::Missing,
        Some(PageCommit { name: commit, is_dirty: true }) => Standing::Uncommitted { commit },
        Some(PageCommit { name: commit, .. }) if !is_known => Standing::Unknown { commit },
        Some(PageCommit { name: commit, .. }) if !changed.is_empty() => Standing::Older { commit, changed },
        Some(_) => Standing::Current,
    }
}

/// As `Report` writes it.
fn commit_in(page: &str) -> Option<PageCommit> {
    let line = page.lines().find_map(|line| line.strip_prefix("| commit | ")?.strip_suffix(" |"))?;
    let (name, is_dirty) = match line.strip_suffix(" with changes") {
        Some(name) => (name, true),
        None => (line, false),
    };
    Some(PageCommit { name: name.to_owned(), is_dirty })
}

fn is_known(root: &Path, commit: &str) -> bool {
    let found =
        Command::new("git").args(["merge-base", "--is-ancestor", commit, "HEAD"]).current_dir(root).output();
    found.is_ok_and(|output| output.status.success())
}

/// True when a commit outside the history of `commit` touched the crate, its tests left aside.
fn is_changed_since(root: &Path, commit: &str, name: &str) -> anyhow::Result<bool> {
    let (range, folder, tests) =
        (format!("{commit}..HEAD"), format!("crates/{name}"), format!(":(exclude)crates/{name}/tests"));
    let args = ["log", "--max-count=1", "--format=%H", &range, "--", &folder, &tests];
    let output = Command::new("git").args(args).current_dir(root).output().context("git cannot be run")?;
    Ok(!output.stdout.trim_ascii().is_empty())
}

impl fmt::Display for Standing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => out.write_str("current"),
            Self::Missing => out.write_str("no page names a commit"),
            Self::Uncommitted { commit } => write!(out, "it ran on uncommitted changes of {commit}"),
            Self::Unknown { commit } => write!(out, "its commit {commit} is not in this history"),
            Self::Older { commit, changed } => {
                write!(out, "it ran on {commit}; changed since: {}", changed.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn page(name: &str, is_dirty: bool) -> Option<PageCommit> {
        Some(PageCommit { name: name.to_owned(), is_dirty })
    }

    #[test]
    fn a_page_is_current_only_when_its_commit_is_known_whole_and_nothing_changed_since() {
        let commit = || "abc".to_owned();
        for (page, is_known, changed, wanted) in [
            (None, false, vec![], Standing::Missing),
            (page("abc", true), true, vec![], Standing::Uncommitted { commit: commit() }),
            (page("abc", true), false, vec!["sqlite"], Standing::Uncommitted { commit: commit() }),
            (page("abc", false), false, vec![], Standing::Unknown { commit: commit() }),
            (
                page("abc", false),
                true,
                vec!["sqlite"],
                Standing::Older { commit: commit(), changed: vec!["sqlite"] },
            ),
            (page("abc", false), true, vec![], Standing::Current),
        ] {
            assert_eq!(standing(page.clone(), is_known, changed), wanted, "{page:?}");
        }
    }

    #[test]
    fn the_commit_is_read_from_the_pages_table() {
        assert_eq!(commit_in("| result | holds |\n| commit | abc |\n| date | x |"), page("abc", false));
        assert_eq!(commit_in("| commit | abc with changes |"), page("abc", true));
        assert_eq!(commit_in("# Proof\n\nthe commit is abc"), None);
    }

    fn git(root: &Path, args: &[&str]) -> String {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let output = Command::new("git").args([&who[..], args].concat()).current_dir(root).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(root: &Path, file: &str) -> String {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "--quiet", "--message", file]);
        git(root, &["rev-parse", "HEAD"])
    }

    #[test]
    fn a_later_commit_to_a_crates_source_counts_and_one_to_its_tests_or_to_another_does_not() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        git(root, &["init", "--quiet"]);
        let proven = commit(root, "crates/sqlite/src/lib.rs");
        commit(root, "crates/sqlite/tests/it/main.rs");
        commit(root, "crates/ledger/src/lib.rs");
        assert!(!is_changed_since(root, &proven, "sqlite").unwrap());
        assert!(is_changed_since(root, &proven, "ledger").unwrap());
        commit(root, "crates/sqlite/src/log.rs");
        assert!(is_changed_since(root, &proven, "sqlite").unwrap());
        assert!(is_known(root, &proven));
        assert!(!is_known(root, "0123456789abcdef0123456789abcdef01234567"));
    }
}
