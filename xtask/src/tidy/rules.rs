//! Rules that hold line by line.
//!
//! They are grep, on purpose: cheap, readable, and each can be broken by one line. Comments are not looked at. A
//! line is tested as text, so a rule's own pattern is written in two halves here.

use super::source::Source;

struct Rule {
    /// The sentence of a finding.
    says: &'static str,
    /// Any of these on a line breaks it.
    patterns: &'static [&'static str],
    /// Except where it is one of these.
    except: &'static [&'static str],
    applies: fn(&Source) -> bool,
    shelf: Shelf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shelf {
    Production,
    Everything,
}

const RULES: &[Rule] = &[
    Rule {
        says: "SQL stands only in sqlite, mailbox and ledger",
        patterns: &[
            concat!("\"SEL", "ECT "),
            concat!("\"INS", "ERT "),
            concat!("\"UPD", "ATE "),
            concat!("\"DEL", "ETE FROM "),
            concat!("\"CREATE T", "ABLE"),
            concat!("\"PRA", "GMA "),
        ],
        except: &[],
        // Test equipment creates databases and benchmarks compare with bare SQL.
        applies: |source| {
            !["sqlite", "mailbox", "ledger", "testkit", "xtask"].contains(&source.room.as_str())
        },
        shelf: Shelf::Production,
    },
    Rule {
        says: "the HTTP status of a refusal is chosen only in wire, and sent only by net",
        patterns: &[concat!("StatusCode", "::")],
        except: &[
            concat!("StatusCode", "::OK"),
            concat!("StatusCode", "::CREATED"),
            concat!("StatusCode", "::ACCEPTED"),
            concat!("StatusCode", "::NO_CONTENT"),
            concat!("StatusCode", "::SWITCHING_PROTOCOLS"),
        ],
        applies: |source| !["wire", "net"].contains(&source.room.as_str()),
        shelf: Shelf::Production,
    },
    Rule {
        says: "a door is named by its verb, not by the fact that it handles or processes something",
        patterns: &[concat!("fn ", "handle_"), concat!("fn ", "process_")],
        except: &[],
        applies: |_| true,
        shelf: Shelf::Production,
    },
    Rule {
        says: "a test is run or deleted, never ignored",
        patterns: &[concat!("#[", "ignore")],
        except: &[],
        applies: |_| true,
        shelf: Shelf::Everything,
    },
    Rule {
        says: "nothing sleeps but testkit::wait_for, which waits for a condition, and planted bugs",
        patterns: &[concat!("thread::", "sleep")],
        except: &[],
        applies: |source| {
            !source.path.ends_with("testkit/src/wait.rs") && !source.path.ends_with("sqlite/src/fault.rs")
        },
        shelf: Shelf::Everything,
    },
];

/// Names that say nothing about what a file holds.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager"];

/// What is wrong, a sentence each.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut findings: Vec<String> = sources.iter().filter_map(named_emptily).collect();
    for source in sources {
        for rule in RULES.iter().filter(|rule| (rule.applies)(source)) {
            findings.extend(rule.broken_in(source));
        }
    }
    findings
}

impl Rule {
    fn broken_in(&self, source: &Source) -> Vec<String> {
        let is_broken = |(_, line): &&(usize, String)| {
            let line = self.except.iter().fold(line.clone(), |line, allowed| line.replace(allowed, ""));
            !line.trim_start().starts_with("//") && self.patterns.iter().any(|pattern| line.contains(pattern))
        };
        let sentence =
            |(number, _): &(usize, String)| format!("{}:{number}: {}", source.path.display(), self.says);
        match self.shelf {
            Shelf::Production => source.production.iter().filter(is_broken).map(sentence).collect(),
            Shelf::Everything => source.lines().filter(is_broken).map(sentence).collect(),
        }
    }
}

fn named_emptily(source: &Source) -> Option<String> {
    let mut parts = source.path.components().map(|part| part.as_os_str().to_string_lossy());
    let empty = parts.any(|part| EMPTY_NAMES.contains(&part.trim_end_matches(".rs")));
    empty.then(|| format!("{}: the name says nothing about what it holds", source.path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let room = path.split('/').nth(1).unwrap();
        check(&[Source::parse(room, Path::new(path), text, path.contains("/tests/"))])
    }

    #[test]
    fn each_rule_is_broken_by_one_line_in_the_wrong_place_and_only_there() {
        let select = concat!("let s = \"SEL", "ECT 1\";");
        let status = concat!("let s = StatusCode", "::CONFLICT;");
        let success = concat!("let s = StatusCode", "::OK;");
        let handle = concat!("fn ", "handle_send() {}");
        let ignored = concat!("#[", "ignore]");
        let asleep = concat!("std::thread::", "sleep(second);");
        for (path, line, count) in [
            ("crates/broker/src/a.rs", select, 1),
            ("crates/ledger/src/a.rs", select, 0),
            ("crates/broker/tests/it/a.rs", select, 0),
            ("crates/daemon/src/a.rs", status, 1),
            ("crates/daemon/src/a.rs", success, 0),
            ("crates/wire/src/a.rs", status, 0),
            ("crates/daemon/src/a.rs", handle, 1),
            ("crates/daemon/tests/it/a.rs", ignored, 1),
            ("crates/daemon/tests/it/a.rs", asleep, 1),
            ("crates/testkit/src/wait.rs", asleep, 0),
            ("crates/daemon/src/utils.rs", "", 1),
            ("crates/daemon/src/common/a.rs", "", 1),
            ("crates/daemon/src/commons.rs", "", 0),
        ] {
            assert_eq!(findings(path, line).len(), count, "{path}: {line}");
        }
    }

    #[test]
    fn a_comment_breaks_nothing_and_a_finding_names_its_line() {
        let text = concat!("// StatusCode", "::GONE\nfn a() {\n    StatusCode", "::GONE\n}\n");
        let findings = findings("crates/daemon/src/a.rs", text);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("crates/daemon/src/a.rs:3: "), "{findings:?}");
    }
}
