//! Who keeps the agents busy, and reads their answers at the end.

use super::judge::Closing;
use super::stage::{Phase, Stage};
use crate::kills::KillsError;
use crate::kills::door::{Answer, Door};
use crate::refusals::{Attempt, Refusals};
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Messages the agents may be behind.
const AHEAD_MAX: u64 = 12;
/// Of so many messages, one has requests before it that no door takes.
const REFUSED_EVERY: u64 = 8;
/// Everything that waits is worked off within this, on a busy machine.
const CLOSE_BOUND: Duration = Duration::from_secs(180);
/// From the broker of one process to its own inbox, on a busy machine.
const DELIVER_BOUND: Duration = Duration::from_secs(10);

/// What the sender was told.
#[derive(Default)]
pub(super) struct Sent {
    /// Ids that were acknowledged.
    pub acked: Vec<String>,
    pub refusals: Refusals,
    /// Requests that were taken and should not have been.
    pub wrong: Vec<String>,
}

/// Sends until the killing ends.
pub(super) fn send(stage: &Stage<'_>) -> Result<Sent, KillsError> {
    let (mut door, mut sent) = (stage.door(None), Sent::default());
    for n in 0_u64.. {
        let ahead = || stage.acked.load(Ordering::SeqCst).saturating_sub(stage.ended.load(Ordering::SeqCst));
        let may_go = || (stage.phase() != Phase::Killing || ahead() < AHEAD_MAX).then_some(());
        // Agents that are down for long hold the sender up; that is no error.
        let _ = wait_for("the agents to follow", Duration::from_secs(5), may_go);
        if stage.phase() != Phase::Killing {
            break;
        }
        let to = format!("@{}", stage.agents()[n as usize % stage.agents().len()]);
        if n.is_multiple_of(REFUSED_EVERY) {
            let ask = |request: &Value| door.post("/v1/send", request);
            sent.wrong.extend(sent.refusals.ask_refused(&format!("never.{n}"), &to, ask));
        }
        let mut attempt = Attempt::new(&format!("ask.{n}"));
        while stage.await_listening(&mut door)? {
            let id = attempt.id();
            let request = json!({ "to": to, "body": format!("do {id}"), "client_message_id": id });
            match door.post("/v1/send", &request) {
                Ok(Answer { status: 200..=299, .. }) => {
                    stage.acked.fetch_add(1, Ordering::SeqCst);
                    sent.acked.push(id.to_owned());
                    break;
                }
                Ok(answer @ Answer { status: 429 | 503 | 507, .. }) => {
                    sent.refusals.note(&mut attempt, &answer);
                }
                Err(_) => attempt.note_unanswered(),
                Ok(Answer { status, body }) => {
                    let answered = format!("{status} {body}");
                    return Err(KillsError::Unreadable { asked: format!("sending {id}"), answered });
                }
            }
        }
    }
    Ok(sent)
}

/// Waits until everything acknowledged is processed or given up, then reads what came back.
pub(super) fn close(stage: &Stage<'_>, acked: &[String]) -> Result<Closing, KillsError> {
    let mut given_up = BTreeSet::new();
    wait_for("every message to come to its end", CLOSE_BOUND, || {
        given_up =
            stage.agents().iter().filter_map(|agent| given_up_of(stage, agent).ok()).flatten().collect();
        let mut door = stage.door(None);
        let ended = |id: &String| {
            let life = door.get(&format!("/v1/messages/{id}")).ok();
            given_up.contains(id) || life.is_some_and(|life| life.body["receipt"]["rung"] == "processed")
        };
        acked.iter().rev().all(ended).then_some(())
    })?;
    wait_for("the outbox to empty", CLOSE_BOUND, || {
        let counts = stage.door(None).get("/v1/outbox?limit=1").ok()?.body["counts"].clone();
        (counts["pending"] == 0 && counts["inflight"] == 0).then_some(())
    })?;
    let replies = wait_for("the replies", DELIVER_BOUND, || {
        let replies = replies_of(stage).ok()?;
        let missing = acked.iter().filter(|id| !given_up.contains(*id) && !replies.contains_key(*id)).count();
        (missing == 0).then_some(replies)
    });
    // A reply that never comes is a finding, not an error.
    let replies = match replies {
        Ok(replies) => replies,
        Err(_) => replies_of(stage)?,
    };
    Ok(Closing { acked: acked.to_vec(), replies, given_up })
}

fn given_up_of(stage: &Stage<'_>, agent: &str) -> Result<Vec<String>, KillsError> {
    let answer = stage.door(Some(agent)).get("/v1/turns")?;
    let turns = answer.body["given_up"].as_array().cloned().unwrap_or_default();
    Ok(turns.iter().map(|turn| text(&turn["message"]["client_message_id"])).collect())
}

/// By the id they answer, which each reply repeats in its words.
fn replies_of(stage: &Stage<'_>) -> Result<BTreeMap<String, u64>, KillsError> {
    let (mut door, mut replies, mut after) = (stage.door(None), BTreeMap::new(), 0);
    loop {
        let page = page(&mut door, after)?;
        let Some(last) = page.last() else { return Ok(replies) };
        after = last["inbox_seq"].as_u64().unwrap_or(u64::MAX);
        for item in &page {
            let answered = text(&item["body"]).trim_start_matches("re ").to_owned();
            *replies.entry(answered).or_default() += 1;
        }
    }
}

fn page(door: &mut Door, after: u64) -> Result<Vec<Value>, KillsError> {
    let answer = door.get(&format!("/v1/inbox?after={after}&limit=1000"))?;
    Ok(answer.body["items"].as_array().cloned().unwrap_or_default())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
