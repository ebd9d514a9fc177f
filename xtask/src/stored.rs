//! `cargo xtask store-state REV`: what a team under that commit's binary leaves behind, kept for the tests that open it
//! under every later binary.
//!
//! One folder a commit below `crates/postrider/tests/stored`, named by the commit, with a team on each store and the
//! numbers of the newest migrations then. A commit is stored when it is the last one before a new migration lands; a
//! test says so.

use crate::Ending;
use crate::build::Profile;
use crate::revision::Revision;
use crate::workspace::Workspace;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use testkit::bin::Binary;
use testkit::fleet::races::Store;
use testkit::fleet::upgrade::store_team;

/// The folders of migrations, each with the name of what they lead to.
pub const MIGRATIONS: [(&str, &str); 4] = [
    ("mailbox", "crates/mailbox/src/migrations"),
    ("relay", "crates/mailbox/src/relay/migrations"),
    ("ledger on SQLite", "crates/ledger/src/sqlite/migrations"),
    ("ledger on PostgreSQL", "crates/ledger/src/postgres/migrations"),
];
const SCHEMAS: &str = "schemas.json";

/// The newest migration of each, by name.
pub type Schemas = BTreeMap<String, u32>;

/// Stores what `asked` leaves behind; `binary` is that commit's, when there is one already.
pub fn run(workspace: &Workspace, asked: &str, binary: Option<PathBuf>) -> anyhow::Result<Ending> {
    let revision = Revision::find(&workspace.root, asked)?;
    let binary = match binary {
        // Its processes run elsewhere.
        Some(binary) => binary.canonicalize().with_context(|| binary.display().to_string())?,
        None => revision.product(workspace, Profile::Release)?,
    };
    let folder = stored_below(&workspace.root).join(revision.short());
    let mut schemas = Schemas::new();
    for (name, migrations) in MIGRATIONS {
        schemas.insert(name.to_owned(), newest(&revision.files(&workspace.root, migrations)?)?);
    }
    for (name, store) in [("sqlite", Store::Sqlite), ("postgres", Store::Postgres)] {
        let told = store_team(&Binary::at(&binary), &revision.commit, store, &folder.join(name))?;
        println!("{}: {} answers to callers", folder.join(name).display(), told.acked());
    }
    let text = serde_json::to_string_pretty(&schemas)?;
    std::fs::write(folder.join(SCHEMAS), text + "\n").context(SCHEMAS)?;
    Ok(Ending::Holds)
}

/// The folder with a folder for each stored commit.
pub fn stored_below(root: &Path) -> PathBuf {
    root.join("crates/postrider/tests/stored")
}

/// Every stored commit with its schemas, sorted by name.
pub fn stored(root: &Path) -> anyhow::Result<Vec<(String, Schemas)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(stored_below(root)).context("crates/postrider/tests/stored")? {
        let path = entry?.path();
        let text = std::fs::read_to_string(path.join(SCHEMAS)).with_context(|| path.display().to_string())?;
        let commit = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.push((commit, serde_json::from_str(&text).with_context(|| path.display().to_string())?));
    }
    found.sort();
    Ok(found)
}

/// Schemas that landed with a successor and of which nothing is stored, a sentence each.
pub fn unstored(landed: &Schemas, stored: &[(String, Schemas)]) -> Vec<String> {
    let mut sentences = Vec::new();
    for (name, newest) in landed {
        let numbers: Vec<u32> = stored.iter().filter_map(|(_, schemas)| schemas.get(name).copied()).collect();
        // What was before the first stored state cannot be made up for.
        let first = numbers.iter().copied().min().unwrap_or(*newest);
        let missing = (first..*newest).filter(|number| !numbers.contains(number));
        sentences.extend(missing.map(|number| {
            format!(
                "no state of the {name} under schema {number} is stored, and schema {} has landed: \
                 `cargo xtask store-state REV` with the last commit before it",
                number + 1
            )
        }));
    }
    sentences
}

/// The newest migrations of this checkout.
pub fn landed(root: &Path) -> anyhow::Result<Schemas> {
    let mut schemas = Schemas::new();
    for (name, folder) in MIGRATIONS {
        let entries = std::fs::read_dir(root.join(folder)).with_context(|| folder.to_owned())?;
        let names: Vec<String> = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<_>>()?;
        schemas.insert(name.to_owned(), newest(&names)?);
    }
    Ok(schemas)
}

/// The greatest number that begins a file's name.
fn newest(files: &[String]) -> anyhow::Result<u32> {
    let number = |file: &String| file.rsplit('/').next()?.split('_').next()?.parse::<u32>().ok();
    let newest = files.iter().filter_map(number).max();
    ensure!(newest.is_some(), "no migration among {files:?}");
    newest.context("a migration")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas(mailbox: u32, relay: u32) -> Schemas {
        Schemas::from([("mailbox".to_owned(), mailbox), ("relay".to_owned(), relay)])
    }

    #[test]
    fn the_newest_migration_is_the_greatest_number() {
        let files = ["a/b/0009_nine.sql", "a/b/0010_ten.sql", "a/b/0002_two.sql"].map(str::to_owned);
        assert_eq!(newest(&files).unwrap(), 10);
        assert!(newest(&["a/b/words.sql".to_owned()]).is_err());
    }

    #[test]
    fn each_schema_between_the_first_stored_one_and_the_newest_must_be_stored() {
        let stored = |all: &[(u32, u32)]| -> Vec<(String, Schemas)> {
            all.iter().map(|(mailbox, relay)| ("c".to_owned(), schemas(*mailbox, *relay))).collect()
        };
        for (landed, stored, missing) in [
            (schemas(5, 6), stored(&[(5, 6)]), vec![]),
            (schemas(6, 6), stored(&[(5, 6)]), vec![]),
            (schemas(7, 6), stored(&[(5, 6)]), vec!["the mailbox under schema 6"]),
            (schemas(7, 8), stored(&[(5, 6), (6, 6)]), vec!["the relay under schema 7"]),
            (schemas(7, 8), stored(&[(5, 6), (6, 7)]), vec![]),
        ] {
            let said = unstored(&landed, &stored);
            assert_eq!(said.len(), missing.len(), "{said:?}");
            assert!(said.iter().zip(&missing).all(|(said, words)| said.contains(words)), "{said:?}");
        }
    }
}
