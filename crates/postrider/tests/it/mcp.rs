//! The tools of the real binary: on its stdin and stdout, and at `/mcp` of a running daemon.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::bin::Home;
use testkit::wait_for;

use super::{home, up, up_on_loopback};

const BOUND: Duration = Duration::from_secs(30);

/// One conversation over stdin and stdout; answers come back by their request's place.
fn conversation(home: &Home, args: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 1000, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for (place, (tool, arguments)) in calls.iter().enumerate() {
        lines.push(json!({"jsonrpc": "2.0", "id": place, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}));
    }
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut answers = home.cli_with(args, &[], &input).unwrap().done().json();
    assert_eq!(answers.len(), calls.len() + 1, "every request is answered before the end: {answers:?}");
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers.truncate(calls.len());
    answers.into_iter().map(|answer| answer["result"].clone()).collect()
}

/// One call in a conversation of its own.
fn call(home: &Home, args: &[&str], tool: &str, arguments: Value) -> Value {
    conversation(home, args, &[(tool, arguments)]).remove(0)
}

#[test]
fn a_message_goes_from_tool_to_tool_and_its_answer_comes_back() {
    let home = home();
    let product = up(&home);
    for name in ["planner", "builder"] {
        let token = product.cli(&["--quiet", "agent", "add", name]).unwrap().done().stdout;
        std::fs::write(home.path().join(name), token).unwrap();
    }
    let path = |name: &str| home.path().join(name).display().to_string();
    let (planner, builder) = (path("planner"), path("builder"));
    let (planner, builder) = (["mcp", "--token-file", &planner], ["mcp", "--token-file", &builder]);
    let send =
        json!({"to": "builder", "body": "build it", "client_message_id": "job-1", "wait_for": "delivered"});
    let posted = call(&home, &planner, "send", send.clone());
    assert_eq!(
        (&posted["isError"], &posted["structuredContent"]["rung"]),
        (&json!(false), &json!("delivered"))
    );
    let mail = call(&home, &builder, "wait_for_mail", json!({"wait_seconds": 20}));
    let letter = &mail["structuredContent"]["messages"][0];
    assert_eq!((letter["sender"].as_str(), letter["body"].as_str()), (Some("planner"), Some("build it")));
    let reply = json!({"message_id": letter["id"], "client_message_id": "answer-1", "body": "built"});
    let replied = call(&home, &builder, "reply", reply.clone());
    assert_eq!(replied["structuredContent"]["outcome"], "processed", "{replied}");
    let again = call(&home, &builder, "reply", reply);
    assert_eq!(again["structuredContent"]["repeated"], true, "{again}");
    let repeated = call(&home, &planner, "send", send);
    assert_eq!(repeated["structuredContent"]["repeated"], true, "{repeated}");
    wait_for("the sender sees processed", BOUND, || {
        let explained = call(&home, &planner, "explain", json!({"id": "job-1"}));
        (explained["structuredContent"]["verdict"] == "processed").then_some(())
    })
    .unwrap();
    let answers = call(&home, &planner, "wait_for_mail", json!({"wait_seconds": 20}));
    let answers = answers["structuredContent"]["messages"].as_array().unwrap().clone();
    assert_eq!(answers.len(), 1, "one answer, whatever was repeated: {answers:?}");
    assert_eq!((answers[0]["body"].as_str(), &answers[0]["reply_to"]), (Some("built"), &letter["id"]));
    let unread = call(&home, &builder, "read_inbox", json!({}));
    assert_eq!(unread["structuredContent"]["unread"], 0, "what was answered is read");
}

#[test]
fn a_killed_daemon_and_a_second_call_give_one_message() {
    let home = home();
    let product = up(&home);
    let send = json!({"to": "me", "body": "once", "client_message_id": "once"});
    call(&home, &["mcp"], "send", send.clone());
    product.kill9();
    let refused = call(&home, &["mcp"], "send", send.clone());
    assert_eq!(refused["structuredContent"]["error"], "daemon_not_running", "{refused}");
    let _product = up(&home);
    let waited = json!({"to": "me", "body": "once", "client_message_id": "once", "wait_for": "delivered"});
    let again = call(&home, &["mcp"], "send", waited);
    assert_eq!(again["structuredContent"]["reached"], true, "{again}");
    let mail = call(&home, &["mcp"], "read_inbox", json!({"unread_only": false}));
    assert_eq!(mail["structuredContent"]["messages"].as_array().unwrap().len(), 1, "{mail}");
}

#[test]
fn many_calls_at_once_are_each_answered() {
    let home = home();
    let _product = up(&home);
    let calls: Vec<(String, Value)> = (0..40)
        .map(|n| {
            ("send".to_owned(), json!({"to": "#t", "body": "x", "client_message_id": format!("n{}", n % 20)}))
        })
        .collect();
    let calls: Vec<(&str, Value)> =
        calls.iter().map(|(tool, value)| (tool.as_str(), value.clone())).collect();
    let answers = conversation(&home, &["mcp"], &calls);
    assert!(answers.iter().all(|answer| answer["isError"] == false), "{answers:?}");
    wait_for("twenty messages in the log", BOUND, || {
        let log = home.cli(&["--json", "topic", "history", "t", "--all"]).unwrap().done().json();
        (log.len() == 20).then_some(())
    })
    .unwrap();
}

#[test]
fn a_client_that_goes_away_ends_the_server_without_a_word() {
    let home = home();
    let ended = home.cli_with(&["mcp"], &[], "").unwrap().done();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    let token = home.cli_with(&["mcp", "--token-file", "/none"], &[], "").unwrap();
    assert_eq!(token.code(), Some(2), "{token:?}");
}

/// `POST /mcp` on loopback with these headers; the status.
fn post(home: &Home, headers: &[&str]) -> String {
    let port = std::fs::read_to_string(home.path().join("daemon/http.port")).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());
    let mut command = std::process::Command::new("curl");
    command.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-d", body, &url]);
    command.args([
        "-H",
        "content-type: application/json",
        "-H",
        "accept: application/json, text/event-stream",
    ]);
    headers.iter().for_each(|header| {
        command.args(["-H", header]);
    });
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn the_tools_at_the_loopback_door_are_behind_its_guards() {
    let home = home();
    let _product = up_on_loopback(&home);
    let token = std::fs::read_to_string(home.path().join("daemon/local_token")).unwrap();
    let bearer = format!("authorization: Bearer {}", token.trim());
    assert_eq!(post(&home, &[&bearer]), "200");
    assert_eq!(post(&home, &[]), "401");
    assert_eq!(post(&home, &["authorization: Bearer wrong"]), "401");
    assert_eq!(post(&home, &[&bearer, "host: evil.example"]), "403");
    assert_eq!(post(&home, &[&bearer, "origin: http://evil.example"]), "403");
}
