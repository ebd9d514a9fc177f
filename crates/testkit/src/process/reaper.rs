//! Ends a child whose owner was killed.
//!
//! A parent-death signal would need `unsafe` and fires when the *thread* that started the child ends. A shell
//! at the other end of a pipe notices the end of the whole owner, however it came.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Reads one line; end of file instead of a line means that the owner is gone. `$1` is the child, `$2` its folder.
const SCRIPT: &str = r#"
read -r word && exit 0
kill -QUIT "$1" 2>/dev/null
kill -TERM "$1" 2>/dev/null
tries=0
while kill -0 "$1" 2>/dev/null && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); sleep 0.05; done
kill -KILL "-$1" 2>/dev/null
rm -rf -- "$2"
"#;

#[derive(Debug)]
pub(super) struct Reaper {
    shell: Child,
}

impl Reaper {
    pub(super) fn watch(child: u32, folder: &Path) -> std::io::Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "reaper", &child.to_string()])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }

    /// The owner ended the child itself.
    pub(super) fn dismiss(mut self) {
        if let Some(mut line) = self.shell.stdin.take() {
            // A reaper that is gone needs no dismissal.
            let _gone = line.write_all(b"done\n");
        }
        let _status = self.shell.wait();
    }
}
