//! The home's folder: whose it is, who may read it, and whether it can be understood.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use daemon::Surroundings;
use daemon::home::Home;
use daemon::settings::Settings;

use super::finding::Finding;
use crate::backup::leftovers;
use crate::cmd::backup::{leftover_command, leftover_sentence};
use crate::home::{shown, socket};

/// Folders looked into for secrets; a home has a few, and a wrong `--home` may have millions of files.
const FOLDERS_MAX: usize = 64;
/// How deep secrets lie below the home.
const DEPTH_MAX: usize = 3;

/// Every check that needs no running process.
pub fn look(home: &Home) -> Vec<Finding> {
    let mut findings = vec![folder(home)];
    if findings[0].level == super::Level::Fine {
        findings.extend([secrets(home), config(home), machine(home), socket_place(home)]);
    }
    findings.extend(leftovers(home.root()).iter().map(|it| {
        Finding::warn("leftover", leftover_sentence(it))
            .line("The home is whole. While a restore runs, leave it alone.")
            .fix(leftover_command(it))
    }));
    findings
}

fn folder(home: &Home) -> Finding {
    let root = home.root();
    match fs::metadata(root) {
        Ok(found) => judge_folder(root, &found, rustix::process::geteuid().as_raw()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Finding::act("home", format!("there is no home at {}", shown(root))).fix("postrider up")
        }
        Err(error) => Finding::act("home", format!("{} cannot be looked at: {error}", shown(root)))
            .fix(format!("ls -ld {}", quoted(root))),
    }
}

fn judge_folder(root: &Path, found: &Metadata, account: u32) -> Finding {
    let mode = found.permissions().mode() & 0o777;
    if !found.is_dir() {
        return Finding::act("home", format!("{} is no folder", shown(root))).fix("postrider --home DIR up");
    }
    if found.uid() != account {
        return Finding::act(
            "home",
            format!("{} belongs to another account (uid {})", shown(root), found.uid()),
        )
        .line("Its daemon can only run as that account.")
        .fix(format!("sudo chown -R {account} {}", quoted(root)));
    }
    if mode & 0o077 != 0 {
        return Finding::act("home", format!("others may enter {} (mode {mode:04o})", shown(root)))
            .line("It holds keys and everybody's words.")
            .fix(format!("chmod 700 {}", quoted(root)));
    }
    Finding::fine("home", format!("home {mode:04o}"))
}

/// Everything in a home is for its account alone.
fn secrets(home: &Home) -> Finding {
    let mut open = Vec::new();
    let mut folders = vec![(home.root().to_owned(), 0)];
    let mut visited = 0;
    while let Some((folder, depth)) = folders.pop()
        && visited < FOLDERS_MAX
    {
        visited += 1;
        // A folder that cannot be read keeps its secrets from us too.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            }
            if (found.is_file() || found.is_dir()) && is_open(&entry.path(), &found) {
                open.push(entry.path());
            }
        }
    }
    judge_secrets(home.root(), open)
}

/// The port of the local door is no secret; whatever else others may read is a mistake.
fn is_open(path: &Path, found: &Metadata) -> bool {
    found.permissions().mode() & 0o077 != 0 && path.file_name().is_none_or(|name| name != "http.port")
}

fn judge_secrets(root: &Path, mut open: Vec<PathBuf>) -> Finding {
    open.sort();
    let Some(first) = open.first() else { return Finding::fine("secrets", "secrets 0600") };
    let named = first.strip_prefix(root).unwrap_or(first).display();
    let message = match open.len() {
        1 => format!("others may read {named}"),
        several => format!("others may read {named} and {} more", several - 1),
    };
    Finding::act("secrets", message)
        .line("If somebody did: postrider daemon rotate-token gives the door a new token.")
        .fix(format!("chmod -R go= {}", quoted(root)))
}

fn config(home: &Home) -> Finding {
    let file = home.config();
    match Settings::read(&file) {
        Ok(settings) if settings.meshes.is_empty() => Finding::fine("config", "config empty: no mesh yet"),
        Ok(settings) => {
            let names: Vec<&str> = settings.meshes.iter().map(|mesh| mesh.slug.as_str()).collect();
            Finding::fine("config", format!("config of {}", names.join(", ")))
        }
        Err(error) => Finding::act("config", "config.toml makes no sense")
            .line(error.to_string().replace('\n', " "))
            .fix(format!("${{EDITOR:-vi}} {}", quoted(&file))),
    }
}

