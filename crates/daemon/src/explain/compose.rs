//! From what each observer said to one answer. Pure: every part comes in as it was told.

use mailbox::OutboxRow;
use model::outbox::{OutboxState, Outcome};
use model::receipt::{Ended, Standing, standing};
use model::turn::TurnState;
use model::{DeliveryRung, Rung, Timestamp};
use sqlite::fault;
use wire::ask::{BrokerExplained, ExplainedRecord};
use wire::local::{ExplainedTurn, Explanation, Receipt};
use wire::relay::RelayFound;

use super::copy::Copy;
use super::find::Received;
use super::relay::RelayWord;

/// What was found, by whom.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) id: String,
    /// This node.
    pub(super) node: String,
    pub(super) link: Link,
    /// Who sent the outbox row.
    pub(super) sender: Option<String>,
    pub(super) out: Option<OutboxRow>,
    pub(super) ins: Vec<Received>,
    /// The broker's answer, or the code of why there is none.
    pub(super) broker: Result<BrokerExplained, String>,
    pub(super) broker_now: Timestamp,
    pub(super) relay: RelayWord,
}

/// The link as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Live,
    Away { reason: Option<String> },
    Parked { reason: String },
}

/// A bug that proofs plant: what is queued here is told as accepted.
const PLANTED_OPTIMISM: &str = "daemon.explain_optimism";

const CLIMB: [DeliveryRung; 4] =
    [DeliveryRung::Delivered, DeliveryRung::Notified, DeliveryRung::Engaged, DeliveryRung::Processed];

/// The answer.
pub(super) fn compose(parts: Parts) -> Explanation {
    let record = parts.record();
    let copies = parts.copies(record);
    let standing = parts.standing(record, &copies);
    let mut told = Explanation {
        id: parts.id.clone(),
        broker: parts.broker_word(record),
        recipients: copies.iter().map(Copy::shown).collect(),
        turns: parts.ins.iter().flat_map(turns).collect(),
        rungs: parts.rungs(record, &copies),
        relay: parts.relayed().cloned(),
        ..Explanation::default()
    };
    (told.asked, told.unasked) = parts.observers();
    parts.name(record, &mut told);
    match standing {
        None => match parts.relayed() {
            Some(found) => told.tell_as_relay(found),
            None => parts.nothing(&mut told),
        },
        Some(standing) => {
            told.verdict = standing.to_string();
            told.receipt = parts.receipt(standing, &told.rungs);
            parts.say(standing, record, &copies, &mut told);
        }
    }
    told
}

impl Parts {
    /// The broker's record of this very message: the sender's own when the row is here.
    fn record(&self) -> Option<&ExplainedRecord> {
        let records = &self.broker.as_ref().ok()?.records;
        match &self.out {
            Some(row) => records.iter().find(|record| record.sender.id == row.sender),
            None => records.first(),
        }
    }

    fn is_accepted(&self, record: Option<&ExplainedRecord>) -> bool {
        let out = self.out.as_ref().is_some_and(|row| match &row.state {
            OutboxState::Done { .. } => true,
            OutboxState::Dead { outcome, .. } | OutboxState::Aborted { outcome, .. } => {
                *outcome == Outcome::Accepted
            }
            OutboxState::Pending | OutboxState::Inflight { .. } => false,
        });
        out || !self.ins.is_empty() || record.is_some_and(|record| record.state != "retired")
    }

    /// Where it stands, from all who know; none when nobody does.
    fn standing(&self, record: Option<&ExplainedRecord>, copies: &[Copy]) -> Option<Standing> {
        let ended = self.out.as_ref().and_then(|row| match row.state {
            OutboxState::Dead { .. } | OutboxState::Aborted { .. } => Some(row.standing()),
            OutboxState::Pending | OutboxState::Inflight { .. } | OutboxState::Done { .. } => None,
        });
        if let Some(ended) = ended {
            return Some(ended);
        }
        if self.is_accepted(record) {
            let rungs: Vec<DeliveryRung> = copies.iter().map(|copy| copy.rung).collect();
            return Some(standing(&rungs));
        }
        if self.out.is_some() {
            let rung = if fault::bug(PLANTED_OPTIMISM) { Rung::Accepted } else { Rung::Queued };
            return Some(Standing::At(rung));
        }
        let elsewhere = self.held_elsewhere();
        let retired = record.is_some_and(|record| record.state == "retired");
        match (elsewhere, retired) {
            (Some(status), _) => Some(status),
            (None, true) => Some(Standing::Ended(Ended::Rejected)),
            (None, false) => None,
        }
    }

