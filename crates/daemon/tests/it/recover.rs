//! `postrider daemon recover`, killed at every step: the next start finishes it or refuses with the remedy, and no id that
//! was acknowledged is unknown to anybody who asks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use daemon::{Recovered, recover};
use model::{OsEntropy, SystemClock};
use serde_json::Value;
use sqlite::rusqlite::Connection;

use crate::home::Home;

/// Set for the process that recovers and is killed: the home it recovers.
const KILLED: &str = "RECOVER_HOME";
const FAULT: &str = "POSTRIDER_FAULT";
const THIS_TEST: &str = "recover::killed_at_any_step_it_loses_no_id_and_says_what_it_did";
const IDS: u32 = 24;
const PAGE: usize = 4096;

fn recover_here(root: &Path) -> Vec<Recovered> {
    recover(root, &SystemClock::start(), Arc::new(OsEntropy)).unwrap()
}

/// Recovers `root` in a process of its own with these faults; what it wrote to stderr, and whether it ended well.
fn recover_elsewhere(root: &Path, faults: &str) -> (String, bool) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", THIS_TEST, "--nocapture"]).env(KILLED, root).env(FAULT, faults);
    let output = command.output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}

/// Every step the recovery of `root` passes, as its name and its visit: of the files all, of the commits into the new
/// file, which nothing looks at before it is whole, the first and the last.
fn steps(root: &Path) -> Vec<(String, usize)> {
    let (stderr, ended) = recover_elsewhere(root, "watch");
    assert!(ended, "{stderr}");
    let mut visits: BTreeMap<String, usize> = BTreeMap::new();
    let reached = stderr.lines().filter_map(|line| line.split_once(": reached ")).map(|(_, name)| name);
    let all: Vec<(String, usize)> = reached
        .map(|name| {
            let visit = visits.entry(name.to_owned()).or_default();
            *visit += 1;
            (name.to_owned(), *visit)
        })
        .collect();
    let is_of_files = |name: &str| name.starts_with("recover.");
    all.into_iter()
        .filter(|(name, visit)| is_of_files(name) || *visit == 1 || *visit == visits[name])
        .collect()
}

fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn ids() -> impl Iterator<Item = String> {
    (0..IDS).map(|n| format!("m{n}"))
}

/// A stopped home whose mailbox holds acknowledged ids in its file and in its log, and whose file is damaged where no
/// row stands: all ids can be carried over. The rows of the ids, and a copy of the mesh's folder.
async fn damaged() -> (Home, BTreeMap<String, Value>, tempfile::TempDir) {
    let (broker, mut home) = Home::linked().await;
    broker.hang_up();
    home.until_link("away").await;
    let mut rows = BTreeMap::new();
    for id in ids().take(IDS as usize / 2) {
        rows.insert(
            id.clone(),
            home.unix().send(&id, "@ci", &"words ".repeat(200)).await.body["row"].clone(),
        );
    }
    home.stop().await;
    home.start().await;
    for id in ids().skip(IDS as usize / 2) {
        rows.insert(id.clone(), home.unix().send(&id, "@ci", "words").await.body["row"].clone());
    }
    // As a kill leaves it: what came since the start stands in the log alone.
    let killed = tempfile::tempdir().unwrap();
    copy(&mesh_folder(&home), killed.path());
    home.stop().await;
    copy(killed.path(), &mesh_folder(&home));
    let log = home.mailbox_path().with_file_name("mailbox.db-wal");
    assert!(fs::metadata(&log).unwrap().len() > PAGE as u64, "the log holds what was acknowledged last");
    damage_an_index(&home.mailbox_path());
    copy(&mesh_folder(&home), killed.path());
    (home, rows, killed)
}

fn mesh_folder(home: &Home) -> PathBuf {
    home.mailbox_path().parent().unwrap().to_owned()
}

/// Overwrites the root of an index that no row is found by.
fn damage_an_index(path: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let aside = folder.path().join("mailbox.db");
    fs::copy(path, &aside).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'inbox_given_up'";
    let conn = Connection::open(&aside).unwrap();
    let root: usize = conn.query_row(root, [], |row| row.get(0)).unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[(root - 1) * PAGE..root * PAGE].fill(0xA5);
    fs::write(path, bytes).unwrap();
}

/// Starts the daemon: with a mailbox every id is known by its row; without one it names the command that helps, and
/// says of no id that it is unknown. Whether there was a mailbox.
async fn start_and_ask(home: &mut Home, rows: &BTreeMap<String, Value>, step: &str) -> bool {
    home.start().await;
    let caller = home.unix();
    let mesh = caller.get("/v1/health").await.body["meshes"][0].clone();
    let is_open = mesh["link"] != "shut";
    for (id, row) in rows {
        let said = caller.get(&format!("/v1/messages/{id}")).await;
        if is_open {
            assert_eq!((said.status, &said.body["id"]), (200, row), "{step}: {id}");
        } else {
            assert_eq!(said.status, 503, "{step}: {id}: {said:?}");
            let message = said.body["message"].as_str().unwrap();
            assert!(message.contains("postrider daemon recover"), "{step}: {message}");
        }
    }
    home.stop().await;
    is_open
}

