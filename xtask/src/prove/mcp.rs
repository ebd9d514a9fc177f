//! `prove mcp`: the official Python client, the Inspector and the conformance suite at the real binary, and calls
//! whose server is killed under way.

mod clients;
mod conformance;

use super::{Control, Findings, Request};
use anyhow::{Context, ensure};
use clients::Clients;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use testkit::bin::{Binary, Home, Options, Product};

/// Cut calls under a caller that forgets its id; each one whose first call was carried out doubles.
const CONTROL_CALLS: u64 = 20;
/// What was accepted on this host goes on by itself; a busy machine may need a while.
const ARRIVAL_BOUND: Duration = Duration::from_secs(60);
/// Tools the Inspector calls, with their arguments.
const INSPECTED: &[(&str, &str)] = &[
    ("send", r#"{"to":"me","body":"inspected","client_message_id":"inspected","wait_for":"delivered"}"#),
    ("wait_for_mail", r#"{"wait_seconds":20}"#),
    ("read_inbox", r#"{"unread_only":false,"limit":5}"#),
    ("list_agents", "{}"),
    ("list_topics", "{}"),
    ("list_members", "{}"),
    ("explain", r#"{"id":"inspected"}"#),
];

/// What the Python script says, a line each.
#[derive(Debug, Deserialize)]
struct Said {
    #[serde(default)]
    mode: String,
    #[serde(default)]
    transport: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    ok: Option<bool>,
    #[serde(default)]
    why: String,
    #[serde(default)]
    heard: Option<u64>,
}

/// The product, an agent in it, and the clients.
struct Scene<'home> {
    home: &'home Home,
    product: Product<'home>,
    clients: &'home Clients,
    token_file: PathBuf,
}

pub fn run(request: &Request<'_>) -> anyhow::Result<Findings> {
    let binary = Binary::at(request.faulted_binary()?);
    let clients = Clients::provide(&request.workspace.target.join("mcp-clients"))?;
    let home = Home::new(binary.clone())?;
    let env = vec![("POSTRIDER_TCP".to_owned(), "on".to_owned())];
    let product = Product::up(&home, &Options { env, ..Options::default() })?;
    let token = product.cli(&["--quiet", "agent", "add", "walker"])?.done().stdout;
    let token_file = home.path().join("walker.token");
    std::fs::write(&token_file, token).context("the agent's token")?;
    let scene = Scene { home: &home, product, clients: &clients, token_file };
    let mut findings = Findings { figures: clients.versions(), ..Findings::default() };
    scene.walk(&binary, &mut findings)?;
    scene.inspect(&binary, &mut findings)?;
    conformance::run(&scene, &mut findings)?;
    let (lost, doubled) = scene.cut(&binary, "cuts", request.scale, "keep", &mut findings)?;
    (findings.lost, findings.doubled, findings.acked) = (lost, doubled, request.scale);
    findings.faults = BTreeMap::from([("servers killed during a call".to_owned(), request.scale)]);
    let (_, doubled) = scene.cut(&binary, "control", CONTROL_CALLS, "forget", &mut Findings::default())?;
    findings.controls.push(Control {
        planted: "a caller that makes a new id for its second call".to_owned(),
        caught: doubled > 0,
        seen: format!("{doubled} of {CONTROL_CALLS} doubled"),
    });
    Ok(findings)
}

impl Scene<'_> {
    /// The loopback door's port.
    fn port(&self) -> anyhow::Result<String> {
        let file = self.home.path().join("daemon/http.port");
        Ok(std::fs::read_to_string(&file).context("the loopback door's port")?.trim().to_owned())
    }

    fn url(&self) -> anyhow::Result<String> {
        Ok(format!("http://127.0.0.1:{}/mcp", self.port()?))
    }

    /// The Python client calls every tool over both transports in every mode.
    fn walk(&self, binary: &Binary, findings: &mut Findings) -> anyhow::Result<()> {
        let program = binary.path().display().to_string();
        let (home, token) = (self.home.path().display().to_string(), self.token_file.display().to_string());
        let said = self.clients.python(&["walk", &program, &home, &token, &self.url()?])?;
        let mut went_well: BTreeMap<String, u64> = BTreeMap::new();
        for line in said {
            let Said { mode, transport, what, ok, why, .. } = line;
            match ok {
                Some(true) => {
                    *went_well.entry(format!("Python client, {transport}, mode {mode}")).or_default() += 1
                }
                Some(false) | None => {
                    findings.broken.push(format!("Python client, {transport}, mode {mode}, {what}: {why}"));
                }
            }
        }
        ensure!(!went_well.is_empty(), "the Python client said nothing");
        findings.figures.extend(went_well.into_iter().map(|(name, calls)| (name, format!("{calls} checks"))));
        Ok(())
    }

    /// The Inspector lists the tools, judges their schemas, and calls them, over both transports.
    fn inspect(&self, binary: &Binary, findings: &mut Findings) -> anyhow::Result<()> {
        let token = std::fs::read_to_string(&self.token_file).context("the agent's token")?;
        let header = format!("Authorization: Bearer {}", token.trim());
        let (program, url) = (binary.path().display().to_string(), self.url()?);
        let (home, file) = (self.home.path().display().to_string(), self.token_file.display().to_string());
        let stdio = [program.as_str(), "mcp", "--home", &home, "--token-file", &file];
        let http = [url.as_str(), "--transport", "http", "--header", &header];
        for (transport, target) in [("stdio", stdio.as_slice()), ("http", http.as_slice())] {
            let mut checks = 0;
            let mut judge =
                |what: &str, answer: anyhow::Result<Value>, holds: &dyn Fn(&Value) -> bool| match answer {
                    Ok(answer) if holds(&answer) => checks += 1,
                    Ok(answer) => findings.broken.push(format!("Inspector, {transport}, {what}: {answer}")),
                    Err(error) => findings.broken.push(format!("Inspector, {transport}, {what}: {error:#}")),
                };
            let listed = self.clients.inspector(target, &["--method", "tools/list", "--strict"]);
            judge("tools/list", listed, &|answer| {
                answer["tools"].as_array().is_some_and(|tools| tools.len() == 8)
            });
            let went_well =
                |answer: &Value| answer["isError"] != true && answer["structuredContent"].is_object();
            for (tool, arguments) in INSPECTED {
                let call = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", arguments];
                judge(tool, self.clients.inspector(target, &call), &went_well);
            }
            let letter = self.new_letter(transport)?;
            let id = format!("inspected-{transport}");
            let reply = serde_json::json!({"message_id": letter, "body": "seen", "client_message_id": id});
            let reply = reply.to_string();
            let call = ["--method", "tools/call", "--tool-name", "reply", "--tool-args-json", &reply];
            judge("reply", self.clients.inspector(target, &call), &went_well);
            findings.figures.push((format!("Inspector, {transport}"), format!("{checks} checks")));
        }
        Ok(())
    }

    /// A letter to the agent that has not had its turn.
    fn new_letter(&self, transport: &str) -> anyhow::Result<String> {
        self.product.cli(&["send", "walker", &format!("over {transport}"), "--wait", "delivered"])?.done();
        let rows = self.product.cli(&["--json", "--as", "walker", "inbox"])?.done().json();
        let newest = rows.last().and_then(|row| row["id"].as_str()).map(str::to_owned);
        newest.context("the agent has no mail")
    }

    /// Calls whose server dies, made again; counted in the log of the topic they post to.
    fn cut(
        &self,
        binary: &Binary,
        topic: &str,
        calls: u64,
        memory: &str,
        findings: &mut Findings,
    ) -> anyhow::Result<(u64, u64)> {
        let program = binary.path().display().to_string();
        let home = self.home.path().display().to_string();
        let said = self.clients.python(&["cut", &program, &home, topic, &calls.to_string(), memory])?;
        for line in &said {
            if line.ok == Some(false) {
                findings.broken.push(format!("second call of {}: {}", line.what, line.why));
            }
        }
        let heard: u64 = said.iter().filter_map(|line| line.heard).sum();
        findings
            .figures
            .push(("first calls whose answer was heard all the same".to_owned(), heard.to_string()));
        let copies = self.copies(topic, calls)?;
        let doubled = copies.values().filter(|copies| **copies > 1).count() as u64;
        Ok((calls.saturating_sub(copies.len() as u64), doubled))
    }

    /// How often each text stands in the topic's log, once all do or time is up.
    fn copies(&self, topic: &str, texts: u64) -> anyhow::Result<BTreeMap<String, u64>> {
        let count = || -> anyhow::Result<BTreeMap<String, u64>> {
            let log = self.product.cli(&["--json", "topic", "history", topic, "--all"])?.done().json();
            let mut copies = BTreeMap::new();
            for row in &log {
                *copies.entry(row["body"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
            Ok(copies)
        };
        let all = |copies: &BTreeMap<String, u64>| copies.len() as u64 >= texts;
        // What is missing when time is up is counted as lost.
        let waited = testkit::wait_for("every text in the log", ARRIVAL_BOUND, || count().ok().filter(all));
        waited.or_else(|_| count())
    }
}
