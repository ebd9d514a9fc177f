//! `backup`, `backup verify` and `restore` with the real binary, and killed at each of their steps.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::bin::{Home, Options, Output, Product};
use testkit::process::Channel;
use testkit::wait::wait_for;

use super::{home, up};

/// On a machine whose cores are busy.
const BOUND: Duration = Duration::from_secs(60);
/// Every step of a backup, in their order.
const BACKUP_POINTS: [&str; 4] =
    ["backup.copied", "backup.manifest", "backup.before_rename", "backup.after_rename"];
/// Every step of a restore over a home that is there, in their order.
const RESTORE_POINTS: [&str; 6] = [
    "restore.marked",
    "restore.copied",
    "restore.staged",
    "restore.exchanged",
    "restore.set_aside",
    "restore.unmarked",
];

/// A folder for backups, outside of every home.
struct Shelf {
    folder: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn place(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

fn bodies(home: &Home) -> Vec<String> {
    let rows = home.cli(&["--json", "inbox", "--limit", "1000"]).unwrap().done().json();
    rows.iter().map(|row| row["body"].as_str().unwrap_or_default().to_owned()).collect()
}

fn send(home: &Home, body: &str) {
    home.cli(&["send", "me", body, "--wait", "delivered"]).unwrap().done();
}

fn stop(product: Product<'_>) {
    product.interrupt().unwrap();
}

/// Everything below a folder.
fn all(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        found.push(folder.clone());
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found
}

fn is_open(path: &Path) -> bool {
    fs::metadata(path).unwrap().permissions().mode() & 0o077 != 0
}

fn killed_at(home: &Home, point: &str, args: &[&str]) -> Output {
    let fault = format!("crash:{point}");
    let output = home.cli_with(args, &[("POSTRIDER_FAULT", &fault)], "").unwrap();
    assert_eq!(output.code(), None, "{point} was not reached: {output:?}");
    output
}

/// Names beside the home that begin with its own.
fn beside(home: &Home) -> Vec<String> {
    let name = home.path().file_name().unwrap().to_string_lossy().into_owned();
    let entries = fs::read_dir(home.path().parent().unwrap()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|found| found.starts_with(&format!("{name}."))).collect();
    names.sort();
    names
}

#[test]
fn a_backup_of_a_busy_home_is_whole_private_and_any_change_of_it_is_named() {
    let (home, shelf) = (home(), Shelf::new());
    let product = up(&home);
    send(&home, "before");
    let place = shelf.place("b");
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            for n in 0..20 {
                home.cli(&["send", "me", &format!("beside {n}")]).unwrap().done();
            }
        });
        let made = home.cli(&["--json", "backup", &place]).unwrap().done().json().remove(0);
        assert_eq!(made["state"], "made", "{made}");
        busy.join().unwrap();
    });
    let open: Vec<PathBuf> = all(Path::new(&place)).into_iter().filter(|path| is_open(path)).collect();
    assert_eq!(open, Vec::<PathBuf>::new());
    let whole = home.cli(&["--json", "backup", "verify", &place]).unwrap().done().json().remove(0);
    assert_eq!(whole["state"], "whole", "{whole}");
    let taken = home.cli(&["--json", "backup", &place]).unwrap();
    assert!(taken.code() == Some(1) && taken.stderr.contains("is there already"), "{taken:?}");
    let inside = home.path().join("b").display().to_string();
    let inside = home.cli(&["backup", &inside]).unwrap();
    assert!(inside.code() == Some(1) && inside.stderr.contains("lies inside the home"), "{inside:?}");
    stop(product);
    let files = ["home/daemon/home/mailbox.db", "home/broker/ledger.db", "home/daemon/home/keypair.json"];
    for file in files {
        let path = Path::new(&place).join(file);
        let kept = fs::read(&path).unwrap();
        let opened = fs::OpenOptions::new().write(true).open(&path).unwrap();
        opened.write_all_at(&[kept[kept.len() / 2] ^ 1], kept.len() as u64 / 2).unwrap();
        let changed = home.cli(&["backup", "verify", &place]).unwrap();
        let name = file.strip_prefix("home/").unwrap();
        assert!(changed.code() == Some(1) && changed.stderr.contains(name), "{changed:?}");
        let refused = home.cli(&["restore", &place, "--replace"]).unwrap();
        assert!(refused.code() == Some(1) && refused.stderr.contains(name), "{refused:?}");
        fs::remove_file(&path).unwrap();
        let missing = home.cli(&["backup", "verify", &place]).unwrap();
        assert!(missing.code() == Some(1) && missing.stderr.contains(name), "{missing:?}");
        fs::write(&path, kept).unwrap();
    }
    fs::write(Path::new(&place).join("home/daemon/more"), "x").unwrap();
    let more = home.cli(&["backup", "verify", &place]).unwrap();
    assert!(more.code() == Some(1) && more.stderr.contains("daemon/more"), "{more:?}");
}