fn rebuilt(recovered: &[Recovered], step: &str) -> bool {
    match recovered {
        [Recovered::Sound { .. }] => false,
        [Recovered::Rebuilt { aside, salvaged, .. }] => {
            let told = (salvaged.outbox, salvaged.outbox_lost, salvaged.inbox_lost);
            assert_eq!(told, (u64::from(IDS), 0, 0), "{step}");
            assert!(aside.exists(), "{step}: the damaged file is kept at {}", aside.display());
            true
        }
        other => panic!("{step}: {other:?}"),
    }
}

#[tokio::test]
async fn killed_at_any_step_it_loses_no_id_and_says_what_it_did() {
    if let Some(root) = std::env::var_os(KILLED) {
        recover_here(Path::new(&root));
        return;
    }
    let (mut home, rows, damaged) = damaged().await;
    let folder = mesh_folder(&home);
    let steps = steps(home.path());
    assert!(steps.len() > 20, "{steps:?}");
    for (place, (name, visit)) in steps.iter().enumerate() {
        let step = format!("{name}, visit {visit}");
        copy(damaged.path(), &folder);
        let (stderr, ended) = recover_elsewhere(home.path(), &format!("crash:{name}:{visit}"));
        assert!(!ended && stderr.contains("crash at"), "{step}: not killed: {stderr}");
        // Every other time a start comes before the next recovery.
        let is_recorded = folder.join("mailbox.db.exchange").exists();
        let is_started = place % 2 == 0;
        if is_started {
            start_and_ask(&mut home, &rows, &step).await;
        }
        // A start finishes a recorded exchange, and nothing else.
        let told = rebuilt(&recover_here(home.path()), &step);
        assert_eq!(told, !(is_started && is_recorded), "{step}: what the next recovery says of the repair");
        assert!(!rebuilt(&recover_here(home.path()), &step), "{step}: nothing was left to do");
        assert!(start_and_ask(&mut home, &rows, &step).await, "{step}: the mailbox is there at last");
    }
}

#[tokio::test]
async fn a_start_makes_no_empty_mailbox_beside_one_that_was_set_aside() {
    let (mut home, rows, _damaged) = damaged().await;
    let path = home.mailbox_path();
    let (log, aside) =
        (path.with_file_name("mailbox.db-wal"), path.with_file_name("mailbox.db.corrupt-17000"));
    // As a recovery of an earlier version left them that was killed between its first two renames.
    fs::rename(&path, &aside).unwrap();
    assert!(log.exists(), "what was acknowledged last stands in the log alone");
    assert!(!start_and_ask(&mut home, &rows, "set aside").await, "an empty mailbox was made");
    assert!(!path.exists());
    let recovered = recover_here(home.path());
    assert!(rebuilt(&recovered, "set aside"));
    assert!(matches!(&recovered[..], [Recovered::Rebuilt { aside: named, .. }] if *named == aside));
    assert!(start_and_ask(&mut home, &rows, "recovered").await);
    assert!(!rebuilt(&recover_here(home.path()), "again"));
}

#[tokio::test]
async fn a_file_that_stands_beside_a_sound_mailbox_is_named_and_kept() {
    let (_broker, mut home) = Home::linked().await;
    home.stop().await;
    let left = home.mailbox_path().with_file_name("mailbox.db.recovering");
    fs::write(&left, "rows of before").unwrap();
    let sound = Recovered::Sound { mesh: "home".to_owned(), leftover: Some(left.clone()) };
    assert_eq!(recover_here(home.path()), [sound]);
    assert_eq!(fs::read(&left).unwrap(), b"rows of before");
}

#[tokio::test]
async fn a_mailbox_that_is_gone_with_nothing_to_rebuild_it_from_is_refused_by_name() {
    let (mut home, rows, _damaged) = damaged().await;
    let path = home.mailbox_path();
    fs::rename(&path, path.with_file_name("mailbox.db.recovering")).unwrap();
    assert!(!start_and_ask(&mut home, &rows, "gone").await);
    let refused = recover(home.path(), &SystemClock::start(), Arc::new(OsEntropy)).unwrap_err().to_string();
    assert!(refused.contains("mailbox.db is missing") && refused.contains("put it back"), "{refused}");
    fs::rename(path.with_file_name("mailbox.db.recovering"), &path).unwrap();
    assert!(rebuilt(&recover_here(home.path()), "put back"));
}
