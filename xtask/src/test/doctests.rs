//! Which packages have examples in their documentation. The others are not asked: building the documentation
//! tests of a package that has none costs as much as building its library.

use crate::workspace::Workspace;
use anyhow::Context;
use std::path::Path;

pub(super) fn packages(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.is_library()) {
        let sources = crate::tidy::rust_files(&package.folder().join("src"))?;
        if sources.iter().map(|path| has_example(path)).collect::<anyhow::Result<Vec<_>>>()?.contains(&true) {
            names.push(package.name.clone());
        }
    }
    Ok(names)
}

fn has_example(path: &Path) -> anyhow::Result<bool> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(opens_example(&text))
}

/// True when a fence of a doc comment opens Rust code; `text` and the like are pictures.
fn opens_example(text: &str) -> bool {
    let mut inside = false;
    for line in text.lines().map(str::trim_start) {
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(tag) = doc.and_then(|doc| doc.trim_start().strip_prefix("```")) else { continue };
        if !inside && matches!(tag.trim(), "" | "rust" | "no_run" | "should_panic" | "compile_fail") {
            return true;
        }
        inside = !inside;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::opens_example;

    #[test]
    fn only_fences_of_doc_comments_that_open_code_are_examples() {
        let cases = [
            ("/// ```\n/// assert!(true);\n/// ```", true),
            ("//! ```no_run\n//! go();\n//! ```", true),
            ("/// ```text\n/// a → b\n/// ```", false),
            ("// ```\n// no doc comment\n// ```", false),
            ("let fence = \"```\";", false),
        ];
        for (text, is_example) in cases {
            assert_eq!(opens_example(text), is_example, "{text}");
        }
    }
}
