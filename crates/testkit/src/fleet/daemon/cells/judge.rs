//! What a healed home must show of a cell.

use super::{Run, State, Trial};
use crate::fleet::FleetError;
use crate::fleet::daemon::log::{of_row, of_topic, places_of};
use crate::fleet::daemon::site::{SUBJECT, await_row, is_over, row_of, send};
use crate::kills::audience::{Row, text_of};
use crate::wait::wait_for;
use serde_json::Value;

impl Run {
    /// Looks at everything about the cell.
    pub(super) fn judge(&mut self, trial: Trial) -> Result<(), FleetError> {
        let mut door = self.site.subject.door();
        if row_of(&mut door, &trial.id)?.is_none() {
            self.lost(&trial, &trial.id);
            return Ok(());
        }
        if trial.next_acked && row_of(&mut door, &trial.next)?.is_none() {
            self.lost(&trial, &trial.next);
        }
        let asked = send(&mut door, &trial.next, &trial.to, &text_of(&trial.next))?;
        if !(200..300).contains(&asked.status) {
            self.amiss(&trial, format!("{} was refused: {}", trial.next, asked.body));
        }
        let Some(row) = self.ended(&trial, &trial.id) else { return Ok(()) };
        self.judge_end(&trial, &row);
        let Some(next) = self.ended(&trial, &trial.next) else { return Ok(()) };
        let log = match trial.to.strip_prefix('#') {
            Some(topic) => of_topic(&self.site.witness, topic)?,
            None => of_row(&self.site.subject, &next)?,
        };
        self.judge_log(&trial, &row, &next, &log)?;
        self.judge_id(&trial, &row)?;
        self.judge_mail(&trial)
    }

    /// The row at its end; a row that never ends is lost to whoever waits for it.
    fn ended(&mut self, trial: &Trial, id: &str) -> Option<Value> {
        match await_row(&self.site.subject, id, self.patience, "at its end", is_over) {
            Ok(row) => Some(row),
            Err(error) => {
                self.outcome.lost.push(format!("{}: {error}", trial.name));
                None
            }
        }
    }

    fn judge_end(&mut self, trial: &Trial, row: &Value) {
        let (status, reason) = (row["status"].as_str().unwrap_or_default(), &row["dead_reason"]);
        let legal = match trial.state {
            State::Untried | State::Unread | State::Unheard | State::Refused => status == "done",
            State::Unwanted => status == "done" || status == "aborted",
            State::Late => status == "dead" && reason == "deliver_by",
            State::Done => {
                status == "done" && row["broker_message_id"].as_str() == trial.accepted_as.as_deref()
            }
            State::Dead => status == "dead" || status == "aborted",
            State::Aborted => status == "aborted",
        };
        if !legal {
            self.amiss(trial, format!("{} ended as {row}", trial.id));
        }
    }

    /// Once in the log when it was accepted, never when it was not, in the order it was handed over.
    fn judge_log(&mut self, trial: &Trial, row: &Value, next: &Value, log: &[Row]) -> Result<(), FleetError> {
        let own = self.judge_places(trial, row, log);
        let behind = self.judge_places(trial, next, log);
        if own.iter().max() > behind.iter().min() && !own.is_empty() && !behind.is_empty() {
            self.amiss(trial, format!("{} stands before {}", trial.next, trial.id));
        }
        if let Some(successor) = row["superseded_by"].as_str() {
            let row = await_row(&self.site.subject, successor, self.patience, "at its end", is_over)?;
            self.judge_places(trial, &row, log);
        }
        let foreign = log.iter().find(|row| {
            row.sender == SUBJECT
                && row.body.starts_with("the text of row.")
                && row.body != text_of(&trial.id)
        });
        if let Some(row) = foreign {
            self.amiss(trial, format!("the log holds {:?}", row.body));
        }
        Ok(())
    }

    fn judge_places(&mut self, trial: &Trial, row: &Value, log: &[Row]) -> Vec<u64> {
        let id = row["client_message_id"].as_str().unwrap_or_default();
        let accepted = row["status"] == "done" || row["outcome"] == "accepted";
        let places = places_of(log, SUBJECT, id);
        match (places.len(), accepted) {
            (0, true) => self.lost(trial, &format!("{id}, accepted and in no log")),
            (1, true) | (0, false) => {}
            (1, false) => self.amiss(trial, format!("{id} is in the log, and its row says {row}")),
            (times, _) => {
                self.outcome.doubled.push(format!("{}: {id} stands in its log {times} times", trial.name));
            }
        }
        places
    }

    /// Other words under the id are refused, whatever became of it.
    fn judge_id(&mut self, trial: &Trial, row: &Value) -> Result<(), FleetError> {
        let mut other = trial.message();
        other["body"] = "other words".into();
        let answer = self.site.subject.door().post("/v1/send", &other)?;
        let status = row["status"].as_str().unwrap_or_default();
        let conflict = format!("outbox_{status}_fingerprint_mismatch");
        if answer.status != 409 || answer.body["conflict"] != conflict.as_str() {
            self.amiss(trial, format!("{} was taken again: {} {}", trial.id, answer.status, answer.body));
        }
        Ok(())
    }

    /// The mail is in the inbox, once.
    fn judge_mail(&mut self, trial: &Trial) -> Result<(), FleetError> {
        let (mut door, after) = (self.site.subject.door(), self.inbox_after);
        let (mut found, mut last) = (0, after);
        let arrived = wait_for("a mail", self.patience, || {
            let body = door.get(&format!("/v1/inbox?after={after}&limit=100&wait=1")).ok()?.body;
            let items = body["items"].as_array()?;
            found = items.iter().filter(|item| item["client_message_id"] == trial.mail.as_str()).count();
            last = items.iter().filter_map(|item| item["inbox_seq"].as_u64()).max().unwrap_or(after);
            (found > 0).then_some(())
        });
        self.inbox_after = last;
        match (arrived, found) {
            (Err(_), _) => self.lost(trial, &trial.mail),
            (Ok(()), 1) => {}
            (Ok(()), times) => self.outcome.doubled.push(format!("{}: {times} mails", trial.name)),
        }
        let told = |row: &Value| row["rungs"].as_array().is_some_and(|rungs| rungs.len() > 2);
        match await_row(&self.site.witness, &trial.mail, self.patience, "told as delivered", told) {
            Ok(_) => {}
            Err(error) => self.amiss(trial, error.to_string()),
        }
        Ok(())
    }

    fn lost(&mut self, trial: &Trial, what: &str) {
        self.outcome.lost.push(format!("{}: {what} is gone", trial.name));
    }

    fn amiss(&mut self, trial: &Trial, sentence: String) {
        self.outcome.amiss.push(format!("{}: {sentence}", trial.name));
    }
}
