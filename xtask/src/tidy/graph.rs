//! Who may depend on whom.
//!
//! - Everyone may see `model`; rooms see the rooms below them; services see rooms and never each other; the binary
//!   sees services.
//! - `testkit` is seen from tests and from `xtask` only.
//! - Libraries that stand for a decision (which store, which carrier of errors) are kept in the rooms that took it.

use crate::workspace::{Kind, Package};

const ROOMS: &[&str] = &["model", "wire", "sqlite", "stateroom", "mailbox", "ledger", "net"];

/// Every allowed arrow between members; a member without a line may not exist.
const ARROWS: &[(&str, &[&[&str]])] = &[
    ("model", &[]),
    ("wire", &[&["model"]]),
    ("sqlite", &[&["model"]]),
    ("stateroom", &[&["model"]]),
    ("mailbox", &[&["model", "sqlite"]]),
    ("ledger", &[&["model", "sqlite"]]),
    ("net", &[&["model", "wire"]]),
    ("daemon", &[ROOMS]),
    ("broker", &[ROOMS]),
    ("gateway", &[ROOMS]),
    ("relay", &[ROOMS]),
    ("mcp", &[ROOMS]),
    ("postrider", &[ROOMS, &["daemon", "broker", "gateway", "relay", "mcp"]]),
    ("testkit", &[ROOMS]),
    ("ledger-rounds", &[&["model", "ledger"]]),
    ("xtask", &[ROOMS, &["daemon", "broker", "gateway", "relay", "mcp", "testkit", "ledger-rounds"]]),
];

/// Libraries from outside that only these members may name in `[dependencies]`.
const KEPT_IN: &[(&str, &[&str])] = &[
    ("rusqlite", &["sqlite", "mailbox", "ledger", "testkit", "xtask"]),
    ("tokio-postgres", &["ledger", "xtask"]),
    ("deadpool-postgres", &["ledger", "xtask"]),
    ("redis", &["broker", "xtask"]),
    ("yrs", &["stateroom"]),
    ("rmcp", &["mcp"]),
    ("anyhow", &["postrider", "ledger-rounds", "xtask"]),
];

/// `model` does no I/O, so it has no library that could.
const MODEL_NEVER: &[&str] = &["tokio", "http", "hyper", "axum", "rusqlite", "reqwest"];

/// What is wrong with the graph, a sentence each.
pub(super) fn check(packages: &[Package]) -> Vec<String> {
    let members: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    packages.iter().flat_map(|package| faults_of(package, &members)).collect()
}

fn faults_of(package: &Package, members: &[&str]) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, seen)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![format!("`{name}` has no line in the table of arrows (xtask/src/tidy/graph.rs)")];
    };
    let mut faults = Vec::new();
    for dependency in &package.dependencies {
        let to = dependency.name.as_str();
        let in_tests = dependency.kind == Kind::Dev;
        if members.contains(&to) {
            let allowed = seen.iter().any(|group| group.contains(&to)) || (in_tests && to == "testkit");
            if !allowed && to != name {
                faults.push(format!("`{name}` must not depend on `{to}`: no such arrow in the house"));
            }
        } else if !in_tests {
            faults.extend(kept_in(name, to));
        }
    }
    faults
}

fn kept_in(name: &str, library: &str) -> Option<String> {
    if name == "model" && MODEL_NEVER.contains(&library) {
        return Some(format!("`model` must not depend on `{library}`: it does no I/O"));
    }
    let (_, rooms) = KEPT_IN.iter().find(|(kept, _)| *kept == library)?;
    let outside = !rooms.contains(&name);
    outside.then(|| format!("`{name}` must not depend on `{library}`: it is kept in {}", rooms.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::workspace::Package;
    use serde_json::json;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| json!({"name": name, "kind": kind});
        let dependencies: Vec<_> = dependencies.iter().map(dependency).collect();
        let text = json!({"name": name, "manifest_path": "/w/Cargo.toml", "dependencies": dependencies,
            "features": {}, "targets": []});
        serde_json::from_value(text).unwrap()
    }

    /// The sentences about `from`, in a workspace where every member of the table exists.
    fn faults(from: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let others = super::ARROWS.iter().map(|(name, _)| *name).filter(|name| *name != from);
        let mut packages: Vec<Package> = others.map(|name| package(name, &[])).collect();
        packages.push(package(from, dependencies));
        check(&packages)
    }

    #[test]
    fn arrows_of_the_house_pass() {
        for (from, to) in [
            ("daemon", "mailbox"),
            ("broker", "ledger"),
            ("net", "wire"),
            ("mailbox", "sqlite"),
            ("postrider", "daemon"),
            ("xtask", "testkit"),
            ("ledger", "tokio-postgres"),
            ("daemon", "tokio"),
        ] {
            assert_eq!(faults(from, &[(to, None)]), Vec::<String>::new(), "{from} -> {to}");
        }
        assert_eq!(faults("daemon", &[("testkit", Some("dev"))]), Vec::<String>::new());
    }

    #[test]
    fn every_other_arrow_fails_with_a_sentence() {
        for (from, to, kind, words) in [
            ("daemon", "broker", None, "`daemon` must not depend on `broker`"),
            ("gateway", "daemon", Some("dev"), "`gateway` must not depend on `daemon`"),
            ("model", "wire", None, "`model` must not depend on `wire`"),
            ("mailbox", "net", None, "`mailbox` must not depend on `net`"),
            ("wire", "net", Some("build"), "`wire` must not depend on `net`"),
            ("daemon", "testkit", None, "`daemon` must not depend on `testkit`"),
            ("model", "tokio", None, "it does no I/O"),
            ("daemon", "rusqlite", None, "it is kept in sqlite, mailbox, ledger"),
            ("net", "anyhow", None, "it is kept in postrider, ledger-rounds, xtask"),
        ] {
            let faults = faults(from, &[(to, kind)]);
            assert!(faults.len() == 1 && faults[0].contains(words), "{from} -> {to}: {faults:?}");
        }
    }

    #[test]
    fn a_member_nobody_drew_is_reported() {
        assert!(check(&[package("attic", &[])])[0].contains("`attic` has no line"));
    }
}
