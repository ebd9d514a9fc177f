use xtask::tidy;
use xtask::workspace::Workspace;

#[test]
fn the_tree_is_tidy() {
    let findings = tidy::findings(&Workspace::read().unwrap()).unwrap();
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn every_crate_that_a_proof_covers_is_there_and_its_page_names_them() {
    let workspace = Workspace::read().unwrap();
    for proof in xtask::prove::PROOFS {
        assert!(!proof.covers.is_empty(), "{}: no page would ever be old", proof.name);
        for name in proof.covers {
            assert!(workspace.package(name).is_some(), "{}: there is no crate `{name}`", proof.name);
        }
        let page = workspace.root.join(format!("docs/proof/{}.md", proof.name));
        // `tidy` names a page that is not there.
        let Ok(page) = std::fs::read_to_string(page) else { continue };
        let line = format!("| crates | {} |", proof.covers.join(", "));
        assert!(page.contains(&line), "{}: its page does not say `{line}`", proof.name);
    }
}

#[test]
fn state_is_stored_of_every_schema_that_has_a_successor() {
    let root = Workspace::read().unwrap().root;
    let missing = xtask::stored::unstored(
        &xtask::stored::landed(&root).unwrap(),
        &xtask::stored::stored(&root).unwrap(),
    );
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}
