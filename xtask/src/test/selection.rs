//! The command line of the test run.

use crate::build::{FAULTS, PRODUCT};
use crate::needs::in_path;
use crate::workspace::Workspace;

/// Which program runs the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    /// A process per test, groups and time limits from `.config/nextest.toml`.
    Nextest,
    /// What comes with the toolchain.
    CargoTest,
}

impl Runner {
    /// The better one that is here.
    pub(super) fn on_this_machine() -> Self {
        if in_path("cargo-nextest") { Self::Nextest } else { Self::CargoTest }
    }
}

/// Arguments for cargo. Without `-p` everything is tested, with faults compiled in; with `-p` only what it names.
pub(super) fn arguments(runner: Runner, workspace: &Workspace, filters: &[String]) -> Vec<String> {
    let has_faults = workspace.package(PRODUCT).is_some_and(|product| product.features.contains_key(FAULTS));
    let mut arguments = match runner {
        Runner::Nextest => words(&["nextest", "run"]),
        Runner::CargoTest => words(&["test", "--no-fail-fast"]),
    };
    let (chosen, mut names) = split_choice(filters);
    if chosen.is_empty() {
        arguments.push("--workspace".to_owned());
    }
    if has_faults && (chosen.is_empty() || chosen.iter().any(|word| word.ends_with(PRODUCT))) {
        arguments.extend(["--features".to_owned(), format!("{PRODUCT}/{FAULTS}")]);
    }
    arguments.extend(chosen);
    if runner == Runner::CargoTest {
        // Examples of the documentation run on their own, so that their cost is seen.
        arguments.extend(words(&["--lib", "--bins", "--tests"]));
        if !names.is_empty() {
            arguments.push("--".to_owned());
        }
    }
    arguments.append(&mut names);
    arguments
}

/// Takes `-p CRATE` in its three spellings out of the filters.
fn split_choice(filters: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut chosen, mut rest) = (Vec::new(), Vec::new());
    let mut words = filters.iter();
    while let Some(word) = words.next() {
        if word == "-p" || word == "--package" {
            chosen.push(word.clone());
            chosen.extend(words.next().cloned());
        } else if word.starts_with("--package=") {
            chosen.push(word.clone());
        } else {
            rest.push(word.clone());
        }
    }
    (chosen, rest)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workspace(features: &serde_json::Value) -> Workspace {
        let product = json!({"name": "postrider", "manifest_path": "/w/crates/postrider/Cargo.toml",
            "dependencies": [], "features": features, "targets": []});
        let text = json!({"workspace_root": "/w", "target_directory": "/w/target", "packages": [product]});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn each_choice_gives_its_command_line() {
        let with_faults = workspace(&json!({"faults": []}));
        let cases: [(Runner, &[&str], &str); 7] = [
            (Runner::Nextest, &[], "nextest run --workspace --features postrider/faults"),
            (Runner::Nextest, &["an_id"], "nextest run --workspace --features postrider/faults an_id"),
            (Runner::Nextest, &["-p", "sqlite", "a"], "nextest run -p sqlite a"),
            (
                Runner::Nextest,
                &["--package=postrider"],
                "nextest run --features postrider/faults --package=postrider",
            ),
            (
                Runner::Nextest,
                &["-E", "test(x)"],
                "nextest run --workspace --features postrider/faults -E test(x)",
            ),
            (
                Runner::CargoTest,
                &[],
                "test --no-fail-fast --workspace --features postrider/faults --lib --bins --tests",
            ),
            (Runner::CargoTest, &["-p", "net", "a"], "test --no-fail-fast -p net --lib --bins --tests -- a"),
        ];
        for (runner, filters, line) in cases {
            assert_eq!(arguments(runner, &with_faults, &words(filters)).join(" "), line);
        }
    }

    #[test]
    fn a_product_without_the_feature_is_tested_without_it() {
        let line = arguments(Runner::Nextest, &workspace(&json!({})), &[]).join(" ");
        assert_eq!(line, "nextest run --workspace");
    }
}
