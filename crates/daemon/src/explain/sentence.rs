//! What is said about a message: the sentence, the reason, what happens next and what helps.

use mailbox::OutboxRow;
use model::outbox::{AbortedBy, BrokerReceipt, OutboxState, Outcome};
use model::receipt::{Ended, Standing};
use model::turn::{TurnMark, TurnOutcome, TurnState};
use model::{DeliveryRung, Rung};
use wire::ask::{ExplainedRecord, NodeRecord};
use wire::local::Explanation;

use super::compose::{Link, Parts};
use super::copy::Copy;

impl Parts {
    /// The sentence, the reason, what happens next and what helps.
    pub(super) fn say(
        &self,
        standing: Standing,
        record: Option<&ExplainedRecord>,
        copies: &[Copy],
        told: &mut Explanation,
    ) {
        match (standing, &self.out) {
            (Standing::At(Rung::Queued), _) => self.say_queued(told),
            (Standing::At(rung), _) => self.say_under_way(rung, copies, told),
            (Standing::Ended(ended), Some(row)) if !matches!(row.state, OutboxState::Done { .. }) => {
                self.say_ended_here(ended, row, told);
            }
            (Standing::Ended(ended), _) => say_ended_there(ended, record, copies, told),
        }
    }

    fn say_queued(&self, told: &mut Explanation) {
        let Some(row) = &self.out else {
            told.sentence = "queued on its sender's host".to_owned();
            told.next = "It goes on by itself.".to_owned();
            return;
        };
        let late = row.deliver_by.is_some_and(|deliver_by| self.broker_now >= deliver_by);
        told.next = "It goes on by itself.".to_owned();
        told.sentence = match &self.link {
            Link::Parked { reason } => {
                told.code = Some("mesh_parked".to_owned());
                told.needs_person = true;
                told.next = "Nothing leaves this host until somebody acts.".to_owned();
                told.fix = vec!["postrider status".to_owned()];
                format!("queued on this host; the mesh is parked: {reason}")
            }
            Link::Away { .. } if late => {
                "queued on this host, past its deliver-by; it ends at the next contact".to_owned()
            }
            Link::Away { .. } => "queued on this host; the broker is away".to_owned(),
            Link::Live if row.last_error.is_some() => "queued on this host; the broker put it off".to_owned(),
            Link::Live => "queued on this host, on its way".to_owned(),
        };
        if let (None, Some(error)) = (&told.code, &row.last_error) {
            told.code = Some(code_in(error));
            told.fix = vec![format!("postrider daemon outbox abort {}", row.row)];
        }
    }

    fn say_under_way(&self, rung: Rung, copies: &[Copy], told: &mut Explanation) {
        let under_way = copies.iter().filter(|copy| !copy.has_ended()).count();
        let here = self.ins.iter().find(|received| received.row.turn != TurnMark::Waiting);
        let last = here.and_then(|received| received.turns.last());
        told.next = "Nothing to do.".to_owned();
        told.sentence = match rung {
            Rung::Queued => "queued on this host".to_owned(),
            Rung::Accepted if copies.is_empty() => "accepted; nobody is subscribed".to_owned(),
            Rung::Accepted => {
                let there = copies.iter().filter(|copy| copy.rung >= DeliveryRung::Delivered).count();
                told.next = "Held for who is offline; it goes on by itself.".to_owned();
                format!("accepted, in {there} of {} inboxes", copies.len())
            }
            Rung::Delivered => "delivered, nobody was woken for it yet".to_owned(),
            Rung::Notified => "notified, no turn has begun".to_owned(),
            Rung::Engaged => engaged(self.turn_mark(), told),
            Rung::Processed => match last.map(|turn| (turn.state, &turn.error)) {
                Some((TurnState::Ended { outcome: TurnOutcome::Failed, .. }, error)) => {
                    told.code = Some("turn_failed".to_owned());
                    let why = error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                    format!("processed; its turn failed{why}")
                }
                Some(_) | None => "processed".to_owned(),
            },
        };
        if self.out.as_ref().is_some_and(|row| row.attempts > 1) && rung >= Rung::Accepted {
            let tries = self.out.as_ref().map_or(0, |row| row.attempts);
            told.sentence.push_str(&format!("; sent {tries} times, stored once"));
        }
        if under_way < copies.len() {
            told.sentence.push_str(&format!(
                "; {} of {} ended before",
                copies.len() - under_way,
                copies.len()
            ));
        }
    }

