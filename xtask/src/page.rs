//! The page of `web/`: its tools, and whether its committed build is made from its sources.
//!
//! A user builds without Node, so the build is committed; `web/build.sha256` lists what it was made from and what
//! it consists of, in the form of sha256sum. `npm run build` writes both.

use crate::workspace::Workspace;
use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders whose every file must be listed.
const WHOLE: &[&str] = &["dist", "public", "src"];
const LIST: &str = "build.sha256";

/// Installs the tools the lock file names, unless those are what is there.
pub fn provide(workspace: &Workspace) -> anyhow::Result<()> {
    let web = workspace.root.join("web");
    let lock = fs::read(web.join("package-lock.json")).context("web/package-lock.json")?;
    let mark = web.join("node_modules/.installed-from");
    if fs::read(&mark).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let status = Command::new("npm").arg("ci").current_dir(&web).status().context("npm cannot be run")?;
    ensure!(status.success(), "`npm ci` in web/ ended with {status}");
    fs::write(mark, lock).context("web/node_modules")
}

/// What differs between the list and the files of `web`, a sentence each.
pub fn stale(web: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(web.join(LIST)).context("web/build.sha256")?;
    let listed: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once("  ").map(|(sum, name)| (name, sum))).collect();
    let mut here = Vec::new();
    for folder in WHOLE {
        files_below(web, Path::new(folder), &mut here)?;
    }
    let changed = listed.iter().filter(|(name, sum)| sum_of(&web.join(name)).as_deref() != Some(**sum));
    let names = changed.map(|(name, _)| (*name).to_owned());
    // Tests of the modules are no part of the page.
    let unlisted =
        here.into_iter().filter(|name| !listed.contains_key(name.as_str()) && !name.ends_with(".test.ts"));
    Ok(names
        .chain(unlisted)
        .map(|name| {
            format!("web/{name} is not what the page was built from; `npm run build` in web/ builds it")
        })
        .collect())
}

fn files_below(web: &Path, folder: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(web.join(folder)).with_context(|| format!("web/{}", folder.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files_below(web, &path, found)?;
        } else {
            found.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

fn sum_of(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    Some(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of one source and one built file, listed as they are.
    fn page() -> tempfile::TempDir {
        let web = tempfile::tempdir().unwrap();
        let mut list = String::new();
        for (name, text) in [("dist/index.html", "built"), ("public/icon.svg", ""), ("src/main.ts", "source")]
        {
            let path = web.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            list.push_str(&format!("{}  {name}\n", sum_of(&path).unwrap()));
        }
        fs::write(web.path().join(LIST), list).unwrap();
        web
    }

    #[test]
    fn a_build_that_was_made_from_its_sources_is_fresh() {
        assert!(stale(page().path()).unwrap().is_empty());
    }

    #[test]
    fn a_changed_a_missing_and_an_unlisted_file_are_each_named() {
        let web = page();
        fs::write(web.path().join("src/main.ts"), "other words").unwrap();
        fs::remove_file(web.path().join("dist/index.html")).unwrap();
        fs::write(web.path().join("src/more.ts"), "").unwrap();
        fs::write(web.path().join("src/more.test.ts"), "").unwrap();
        let named: Vec<String> = stale(web.path()).unwrap();
        assert_eq!(named.len(), 3, "{named:?}");
        for name in ["web/dist/index.html", "web/src/main.ts", "web/src/more.ts"] {
            assert!(
                named.iter().any(|sentence| sentence.starts_with(&format!("{name} is not"))),
                "{named:?}"
            );
        }
    }
}
