//! From what each observer said to one answer. Pure: every part comes in as it was told.

use mailbox::OutboxRow;
use model::outbox::{OutboxState, Outcome};
use model::receipt::{Ended, Standing, standing};
use model::turn::{TurnMark, TurnOutcome, TurnState};
use model::{DeliveryRung, Rung, Timestamp};
use sqlite::fault;
use wire::ask::{BrokerExplained, ExplainedRecipient, ExplainedRecord};
use wire::local::{ExplainedCopy, ExplainedTurn, Explanation, Receipt};

use super::find::Received;

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
}

/// The link as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Live,
    Away { reason: Option<String> },
    Parked { reason: String },
}

/// One recipient's copy, from all who know of it.
struct Copy {
    name: String,
    home: Option<String>,
    rung: DeliveryRung,
    code: Option<String>,
    at: [Option<Timestamp>; 4],
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
        ..Explanation::default()
    };
    (told.asked, told.unasked) = parts.observers();
    parts.name(record, &mut told);
    match standing {
        None => parts.nothing(&mut told),
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
        (asked, unasked)
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
            if let OutboxState::Done { receipt } = &row.state {
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
                told.sentence = "never seen: no outbox, inbox or broker record holds this id".to_owned();
                told.next = if told.unasked.is_empty() {
                    format!("Nobody stored it. {cannot_double}")
                } else {
                    format!("Unless {} holds it, nobody stored it. {cannot_double}", told.unasked.join(", "))
                };
            }
        }
    }

    /// The sentence, the reason, what happens next and what helps.
    fn say(
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
            Rung::Engaged => engaged(here.map(|received| received.row.turn), told),
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
            OutboxState::Aborted { outcome, successor, .. } => {
                told.outcome = Some(outcome.to_string());
                told.superseded_by = successor.map(|row| row.to_string());
                told.sentence = "aborted: a person retired it; its id stays used".to_owned();
                told.next = match successor {
                    Some(row) => format!("Row {row} took its place. {}", outcome_sentence(*outcome)),
                    None => outcome_sentence(*outcome).to_owned(),
                };
            }
            OutboxState::Pending | OutboxState::Inflight { .. } | OutboxState::Done { .. } => {
                told.sentence = ended.to_string();
            }
        }
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
            told.next = "Nobody knows what its turns did. A turn that names it runs it again.".to_owned();
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

impl Copy {
    fn told(recipient: &ExplainedRecipient) -> Self {
        Self {
            name: recipient.name.to_string(),
            home: recipient.home.clone(),
            rung: recipient.rung,
            code: recipient.ended_code.clone(),
            at: [recipient.delivered_at, recipient.notified_at, recipient.engaged_at, recipient.processed_at],
        }
    }

    fn here(received: &Received, node: &str) -> Self {
        let mut copy = Self {
            name: received.recipient.clone(),
            home: Some(node.to_owned()),
            rung: DeliveryRung::Accepted,
            code: None,
            at: [None; 4],
        };
        copy.learn(received);
        copy
    }

    /// What the recipient's own node knows, when that is more.
    fn learn(&mut self, received: &Received) {
        let ended = received.turns.iter().find_map(|turn| match turn.state {
            TurnState::Ended { at, .. } => Some(at),
            TurnState::Open { .. } | TurnState::Interrupted { .. } => None,
        });
        let began = received.turns.first().map(|turn| turn.began_at);
        self.climb(
            received.row.rung,
            [Some(received.row.received_at), received.row.notified_at, began, ended],
        );
    }

    fn climb(&mut self, rung: DeliveryRung, at: [Option<Timestamp>; 4]) {
        self.rung = self.rung.max(rung);
        for (held, told) in self.at.iter_mut().zip(at) {
            *held = held.or(told);
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.rung.standing(), Standing::Ended(_))
    }

    fn shown(&self) -> ExplainedCopy {
        ExplainedCopy {
            name: self.name.clone(),
            home: self.home.clone(),
            rung: self.rung.standing().to_string(),
            code: self.code.clone(),
        }
    }
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;
