//! The workspace's Rust files, with tests and production told apart. Everything here relies on the formatter: a
//! block ends at the first line that is its own indentation and a brace.

use crate::workspace::Workspace;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The member it belongs to.
    pub(super) room: String,
    /// From the repository's folder.
    pub(super) path: PathBuf,
    /// Its production lines with their numbers; none for a file of tests.
    pub(super) production: Vec<(usize, String)>,
    /// Its test lines with their numbers.
    pub(super) tests: Vec<(usize, String)>,
}

/// Reads every member's `src` and `tests`.
pub(super) fn read(workspace: &Workspace) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for package in &workspace.packages {
        for (folder, is_test_folder) in [("src", false), ("tests", true)] {
            for path in rust_files(&package.folder().join(folder))? {
                let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let is_test = is_test_folder || is_test_file(workspace.relative(&path));
                sources.push(Source::parse(&package.name, workspace.relative(&path), &text, is_test));
            }
        }
    }
    Ok(sources)
}

/// The Rust files under `folder`, sorted; none when there is no such folder.
pub fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.with_context(|| folder.display().to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

impl Source {
    pub(super) fn parse(room: &str, path: &Path, text: &str, is_test: bool) -> Self {
        let numbered = text.lines().enumerate().map(|(place, line)| (place + 1, line.to_owned()));
        let (production, tests) =
            if is_test { (Vec::new(), numbered.collect()) } else { split(numbered.collect()) };
        Self { room: room.to_owned(), path: path.to_owned(), production, tests }
    }

    /// Production and test lines alike.
    pub(super) fn lines(&self) -> impl Iterator<Item = &(usize, String)> {
        self.production.iter().chain(&self.tests)
    }
}

fn is_test_file(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let in_folder = path.components().any(|part| part.as_os_str() == "tests");
    stem == "tests" || stem.ends_with("_tests") || in_folder
}

type Lines = Vec<(usize, String)>;

/// Takes `#[cfg(test)]` items out.
fn split(lines: Lines) -> (Lines, Lines) {
    let (mut production, mut tests) = (Vec::new(), Vec::new());
    let mut until: Option<Until> = None;
    for (number, line) in lines {
        let end = match &until {
            None if line.trim() == "#[cfg(test)]" => {
                until = Some(Until::Header);
                false
            }
            None => {
                production.push((number, line));
                continue;
            }
            Some(Until::Header) if line.trim_start().starts_with('#') => false,
            Some(Until::Header) if line.ends_with('{') => {
                until = Some(Until::Line(format!("{}}}", indent(&line))));
                false
            }
            Some(Until::Header) => line.ends_with(';'),
            Some(Until::Line(last)) => *last == line,
        };
        tests.push((number, line));
        if end {
            until = None;
        }
    }
    (production, tests)
}

/// Where the test item ends.
enum Until {
    /// At its header, when that is a declaration.
    Header,
    /// At this line.
    Line(String),
}

/// The spaces a line begins with.
pub(super) fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(lines: &[(usize, String)]) -> Vec<usize> {
        lines.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn test_modules_are_told_from_production() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn t() {\n    }\n}\nfn b() {}\n#[cfg(test)]\n#[path = \"x\"]\nmod more;\nfn c() {}\n";
        let source = Source::parse("model", Path::new("a.rs"), text, false);
        assert_eq!(numbers(&source.production), [1, 7, 11]);
        assert_eq!(numbers(&source.tests), [2, 3, 4, 5, 6, 8, 9, 10]);
    }

    #[test]
    fn files_of_tests_are_known_by_name_or_folder() {
        for (path, is_test) in [
            ("crates/a/src/outbox_tests.rs", true),
            ("crates/a/src/outbox/tests.rs", true),
            ("crates/a/tests/it/main.rs", true),
            ("crates/a/src/contests.rs", false),
            ("xtask/src/test.rs", false),
        ] {
            assert_eq!(is_test_file(Path::new(path)), is_test, "{path}");
        }
    }
}
