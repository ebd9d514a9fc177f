//! The life in which the daemon dies: everything a home does is done around the row.

use super::{Run, State, Trial};
use crate::fleet::FleetError;
use crate::fleet::daemon::site::{SUBJECT, is_over, row_of, send};
use crate::kills::audience::text_of;
use crate::kills::door::Door;
use crate::wait::wait_for;
use serde_json::json;
use std::time::Duration;

/// A life that has done everything by then has nothing left to die of.
const LIFE_BOUND: Duration = Duration::from_secs(8);
/// The last settlements after everything was seen: acks confirmed, receipts told.
const REST: Duration = Duration::from_millis(150);

impl Run {
    /// One life: the row is asked for again, a person acts on it, the lane goes on, mail comes. True when the daemon
    /// ended by itself on the way.
    pub(super) fn live(&mut self, trial: &mut Trial, faults: &[String]) -> Result<bool, FleetError> {
        if trial.state.is_to_nobody() {
            // From now on somebody is called so: the next try will not be refused.
            let name = trial.to.trim_start_matches('@');
            self.site.witness.quiet(&["token", "create", "--as", name])?;
        }
        send(&mut self.site.witness.door(), &trial.mail, &format!("@{SUBJECT}"), &text_of(&trial.mail))?;
        self.site.subject.begin(faults)?;
        let mut door = self.site.subject.door();
        let subject = &mut self.site.subject;
        let listens = || subject.has_ended().then_some(false).or_else(|| door.connect().ok().map(|()| true));
        if wait_for("the daemon to listen", LIFE_BOUND, listens)? {
            self.use_it(&mut door, trial);
            self.see_it_through(&mut door, trial);
        }
        Ok(self.site.subject.ends_within(REST))
    }

    /// Calls that the death may cut off; each notes what it was told.
    fn use_it(&mut self, door: &mut Door, trial: &mut Trial) {
        let again = door.post("/v1/send", &trial.message()).map(|_| ());
        let acted = self.act(door, trial);
        let next = send(door, &trial.next, &trial.to, &text_of(&trial.next));
        match &next {
            Ok(answer) if (200..300).contains(&answer.status) => {
                trial.next_acked = true;
                self.outcome.acked += 1;
            }
            Ok(_) | Err(_) => {}
        }
        let calls = [again, acted, next.map(|_| ())];
        self.outcome.unanswered += calls.iter().filter(|call| call.is_err()).count() as u64;
    }

    /// What a person does about the row.
    fn act(&self, door: &mut Door, trial: &Trial) -> std::io::Result<()> {
        let path = match trial.state {
            State::Dead => "/v1/outbox/requeue",
            State::Unwanted => "/v1/outbox/abort",
            State::Untried | State::Unread | State::Unheard | State::Refused => return Ok(()),
            State::Late | State::Done | State::Aborted => return Ok(()),
        };
        let row = row_of(door, &trial.id)?.unwrap_or_default();
        door.post(path, &json!({"id": row["id"]})).map(|_| ())
    }

    /// Looks on until the row, the next message and the mail came to their end, or the daemon to its own.
    fn see_it_through(&mut self, door: &mut Door, trial: &Trial) {
        let after = self.inbox_after;
        let subject = &mut self.site.subject;
        let seen = |door: &mut Door| -> std::io::Result<bool> {
            let over = |row: Option<serde_json::Value>| row.as_ref().is_some_and(is_over);
            let inbox = door.get(&format!("/v1/inbox?after={after}&limit=100"))?.body;
            let mut items = inbox["items"].as_array().into_iter().flatten();
            let mail = items.any(|item| item["client_message_id"] == trial.mail.as_str());
            Ok(mail && over(row_of(door, &trial.id)?) && over(row_of(door, &trial.next)?))
        };
        // A life that does not get so far is one that dies or is killed; the next one shows what it left.
        let _seen = wait_for("everything to be seen", LIFE_BOUND, || {
            (subject.has_ended() || seen(door).ok()?).then_some(())
        });
    }
}
