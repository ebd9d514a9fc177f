use std::process::{Command, Output};

fn xtask(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_unknown_name_ends_with_2_and_the_list_of_names() {
    for (args, listed) in [
        (["prove", "nothing"], "checker"),
        (["soak", "nothing"], "checker"),
        (["bench", "nothing"], "limits"),
    ] {
        let output = xtask(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("`nothing`") && stderr.contains(listed), "{args:?}: {stderr}");
    }
}

#[test]
fn a_missing_name_ends_with_2_and_help_lists_every_name_with_its_line() {
    assert_eq!(xtask(&["prove"]).status.code(), Some(2));
    assert_eq!(xtask(&["bench"]).status.code(), Some(2));
    let help = text(&xtask(&["prove", "--help"]).stdout);
    for proof in xtask::prove::PROOFS {
        assert!(help.contains(proof.name), "{help}");
    }
    let help = text(&xtask(&["bench", "--help"]).stdout);
    for bench in xtask::bench::BENCHES {
        assert!(help.contains(bench.name), "{help}");
    }
}

#[test]
fn an_unknown_command_ends_with_2() {
    assert_eq!(xtask(&["dance"]).status.code(), Some(2));
}