    /// An outbox row of another home, as the broker heard of it.
    fn held_elsewhere(&self) -> Option<Standing> {
        let homes = &self.broker.as_ref().ok()?.homes;
        homes.iter().flat_map(|home| &home.records).find_map(|record| match record {
            wire::ask::NodeRecord::Outbox { status, .. } => Some(match status.as_str() {
                "dead" => Standing::Ended(Ended::Dead),
                "aborted" => Standing::Ended(Ended::Aborted),
                _ => Standing::At(Rung::Queued),
            }),
            wire::ask::NodeRecord::Inbox { .. } => None,
        })
    }

    fn copies(&self, record: Option<&ExplainedRecord>) -> Vec<Copy> {
        let mut copies: Vec<Copy> =
            record.map_or_else(Vec::new, |record| record.recipients.iter().map(Copy::told).collect());
        for received in &self.ins {
            match copies.iter_mut().find(|copy| copy.name == received.recipient) {
                Some(copy) => copy.learn(received),
                None => copies.push(Copy::here(received, &self.node)),
            }
        }
        // A direct message has one recipient, whose rungs its sender is told.
        if let Some(row) = self.out.as_ref().filter(|row| !row.to_asked.starts_with('#')) {
            let (told, rungs) = (row.rungs.held(), row.rungs);
            let at = [rungs.delivered_at, rungs.notified_at, rungs.engaged_at, rungs.processed_at];
            match &mut copies[..] {
                [] if told > DeliveryRung::Accepted => {
                    let name = row.to_asked.trim_start_matches('@').to_owned();
                    copies.push(Copy { name, home: None, rung: told, code: None, at });
                }
                [only] => only.climb(told, at),
                _ => {}
            }
        }
        copies
    }

    fn broker_word(&self, record: Option<&ExplainedRecord>) -> String {
        match (&self.broker, record) {
            (Err(_), _) => "unreachable".to_owned(),
            (Ok(_), Some(record)) => record.state.clone(),
            (Ok(_), None) => "never_committed".to_owned(),
        }
    }

    fn observers(&self) -> (Vec<String>, Vec<String>) {
        let (mut asked, mut unasked) = (vec![format!("{}: this host", self.node)], Vec::new());
        match &self.broker {
            Err(code) => unasked.push(format!("broker: {code}")),
            Ok(told) => {
                asked.push(told.observer.clone());
                for home in &told.homes {
                    let place = if home.unreachable { &mut unasked } else { &mut asked };
                    let why = if home.unreachable { ": unreachable" } else { "" };
                    place.push(format!("{}{why}", home.node));
                }
            }
        }
        match &self.relay {
            RelayWord::Absent => {}
            RelayWord::Unasked(code) => unasked.push(format!("relay: {code}")),
            RelayWord::Told(told) => asked.push(format!("relay to {}", told.upstream)),
        }
        (asked, unasked)
    }

    fn relayed(&self) -> Option<&RelayFound> {
        match &self.relay {
            RelayWord::Told(told) => told.found.as_ref(),
            RelayWord::Absent | RelayWord::Unasked(_) => None,
        }
    }

    fn name(&self, record: Option<&ExplainedRecord>, told: &mut Explanation) {
        let received = self.ins.first().map(|received| &received.row);
        if let Some(row) = &self.out {
            told.client_message_id = Some(row.client_message_id.to_string());
            told.row = Some(row.row.to_string());
            told.to = Some(row.to_asked.clone());
            told.sender = self.sender.clone();
            told.attempts = Some(row.attempts);
            told.last_error = row.last_error.clone();
            told.next_attempt_at = row.next_attempt_at;
            told.late_ack_at = row.late_ack_at;
            let receipt = match &row.state {
                OutboxState::Done { receipt } => Some(*receipt),
                OutboxState::Pending
                | OutboxState::Inflight { .. }
                | OutboxState::Dead { .. }
                | OutboxState::Aborted { .. } => row.late_receipt,
            };
            if let Some(receipt) = receipt {
                told.message_id = Some(receipt.broker_message_id.to_string());
                told.history_id = Some(receipt.history_id);
            }
        }
        if let Some(record) = record {
            told.client_message_id.get_or_insert(record.client_message_id.to_string());
            told.sender.get_or_insert(record.sender.name.to_string());
            told.message_id = told.message_id.take().or(record.broker_message_id.map(|id| id.to_string()));
            told.history_id = told.history_id.or(record.history_id);
            told.to = told.to.take().or(record.conversation_name.clone());
        }
        if let Some(row) = received {
            told.client_message_id.get_or_insert(row.client_message_id.to_string());
            told.message_id.get_or_insert(row.id.to_string());
            told.history_id = told.history_id.or(Some(row.history_id));
        }
    }

