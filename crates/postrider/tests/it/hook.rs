//! The hook of `docs/agents.md` that hands a coding agent its mail between two tool calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::bin::Home;

use super::{home, up};

fn hook() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks/drain-inbox")
}

/// What the hook prints for whoever holds the token.
fn printed(home: &Home, token: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_postrider")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .arg(hook())
        .env("PATH", path)
        .env("POSTRIDER_HOME", home.path())
        .env("POSTRIDER_AGENT_TOKEN_FILE", token)
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_hook_prints_each_message_once_to_its_agent_alone_and_nothing_without_a_daemon() {
    let home = home();
    let token = home.path().with_file_name("token");
    std::fs::write(&token, "no token yet").unwrap();
    assert_eq!(printed(&home, &token), "", "no daemon is no reason to disturb a tool call");
    let product = up(&home);
    let made = product.cli(&["--quiet", "agent", "add", "coder"]).unwrap().done().stdout;
    std::fs::write(&token, made.trim()).unwrap();
    assert_eq!(printed(&home, &token), "");
    product.cli(&["send", "me", "not for the coder", "--wait", "delivered"]).unwrap().done();
    product.cli(&["send", "coder", "stop and think", "--id", "hint", "--wait", "delivered"]).unwrap().done();
    let mail = printed(&home, &token);
    assert!(mail.contains("stop and think") && !mail.contains("not for the coder"), "{mail}");
    assert_eq!(printed(&home, &token), "", "each message once");
    let told = &product.cli(&["--json", "explain", "hint"]).unwrap().done().json()[0];
    assert_eq!(told["verdict"], "notified");
}
