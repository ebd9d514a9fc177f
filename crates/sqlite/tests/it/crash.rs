//! A process aborted at its crash points: what was answered is there, what was not is whole or absent.

use std::path::Path;
use std::process::{Command, Output};

use sqlite::{Db, Options, fault};
use tempfile::tempdir;

use crate::setup::{SCHEMA, add, open, words};

const FOLDER: &str = "SQLITE_CRASH_FOLDER";
const WORDS: usize = 10;

/// Not a check of its own: the life of the process that the tests below start and crash.
#[test]
fn crashing_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let db = Db::open(Options::new(Path::new(&folder).join("notes.db"), SCHEMA)).unwrap();
    for n in 0..WORDS {
        db.write_blocking("note.add", add(&format!("word {n}"))).unwrap();
        println!("answered");
    }
}

fn crash(folder: &Path, plan: &str) -> Output {
    let program = std::env::current_exe().expect("a test knows its own program");
    let mut child = Command::new(program);
    child.args(["--exact", "crash::crashing_process", "--nocapture"]);
    child.env(FOLDER, folder).env(fault::VARIABLE, plan);
    child.output().expect("the test's own program can be started")
}

/// Words answered before the crash, words found after it.
fn life_until(plan: &str) -> (usize, usize) {
    let folder = tempdir().expect("a temporary folder");
    let output = crash(folder.path(), plan);
    assert!(!output.status.success(), "the process was to crash at {plan}");
    let answered = String::from_utf8_lossy(&output.stdout).matches("answered").count();
    (answered, words(&open(&folder)).len())
}

#[test]
fn a_crash_before_the_commit_leaves_nothing_of_it() {
    for visit in [1, 2, WORDS] {
        let (answered, found) = life_until(&format!("crash:note.add.before_commit:{visit}"));
        assert_eq!((answered, found), (visit - 1, visit - 1));
    }
}

#[test]
fn a_crash_after_the_commit_leaves_it_whole_though_nobody_was_told() {
    for visit in [1, 2, WORDS] {
        let (answered, found) = life_until(&format!("crash:note.add.after_commit:{visit}"));
        assert_eq!((answered, found), (visit - 1, visit));
    }
}

#[test]
fn the_planted_bug_of_answering_early_shows_as_a_loss() {
    let plans = ["bug:sqlite.answer_before_commit", "bug:sqlite.answer_before_commit:note.add"];
    for plan in plans {
        let (answered, found) = life_until(&format!("{plan},crash:note.add.before_commit:3"));
        assert_eq!((answered, found), (3, 2), "{plan}");
    }
}

#[test]
fn a_bug_planted_for_another_job_changes_nothing() {
    let (answered, found) =
        life_until("bug:sqlite.answer_before_commit:other.job,crash:note.add.before_commit:4");
    assert_eq!((answered, found), (3, 3));
}

#[test]
fn a_mistyped_plan_ends_the_process_instead_of_passing_unnoticed() {
    let folder = tempdir().expect("a temporary folder");
    let output = crash(folder.path(), "crush:note.add.before_commit");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("neither crash:"), "{output:?}");
}
