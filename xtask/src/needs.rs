//! What tests need beyond the Rust toolchain, and how it gets here.

use anyhow::{Context, bail, ensure};
use std::process::Command;

/// A program some test cannot do without.
pub struct Need {
    /// Its name for people.
    pub what: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// True when it is on this machine.
    pub found: fn() -> bool,
}

/// One line each.
pub const NEEDS: &[Need] = &[
    Need { what: "PostgreSQL 15 or newer", package: testkit::postgres::PACKAGE, found: postgres },
    Need { what: "redis-server", package: testkit::redis::PACKAGE, found: || in_path("redis-server") },
    Need { what: "nginx", package: "nginx-light", found: || in_path("nginx") },
    Need { what: "strace", package: "strace", found: || in_path("strace") },
    Need { what: "systemd-analyze", package: "systemd", found: || in_path("systemd-analyze") },
    Need { what: "Python 3", package: "python3", found: || in_path("python3") },
    Need { what: "chromium", package: "chromium", found: || in_path("chromium") },
    Need { what: "Node.js", package: "nodejs", found: || in_path("node") },
    Need { what: "npm", package: "npm", found: || in_path("npm") },
];

/// Installs what is missing; an account that may not install gets the names of the packages.
pub fn provide() -> anyhow::Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|need| need.what).collect();
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    let (names, by_hand) = (names.join(", "), format!("apt-get install {}", packages.join(" ")));
    if !is_root() || !in_path("apt-get") {
        bail!("tests need {names}; install it and run again, on Debian as root: {by_hand}");
    }
    eprintln!("installing {names}");
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages.as_slice()].concat())?;
    let still: Vec<&str> = self::missing().iter().map(|need| need.what).collect();
    ensure!(still.is_empty(), "still missing after `{by_hand}`: {}", still.join(", "));
    Ok(())
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !(need.found)()).collect()
}

fn apt(args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("apt-get")
        .args(args)
        // Only the programs are wanted: no questions, and no services started on the packages' own ports.
        .envs([("DEBIAN_FRONTEND", "noninteractive"), ("RUNLEVEL", "1")])
        .status()
        .context("apt-get cannot be run")?;
    ensure!(status.success(), "`apt-get {}` ended with {status}", args.join(" "));
    Ok(())
}

fn is_root() -> bool {
    let uid = Command::new("id").arg("-u").output();
    uid.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn postgres() -> bool {
    testkit::postgres::Binaries::find().is_some()
}

/// True when `program` is in a folder of PATH.
pub fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
