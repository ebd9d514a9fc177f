//! State that earlier binaries left behind opens and goes on: the stored part of `cargo xtask prove upgrade`.

use std::path::{Path, PathBuf};

use testkit::bin::Binary;
use testkit::fleet::upgrade::{Damage, StoredTeam};

/// The folders of one store, of every stored commit.
fn stored(store: &str) -> Vec<PathBuf> {
    let commits = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored")).unwrap();
    let folders: Vec<PathBuf> = commits.map(|commit| commit.unwrap().path().join(store)).collect();
    assert!(!folders.is_empty(), "nothing is stored");
    folders
}

fn goes_on(folder: &Path, damage: Option<Damage>) -> Vec<String> {
    let team = StoredTeam::read(folder).unwrap();
    let binary = Binary::at(env!("CARGO_BIN_EXE_postrider"));
    team.go_on(&binary, damage).unwrap().broken
}

#[test]
fn what_every_stored_binary_left_in_files_opens_is_known_and_goes_on() {
    for folder in stored("sqlite") {
        assert_eq!(goes_on(&folder, None), Vec::<String>::new(), "{}", folder.display());
    }
}

#[test]
fn what_every_stored_binary_left_in_postgresql_opens_is_known_and_goes_on() {
    for folder in stored("postgres") {
        assert_eq!(goes_on(&folder, None), Vec::<String>::new(), "{}", folder.display());
    }
}

#[test]
fn what_is_taken_out_of_stored_state_is_named() {
    let folder = stored("sqlite").pop().unwrap();
    let broken = goes_on(&folder, Some(Damage::WaitingRow));
    let named = |words: &str| broken.iter().any(|sentence| sentence.contains(words));
    assert!(named("the inbox of bob holds") && named("waiting.to-bob.1 sent again"), "{broken:#?}");
}
