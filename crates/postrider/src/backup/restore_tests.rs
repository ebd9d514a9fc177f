use std::os::unix::fs::symlink;

use model::SystemClock;

use super::super::manifest::{FORM, FileKind, MANIFEST, digest_of};
use super::*;

/// A backup of one file.
fn backup(place: &Path) -> Manifest {
    let text = place.join(TREE).join("config.toml");
    fs::create_dir_all(place.join(TREE)).unwrap();
    fs::write(&text, "# kept\n").unwrap();
    let (bytes, sha256) = digest_of(&text).unwrap();
    let at = Timestamp::from_micros(7);
    let file = BackupFile { path: "config.toml".to_owned(), kind: FileKind::Plain, bytes, sha256 };
    let manifest =
        Manifest { form: FORM, version: "0".to_owned(), began_at: at, ended_at: at, files: vec![file] };
    fs::write(place.join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
    manifest
}

#[test]
fn a_link_in_the_home_that_is_replaced_is_refused_and_nothing_is_made_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let [place, home, others] = ["b", "h", "others"].map(|name| folder.path().join(name));
    backup(&place);
    fs::create_dir(&home).unwrap();
    fs::create_dir(&others).unwrap();
    symlink(&others, home.join("daemon")).unwrap();
    let refused = restore(&place, &home, OldHome::SetAside, &SystemClock::start());
    assert!(
        matches!(&refused, Err(BackupError::Files { path, .. }) if path.ends_with("daemon")),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(&others).unwrap().count(), 0);
    // A lock that is a link, and a link where a cut off restore could be.
    fs::remove_file(home.join("daemon")).unwrap();
    fs::create_dir(home.join("daemon")).unwrap();
    symlink(others.join("made"), home.join("daemon/lock")).unwrap();
    assert!(restore(&place, &home, OldHome::SetAside, &SystemClock::start()).is_err());
    fs::remove_file(home.join("daemon/lock")).unwrap();
    fs::write(others.join(MARK), "").unwrap();
    fs::write(others.join("kept"), "").unwrap();
    symlink(&others, folder.path().join(format!("h.{RESTORING}-1"))).unwrap();
    restore(&place, &home, OldHome::SetAside, &SystemClock::start()).unwrap();
    assert_eq!(fs::read_dir(&others).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(home.join("config.toml")).unwrap(), "# kept\n");
}

#[test]
fn a_backup_that_is_changed_after_it_was_looked_through_is_not_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let (place, secret) = (folder.path().join("b"), folder.path().join("secret"));
    let manifest = backup(&place);
    fs::write(&secret, "secret").unwrap();
    let text = place.join(TREE).join("config.toml");
    fs::remove_file(&text).unwrap();
    symlink(&secret, &text).unwrap();
    let staged = folder.path().join("h.restoring-1");
    let owner = Owner::of(folder.path()).unwrap();
    let refused = stage(&place.join(TREE), &staged, &manifest, owner, Timestamp::from_micros(9));
    assert!(matches!(&refused, Err(BackupError::Differs(_))), "{refused:?}");
}

#[test]
fn what_has_a_name_that_is_to_be_made_is_refused_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (staged, others) = (folder.path().join("staged"), folder.path().join("others"));
    fs::create_dir(&others).unwrap();
    symlink(&others, &staged).unwrap();
    assert!(Folder::make(&staged).is_err());
    fs::remove_file(&staged).unwrap();
    let made = Folder::make(&staged).unwrap();
    for name in ["daemon", "config.toml", "mailbox.db-mark"] {
        symlink(others.join("made"), staged.join(name)).unwrap();
        assert!(made.create(name).is_err() && made.open_or_create(name).is_err(), "{name}");
    }
    symlink(&others, staged.join("broker")).unwrap();
    assert!(made.make_below(Path::new("broker/of")).is_err());
    assert!(made.find(Path::new("broker")).is_err());
    assert!(made.find(Path::new("relay")).unwrap().is_none());
    assert_eq!(fs::read_dir(&others).unwrap().count(), 0);
    // The name leads elsewhere: what was opened stays what it was.
    fs::rename(&staged, folder.path().join("aside")).unwrap();
    symlink(&others, &staged).unwrap();
    made.create("kept").unwrap();
    assert!(folder.path().join("aside/kept").exists() && !others.join("kept").exists());
}
