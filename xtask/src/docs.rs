//! `cargo xtask docs`: pages that are written by the code they describe.
//!
//! To add one: a function that renders it, and its line in [`PAGES`]. `tidy` fails while a page is stale.

mod errors;
mod proofs;

use crate::Ending;
use crate::workspace::Workspace;
use anyhow::Context;

/// A generated page.
pub struct Page {
    /// Where it stands, from the repository's folder.
    pub path: &'static str,
    /// What it must say.
    pub render: fn() -> String,
}

/// One line each.
pub const PAGES: &[Page] = &[
    Page { path: "docs/errors.md", render: errors::render },
    Page { path: "docs/proof/README.md", render: proofs::render },
];

/// Writes every page.
pub fn write(workspace: &Workspace) -> anyhow::Result<Ending> {
    for page in PAGES {
        let path = workspace.root.join(page.path);
        std::fs::create_dir_all(path.with_file_name("")).with_context(|| page.path.to_owned())?;
        std::fs::write(&path, (page.render)()).with_context(|| page.path.to_owned())?;
        println!("wrote {}", page.path);
    }
    Ok(Ending::Holds)
}

/// Pages that do not say what they must, a sentence each.
pub fn stale(workspace: &Workspace) -> Vec<String> {
    let is_stale = |page: &&Page| {
        let written = std::fs::read_to_string(workspace.root.join(page.path)).unwrap_or_default();
        written != (page.render)()
    };
    let sentence = |page: &Page| format!("{} is stale; `cargo xtask docs` writes it", page.path);
    PAGES.iter().filter(is_stale).map(sentence).collect()
}
