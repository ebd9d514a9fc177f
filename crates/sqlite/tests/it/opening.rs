//! What is refused at the door, and what a new file looks like.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sqlite::{Db, Freed, OpenError, Options};
use tempfile::tempdir;

use crate::setup::{NoteError, SCHEMA, add, open, options, words};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file exists").permissions().mode() & 0o777
}

#[test]
fn a_new_file_and_its_folders_belong_to_their_owner_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("daemon/home/mailbox.db");
    let db = Db::open(Options::new(&path, SCHEMA)).unwrap();
    db.write_blocking("add", add("one")).unwrap();
    assert_eq!(mode(&folder.path().join("daemon")), 0o700);
    assert_eq!(mode(&folder.path().join("daemon/home")), 0o700);
    for name in ["mailbox.db", "mailbox.db-wal", "mailbox.db-shm", "mailbox.db-lock"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_byte_for_byte_unchanged() {
    for content in ["hello\n".to_owned(), "x".repeat(100), "not a database at all. ".repeat(1000)] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("notes.db");
        fs::write(&path, &content).unwrap();
        let refused = Db::open(options(&folder)).err();
        assert!(matches!(refused, Some(OpenError::NotADatabase { .. })), "{refused:?}");
        let text = refused.unwrap().to_string();
        assert!(text.contains("notes.db") && text.contains("move it away"), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert!(!folder.path().join("notes.db-wal").exists());
    }
}

#[test]
fn another_programs_database_is_refused_unchanged() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("notes.db");
    sqlite::rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(&path).unwrap();
    let refused = Db::open(options(&folder)).err();
    assert!(matches!(refused, Some(OpenError::Foreign { .. })), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_second_open_of_a_file_in_use_is_refused_until_the_first_closes() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    let refused = Db::open(options(&folder)).err();
    assert!(matches!(refused, Some(OpenError::Locked { .. })), "{refused:?}");
    db.close_blocking();
    open(&folder);
}

#[test]
fn a_folder_where_a_file_stands_is_refused() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    let refused = Db::open(Options::new(folder.path().join("file/notes.db"), SCHEMA)).err();
    assert!(matches!(refused, Some(OpenError::Io { .. })), "{refused:?}");
}

#[test]
fn an_empty_file_left_by_an_interrupted_start_becomes_a_database() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("notes.db"), "").unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("one")).unwrap();
    assert_eq!(words(&db), ["one"]);
}

#[test]
fn the_settings_behind_the_promises_are_in_force() {
    let folder = tempdir().unwrap();
    let db = Db::open(options(&folder).freed(Freed::Zeroed)).unwrap();
    let settings = [
        "journal_mode",
        "synchronous",
        "foreign_keys",
        "trusted_schema",
        "wal_autocheckpoint",
        "secure_delete",
    ];
    let found = db
        .write_blocking("settings", move |conn| {
            let mut values = Vec::new();
            for name in settings {
                let value = conn
                    .pragma_query_value(None, name, |row| row.get::<_, sqlite::rusqlite::types::Value>(0))?;
                values.push(format!("{value:?}"));
            }
            Ok::<_, NoteError>(values)
        })
        .unwrap();
    assert_eq!(
        found,
        [r#"Text("wal")"#, "Integer(2)", "Integer(1)", "Integer(0)", "Integer(0)", "Integer(1)"]
    );
}

/// Root may write anywhere; this thread shall not, like everybody else.
#[cfg(target_os = "linux")]
fn obey_permissions() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).expect("a thread may ask for its own rights");
    sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).expect("rights may always be laid down");
}

#[cfg(not(target_os = "linux"))]
fn obey_permissions() {}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the owner may change permissions");
}

#[test]
fn a_read_only_folder_is_named_and_nothing_is_left_in_it() {
    obey_permissions();
    let folder = tempdir().unwrap();
    allow(folder.path(), 0o500);
    for path in [folder.path().join("notes.db"), folder.path().join("deeper/notes.db")] {
        let refused = Db::open(Options::new(path, SCHEMA)).err();
        assert!(matches!(refused, Some(OpenError::ReadOnly { .. })), "{refused:?}");
        let text = refused.unwrap().to_string();
        assert!(
            text.contains(&*folder.path().to_string_lossy()) && text.contains("make it writable"),
            "{text}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    allow(folder.path(), 0o700);
}

#[test]
fn a_read_only_file_is_named_and_left_alone() {
    obey_permissions();
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("one")).unwrap();
    db.close_blocking();
    let path = folder.path().join("notes.db");
    allow(&path, 0o400);
    let before = fs::read(&path).unwrap();
    let refused = Db::open(options(&folder)).err();
    assert!(matches!(refused, Some(OpenError::ReadOnly { .. })), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
    allow(&path, 0o600);
    assert_eq!(words(&open(&folder)), ["one"]);
}

#[test]
fn a_damaged_file_is_refused_unchanged() {
    let folder = tempdir().unwrap();
    let db = open(&folder);
    db.write_blocking("add", add("one")).unwrap();
    db.close_blocking();
    let path = folder.path().join("notes.db");
    let mut content = fs::read(&path).unwrap();
    // The first page's tree, behind the header: the list of tables itself.
    content[100..400].fill(0xff);
    fs::write(&path, &content).unwrap();
    let refused = Db::open(options(&folder)).err();
    assert!(matches!(refused, Some(OpenError::Corrupt { .. })), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn a_setting_that_does_not_take_is_a_refusal() {
    let folder = tempdir().unwrap();
    // A VFS without shared memory cannot keep a log; SQLite then stays with its journal, without an error.
    let disk = sqlite::fault::Disk { vfs: Some("unix-none".into()), ..Default::default() };
    let refused = Db::open(options(&folder).fault(disk)).err();
    assert!(
        matches!(&refused, Some(OpenError::PragmaNotApplied { pragma: "journal_mode", .. })),
        "{refused:?}"
    );
    let text = refused.unwrap().to_string();
    assert!(text.contains("notes.db") && text.contains("delete"), "{text}");
}

/// The flags come from the workspace's cargo configuration, all in one line: those that SQLite can be asked for speak
/// for the one it does not list, HAVE_FDATASYNC.
#[test]
fn sqlite_was_compiled_as_the_workspace_asks() {
    let conn = sqlite::rusqlite::Connection::open_in_memory().unwrap();
    let mut options = conn.prepare("PRAGMA compile_options").unwrap();
    let options: Vec<String> = options.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for there in ["DEFAULT_MEMSTATUS=0", "OMIT_SHARED_CACHE"] {
        assert!(options.iter().any(|option| option == there), "{there}: {options:?}");
    }
    assert!(!options.iter().any(|option| option == "ENABLE_API_ARMOR"), "{options:?}");
}
