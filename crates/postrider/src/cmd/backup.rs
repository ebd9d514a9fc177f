//! `postrider backup` and `postrider restore`.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use model::ErrorCode;
use rustix::fs::{Access, access};

use super::Context;
use super::doctor::quoted;
use crate::args;
use crate::backup::{
    self, BackupError, BackupFile, Leftover, LeftoverKind, Manifest, OldHome, Progress, Restored,
};
use crate::clock::clock;
use crate::failure::{Exit, Failure};
use crate::home::shown;
use crate::output::{Form, Output};

/// `postrider backup …`
pub fn run(asked: args::Backup, context: &Context) -> Result<Exit, Failure> {
    match (asked.command, asked.folder) {
        (Some(args::BackupCommand::Verify { folder }), _) => verify(&folder, context),
        (None, Some(folder)) => make(&folder, context),
        (None, None) => Err(Failure::usage("name the backup's folder").fix("postrider backup DIR")),
    }
}

/// `postrider restore DIR`
pub fn restore(asked: &args::Restore, context: &Context) -> Result<Exit, Failure> {
    let (folder, home) = (absolute(&asked.folder)?, context.home.root());
    let old = if asked.replace { OldHome::SetAside } else { OldHome::Refuse };
    let restored =
        backup::restore(&folder, home, old, &*clock()).map_err(|error| failure(&error, &folder))?;
    print_restored(&restored, home, &context.output);
    Ok(Exit::Done)
}

fn make(folder: &Path, context: &Context) -> Result<Exit, Failure> {
    let (folder, output) = (absolute(folder)?, &context.output);
    let shows = output.form() == Form::Text && std::io::stderr().is_terminal();
    let progress: Arc<dyn Progress> = match shows {
        true => Arc::new(FilesShown::on(std::io::stderr())),
        false => Arc::new(FilesShown::on(std::io::sink())),
    };
    let made = backup::make(context.home.root(), &folder, env!("CARGO_PKG_VERSION"), &*clock(), &progress);
    let manifest = made.map_err(|error| failure(&error, &folder))?;
    print_manifest("made", &manifest, &folder, output);
    if output.form() == Form::Text {
        output.fact("next", &format!("postrider backup verify {}", quoted(&folder)));
    }
    Ok(Exit::Done)
}

fn verify(folder: &Path, context: &Context) -> Result<Exit, Failure> {
    let folder = absolute(folder)?;
    let manifest = backup::verify(&folder).map_err(|error| failure(&error, &folder))?;
    print_manifest("whole", &manifest, &folder, &context.output);
    Ok(Exit::Done)
}

/// A line for each file that is copied on a terminal, below which one is written anew as a copy grows.
struct FilesShown<W> {
    shown: Mutex<Shown<W>>,
}

struct Shown<W> {
    terminal: W,
    /// Of the copy that was told of last.
    mib: u64,
}

/// Clears the line of the terminal.
const CLEARED: &str = "\r\x1b[K";

impl<W> FilesShown<W> {
    fn on(terminal: W) -> Self {
        Self { shown: Mutex::new(Shown { terminal, mib: 0 }) }
    }
}

impl<W: Write + Send> Progress for FilesShown<W> {
    fn copying(&self, path: &Path, bytes: u64) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mib = bytes >> 20;
        if mib > 0 && mib != shown.mib {
            shown.mib = mib;
            // Somebody who does not look any more is no reason to stop.
            let _ = write!(shown.terminal, "{CLEARED}copying   {} ({mib} MiB done)", path.display());
            let _ = shown.terminal.flush();
        }
    }

    fn copied(&self, file: &BackupFile) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(shown.terminal, "{CLEARED}copied    {} ({} bytes)", file.path, file.bytes);
    }
}

fn print_manifest(word: &str, manifest: &Manifest, folder: &Path, output: &Output) {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let files = manifest.files.len();
    match output.form() {
        Form::Json => output.json(&serde_json::json!({
            "backup": folder, "state": word, "files": files, "bytes": bytes,
            "began_at": manifest.began_at.to_string(), "ended_at": manifest.ended_at.to_string(),
        })),
        Form::Quiet => output.text(&folder.display().to_string()),
        Form::Text => {
            output.fact(word, &shown(folder));
            output.fact("holds", &format!("{files} files, {bytes} bytes, as of {}", manifest.began_at));
            if word == "made" {
                output.fact("keep", "it holds keys and everybody's words; whoever reads it can be this home");
            }
        }
    }
}

