//! Lists the page's committed build, so that a release binary carries it. A debug build reads it from disk instead, and
//! is not built again when the page is.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    let mut list = String::from("&[\n");
    if env::var("PROFILE").as_deref() == Ok("release") {
        println!("cargo::rerun-if-changed={}", root.display());
        let mut files = Vec::new();
        walk(&root, &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(&root).map_err(io::Error::other)?.display().to_string();
            let path = file.canonicalize()?.display().to_string();
            writeln!(list, "    ({name:?}, include_bytes!({path:?})),").map_err(io::Error::other)?;
        }
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("page.rs"), list)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