    fn rungs(&self, record: Option<&ExplainedRecord>, copies: &[Copy]) -> Vec<Receipt> {
        let mut rungs: Vec<Receipt> =
            self.out.iter().map(|row| reached("queued", &self.node, row.enqueued_at)).collect();
        let accepted = self.out.as_ref().and_then(|row| match &row.state {
            OutboxState::Done { receipt } => Some(receipt.accepted_at),
            OutboxState::Pending
            | OutboxState::Inflight { .. }
            | OutboxState::Dead { .. }
            | OutboxState::Aborted { .. } => None,
        });
        let accepted = accepted.or(record.and_then(|record| record.accepted_at));
        rungs.extend(accepted.map(|at| reached("accepted", "broker", at)));
        let under_way: Vec<&Copy> = copies.iter().filter(|copy| !copy.has_ended()).collect();
        for (place, rung) in CLIMB.iter().enumerate() {
            // A rung is the message's when every recipient under way has reached it.
            if under_way.is_empty() || under_way.iter().any(|copy| copy.rung < *rung) {
                break;
            }
            let at = under_way.iter().filter_map(|copy| copy.at[place]).max();
            let by = match &under_way[..] {
                [only] => only.home.clone().unwrap_or_else(|| "broker".to_owned()),
                several => format!("{} recipients", several.len()),
            };
            rungs.extend(at.map(|at| reached(rung.word(), &by, at)));
        }
        rungs
    }

    fn receipt(&self, standing: Standing, rungs: &[Receipt]) -> Option<Receipt> {
        let word = standing.to_string();
        let top = rungs.iter().rev().find(|receipt| receipt.rung == word).or(rungs.last());
        let at = self.out.as_ref().and_then(|row| row.aborted_at).or(top.map(|receipt| receipt.at))?;
        let by = top.map_or_else(|| self.node.clone(), |receipt| receipt.by.clone());
        Some(Receipt { rung: word, by, at })
    }

    fn nothing(&self, told: &mut Explanation) {
        let cannot_double = "Asking again with the same id cannot double it.";
        match &self.broker {
            Err(_) => {
                told.verdict = "unknown".to_owned();
                told.sentence = "not on this host, and the broker could not be asked".to_owned();
                told.next = "Ask again when the link is back.".to_owned();
                told.fix = vec!["postrider status".to_owned()];
            }
            Ok(_) => {
                told.verdict = "never_seen".to_owned();
                told.sentence = match self.relay {
                    RelayWord::Told(_) => {
                        "never seen: no outbox, inbox, broker or relay record holds this id"
                    }
                    RelayWord::Unasked(_) => "never seen: no outbox, inbox or broker record holds this id",
                    RelayWord::Absent => {
                        "never seen: no outbox, inbox or broker record holds this id; no relay runs here"
                    }
                }
                .to_owned();
                told.next = if told.unasked.is_empty() {
                    format!("Nobody stored it. {cannot_double}")
                } else {
                    format!("Unless {} holds it, nobody stored it. {cannot_double}", told.unasked.join(", "))
                };
            }
        }
    }
}

fn turns(received: &Received) -> Vec<ExplainedTurn> {
    let shown = |turn: &mailbox::Turn| {
        let ended_at = match turn.state {
            TurnState::Open { .. } => None,
            TurnState::Ended { at, .. } | TurnState::Interrupted { at } => Some(at),
        };
        ExplainedTurn {
            agent: received.recipient.clone(),
            attempt: turn.attempt,
            state: turn.state.word().to_owned(),
            began_at: turn.began_at,
            ended_at,
            error: turn.error.clone(),
        }
    };
    received.turns.iter().map(shown).collect()
}

fn reached(rung: &str, by: &str, at: Timestamp) -> Receipt {
    Receipt { rung: rung.to_owned(), by: by.to_owned(), at }
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
