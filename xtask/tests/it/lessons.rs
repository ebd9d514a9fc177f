//! The page of lessons names tests; a lesson whose test was renamed away would go unnoticed.

use std::path::Path;

#[test]
fn every_test_that_the_page_of_lessons_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let page = std::fs::read_to_string(root.join("docs/lessons.md")).expect("the page is there");
    let names: Vec<&str> = page.split('`').filter(|word| word.matches("::").count() == 2).collect();
    let named: Vec<&str> = names.into_iter().filter(|name| *name != "crate::file::test").collect();
    assert!(named.len() > 30, "the page lists the lessons");
    for name in named {
        let parts: Vec<&str> = name.split("::").collect();
        let file = root.join(format!("crates/{}/tests/it/{}.rs", parts[0], parts[1]));
        let source = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(source.contains(&format!("fn {}(", parts[2])), "{name} is not in {}", file.display());
    }
}
