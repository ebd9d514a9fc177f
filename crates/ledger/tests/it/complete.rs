//! The suite runs what it holds.

use std::path::Path;

#[test]
fn every_fact_of_the_suite_is_in_its_list() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let list = std::fs::read_to_string(source.join("conformance.rs")).unwrap();
    let mut facts = 0;
    for file in std::fs::read_dir(source.join("conformance")).unwrap() {
        let path = file.unwrap().path();
        if path.ends_with("town.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for fact in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
            let name = fact.split('(').next().unwrap();
            let listed = list.lines().any(|line| line.trim() == name);
            assert!(listed, "{name} of {} is not in conformance!", path.display());
            facts += 1;
        }
    }
    assert!(facts > 50, "{facts} facts found");
}
