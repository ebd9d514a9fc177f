//! Where PostgreSQL's programs are, and which account may run its server.

use super::StartError;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The oldest major version the product supports.
pub const MAJOR_MIN: u32 = 15;
/// Debian's package that brings the server.
pub const PACKAGE: &str = "postgresql";

/// One installation's folder of programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
    major: u32,
}

/// An unprivileged account, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
}

impl Binaries {
    /// The newest installation that is new enough.
    pub fn find() -> Option<Self> {
        candidates().iter().filter_map(|folder| Self::at(folder)).max_by_key(|found| found.major)
    }

    /// The path of `program`.
    pub fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// Runs `sql` in the database at `url`.
    pub fn psql(&self, url: &str, sql: &str) -> Result<(), StartError> {
        let output = Command::new(self.path("psql"))
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", url, "--command", sql])
            .output()?;
        succeeded("psql", &output)
    }

    /// Runs a script of any length, in one transaction.
    pub fn psql_script(&self, url: &str, script: &str) -> Result<(), StartError> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(script.as_bytes())?;
        let output = Command::new(self.path("psql"))
            .args([
                "--no-psqlrc",
                "--quiet",
                "--set=ON_ERROR_STOP=1",
                "--single-transaction",
                "--dbname",
                url,
            ])
            .arg("--file")
            .arg(file.path())
            .output()?;
        succeeded("psql", &output)
    }

    /// The database at `url` as a script.
    pub fn pg_dump(&self, url: &str) -> Result<String, StartError> {
        let args = ["--no-owner", "--no-privileges", "--no-comments", "--dbname", url];
        let output = Command::new(self.path("pg_dump")).args(args).output()?;
        succeeded("pg_dump", &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn at(folder: &Path) -> Option<Self> {
        // PATH often holds a link; the other programs stand beside what it points to.
        let server = folder.join("postgres").canonicalize().ok()?;
        let output = Command::new(&server).arg("--version").output().ok()?;
        let major = major_of(&String::from_utf8_lossy(&output.stdout))?;
        let folder = server.parent()?.to_owned();
        let complete = folder.join("initdb").exists() && folder.join("psql").exists();
        (major >= MAJOR_MIN && complete).then_some(Self { folder, major })
    }
}

impl Account {
    /// The account to run the server as; `None` when the caller's own will do.
    pub(super) fn for_server() -> Result<Option<Self>, StartError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = std::fs::read_to_string("/etc/passwd")?;
        let found = ["postgres", "nobody"].iter().find_map(|name| account_of(&passwd, name));
        found.map(Some).ok_or(StartError::NoAccount)
    }
}

pub(super) fn succeeded(program: &'static str, output: &Output) -> Result<(), StartError> {
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(StartError::Refused { program, status: output.status, stderr })
}

fn candidates() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    folders
}

fn major_of(version: &str) -> Option<u32> {
    let number =
        version.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    number.split(|other: char| !other.is_ascii_digit()).next()?.parse().ok()
}

fn account_of(passwd: &str, name: &str) -> Option<Account> {
    let fields: Vec<&str> =
        passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some(Account { user: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_every_form_of_the_version_line() {
        let cases = [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 17.0", Some(17)),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("no number here", None),
        ];
        for (line, major) in cases {
            assert_eq!(major_of(line), major, "{line}");
        }
    }

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\npostgres2:x:7:7::/:\npostgres:x:101:104:,,,:/var/lib:/bin/bash\n";
        assert_eq!(account_of(passwd, "postgres"), Some(Account { user: 101, group: 104 }));
        assert_eq!(account_of(passwd, "nobody"), None);
    }
}
