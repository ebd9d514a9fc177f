//! What the driver does to an id, and what must be said of it afterwards.

use super::stage::Stage;
use crate::kills::KillsError;
use serde_json::{Value, json};

/// What became of an id, as the driver's log has it.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub id: String,
    /// The act's name.
    pub kind: &'static str,
    /// What explain must say.
    pub verdict: &'static str,
    /// And why; none when there is nothing to add.
    pub code: Option<&'static str>,
}

/// Why an act goes no further.
pub(super) enum Stopped {
    /// Its message was refused in words that deny its storage, and is given up.
    Refused,
    Broken(KillsError),
}

impl From<KillsError> for Stopped {
    fn from(error: KillsError) -> Self {
        Self::Broken(error)
    }
}

type Act = fn(&mut Stage<'_>, &str) -> Result<Vec<Fate>, Stopped>;

pub(super) const ACTS: [Act; 16] = [
    to_me,
    to_lab,
    to_nobody,
    abort,
    requeue,
    too_late,
    twice,
    other_words,
    topic_alone,
    topic_with_reader,
    turn_ends,
    turn_fails,
    turn_interrupted,
    relay_waits,
    relay_withdrawn,
    refused,
];

impl Fate {
    fn of(id: &str, kind: &'static str, verdict: &'static str, code: Option<&'static str>) -> Self {
        Self { id: id.to_owned(), kind, verdict, code }
    }

    pub(super) fn never(id: &str, kind: &'static str) -> Self {
        Self::of(id, kind, "never_seen", None)
    }
}

fn send(stage: &mut Stage<'_>, id: &str, to: &str, more: Value) -> Result<(), Stopped> {
    let mut request = json!({"to": to, "body": format!("words of {id}"), "client_message_id": id});
    if let (Some(request), Some(more)) = (request.as_object_mut(), more.as_object()) {
        request.extend(more.clone());
    }
    if stage.send(id, &request)? { Ok(()) } else { Err(Stopped::Refused) }
}

fn to_me(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, "@me", Value::Null)?;
    Ok(vec![Fate::of(id, "to oneself", "delivered", None)])
}

/// Its node is away in some histories: then the broker holds it.
fn to_lab(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, "@tom", Value::Null)?;
    Ok(vec![if stage.lab_is_up() {
        Fate::of(id, "to another node", "delivered", None)
    } else {
        Fate::of(id, "to a node that is away", "accepted", None)
    }])
}

fn to_nobody(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, &format!("@nobody-{id}"), Value::Null)?;
    Ok(vec![Fate::of(id, "to nobody", "queued", Some("member_not_found"))])
}

fn abort(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, &format!("@nobody-{id}"), Value::Null)?;
    let row = stage.row_of(id)?;
    stage.operate("/v1/outbox/abort", &json!({"id": row}))?;
    Ok(vec![Fate::of(id, "aborted", "aborted", None)])
}

fn requeue(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, &format!("@nobody-{id}"), Value::Null)?;
    let (row, new) = (stage.row_of(id)?, format!("{id}-again"));
    stage.operate("/v1/outbox/requeue", &json!({"id": row, "new_client_message_id": new}))?;
    Ok(vec![
        Fate::of(id, "requeued", "aborted", None),
        Fate::of(&new, "successor of a requeue", "queued", Some("member_not_found")),
    ])
}

fn too_late(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, "@me", json!({"deliver_by": "2020-01-01T00:00:00Z"}))?;
    Ok(vec![Fate::of(id, "too late", "expired", Some("deliver_by"))])
}

fn twice(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, "@me", Value::Null)?;
    send(stage, id, "@me", Value::Null)?;
    Ok(vec![Fate::of(id, "asked twice", "delivered", None)])
}

fn other_words(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, "@me", Value::Null)?;
    let other = json!({"to": "@me", "body": "other words", "client_message_id": id});
    stage.must(None, "/v1/send", &other, &[409])?;
    Ok(vec![Fate::of(id, "used again for other words", "delivered", None)])
}

fn topic_alone(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, &format!("#alone-{id}"), Value::Null)?;
    Ok(vec![Fate::of(id, "to a topic nobody reads", "accepted", None)])
}

fn topic_with_reader(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    send(stage, id, "#news", Value::Null)?;
    Ok(vec![Fate::of(id, "to a topic with a reader", "delivered", None)])
}

fn turn_ends(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    let turn = begun(stage, id)?;
    let end = json!({"outcome": "processed", "reply": {"body": "done"}});
    stage.must(Some("ci"), &format!("/v1/turns/{turn}/end"), &end, &[200])?;
    Ok(vec![
        Fate::of(id, "its turn ended", "processed", None),
        Fate::of(&format!("reply-{turn}"), "a reply", "delivered", None),
    ])
}

fn turn_fails(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    let turn = begun(stage, id)?;
    let end = json!({"outcome": "failed", "error": "it went wrong"});
    stage.must(Some("ci"), &format!("/v1/turns/{turn}/end"), &end, &[200])?;
    Ok(vec![Fate::of(id, "its turn failed", "processed", Some("turn_failed"))])
}

/// Once, or once too often.
fn turn_interrupted(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    let turn = begun(stage, id)?;
    stage.must(Some("ci"), &format!("/v1/turns/{turn}/interrupt"), &json!({}), &[200])?;
    if id.len().is_multiple_of(2) {
        return Ok(vec![Fate::of(id, "interrupted", "engaged", Some("interrupted"))]);
    }
    let turn = begun(stage, id)?;
    stage.must(Some("ci"), &format!("/v1/turns/{turn}/interrupt"), &json!({}), &[200])?;
    Ok(vec![Fate::of(id, "interrupted twice", "engaged", Some("given_up"))])
}

/// The relay's upstream is away in every history.
fn relay_waits(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    stage.relay(id)?;
    Ok(vec![Fate::of(id, "a write waits at the relay", "queued", None)])
}

fn relay_withdrawn(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    let envelope = stage.relay(id)?;
    stage.withdraw(&envelope)?;
    Ok(vec![Fate::of(id, "a write withdrawn at the relay", "cancelled", None)])
}

/// Requests that no door takes; what is said of them is asked at the end.
fn refused(stage: &mut Stage<'_>, id: &str) -> Result<Vec<Fate>, Stopped> {
    stage.ask_refused(id);
    Ok(Vec::new())
}

/// A turn on this very message, which is sent when it was not yet.
fn begun(stage: &mut Stage<'_>, id: &str) -> Result<String, Stopped> {
    send(stage, id, "@ci", Value::Null)?;
    let message = stage.await_delivered(id)?;
    let turn = stage.turn_id();
    let request = json!({"message_id": message, "turn_id": turn, "lease": 3600});
    stage.must(Some("ci"), "/v1/turns", &request, &[201])?;
    Ok(turn)
}
