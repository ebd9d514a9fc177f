//! What the team does: sends that arrive, mail for a home that is away, posts, writes, and all of it waiting.

use super::team::{ANN, BOB, BOUND, Team};
use super::told::{Posted, Sent, Told, Written};
use crate::fleet::FleetError;
use crate::fleet::servers::Node;
use crate::kills::audience::text_of;
use crate::kills::door::Answer;
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where both post.
pub(super) const TOPIC: &str = "log";

/// The history before the first change: everything arrives.
pub(super) fn make(team: &mut Team, messages: u64) -> Result<Told, FleetError> {
    let mut told = Told {
        commit: String::new(),
        left_at_us: 0,
        broker: team.broker.address,
        direct_token: team.direct_token.clone(),
        hub_token: team.hub_token.clone(),
        sent: Vec::new(),
        posted: Vec::new(),
        written: Vec::new(),
    };
    go_on(team, "before", messages, BOUND, &mut told)?;
    Ok(told)
}

/// Both homes send to each other and to the topic, the direct caller posts, the relay passes writes on; waits until all
/// of it arrived.
pub(super) fn go_on(
    team: &Team,
    name: &str,
    messages: u64,
    patience: Duration,
    told: &mut Told,
) -> Result<(), FleetError> {
    team.await_carried()?;
    for n in 0..messages {
        send(&team.ann, ANN, BOB, &format!("{name}.to-bob.{n}"), told)?;
        send(&team.bob, BOB, ANN, &format!("{name}.to-ann.{n}"), told)?;
        send(&team.ann, ANN, &format!("#{TOPIC}"), &format!("{name}.topic.{n}"), told)?;
        post(team, &format!("{name}.post.{n}"), told)?;
        write(team, &format!("{name}.write.{n}"), told)?;
    }
    team.await_carried()?;
    await_mail(team, told, patience)
}

/// A home is away, then the broker; what is sent and written meanwhile waits where it is.
pub(super) fn leave_waiting(team: &mut Team, messages: u64, told: &mut Told) -> Result<(), FleetError> {
    team.bob.kill9();
    for n in 0..messages {
        send(&team.ann, ANN, BOB, &format!("away.to-bob.{n}"), told)?;
    }
    crate::fleet::daemon::await_empty(&[&team.ann])?;
    team.broker.kill9();
    for n in 0..messages {
        send(&team.ann, ANN, BOB, &format!("waiting.to-bob.{n}"), told)?;
        send(&team.ann, ANN, &format!("#{TOPIC}"), &format!("waiting.topic.{n}"), told)?;
        write(team, &format!("waiting.write.{n}"), told)?;
    }
    told.left_at_us = now_us();
    Ok(())
}

/// Waits until both inboxes have what the homes sent to each other, at most so long: what is missing then is named by
/// the judge.
pub(super) fn await_mail(team: &Team, told: &Told, patience: Duration) -> Result<(), FleetError> {
    for (node, to, from) in [(&team.ann, ANN, BOB), (&team.bob, BOB, ANN)] {
        let wanted = told.sent.iter().filter(|sent| sent.to == to).count();
        let complete = || (inbox(node, from).ok()?.len() >= wanted).then_some(());
        let _missing = wait_for("all mail", patience, complete);
    }
    Ok(())
}

/// The ids of what `from` sent directly, in the inbox's order.
pub(super) fn inbox(node: &Node, from: &str) -> Result<Vec<String>, FleetError> {
    let (mut ids, mut after) = (Vec::new(), 0);
    loop {
        let answer = node.door().get(&format!("/v1/inbox?after={after}&limit=500"))?;
        let items = answer.body["items"].as_array().cloned().unwrap_or_default();
        let Some(last) = items.last() else { return Ok(ids) };
        after = last["inbox_seq"].as_u64().ok_or_else(|| unreadable("an inbox row", &answer))?;
        let own = items.iter().filter(|item| item["sender"] == from);
        ids.extend(own.filter_map(|item| item["client_message_id"].as_str().map(str::to_owned)));
    }
}

/// A direct message or a post to the topic.
pub(super) fn message(to: &str, id: &str) -> Value {
    json!({"to": if to.starts_with('#') { to.to_owned() } else { format!("@{to}") },
        "body": text_of(id), "client_message_id": id})
}

/// The direct caller's.
pub(super) fn posting(id: &str) -> Value {
    message(&format!("#{TOPIC}"), id)
}

/// The relay's.
pub(super) fn writing(key: &str) -> Value {
    json!({"summary": key, "session": "s1"})
}

fn send(node: &Node, from: &str, to: &str, id: &str, told: &mut Told) -> Result<(), FleetError> {
    let answer = node.door().post("/v1/send", &message(to, id))?;
    taken(id, &answer, &[202])?;
    told.sent.push(Sent { from: from.to_owned(), to: to.to_owned(), id: id.to_owned() });
    Ok(())
}

fn post(team: &Team, id: &str, told: &mut Told) -> Result<(), FleetError> {
    let answer = team.post(&posting(id))?;
    taken(id, &answer, &[201])?;
    let text = |field: &str| answer.body[field].as_str().map(str::to_owned);
    let (message, created_at) =
        text("broker_message_id").zip(text("created_at")).ok_or_else(|| unreadable(id, &answer))?;
    told.posted.push(Posted { id: id.to_owned(), message, created_at });
    Ok(())
}

fn write(team: &Team, key: &str, told: &mut Told) -> Result<(), FleetError> {
    let answer = team.relay.write(key, &writing(key))?;
    taken(key, &answer, &[200, 201, 202])?;
    told.written.push(Written { key: key.to_owned(), queued: answer.status == 202 });
    Ok(())
}

fn taken(asked: &str, answer: &Answer, statuses: &[u16]) -> Result<(), FleetError> {
    if statuses.contains(&answer.status) { Ok(()) } else { Err(unreadable(asked, answer)) }
}

fn unreadable(asked: &str, answer: &Answer) -> FleetError {
    FleetError::Unreadable { asked: asked.to_owned(), answered: format!("{} {}", answer.status, answer.body) }
}

#[expect(
    clippy::disallowed_methods,
    reason = "stored state says when it was left, on the machine's own clock"
)]
pub(super) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).expect("the clock stands within 292,000 years of 1970")
}
