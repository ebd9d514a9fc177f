//! `mcp install` on a real home: what is shown is what is written, once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use testkit::bin::Home;

use super::{home, up};

/// The account's folder, which the driver gives the binary.
fn account(home: &Home) -> PathBuf {
    home.path().parent().unwrap().to_owned()
}

fn json(path: &std::path::Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn settings_are_shown_written_kept_and_then_left_alone() {
    let home = home();
    let file = account(&home).join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let before = "{\n  // mine\n  \"mcpServers\": {\"git\": {\"command\": \"uvx\"}}\n}\n";
    fs::write(&file, before).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let printed = home.cli(&["mcp", "install", "--client", "cursor", "--print"]).unwrap().done();
    assert!(printed.stdout.contains("+") && printed.stdout.contains("\"postrider\""), "{}", printed.stdout);
    assert_eq!(fs::read_to_string(&file).unwrap(), before, "--print writes nothing");
    let refused = home.cli(&["mcp", "install", "--client", "cursor"]).unwrap();
    assert_eq!(refused.code(), Some(2), "nobody agreed: {refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    home.cli(&["mcp", "install", "--client", "cursor", "--yes"]).unwrap().done();
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.contains("// mine") && after.contains("uvx") && after.contains("\"mcp\""), "{after}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let backup = account(&home).join(".cursor/mcp.json.before-postrider");
    assert_eq!(fs::read_to_string(&backup).unwrap(), before);
    let again = home.cli(&["mcp", "install", "--client", "cursor"]).unwrap().done();
    assert!(again.stdout.starts_with("fine "), "{}", again.stdout);
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    assert_eq!(
        fs::read_to_string(&backup).unwrap(),
        before,
        "an install that changes nothing keeps the backup"
    );
}

#[test]
fn a_broken_file_is_refused_and_left_as_it_is() {
    let home = home();
    let file = account(&home).join(".gemini/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "{ broken").unwrap();
    let refused = home.cli(&["--json", "mcp", "install", "--client", "gemini-cli", "--yes"]).unwrap();
    assert_eq!(refused.code(), Some(1));
    assert!(refused.stderr.contains("Nothing was written"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ broken");
}

#[test]
fn every_client_gets_its_settings_in_a_new_home() {
    let home = home();
    for (client, file) in [
        ("claude-code", ".claude.json"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("codex", ".codex/config.toml"),
        ("cursor", ".cursor/mcp.json"),
        ("gemini-cli", ".gemini/settings.json"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("zed", ".config/zed/settings.json"),
    ] {
        home.cli(&["mcp", "install", "--client", client, "--yes"]).unwrap().done();
        let text = fs::read_to_string(account(&home).join(file)).unwrap();
        assert!(text.contains("postrider") && text.contains("mcp"), "{client}: {text}");
    }
}

#[test]
fn a_project_has_settings_of_its_own_where_the_client_knows_them() {
    let home = home();
    let folder = account(&home).join("project");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display().to_string();
    let args = ["mcp", "install", "--client", "claude-code", "--project", &folder, "--yes"];
    home.cli(&args).unwrap().done();
    let written = json(&account(&home).join("project/.mcp.json"));
    assert_eq!(written["mcpServers"]["postrider"]["type"], "stdio");
    let none = ["mcp", "install", "--client", "windsurf", "--project", &folder, "--yes"];
    assert_eq!(home.cli(&none).unwrap().code(), Some(2));
}

#[test]
fn an_agent_is_made_once_and_the_command_written_works_as_that_agent() {
    let home = home();
    let product = up(&home);
    let install = ["mcp", "install", "--client", "claude-code", "--agent", "coder", "--yes"];
    product.cli(&install).unwrap().done();
    let token = home.path().join("daemon/agents/coder.token");
    let first = fs::read_to_string(&token).unwrap();
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    product.cli(&install).unwrap().done();
    assert_eq!(fs::read_to_string(&token).unwrap(), first, "a token that opens the door is kept");
    let entry = &json(&account(&home).join(".claude.json"))["mcpServers"]["postrider"];
    let args: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send","arguments":{"to":"me","body":"x","client_message_id":"x","wait_for":"delivered"}}}"#;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let input =
        format!("{hello}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n{call}\n");
    home.cli_with(&args, &[], &input).unwrap().done();
    let mail = product.cli(&["--json", "--as", "coder", "inbox"]).unwrap().done().json();
    assert_eq!(mail[0]["sender"], "coder");
}
