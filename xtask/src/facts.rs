//! Where and on what a figure was measured.

use std::path::Path;
use std::process::Command;

/// What stands above every report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The commit.
    pub commit: String,
    /// True when files differ from the commit.
    pub dirty: bool,
    /// The day, UTC.
    pub date: String,
    /// Cores and kernel.
    pub machine: String,
}

impl Facts {
    /// Asks git, the date and the kernel; what nobody can tell is said so.
    pub fn gather(root: &Path) -> Self {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let kernel =
            std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".into());
        Self {
            commit: ask(root, "git", &["rev-parse", "--short=12", "HEAD"])
                .unwrap_or_else(|| "unknown".into()),
            // Pages of earlier proofs are results, not sources.
            dirty: ask(root, "git", &["status", "--porcelain", "--", ".", ":!docs/proof", ":!docs/bench"])
                .is_none_or(|changes| !changes.is_empty()),
            date: ask(root, "date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "unknown".into()),
            machine: format!("{cores} cores, Linux {}", release(&kernel)),
        }
    }

    /// The commit with its mark.
    pub fn version(&self) -> String {
        if self.dirty { format!("{} with changes", self.commit) } else { self.commit.clone() }
    }
}

/// The version without the builder's suffix.
fn release(kernel: &str) -> &str {
    kernel.trim().split('-').next().unwrap_or_default()
}

fn ask(root: &Path, program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