#[test]
fn a_restored_home_goes_on_as_itself_and_the_old_one_is_kept() {
    let (home, shelf) = (home(), Shelf::new());
    let product = up(&home);
    send(&home, "kept");
    let place = shelf.place("b");
    home.cli(&["backup", &place]).unwrap().done();
    send(&home, "after");
    let running = home.cli(&["restore", &place, "--replace"]).unwrap();
    assert!(running.code() == Some(1) && running.stderr.contains("postrider down"), "{running:?}");
    stop(product);
    let filled = home.cli(&["restore", &place]).unwrap();
    assert!(filled.code() == Some(1) && filled.stderr.contains("--replace"), "{filled:?}");
    let done = home.cli(&["--json", "restore", &place, "--replace"]).unwrap().done().json().remove(0);
    let aside = PathBuf::from(done["aside"].as_str().unwrap());
    assert!(aside.join("daemon/home/mailbox.db").exists(), "{done}");
    let product = up(&home);
    assert_eq!(bodies(&home), ["kept"], "both files of this home are of one moment");
    send(&home, "and on");
    assert_eq!(bodies(&home), ["kept", "and on"]);
    stop(product);
    // The whole home again, into an empty place.
    let (second, place) = (self::home(), shelf.place("c"));
    home.cli(&["backup", &place]).unwrap().done();
    second.cli(&["restore", &place]).unwrap().done();
    let _product = up(&second);
    assert_eq!(bodies(&second), ["kept", "and on"]);
}

#[test]
fn a_second_live_copy_of_a_node_is_parked_as_replaced() {
    let (first, second, third, shelf) = (home(), home(), home(), Shelf::new());
    let broker = up(&first);
    let other = up(&second);
    let invite = broker.cli(&["--quiet", "invite", "lab"]).unwrap().done().stdout;
    let join = ["join", invite.trim(), "--node", "lab", "--person", "tom", "--mesh-as", "far"];
    other.cli(&join).unwrap().done();
    let place = shelf.place("b");
    second.cli(&["backup", &place]).unwrap().done();
    third.cli(&["restore", &place]).unwrap().done();
    let _copy = up(&third);
    let link = |home: &Home| {
        let health = home.cli(&["--json", "status"]).unwrap().done().json().remove(0);
        let meshes = health["meshes"].as_array().unwrap().clone();
        meshes.into_iter().find(|mesh| mesh["mesh"] == "far").unwrap()
    };
    let parked = wait_for("one of the two to be parked", BOUND, || {
        let links = [link(&second), link(&third)];
        links.into_iter().find(|link| link["link"] == "parked")
    });
    let parked = parked.unwrap();
    assert!(parked["reason"].as_str().unwrap().contains("replaced"), "{parked}");
    broker.cli(&["send", "tom", "to whoever is tom", "--wait", "delivered"]).unwrap().done();
}

#[test]
fn a_backup_killed_at_any_step_is_never_taken_for_a_whole_one_and_the_next_one_is() {
    let (home, shelf) = (home(), Shelf::new());
    let product = up(&home);
    send(&home, "kept");
    stop(product);
    for point in BACKUP_POINTS {
        let place = shelf.place(point);
        killed_at(&home, point, &["backup", &place]);
        let renamed = point == "backup.after_rename";
        assert_eq!(Path::new(&place).exists(), renamed, "{point}");
        if renamed {
            home.cli(&["backup", "verify", &place]).unwrap().done();
            continue;
        }
        let unfinished = format!("{place}.unfinished");
        let refused = home.cli(&["restore", &unfinished, "--replace"]).unwrap();
        assert!(refused.code() == Some(1) && refused.stderr.contains("cut off"), "{point}: {refused:?}");
        home.cli(&["backup", &place]).unwrap().done();
        home.cli(&["backup", "verify", &place]).unwrap().done();
        assert!(!Path::new(&unfinished).exists(), "{point}");
    }
}

#[test]
fn a_restore_killed_at_any_step_leaves_the_old_home_or_the_new_one_whole() {
    let (home, shelf) = (home(), Shelf::new());
    let product = up(&home);
    send(&home, "kept");
    let place = shelf.place("b");
    home.cli(&["backup", &place]).unwrap().done();
    send(&home, "after");
    stop(product);
    let exchanged = RESTORE_POINTS.iter().position(|point| *point == "restore.exchanged").unwrap();
    for (step, point) in RESTORE_POINTS.into_iter().enumerate() {
        killed_at(&home, point, &["restore", &place, "--replace"]);
        let product = up(&home);
        let expected: &[&str] = if step < exchanged { &["kept", "after"] } else { &["kept"] };
        assert_eq!(bodies(&home), expected, "{point}");
        stop(product);
        let left = beside(&home);
        assert!(left.iter().all(|name| name.contains(".before-restore-")), "{point}: {left:?}");
        if step >= exchanged {
            // The home of before is whole too, under the name that says so: it is put back by hand.
            let aside = home.path().parent().unwrap().join(left.last().unwrap());
            fs::remove_dir_all(home.path()).unwrap();
            fs::rename(aside, home.path()).unwrap();
        }
    }
    // Cut off again while the rest of a restore is removed.
    killed_at(&home, "restore.copied", &["restore", &place, "--replace"]);
    let options = Options { faults: vec!["crash:restore.removing".to_owned()], ..Options::default() };
    let mut process = Product::spawn(&home, &options).unwrap();
    assert!(!process.wait_exit(BOUND).unwrap().success());
    let _product = up(&home);
    assert_eq!(bodies(&home), ["kept", "after"]);
    assert_eq!(beside(&home), Vec::<String>::new());
}

