//! The protocol's own conformance suite: every scenario for servers is run, and each one passes or stands in
//! [`NOT_APPLICABLE`] with its reason.

use super::Scene;
use crate::prove::Findings;
use anyhow::ensure;

/// Scenarios that ask for what this server does not have, and why it does not.
const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("tools-call-simple-text", FIXTURE),
    ("tools-call-image", FIXTURE),
    ("tools-call-audio", FIXTURE),
    ("tools-call-embedded-resource", FIXTURE),
    ("tools-call-mixed-content", FIXTURE),
    ("tools-call-error", FIXTURE),
    ("tools-call-with-progress", FIXTURE),
    ("json-schema-2020-12", FIXTURE),
    ("logging-set-level", LOGGING),
    ("tools-call-with-logging", LOGGING),
    ("tools-call-sampling", ASKS_BACK),
    ("tools-call-elicitation", ASKS_BACK),
    ("elicitation-sep1034-defaults", ASKS_BACK),
    ("elicitation-sep1330-enums", ASKS_BACK),
    ("resources-read-text", RESOURCES),
    ("resources-read-binary", RESOURCES),
    ("resources-templates-read", RESOURCES),
    ("resources-subscribe", RESOURCES),
    ("resources-unsubscribe", RESOURCES),
    ("prompts-get-simple", PROMPTS),
    ("prompts-get-with-args", PROMPTS),
    ("prompts-get-embedded-resource", PROMPTS),
    ("prompts-get-with-image", PROMPTS),
    (
        "dns-rebinding-protection",
        "its second half wants pages of localhost let in; this door has a token and lets no page in",
    ),
];
const FIXTURE: &str = "calls a fixture tool of the suite's own reference server";
const LOGGING: &str = "the server declares no logging: a daemon's journal is its operator's";
const ASKS_BACK: &str = "the server never asks its client back";
const RESOURCES: &str =
    "the server declares no resources: mail is read by tools, which record that it was handed over";
const PROMPTS: &str = "the server declares no prompts";
/// The half of the scenario about foreign pages that does apply.
const FOREIGN_REJECTED: &str = "localhost-host-rebinding-rejected";

/// Runs every scenario.
pub(super) fn run(scene: &Scene<'_>, findings: &mut Findings) -> anyhow::Result<()> {
    let (port, _adding) = scene.clients.bearer(&scene.port()?, &scene.token_file)?;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let scenarios = scenarios(scene)?;
    let mut passed = Vec::new();
    for scenario in &scenarios {
        let output = scene.clients.conformance(&["server", "--url", &url, "--scenario", scenario])?;
        let said = plain(&output.stdout);
        let reason = NOT_APPLICABLE.iter().find(|(name, _)| name == scenario).map(|(_, reason)| *reason);
        match (output.status.success(), reason) {
            (true, None) => passed.push(scenario.as_str()),
            (true, Some(_)) => findings
                .broken
                .push(format!("conformance: {scenario} passes and is listed as not applicable")),
            (false, None) => {
                findings.broken.push(format!("conformance: {scenario} does not pass: {}", last(&said)))
            }
            (false, Some(reason)) => {
                findings
                    .figures
                    .push((format!("conformance, not applicable: {scenario}"), reason.to_owned()));
            }
        }
        if scenario == "dns-rebinding-protection" && !rejects_foreign_pages(&said) {
            findings.broken.push("conformance: a page of another host is let in".to_owned());
        }
    }
    findings.figures.push(("conformance, passed".to_owned(), passed.join(", ")));
    Ok(())
}

fn scenarios(scene: &Scene<'_>) -> anyhow::Result<Vec<String>> {
    let listed = plain(&scene.clients.conformance(&["list", "--server"])?.stdout);
    let name = |line: &str| Some(line.trim().strip_prefix("- ")?.split(' ').next()?.to_owned());
    let scenarios: Vec<String> = listed.lines().filter_map(name).collect();
    ensure!(!scenarios.is_empty(), "the suite lists no scenario: {listed}");
    for (name, _) in NOT_APPLICABLE {
        ensure!(
            scenarios.iter().any(|scenario| scenario == name),
            "the suite has no scenario {name} any more"
        );
    }
    Ok(scenarios)
}

fn rejects_foreign_pages(said: &str) -> bool {
    said.lines().any(|line| line.contains(FOREIGN_REJECTED) && line.contains("SUCCESS"))
}

/// Its words without their colours.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut rest = text.as_ref();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

fn last(said: &str) -> String {
    let told = said.lines().rev().find(|line| line.contains("Error") || line.contains("FAILURE"));
    told.unwrap_or("no reason given").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suites_words_are_read_without_their_colours() {
        let said =
            plain(b"\x1b[90mt\x1b[0m [localhost-host-rebinding-rejected] \x1b[32mSUCCESS\x1b[0m rejects");
        assert_eq!(said, "t [localhost-host-rebinding-rejected] SUCCESS rejects");
        assert!(rejects_foreign_pages(&said));
        assert!(!rejects_foreign_pages("[localhost-host-rebinding-rejected] FAILURE"));
    }
}
