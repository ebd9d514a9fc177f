//! The states of a row, and how each is brought about.

use super::Trial;
use crate::fleet::FleetError;
use crate::fleet::daemon::CARRY_BOUND;
use crate::fleet::daemon::site::{Site, await_row, is_over, taken};
use crate::kills::audience::text_of;
use crate::stopwatch::Stopwatch;
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// What a row was when its daemon was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Pending, never on the wire: the broker was away.
    Untried,
    /// Inflight, and the broker never read it.
    Unread,
    /// Inflight, and the broker took it; only the answer was lost.
    Unheard,
    /// Pending after a refusal that may pass.
    Refused,
    /// Pending after such a refusal, and about to be aborted by a person.
    Unwanted,
    /// Pending, never on the wire, its deliver-by passed.
    Late,
    /// Done.
    Done,
    /// Dead, and about to be requeued by a person.
    Dead,
    /// Aborted.
    Aborted,
}

/// The shortest that can be asked for.
const TTL: Duration = Duration::from_secs(1);

impl State {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Untried,
        Self::Unread,
        Self::Unheard,
        Self::Refused,
        Self::Unwanted,
        Self::Late,
        Self::Done,
        Self::Dead,
        Self::Aborted,
    ];

    /// Whether the row goes to a member that does not exist yet.
    pub(super) fn is_to_nobody(self) -> bool {
        match self {
            Self::Refused | Self::Unwanted | Self::Aborted => true,
            Self::Untried | Self::Unread | Self::Unheard | Self::Late | Self::Done | Self::Dead => false,
        }
    }

    /// Hands the row over, waits until it is in this state, and kills its daemon.
    pub(super) fn bring_about(self, site: &mut Site, trial: &mut Trial) -> Result<(), FleetError> {
        match self {
            Self::Untried | Self::Late => self.without_a_broker(site, trial)?,
            Self::Unread => Self::unread(site, trial)?,
            Self::Unheard => Self::unheard(site, trial)?,
            Self::Refused | Self::Unwanted | Self::Aborted | Self::Done | Self::Dead => {
                self.by_an_answer(site, trial)?;
            }
        }
        site.subject.kill9();
        Ok(())
    }

    fn without_a_broker(self, site: &mut Site, trial: &Trial) -> Result<(), FleetError> {
        site.broker.kill9();
        taken(&site.subject.door().post("/v1/send", &trial.message())?)?;
        if self == Self::Late {
            let watch = Stopwatch::start();
            wait_for("a ttl to pass", 2 * TTL, || (watch.elapsed() > TTL).then_some(()))?;
        }
        site.subject.kill9();
        site.restart_broker()
    }

    /// On the wire, and what lay in the broker's socket dies with it.
    fn unread(site: &mut Site, trial: &Trial) -> Result<(), FleetError> {
        site.broker.freeze();
        taken(&site.subject.door().post("/v1/send", &trial.message())?)?;
        await_row(&site.subject, &trial.id, CARRY_BOUND, "on the wire", |row| row["status"] == "inflight")?;
        site.subject.kill9();
        site.broker.kill9();
        site.restart_broker()
    }

    /// On the wire, and the daemon dies of the answer.
    fn unheard(site: &mut Site, trial: &Trial) -> Result<(), FleetError> {
        site.subject.restart(&["crash:mailbox.settle.before_commit".to_owned()])?;
        site.subject.await_link()?;
        taken(&site.subject.door().post("/v1/send", &trial.message())?)?;
        Ok(wait_for("a death of an answer", CARRY_BOUND, || site.subject.has_ended().then_some(()))?)
    }

    fn by_an_answer(self, site: &mut Site, trial: &mut Trial) -> Result<(), FleetError> {
        taken(&site.subject.door().post("/v1/send", &trial.message())?)?;
        let row = await_row(&site.subject, &trial.id, CARRY_BOUND, "answered", |row| self.is_answered(row))?;
        trial.accepted_as = row["broker_message_id"].as_str().map(str::to_owned);
        if self == Self::Aborted {
            let mut door = site.subject.door();
            // A row that is being tried again just now is nobody's to touch.
            wait_for("an abort between two tries", CARRY_BOUND, || {
                let answer = door.post("/v1/outbox/abort", &json!({"id": row["id"]})).ok()?;
                (answer.status == 200).then_some(())
            })?;
            await_row(&site.subject, &trial.id, CARRY_BOUND, "aborted", is_over)?;
        }
        Ok(())
    }

    fn is_answered(self, row: &Value) -> bool {
        if self.is_to_nobody() { row["last_error"].is_string() } else { is_over(row) }
    }
}

impl Trial {
    /// The row's message: every copy of it asks for the same.
    pub(super) fn message(&self) -> Value {
        let mut message = json!({"to": self.to, "body": text_of(&self.id), "client_message_id": self.id});
        match self.state {
            State::Late => message["ttl"] = json!(TTL.as_secs()),
            State::Dead => message["mentions"] = json!(["nobody-at-all"]),
            State::Untried | State::Unread | State::Unheard | State::Refused => {}
            State::Unwanted | State::Done | State::Aborted => {}
        }
        message
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Untried => "never attempted",
            Self::Unread => "inflight, not read",
            Self::Unheard => "inflight, taken",
            Self::Refused => "pending after a refusal",
            Self::Unwanted => "refused, then aborted",
            Self::Late => "past its deliver-by",
            Self::Done => "done",
            Self::Dead => "dead, then requeued",
            Self::Aborted => "aborted",
        })
    }
}