fn print_restored(restored: &Restored, home: &Path, output: &Output) {
    let Restored { manifest, aside } = restored;
    match output.form() {
        Form::Json => output.json(&serde_json::json!({
            "home": home, "state": "restored", "files": manifest.files.len(), "aside": aside,
            "as_of": manifest.began_at.to_string(),
        })),
        Form::Quiet => output.text(&home.display().to_string()),
        Form::Text => {
            output.fact("restored", &format!("{}, as of {}", shown(home), manifest.began_at));
            if let Some(aside) = aside {
                output.fact("aside", &format!("the home of before is {}", shown(aside)));
            }
            output.fact("next", "postrider up && postrider doctor          what came since is sent again");
        }
    }
}

fn absolute(path: &Path) -> Result<std::path::PathBuf, Failure> {
    Ok(std::path::absolute(path).map_err(anyhow::Error::from)?.components().collect())
}

/// What a restore that was cut off left, for people.
pub fn leftover_sentence(leftover: &Leftover) -> String {
    let path = shown(&leftover.path);
    match leftover.kind {
        LeftoverKind::Copy => format!("{path} is a copy of a backup that a restore left when it was cut off"),
        LeftoverKind::OldHome { .. } => {
            format!("{path} is the home of before, which a restore had not named when it was cut off")
        }
        LeftoverKind::Unreadable => {
            format!("{path} was left by a restore that was cut off; this account may not look into it")
        }
    }
}

/// The command that ends it, for an account that may.
pub fn leftover_command(leftover: &Leftover) -> String {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    let above = leftover.path.parent().unwrap_or(Path::new("."));
    let sudo = if may_write(above) && may_write(&leftover.path) { "" } else { "sudo " };
    let path = quoted(&leftover.path);
    match &leftover.kind {
        LeftoverKind::Copy => format!("{sudo}rm -r {path}"),
        LeftoverKind::OldHome { aside } => format!("{sudo}mv {path} {}", quoted(aside)),
        LeftoverKind::Unreadable => format!("sudo ls -la {path}"),
    }
}

/// What a person can do about it; `folder` is the backup.
pub fn failure(error: &BackupError, folder: &Path) -> Failure {
    let said = Failure::refused(ErrorCode::Unavailable, error.to_string());
    let backup = quoted(folder);
    match error {
        BackupError::NoHome(_) => said.fix("postrider --home DIR backup FOLDER"),
        BackupError::Taken(_) | BackupError::Inside(_) => {
            said.line("Nothing was changed.").fix("postrider backup OTHER-FOLDER")
        }
        BackupError::Link(link) => said
            .line("Nothing was copied. Put what it leads to in its place.")
            .fix(format!("mv TARGET {}", quoted(link))),
        BackupError::Unrecovered(_) => {
            said.line("Nothing was copied.").fix("postrider down && postrider daemon recover && postrider up")
        }
        BackupError::Running(_) => said.line("Nothing was changed.").fix("postrider down"),
        BackupError::NotEmpty(_) => said
            .line("Nothing was changed. With --replace the home is kept beside, under another name.")
            .fix(format!("postrider restore {backup} --replace"))
            .fix(format!("postrider --home DIR restore {backup}")),
        BackupError::NoExchange(home) => {
            let home = quoted(home);
            said.line("Nothing was changed. Move the home away yourself, then restore.")
                .fix(format!("mv {home} {home}.old && postrider restore {backup}"))
        }
        BackupError::NoBackup { .. } => said.line("Nothing was changed.").fix("postrider backup DIR"),
        BackupError::Differs(wrong) => {
            wrong.iter().fold(said, |said, wrong| said.line(format!("{}: {}", wrong.path, wrong.detail)))
        }
        BackupError::Database { .. } => said
            .line("Nothing of the home was changed.")
            .fix("postrider down && postrider daemon recover")
            .fix("postrider doctor"),
        BackupError::Files { .. } => {
            said.line("A home that was already put back stays; else it is as it was.").fix("postrider doctor")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::FileKind;

    #[test]
    fn a_growing_copy_is_one_line_that_is_written_anew_and_a_finished_one_stays() {
        let shown = FilesShown::on(Vec::new());
        let path = "broker/ledger.db";
        for bytes in [0, 9, 1 << 20, (1 << 20) + 9, 5 << 20] {
            shown.copying(Path::new(path), bytes);
        }
        let (bytes, sha256) = (6 << 20, String::new());
        shown.copied(&BackupFile { path: path.to_owned(), kind: FileKind::Plain, bytes, sha256 });
        let text = String::from_utf8(shown.shown.into_inner().unwrap().terminal).unwrap();
        let expected = [
            "",
            "copying   broker/ledger.db (1 MiB done)",
            "copying   broker/ledger.db (5 MiB done)",
            "copied    broker/ledger.db (6291456 bytes)\n",
        ];
        assert_eq!(text.split(CLEARED).collect::<Vec<_>>(), expected);
    }
}
