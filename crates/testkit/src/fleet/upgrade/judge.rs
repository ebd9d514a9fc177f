//! Whether the team goes on: everything told is there once and in order, and each id is known with its first answer.

use super::history::{self, TOPIC, await_mail, inbox, message, posting, writing};
use super::team::{ANN, BOB, Team};
use super::told::Told;
use crate::fleet::FleetError;
use crate::fleet::daemon::of_topic;
use crate::fleet::servers::Node;
use serde_json::{Value, json};
use std::time::Duration;

/// Messages that the team sends after all else, so that it is seen to go on.
const AFTER: u64 = 3;

/// What is wrong, a sentence each; mail is awaited so long.
pub(super) fn judge(team: &mut Team, told: &mut Told, patience: Duration) -> Result<Vec<String>, FleetError> {
    let mut broken = Vec::new();
    team.await_carried()?;
    team.relay.drain()?;
    await_mail(team, told, patience)?;
    arrived(team, told, &mut broken)?;
    known_at_daemons(team, told, &mut broken)?;
    known_at_broker(team, told, &mut broken)?;
    known_at_hub(team, told, &mut broken)?;
    history::go_on(team, "after", AFTER, patience, told)?;
    arrived(team, told, &mut broken)?;
    audited(team, &mut broken)?;
    broken.dedup();
    Ok(broken)
}

/// Inboxes, the topic and the hub hold what was told, in order.
fn arrived(team: &Team, told: &Told, broken: &mut Vec<String>) -> Result<(), FleetError> {
    for (node, name, from) in [(&team.ann, ANN, BOB), (&team.bob, BOB, ANN)] {
        let wanted = told.sent.iter().filter(|sent| sent.to == name).map(|sent| sent.id.as_str());
        compare(&format!("the inbox of {name}"), wanted, &inbox(node, from)?, broken);
    }
    let log = of_topic(&team.ann, TOPIC)?;
    let of = |sender: &str| -> Vec<String> {
        let own = log.iter().filter(|row| row.sender == sender);
        own.map(|row| row.client_message_id.clone()).collect()
    };
    let in_topic = told.sent.iter().filter(|sent| sent.to.starts_with('#')).map(|sent| sent.id.as_str());
    compare("ann's part of the topic", in_topic, &of(ANN), broken);
    let posted = told.posted.iter().map(|posted| posted.id.as_str());
    compare("the direct caller's part of the topic", posted, &of("script"), broken);
    let written = told.written.iter().map(|written| written.key.as_str());
    compare("the hub", written, &summaries(team)?, broken);
    Ok(())
}

fn compare<'told>(
    place: &str,
    wanted: impl Iterator<Item = &'told str>,
    found: &[String],
    broken: &mut Vec<String>,
) {
    let wanted: Vec<&str> = wanted.collect();
    if wanted != found {
        let at = wanted.iter().zip(found).position(|(one, other)| one != other);
        let at = at.unwrap_or(wanted.len().min(found.len()));
        let (missed, stands) = (wanted.get(at), found.get(at));
        broken.push(format!(
            "{place} holds {} of {} told; at place {at} stands {stands:?} instead of {missed:?}",
            found.len(),
            wanted.len()
        ));
    }
}

/// The summaries of all progress records, in the order they were applied.
fn summaries(team: &Team) -> Result<Vec<String>, FleetError> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/progress/?limit=1000{after}");
        let page = team.at_hub("GET", &path, "", &Value::Null)?;
        let unreadable = || FleetError::Unreadable { asked: path.clone(), answered: page.body.to_string() };
        let records = page.body["records"].as_array().ok_or_else(unreadable)?;
        found.extend(records.iter().filter_map(|record| record["summary"].as_str().map(str::to_owned)));
        if page.body["has_more"] != true {
            return Ok(found);
        }
        after = format!("&after={}", page.body["cursor"].as_str().unwrap_or_default());
    }
}

/// The same id again is the same message; another text is refused.
fn known_at_daemons(team: &Team, told: &Told, broken: &mut Vec<String>) -> Result<(), FleetError> {
    let node = |name: &str| -> &Node { if name == ANN { &team.ann } else { &team.bob } };
    for sent in &told.sent {
        let mut door = node(&sent.from).door();
        let same = door.post("/v1/send", &message(&sent.to, &sent.id))?;
        if !(200..300).contains(&same.status) || same.body["duplicate"] != true {
            broken.push(format!("{} sent again: {} {}", sent.id, same.status, same.body));
        }
        let mut other = message(&sent.to, &sent.id);
        other["body"] = json!("other words");
        let other = door.post("/v1/send", &other)?;
        if other.status != 409 || other.body["error"] != "idempotency_key_reused" {
            broken.push(format!("{} with other words: {} {}", sent.id, other.status, other.body));
        }
    }
    Ok(())
}

fn known_at_broker(team: &Team, told: &Told, broken: &mut Vec<String>) -> Result<(), FleetError> {
    for posted in &told.posted {
        let same = team.post(&posting(&posted.id))?;
        if same.status != 200 || same.body["broker_message_id"] != posted.message.as_str() {
            let said = format!("{} posted again: {} {}", posted.id, same.status, same.body);
            broken.push(format!("{said}; it was {}", posted.message));
        }
        let mut other = posting(&posted.id);
        other["body"] = json!("other words");
        let other = team.post(&other)?;
        if other.status != 409 || other.body["error"] != "idempotency_key_reused" {
            broken.push(format!("{} posted with other words: {} {}", posted.id, other.status, other.body));
        }
    }
    Ok(())
}

/// A write under a key that the hub has applied is answered and not applied again, which [`arrived`] sees afterwards.
fn known_at_hub(team: &Team, told: &Told, broken: &mut Vec<String>) -> Result<(), FleetError> {
    for written in &told.written {
        let more = format!("idempotency-key: {}\r\n", written.key);
        let same = team.at_hub("POST", "/progress/", &more, &writing(&written.key))?;
        if !(200..300).contains(&same.status) {
            broken.push(format!("{} written again: {} {}", written.key, same.status, same.body));
        }
        let other = team.at_hub("POST", "/progress/", &more, &writing("other words"))?;
        if !(400..500).contains(&other.status) {
            broken.push(format!("{} with other words: {} {}", written.key, other.status, other.body));
        }
    }
    Ok(())
}

/// The broker's own audit of its books.
fn audited(team: &mut Team, broken: &mut Vec<String>) -> Result<(), FleetError> {
    team.broker.kill9();
    let (code, said) = team.broker.check_own()?;
    if code != Some(0) {
        broken.push(format!("the audit of the books ended with {code:?}: {said}"));
    }
    Ok(())
}
