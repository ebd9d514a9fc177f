//! A broker, the daemon that is put to the test, and the one that watches.

use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::fleet::servers::{Broker, Node};
use crate::kills::door::{Answer, Door};
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// The member under test, and its home.
pub(super) const SUBJECT: &str = "ann";
/// The member who watches, and its home; it owns the mesh.
pub(super) const WITNESS: &str = "bob";

/// A broker counts how often an address knocks, a minute at a time.
const KNOCKS_FORGOTTEN: Duration = Duration::from_secs(61);

/// Three processes; each ends with it.
pub(super) struct Site {
    pub broker: Broker,
    pub subject: Node,
    pub witness: Node,
    faults: Vec<String>,
    ahead: Duration,
    clock: PathBuf,
    _folder: TempDir,
}

impl Site {
    /// All three up, both daemons joined; `policy` is what the owner decides before the subject joins.
    pub(super) fn open(binary: &Binary, faults: &[String], policy: &[&str]) -> Result<Self, FleetError> {
        let args = ["--limit-member", "100000", "--limit-mesh", "1000000"].map(str::to_owned);
        let folder = TempDir::new()?;
        let clock = folder.path().join("ahead");
        let faults: Vec<String> =
            faults.iter().cloned().chain([format!("clock:{}", clock.display())]).collect();
        let broker = Broker::start(binary, &args, &faults)?;
        let witness = Node::join(binary, WITNESS, broker.owner_invite.as_deref().unwrap_or_default())?;
        if !policy.is_empty() {
            let all: Vec<&str> = ["mesh", "policy"].into_iter().chain(policy.iter().copied()).collect();
            witness.quiet(&all)?;
        }
        let subject = Node::join(binary, SUBJECT, &witness.quiet(&["invite"])?)?;
        Ok(Self { broker, subject, witness, faults, ahead: Duration::ZERO, clock, _folder: folder })
    }

    /// The broker's next life, with the faults of its first.
    pub(super) fn restart_broker(&mut self) -> Result<(), FleetError> {
        self.broker.restart(&self.faults)
    }

    /// It is a minute later at the broker, so that daemons that start again and again are still let in.
    pub(super) fn pass_a_minute(&mut self) -> Result<(), FleetError> {
        self.ahead += KNOCKS_FORGOTTEN;
        Ok(std::fs::write(&self.clock, self.ahead.as_micros().to_string())?)
    }
}

/// Sends `text` to `to` as the home's person.
pub(super) fn send(door: &mut Door, id: &str, to: &str, text: &str) -> std::io::Result<Answer> {
    door.post("/v1/send", &json!({"to": to, "body": text, "client_message_id": id}))
}

/// The row of a message, as its home shows it; none when there is no such row, an error when nobody answers.
pub(super) fn row_of(door: &mut Door, id: &str) -> std::io::Result<Option<Value>> {
    let Answer { status, body } = door.get(&format!("/v1/messages/{id}"))?;
    Ok((status == 200).then_some(body))
}

/// Waits until the row of `id` is as `wanted` says, and shows it.
pub(super) fn await_row(
    node: &Node,
    id: &str,
    bound: Duration,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<Value, FleetError> {
    let mut door = node.door();
    let mut last = Value::Null;
    let found = wait_for(&format!("{id} {what}"), bound, || {
        last = row_of(&mut door, id).ok()??;
        wanted(&last).then(|| last.clone())
    });
    found.map_err(|waited| FleetError::Unreadable { asked: waited.to_string(), answered: last.to_string() })
}

/// Pending and inflight rows are not over; nor is an end whose outcome the broker can still tell.
pub(super) fn is_over(row: &Value) -> bool {
    match row["status"].as_str() {
        Some("done") => true,
        Some("dead" | "aborted") => row["outcome"] != "unknown",
        _ => false,
    }
}

/// Refuses to go on when a message was not taken.
pub(super) fn taken(answer: &Answer) -> Result<(), FleetError> {
    match answer.status {
        200..=299 => Ok(()),
        status => Err(FleetError::Unreadable {
            asked: "a message that had to be taken".to_owned(),
            answered: format!("{status} {}", answer.body),
        }),
    }
}
