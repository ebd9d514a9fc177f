//! Locks, sockets and key files: who lives in a home.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;

use model::{NodeKey, OsEntropy};
use net::handshake::{KeyFileError, KeyPair};
use net::local::{BindError, LockError, bind_unix, lock_exclusive, private_folder};
use tokio::net::UnixStream;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_lock_has_one_holder_and_is_free_when_that_one_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = lock_exclusive(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(matches!(lock_exclusive(&path), Err(LockError::Held { .. })));
    drop(lock);
    lock_exclusive(&path).unwrap();
}

#[test]
fn a_lock_file_is_never_reached_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (target, path) = (folder.path().join("target"), folder.path().join("lock"));
    symlink(&target, &path).unwrap();
    assert!(matches!(lock_exclusive(&path), Err(LockError::Unusable { .. })));
    assert!(!target.exists());
}

#[tokio::test]
async fn a_socket_is_for_its_own_account_alone_and_replaces_that_of_the_dead() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_exclusive(&folder.path().join("lock")).unwrap();
    let path = folder.path().join("daemon/sock");
    for _ in 0..2 {
        // The second time the file of the first stands there, and nobody listens.
        let listener = bind_unix(&path, &lock).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let (dialled, accepted) = tokio::join!(UnixStream::connect(&path), listener.accept());
        dialled.and(accepted.map(|_| ())).unwrap();
    }
    let left: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [path]);
}

#[tokio::test]
async fn a_bind_that_was_killed_halfway_does_not_stop_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_exclusive(&folder.path().join("lock")).unwrap();
    private_folder(&folder.path().join("daemon")).unwrap();
    drop(StdListener::bind(folder.path().join("daemon/sock.b")).unwrap());
    bind_unix(&folder.path().join("daemon/sock"), &lock).unwrap();
}

#[tokio::test]
async fn what_is_no_socket_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_exclusive(&folder.path().join("lock")).unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("file"), "precious").unwrap();
    fs::create_dir(path("folder")).unwrap();
    drop(StdListener::bind(path("real")).unwrap());
    symlink(path("real"), path("link")).unwrap();
    symlink(path("nowhere"), path("dangling")).unwrap();
    for (name, expected) in [
        ("file", "a file"),
        ("folder", "a folder"),
        ("link", "a symbolic link"),
        ("dangling", "a symbolic link"),
    ] {
        match bind_unix(&path(name), &lock) {
            Err(BindError::Occupied { found, .. }) => assert_eq!(found, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(fs::read_to_string(path("file")).unwrap(), "precious");
    assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(path("real")).unwrap().file_type().is_socket());
}

#[tokio::test]
async fn a_folder_others_may_enter_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_exclusive(&folder.path().join("lock")).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let refused = bind_unix(&folder.path().join("sock"), &lock);
    assert!(matches!(refused, Err(BindError::FolderOpen { .. })), "{refused:?}");
    assert_eq!(mode(folder.path()), 0o755);
}

#[test]
fn a_key_pair_is_made_once_and_is_the_same_ever_after() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keypair.json");
    let made = KeyPair::load_or_create(&path, &OsEntropy).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(KeyPair::load_or_create(&path, &OsEntropy).unwrap().public(), made.public());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, std::slice::from_ref(&path), "nothing else is left");
    let text = fs::read_to_string(&path).unwrap();
    let secret =
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["secret_key"].as_str().unwrap().to_owned();
    assert!(!format!("{made:?}").contains(&secret));
    assert!(format!("{made:?}").contains(&made.public().to_string()));
}

#[test]
fn a_key_file_that_is_not_one_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keypair.json");
    KeyPair::load_or_create(&path, &OsEntropy).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    let other_key = NodeKey::from_bytes([9; 32]).to_string();
    let public = KeyPair::load(&path).unwrap().public().to_string();
    for bad in [
        "".to_owned(),
        "{}".to_owned(),
        whole[..whole.len() / 2].to_owned(),
        whole.replace(&public, &other_key),
    ] {
        fs::write(&path, &bad).unwrap();
        let refused = KeyPair::load_or_create(&path, &OsEntropy);
        assert!(matches!(refused, Err(KeyFileError::NotAKeyPair { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
}

#[test]
fn a_key_file_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keypair.json");
    KeyPair::load_or_create(&path, &OsEntropy).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(KeyPair::load(&path), Err(KeyFileError::OpenToOthers { .. })));
}
