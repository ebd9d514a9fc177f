use xtask::tidy;
use xtask::workspace::Workspace;

#[test]
fn the_tree_is_tidy() {
    let findings = tidy::findings(&Workspace::read().unwrap()).unwrap();
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}
