//! `postrider relay doctor`: the checklist after an outage, gone through.

use std::borrow::Cow;

use wire::relay::{RelayStatus, TooOldWrite};

use super::door::{RelayDoor, folder};
use super::outbox::{too_old_word, upstream_word};
use crate::clock::clock;
use crate::cmd::Context;
use crate::failure::{Exit, Failure};
use crate::output::Form;

/// One line of the checklist.
struct Finding {
    word: &'static str,
    text: String,
    fix: Option<Cow<'static, str>>,
}

pub async fn run(context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    let status: RelayStatus = RelayDoor::of(&context.home)?.get("/status").await?;
    let mut findings = findings(&status);
    findings.extend(set_aside(&folder(&context.home)));
    findings.extend(status.went_back.as_ref().map(|text| Finding {
        word: "warn",
        text: format!("   {text}"),
        fix: Some("postrider relay outbox list".into()),
    }));
    let acts = findings.iter().filter(|finding| finding.word != "fine").count();
    match output.form() {
        Form::Json => output.json(&serde_json::json!({
            "findings": acts,
            "checks": findings.iter().map(|finding| serde_json::json!({
                "word": finding.word, "text": finding.text, "fix": finding.fix,
            })).collect::<Vec<_>>(),
        })),
        Form::Quiet => output.text(&acts.to_string()),
        Form::Text => {
            output.text(&format!("{} checks, {acts} findings", findings.len()));
            output.text("");
            for finding in &findings {
                output.fact(finding.word, &finding.text);
                if let Some(fix) = &finding.fix {
                    output.fact("fix", fix);
                }
            }
        }
    }
    Ok(if acts == 0 { Exit::Done } else { Exit::Refused })
}

fn findings(status: &RelayStatus) -> Vec<Finding> {
    let check = |holds: bool, word, fine: String, bad: String, fix: &'static str| match holds {
        true => Finding { word: "fine", text: fine, fix: None },
        false => Finding { word, text: bad, fix: Some(fix.into()) },
    };
    let waits = status.queued - status.blocked.min(status.queued);
    let word = upstream_word(status, clock().now());
    let checks = [
        check(
            status.reachable,
            "act",
            format!("1  {} {word}", status.upstream),
            format!("1  {} does not answer: {word}", status.upstream),
            "bring the upstream back; the relay looks every 2 s",
        ),
        check(
            status.paused.is_none() && status.forward_only.is_none() && status.stopped.is_none(),
            "act",
            "2  writes are stored and replayed".to_owned(),
            match &status.stopped {
                Some(cause) => {
                    format!("2  the relay outbox has stopped; the relay ends with exit code 5: {cause}")
                }
                None => {
                    let why = status.paused.as_deref().or(status.forward_only.as_deref());
                    format!("2  {}", why.unwrap_or_default())
                }
            },
            if status.stopped.is_some() {
                "check the disk, then postrider relay serve"
            } else {
                "postrider relay outbox replay      after the cause is gone"
            },
        ),
        check(
            waits == 0,
            "warn",
            "3  nothing waits".to_owned(),
            format!("3  {waits} writes wait, {} of unknown outcome", status.unknown),
            "postrider relay outbox replay",
        ),
        check(
            status.conflict + status.rejected + status.expired == 0,
            "act",
            "4  nothing to review".to_owned(),
            format!(
                "4  {} conflicts, {} rejected, {} expired wait for a person",
                status.conflict, status.rejected, status.expired
            ),
            "postrider relay outbox list --status conflict",
        ),
    ];
    let ended = [
        check(
            status.age_alarm.is_none(),
            "warn",
            "   no write is older than 7 days".to_owned(),
            "   a write waits for more than 7 days; at 13 it is not sent by itself".to_owned(),
            "postrider relay outbox list --status queued",
        ),
        Finding {
            word: "fine",
            text: "5  then make fix-consistency REPO=state-hub, where files are canonical".to_owned(),
            fix: None,
        },
        Finding {
            word: "fine",
            text: format!("6  for the progress note: {} done in 24 h, {} queued", status.done, status.queued),
            fix: None,
        },
    ];
    checks.into_iter().chain(status.too_old.iter().map(too_old)).chain(ended).collect()
}

fn too_old(write: &TooOldWrite) -> Finding {
    Finding {
        word: "act",
        text: format!("   {}", too_old_word(write)),
        fix: Some(format!("postrider relay outbox retry {}", write.envelope_id).into()),
    }
}

/// Damaged files of earlier starts: somebody should look at them once.
fn set_aside(folder: &std::path::Path) -> Option<Finding> {
    let entries = std::fs::read_dir(folder).ok()?;
    let named = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let found =
        entries.filter_map(named).find(|name| name.contains(".damaged-") && !name.ends_with("-wal"))?;
    Some(Finding {
        word: "warn",
        text: format!("   a damaged outbox is set aside as {found}"),
        fix: Some("look through it, then move it away".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_is_too_old_to_be_sent_again_is_named_with_what_a_person_does() {
        for (status, outcome, known) in [
            ("queued", "unknown", "it may have been applied; the upstream is asked first"),
            ("expired", "unknown", "it may have been applied, and the upstream cannot tell any more"),
            ("expired", "not_committed", "it was not applied"),
        ] {
            let write = TooOldWrite {
                envelope_id: "01M7GH3C2R6V0D9QK1TJX4N8YE".into(),
                method: "PATCH".into(),
                path: "/tasks/1".into(),
                queued_at: "2027-01-15T08:00:00Z".into(),
                status: status.into(),
                outcome: outcome.into(),
            };
            let found = findings(&RelayStatus { too_old: vec![write], ..RelayStatus::default() });
            let named = found.iter().find(|finding| finding.text.contains("/tasks/1")).unwrap();
            assert_eq!(named.word, "act");
            let text = format!("   PATCH /tasks/1 is too old to be sent again by itself: {known}");
            assert_eq!(named.text, text);
            let fix = "postrider relay outbox retry 01M7GH3C2R6V0D9QK1TJX4N8YE";
            assert_eq!(named.fix.as_deref(), Some(fix));
        }
    }
}