fn machine(home: &Home) -> Finding {
    let here = Surroundings::read(|name| std::env::var(name).ok());
    match daemon::other_machine(home.root(), here.machine_id.as_deref()) {
        Ok(None) => Finding::fine("machine", "made on this machine"),
        Ok(Some(recorded)) => Finding::act("machine", "this home was made on another machine")
            .line(format!("It was {recorded}. Two nodes with one key would take each other's mail."))
            .fix("postrider daemon accept-host          # when it moved here")
            .fix("postrider daemon remint               # when it was copied"),
        Err(error) => Finding::warn("machine", format!("host.json cannot be read: {error}"))
            .fix(format!("chmod 600 {}", quoted(&home.host()))),
    }
}

fn socket_place(home: &Home) -> Finding {
    match socket(home) {
        Ok(_) => Finding::fine("socket", "socket's path fits"),
        Err(failure) => Finding::act("socket", failure.lines.join(" ")).fix("postrider --home SHORTER up"),
    }
}

/// A path as a shell takes it.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | '@');
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use std::fs::Permissions;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A private folder that looks like a home.
    fn planted() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        home.prepare().unwrap();
        fs::write(home.local_token(), "t").unwrap();
        mode(&home.local_token(), 0o600);
        (folder, home)
    }

    fn finding(home: &Home, check: &str) -> Finding {
        look(home).into_iter().find(|finding| finding.check == check).unwrap()
    }

    #[test]
    fn a_home_as_it_should_be_has_no_findings() {
        let (_folder, home) = planted();
        let findings = look(&home);
        assert!(findings.iter().all(|finding| finding.level == Level::Fine), "{findings:?}");
        assert_eq!(findings.len(), 5);
    }

    #[test]
    fn a_home_that_is_missing_a_file_or_open_is_found_with_its_fix() {
        let (folder, home) = planted();
        mode(home.root(), 0o755);
        let open = finding(&home, "home");
        assert_eq!(
            (open.level, open.fix.clone()),
            (Level::Act, vec![format!("chmod 700 {}", home.root().display())])
        );
        let missing = finding(&Home::at(folder.path().join("none")), "home");
        assert_eq!(missing.fix, ["postrider up"]);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(finding(&Home::at(&file), "home").message.ends_with("is no folder"));
        let theirs = judge_folder(home.root(), &fs::metadata(home.root()).unwrap(), u32::MAX);
        assert!(theirs.message.contains("belongs to another account"), "{theirs:?}");
    }

    #[test]
    fn a_secret_others_may_read_is_named_and_the_port_is_none() {
        let (_folder, home) = planted();
        fs::write(home.http_port(), "1").unwrap();
        mode(&home.http_port(), 0o644);
        assert_eq!(finding(&home, "secrets").level, Level::Fine);
        mode(&home.local_token(), 0o644);
        let open = finding(&home, "secrets");
        assert_eq!(open.message, "others may read daemon/local_token");
        assert!(open.fix[0].starts_with("chmod -R go= "), "{open:?}");
    }

    #[test]
    fn a_config_that_cannot_be_read_and_a_home_of_another_machine_are_found() {
        let (_folder, home) = planted();
        fs::write(home.config(), "= =").unwrap();
        mode(&home.config(), 0o600);
        assert_eq!(finding(&home, "config").level, Level::Act);
        let other = r#"{"schema_version":1,"host_id":"linux:elsewhere","written_at":"x"}"#;
        fs::write(home.host(), other).unwrap();
        mode(&home.host(), 0o600);
        let moved = finding(&home, "machine");
        // A machine without an id cannot tell.
        if Surroundings::read(|_| None).machine_id.is_some() {
            assert_eq!((moved.level, moved.fix.len()), (Level::Act, 2), "{moved:?}");
        }
    }

    #[test]
    fn a_path_is_quoted_when_a_shell_would_take_it_apart() {
        assert_eq!(quoted(Path::new("/a/b-1")), "/a/b-1");
        assert_eq!(quoted(Path::new("/a b")), "'/a b'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}