    fn say_ended_here(&self, ended: Ended, row: &OutboxRow, told: &mut Explanation) {
        match &row.state {
            OutboxState::Dead { reason, outcome, .. } => {
                told.code = Some(reason.to_string());
                told.outcome = Some(outcome.to_string());
                told.sentence = format!("{ended}: {reason}");
                told.needs_person = matches!(ended, Ended::Dead | Ended::Rejected | Ended::Conflict);
                told.next = outcome_sentence(*outcome).to_owned();
                told.fix = vec![format!("postrider daemon outbox requeue --id {}", row.row)];
            }
            OutboxState::Aborted { by, outcome, successor } => {
                told.outcome = Some(outcome.to_string());
                told.superseded_by = successor.map(|row| row.to_string());
                told.aborted_by = Some(by.to_string());
                told.sentence = format!("aborted: {}; its id stays used", retired_by(*by));
                let known = match row.late_receipt {
                    Some(BrokerReceipt { broker_message_id, history_id, .. }) => {
                        format!("The broker has it all the same, as {broker_message_id}, place {history_id}.")
                    }
                    None => outcome_sentence(*outcome).to_owned(),
                };
                told.next = match successor {
                    Some(row) => format!("Row {row} took its place. {known}"),
                    None => known,
                };
            }
            OutboxState::Pending | OutboxState::Inflight { .. } | OutboxState::Done { .. } => {
                told.sentence = ended.to_string();
            }
        }
    }

    /// What its turns have come to: here, or where the broker heard of it.
    fn turn_mark(&self) -> Option<TurnMark> {
        let here = self.ins.iter().map(|received| received.row.turn).find(|mark| *mark != TurnMark::Waiting);
        let homes = self.broker.as_ref().map_or(&[][..], |told| &told.homes);
        let there = homes.iter().flat_map(|home| &home.records).find_map(|record| match record {
            NodeRecord::Inbox { turn, .. } => turn.as_deref()?.parse().ok(),
            NodeRecord::Outbox { .. } => None,
        });
        here.or(there)
    }
}

fn engaged(mark: Option<TurnMark>, told: &mut Explanation) -> String {
    match mark {
        Some(TurnMark::Interrupted) => {
            told.code = Some("interrupted".to_owned());
            told.next = "It is run once more, marked redelivered.".to_owned();
            "engaged; its turn was interrupted".to_owned()
        }
        Some(TurnMark::GivenUp) => {
            told.code = Some("given_up".to_owned());
            told.needs_person = true;
            told.next =
                "Nobody knows what its turns did. It is run again only when somebody asks for it.".to_owned();
            if let (Some(turn), Some(message)) = (told.turns.last(), &told.message_id) {
                told.fix = vec![format!("postrider agent retry {} {message}", turn.agent)];
            }
            "engaged; its turns were interrupted once too often".to_owned()
        }
        Some(TurnMark::Open | TurnMark::Waiting | TurnMark::Over) | None => {
            told.next = "Its agent ends the turn.".to_owned();
            "engaged: a turn on it began".to_owned()
        }
    }
}

fn say_ended_there(ended: Ended, record: Option<&ExplainedRecord>, copies: &[Copy], told: &mut Explanation) {
    let code = copies.iter().find_map(|copy| copy.code.clone());
    if record.is_some_and(|record| record.state == "retired") {
        told.code = Some("id_retired".to_owned());
        told.sentence = "rejected: the id was retired and can never be accepted".to_owned();
        told.next = "Use a new id.".to_owned();
        return;
    }
    told.needs_person = ended == Ended::Dead;
    told.sentence = match ended {
        Ended::Expired => "expired before it was delivered".to_owned(),
        Ended::Dead => "dead: its recipient's node could not store it".to_owned(),
        Ended::Rejected | Ended::Conflict | Ended::Aborted | Ended::Cancelled => ended.to_string(),
    };
    told.code = code;
    told.next = "Send it again under a new id if it still matters.".to_owned();
}

fn retired_by(by: AbortedBy) -> &'static str {
    match by {
        AbortedBy::Operator => "a person retired it",
        AbortedBy::Session => "its caller's session retired it",
        AbortedBy::Policy => "the row it replaced turned out to be accepted, so this copy was retired unsent",
    }
}

fn outcome_sentence(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotSent => "It never left this host.",
        Outcome::Unknown => "The broker may have it; it is asked at the next contact.",
        Outcome::NotAccepted => "The broker never committed this id, and never will.",
        Outcome::Accepted => "The broker has it all the same.",
    }
}

/// The code inside a row's last answer, such as `404 member_not_found`.
fn code_in(error: &str) -> String {
    let word = error.split([' ', ':', ',']).find(|word| model::ErrorCode::parse(word).is_some());
    word.unwrap_or(error).to_owned()
}
