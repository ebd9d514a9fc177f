//! Small files that must be whole and durable, or not there at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces `path` by `bytes`: after a crash it holds the old content or the new, never a part, and once this
/// returned it holds the new. The folder must exist.
pub fn write_durably(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut name = OsString::from(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(".new");
    let beside = folder.join(name);
    // Left by a process that died before its rename; the home's lock says it is nobody's.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&beside, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_whole_with_its_mode_and_a_leftover_does_not_disturb() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("local_token");
        fs::write(folder.path().join("local_token.new"), "half").unwrap();
        write_durably(&path, b"first", 0o600).unwrap();
        write_durably(&path, b"second", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