#[test]
fn a_restore_into_an_empty_place_killed_at_any_step_is_done_or_not_begun() {
    let (source, shelf) = (home(), Shelf::new());
    let product = up(&source);
    send(&source, "kept");
    stop(product);
    let place = shelf.place("b");
    source.cli(&["backup", &place]).unwrap().done();
    for point in ["restore.marked", "restore.copied", "restore.staged", "restore.renamed", "restore.unmarked"]
    {
        let home = home();
        killed_at(&home, point, &["restore", &place]);
        if !home.path().exists() {
            home.cli(&["restore", &place]).unwrap().done();
        }
        let _product = up(&home);
        assert_eq!(bodies(&home), ["kept"], "{point}");
        assert_eq!(beside(&home), Vec::<String>::new(), "{point}");
    }
}

#[test]
fn a_unit_that_cannot_end_a_killed_restore_beside_its_home_starts_and_names_the_command_that_does() {
    let (home, shelf) = (home(), Shelf::new());
    let product = up(&home);
    send(&home, "kept");
    let place = shelf.place("b");
    home.cli(&["backup", &place]).unwrap().done();
    stop(product);
    killed_at(&home, "restore.copied", &["restore", &place, "--replace"]);
    let copy = home.path().parent().unwrap().join(&beside(&home)[0]);
    let args = ["up", "--json", "--listen", "127.0.0.1:0"];
    let mut unit = home.spawn_confined_to_home(&args).unwrap();
    let ready = unit.line(Channel::Stdout, "its ready line", BOUND, |line| line.contains("ready"));
    let told = unit.text(Channel::Stderr);
    assert!(ready.is_ok(), "{told}");
    let remove = format!("rm -r {}", copy.display());
    assert!(told.contains("a restore left when it was cut off") && told.contains(&remove), "{told}");
    assert_eq!(bodies(&home), ["kept"]);
    let doctor = home.cli(&["--json", "doctor"]).unwrap().json();
    let finding = doctor.iter().find(|row| row["check"] == "leftover").unwrap();
    assert_eq!((&finding["level"], &finding["fix"][0]), (&"warn".into(), &remove.into()), "{finding}");
    unit.interrupt();
    unit.wait_exit(BOUND).unwrap();
    // Whoever may write there ends it with the next start.
    let _product = up(&home);
    assert!(!copy.exists());
}

/// Only root may give files away; for anybody else all of this holds with its own account.
#[test]
fn a_restored_home_belongs_to_whom_the_one_before_did_whoever_restores_it() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let (home, shelf) = (home(), Shelf::new());
    let product = up(&home);
    send(&home, "kept");
    stop(product);
    let place = shelf.place("b");
    home.cli(&["backup", &place]).unwrap().done();
    let wanted = if is_root { (65_534, 65_533) } else { owner(home.path().as_path()) };
    let all_are_wanted = |what: &str, home: &Home| {
        let others: Vec<_> = all(&home.path()).into_iter().filter(|path| owner(path) != wanted).collect();
        assert_eq!(others, Vec::<PathBuf>::new(), "{what}");
    };
    for path in all(&home.path()) {
        chown(path, Some(wanted.0), Some(wanted.1)).unwrap();
    }
    // Until all of it is there nobody else may enter the copy, and put a link in the way of what comes next.
    let own = fs::metadata("/proc/self").map(|own| (own.uid(), own.gid())).unwrap();
    killed_at(&home, "restore.copied", &["restore", &place, "--replace"]);
    let copy = home.path().parent().unwrap().join(&beside(&home)[0]);
    assert_eq!((owner(&copy), is_open(&copy)), (own, false));
    fs::remove_file(home.path().join("daemon/lock")).unwrap();
    home.cli(&["restore", &place, "--replace"]).unwrap().done();
    all_are_wanted("a home that is replaced", &home);
    let aside = home.path().parent().unwrap().join(&beside(&home)[0]);
    assert_eq!(owner(&aside.join("daemon/lock")), wanted, "a lock that was made on the way");
    // Into a folder that its owner made for it, and into one of its owner's.
    let empty = self::home();
    fs::create_dir(empty.path()).unwrap();
    chown(empty.path(), Some(wanted.0), Some(wanted.1)).unwrap();
    let absent = self::home();
    chown(absent.path().parent().unwrap(), Some(wanted.0), Some(wanted.1)).unwrap();
    for (what, home) in [("an empty folder", empty), ("no folder", absent)] {
        home.cli(&["restore", &place]).unwrap().done();
        all_are_wanted(what, &home);
    }
}

fn owner(path: &Path) -> (u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.gid())
}
