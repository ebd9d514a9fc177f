//! What both stores decide alike: pure functions over facts a transaction has read.

use std::collections::BTreeSet;
use std::time::Duration;

use model::admission::{
    self, Fence, Known, KnownState, LookUp, StatusAnswer, check_time, days_long, look_up, message_status,
};
use model::ageing::ForgottenUpto;
use model::outbox::{DedupeWindow, max_age};
use model::receipt::rise;
use model::{
    Cursor, DeliveryRung, Epoch, ErrorCode, Fingerprint, MemberName, MessageId, NodeName, Timestamp,
    TopicName, limits,
};

use crate::LinkRefused;
use crate::planted::{NO_FENCE, NO_FINGERPRINT, NO_SEND_DEADLINE, NO_WITNESSES, TIMESTAMP_CURSOR, planted};
use crate::types::accept::{Admission, Outcome, Refusal, Submission};
use crate::types::mesh::{Policies, TopicPolicy};
use crate::types::status::StatusQuestion;
use crate::types::wayin::{LedgerWentBack, Link, Witness};

/// How far a sweep looks back behind the last one, for rows that were committed while it ran.
pub(crate) const SWEEP_OVERLAP: Duration = Duration::from_secs(3600);
/// `ended_code` of a row nobody fetched within the bound.
pub(crate) const UNDELIVERED: &str = "undelivered";

/// A member as the rules need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberFacts {
    pub number: i64,
    /// `None`: the broker hosts it.
    pub home: Option<i64>,
    pub removed: bool,
}

/// A log as the rules need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogFacts {
    pub number: i64,
    pub id: model::ConversationId,
    pub head_seq: i64,
    pub head_ts: Timestamp,
    pub closed: bool,
    pub awaiting: Option<Question>,
    pub awaiting_rev: i64,
    pub generation: Epoch,
}

/// The question a log waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub seq: i64,
    pub by: i64,
}

/// Who carries a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Node(i64),
    Broker,
}

/// What `to` was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Topic(Option<LogFacts>),
    Dm { peer: Option<MemberFacts>, log: Option<LogFacts> },
}

/// All a verdict on a message nobody knows depends on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub now: Timestamp,
    pub forgotten: ForgottenUpto,
    pub policies: Policies,
    pub speaker: Speaker,
    pub sender: Option<MemberFacts>,
    pub destination: Destination,
    /// In the order of the message's mentions.
    pub mentions: Vec<Option<MemberFacts>>,
}

/// What to write for an accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub sender: MemberFacts,
    pub target: Target,
    /// Each once, the sender included when it mentioned itself.
    pub mentioned: Vec<MemberFacts>,
}

/// The log a message goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Topic(LogFacts),
    NewTopic(TopicName),
    Dm { peer: MemberFacts, log: Option<LogFacts> },
}

/// The answer an id already has, if any: B0, and the first step inside the transaction.
pub(crate) fn settled(known: Option<&Known>, incoming: &Fingerprint) -> Option<Outcome> {
    match look_up(known, incoming) {
        LookUp::Absent => None,
        LookUp::Duplicate { receipt, history_available } => {
            Some(Outcome::Admitted { receipt, admission: Admission::Duplicate { history_available } })
        }
        LookUp::Mismatch { held } => Some(Outcome::Refused(Refusal {
            code: ErrorCode::IdempotencyKeyReused,
            held: Some(held),
            detail: None,
        })),
        LookUp::Retired => Some(Outcome::Refused(Refusal::plain(ErrorCode::IdRetired))),
    }
}

/// B2: whether a message nobody knows may be accepted, and what to write.
pub(crate) fn judge(message: &Submission, facts: &Facts) -> Result<Plan, Refusal> {
    let sender = judge_sender(facts.sender, facts.speaker)?;
    let age_max = max_age(facts.policies.dedupe);
    let send_deadline = message.send_deadline.filter(|_| !planted(NO_SEND_DEADLINE));
    check_time(facts.now, &facts.forgotten, send_deadline, message.deliver_by, age_max)
        .map_err(Refusal::plain)?;
    let target = judge_destination(message, facts)?;
    let mentioned = judge_mentions(&message.mentions, &facts.mentions)?;
    Ok(Plan { sender, target, mentioned })
}

fn judge_sender(sender: Option<MemberFacts>, speaker: Speaker) -> Result<MemberFacts, Refusal> {
    match (sender, speaker) {
        (Some(sender), Speaker::Node(node)) if sender.home != Some(node) => {
            Err(Refusal::plain(ErrorCode::NotAtHome))
        }
        (Some(sender), _) if sender.removed => Err(Refusal::plain(ErrorCode::Revoked)),
        (Some(sender), _) => Ok(sender),
        (None, Speaker::Node(_)) => Err(Refusal::plain(ErrorCode::NotAtHome)),
        (None, Speaker::Broker) => Err(Refusal::plain(ErrorCode::Revoked)),
    }
}

fn judge_destination(message: &Submission, facts: &Facts) -> Result<Target, Refusal> {
    let log = match &facts.destination {
        Destination::Topic(log) => *log,
        Destination::Dm { log, .. } => *log,
    };
    if log.is_some_and(|log| log.closed) {
        return Err(Refusal::about(ErrorCode::ConversationClosed, &message.to));
    }
    match (&facts.destination, &message.to) {
        (Destination::Topic(Some(log)), _) => Ok(Target::Topic(*log)),
        (Destination::Topic(None), model::To::Topic(name)) => match facts.policies.topics {
            TopicPolicy::Open => Ok(Target::NewTopic(name.clone())),
            TopicPolicy::Declared => Err(Refusal::about(ErrorCode::TopicNotFound, name)),
        },
        (Destination::Topic(None), _) => Err(Refusal::about(ErrorCode::TopicNotFound, &message.to)),
        // A removed member is no address any more; who removed it is nobody's business here.
        (Destination::Dm { peer, log }, _) => match peer {
            Some(peer) if !peer.removed => Ok(Target::Dm { peer: *peer, log: *log }),
            Some(_) | None => Err(Refusal::about(ErrorCode::MemberNotFound, &message.to)),
        },
    }
}

fn judge_mentions(names: &[MemberName], found: &[Option<MemberFacts>]) -> Result<Vec<MemberFacts>, Refusal> {
    let mut seen = BTreeSet::new();
    let mut mentioned = Vec::with_capacity(found.len());
    for (name, member) in names.iter().zip(found) {
        match member {
            Some(member) if !member.removed => {
                if seen.insert(member.number) {
                    mentioned.push(*member);
                }
            }
            Some(_) | None => return Err(Refusal::about(ErrorCode::MentionUnknown, name)),
        }
    }
    Ok(mentioned)
}

/// The next place in a log: gapless, and strictly later than the last also when the clock went back.
pub(crate) fn next_place(now: Timestamp, log: &LogFacts) -> (i64, Timestamp) {
    let after_head = Timestamp::from_micros(log.head_ts.as_micros() + 1);
    let ts = if planted(TIMESTAMP_CURSOR) { now } else { now.max(after_head) };
    (log.head_seq + 1, ts)
}

/// How far the clock stood behind a log's last place, when that is more than machines do to each other.
pub(crate) fn regressed_by(now: Timestamp, placed: Timestamp) -> Option<Duration> {
    Some(placed.since(now)).filter(|behind| *behind > limits::CLOCK_REGRESSED_MIN)
}

/// What a log waits on after a message: a question replaces another; anybody else's words answer it.
pub(crate) fn awaiting_after(
    log: &LogFacts,
    seq: i64,
    sender: i64,
    expects_input: bool,
) -> (Option<Question>, i64) {
    let next = match log.awaiting {
        _ if expects_input => Some(Question { seq, by: sender }),
        Some(question) if question.by == sender => Some(question),
        Some(_) | None => None,
    };
    (next, log.awaiting_rev + i64::from(next != log.awaiting))
}

/// A log without messages.
pub(crate) fn empty_log(number: i64, id: model::ConversationId) -> LogFacts {
    let head_ts = Timestamp::from_micros(0);
    LogFacts {
        number,
        id,
        head_seq: 0,
        head_ts,
        closed: false,
        awaiting: None,
        awaiting_rev: 0,
        generation: 0,
    }
}

/// Two members in the order a direct conversation names them.
pub(crate) fn pair(one: i64, other: i64) -> (i64, i64) {
    (one.min(other), one.max(other))
}

/// How long ids are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdRetention {
    pub window: DedupeWindow,
    /// Ages are counted from here at the earliest: a clock that stands behind is set right some day.
    pub counted_from: Timestamp,
}

impl IdRetention {
    /// When an id first seen at `at` may be forgotten, as the stores keep it.
    pub fn until(self, at: Timestamp) -> Option<i64> {
        match self.window {
            DedupeWindow::Days(days) => Some((at.max(self.counted_from) + days_long(days)).as_micros()),
            DedupeWindow::Permanent => None,
        }
    }
}

/// The model's answer to a question about an id.
pub(crate) fn status_of(
    known: Option<&Known>,
    question: &StatusQuestion,
    window: DedupeWindow,
    now: Timestamp,
    forgotten: &ForgottenUpto,
) -> StatusAnswer {
    if known.is_none() && forgotten.includes_id(question.first_attempt_at) {
        return StatusAnswer::Unknown;
    }
    let asked = match known {
        Some(known) if planted(NO_FINGERPRINT) => known.fingerprint,
        Some(_) | None => question.fingerprint,
    };
    message_status(known, &asked, question.first_attempt_at, window, now)
}

/// What a question with a fence does to the id's row.
pub(crate) fn fence_of(answer: StatusAnswer) -> Fence {
    if planted(NO_FENCE) { Fence::Nothing } else { admission::fence(answer) }
}

/// Whether a dedupe row bears its sender's witness out.
pub(crate) fn borne_out(known: Option<&Known>, witness: &Witness) -> bool {
    match known.map(|known| known.state) {
        _ if planted(NO_WITNESSES) => true,
        Some(KnownState::Accepted { receipt, .. }) => receipt.broker_message_id == witness.broker_message_id,
        Some(KnownState::Retired) | None => false,
    }
}

/// Whether what is known of an id is about this message. One that was kept longer than its id may share it with a later
/// one, or with a copy that was fenced off.
pub(crate) fn speaks_of(known: &Known, message: Option<MessageId>) -> bool {
    match (known.state, message) {
        (_, None) => true,
        (KnownState::Accepted { receipt, .. }, Some(message)) => receipt.broker_message_id == message,
        (KnownState::Retired, Some(_)) => false,
    }
}

/// What a node says of its inbox, beside what it said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxMark {
    /// It holds at least as much, or the node does not say.
    Kept {
        /// The highest place told by now.
        upto: u64,
    },
    /// It holds less, or was restored: an older copy of its file was put back.
    WentBack {
        /// The highest place told before.
        from: u64,
        /// The highest place it has.
        to: u64,
    },
}

/// Which file an inbox is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxFile {
    /// That of the last link.
    Same,
    /// A backup of it.
    Restored,
    /// Another one, which may lack any row.
    Another,
}

impl InboxFile {
    /// By the epoch that was told at the last link, and those that a node tells: the file's own, and the one it had before
    /// it was restored.
    pub(crate) fn of(known: Option<&str>, epoch: &str, before: Option<&str>) -> Self {
        match (known, before) {
            (Some(known), _) if known == epoch => InboxFile::Same,
            (None, None) => InboxFile::Same,
            (None, Some(_)) => InboxFile::Restored,
            (Some(known), before) if before == Some(known) => InboxFile::Restored,
            (Some(_), _) => InboxFile::Another,
        }
    }
}

/// Judges the highest place of an inbox, as a node tells it when a link opens. Rows of an inbox are never deleted, so
/// only an older file has fewer. Places of another file say nothing of this one's.
pub(crate) fn inbox_mark(before: u64, told: Option<u64>, file: InboxFile) -> InboxMark {
    match (file, told) {
        (_, None) => InboxMark::Kept { upto: before },
        (InboxFile::Restored, Some(to)) => InboxMark::WentBack { from: before.max(to), to },
        (InboxFile::Another, Some(to)) if before.max(to) > 0 => {
            InboxMark::WentBack { from: before.max(to), to: 0 }
        }
        (InboxFile::Same, Some(to)) if to < before => InboxMark::WentBack { from: before, to },
        (InboxFile::Same | InboxFile::Another, Some(upto)) => InboxMark::Kept { upto },
    }
}

/// Work is told again as far back as an inbox keeps bodies, and a day: behind that nobody can begin it.
const WORK_KEPT: Duration = Duration::from_secs((limits::INBOX_RETENTION_DAYS as u64 + 1) * 24 * 3600);

/// From when on work is told again to an inbox that went back.
pub(crate) fn work_kept_since(now: Timestamp) -> i64 {
    now.as_micros().saturating_sub(i64::try_from(WORK_KEPT.as_micros()).unwrap_or(i64::MAX))
}

/// A place of an inbox as the stores keep it.
pub(crate) fn place_number(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// Whether an ack ends that its delivery is sent again: the inbox has it with the rung that is known here. A node that
/// does not tell places knows nothing of all this, and any ack of it does.
pub(crate) fn has_it_again(held: DeliveryRung, told: DeliveryRung, place: Option<u64>) -> bool {
    place.is_none() || told >= held
}

/// Whether the loss that a mark tells of is noted: the process ended before it had renewed the mark, and the books took nothing
/// since.
pub(crate) fn is_noted(last: &LedgerWentBack, marked_at: Timestamp, books_end: Timestamp) -> bool {
    last.ends_at == books_end && marked_at <= last.noticed_at
}

/// What a node's witnesses say of these books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Testimony {
    /// The newest instant of a message that is here.
    pub held_upto: Option<Timestamp>,
    /// Whether one is missing.
    pub is_missing: bool,
    /// The oldest instant of one that is missing, where the node tells it.
    pub missing_from: Option<Timestamp>,
}

impl Testimony {
    /// With one more witness.
    pub(crate) fn heard(self, witness: &Witness, held: bool) -> Self {
        if held {
            return Self { held_upto: self.held_upto.max(witness.accepted_at), ..self };
        }
        let missing_from = match (self.missing_from, witness.accepted_at) {
            (Some(known), Some(at)) => Some(known.min(at)),
            (known, at) => known.or(at),
        };
        Self { is_missing: true, missing_from, ..self }
    }

    /// Whether the loss it speaks of is another than the last one, which is known up to `upto`.
    pub(crate) fn is_news(&self, upto: Option<Timestamp>) -> bool {
        match (self.is_missing, upto, self.missing_from) {
            (false, _, _) => false,
            (true, None, _) => true,
            (true, Some(_), None) => false,
            (true, Some(upto), Some(from)) => from > upto,
        }
    }
}

/// What a link with the node's current epoch says of another one.
pub(crate) fn fenced(epoch: u64, removed: bool, link: &Link) -> Result<(), LinkRefused> {
    match (removed, epoch == link.epoch) {
        (true, _) => Err(LinkRefused::Revoked),
        (false, false) => Err(LinkRefused::Replaced),
        (false, true) => Ok(()),
    }
}

/// A link asks about members at home there only; another's ids stay unknown to it.
pub(crate) fn speaks_for(speaker: Speaker, member: &MemberFacts) -> bool {
    match speaker {
        Speaker::Node(node) => member.home == Some(node),
        Speaker::Broker => true,
    }
}

/// Whether the speaker may record how far a recipient's copy came. `home` is `None` for a member the ledger
/// lost: nobody else can claim that one.
pub(crate) fn acks_for(speaker: Speaker, home: Option<Option<i64>>) -> bool {
    match (home, speaker) {
        (Some(home), Speaker::Node(node)) => home == Some(node),
        (Some(home), Speaker::Broker) => home.is_none(),
        (None, _) => true,
    }
}

/// A node's own words as every store can keep them: without NUL, and not endless.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| *c != '\0').take(limits::REFERENCE_BYTES_MAX).collect()
}

/// What an ack changes on a delivery row; `None` when it tells nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Climb {
    pub rung: DeliveryRung,
    /// The rung whose instant is now known, if it is one above accepted.
    pub reached: Option<DeliveryRung>,
    pub ends: bool,
}

/// Rungs only rise, but the instant of a lower one that was told late is still its instant.
pub(crate) fn climb(held: DeliveryRung, told: DeliveryRung) -> Option<Climb> {
    let risen = rise(held, told);
    match told {
        DeliveryRung::Accepted => None,
        DeliveryRung::Expired | DeliveryRung::DeadLetter => {
            risen.map(|rung| Climb { rung, reached: None, ends: true })
        }
        DeliveryRung::Delivered
        | DeliveryRung::Notified
        | DeliveryRung::Engaged
        | DeliveryRung::Processed => {
            Some(Climb { rung: risen.unwrap_or(held), reached: Some(told), ends: false })
        }
    }
}

/// Whether a lane goes on after a refusal: only a permanent one leaves the next message's turn untouched.
pub(crate) fn lane_goes_on(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Admitted { .. } => true,
        Outcome::Refused(refusal) => match refusal.code.class() {
            model::Class::Permanent => true,
            model::Class::Transient | model::Class::Conditional => false,
        },
        Outcome::NotTried => false,
    }
}

/// What a log says about cursors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub conversation: i64,
    pub epoch: Epoch,
    pub floor: Option<Mark>,
}

/// A row by everything a cursor says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub conversation: i64,
    pub seq: i64,
    pub at: Timestamp,
    pub id: MessageId,
}

/// Why a cursor leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misplaced {
    Invalid,
    Expired { first_available: Cursor },
}

/// The seq a cursor stands for. `named` is the row with the cursor's id, in whichever log. A place below
/// the pruning floor is told as gone, never skipped over; only the floor's own row still counts as a place.
pub(crate) fn place(cursor: Cursor, marks: &Marks, named: Option<Mark>) -> Result<i64, Misplaced> {
    let Cursor::After { at, id, epoch } = cursor else {
        return Ok(marks.floor.map_or(0, |floor| floor.seq));
    };
    let gone = Misplaced::Expired { first_available: first_available(marks) };
    if let Some(named) = named {
        // The row is here, so a cursor that contradicts it was never given for this log.
        return match named {
            Mark { conversation, .. } if conversation != marks.conversation => Err(Misplaced::Invalid),
            Mark { at: kept, .. } if kept != at => Err(Misplaced::Invalid),
            Mark { .. } if epoch != marks.epoch => Err(gone),
            Mark { seq, .. } => Ok(seq),
        };
    }
    match marks.floor {
        Some(floor) if floor.id == id && floor.at == at && epoch == marks.epoch => Ok(floor.seq),
        Some(_) | None => Err(gone),
    }
}

/// The place before the first row that is still there.
pub(crate) fn first_available(marks: &Marks) -> Cursor {
    marks.floor.map_or(Cursor::Start, |floor| Cursor::After {
        at: floor.at,
        id: floor.id,
        epoch: marks.epoch,
    })
}

/// Names for a node's person, best first: the account's, then with the node's, then numbered. Never ends.
pub(crate) fn person_names(
    account: Option<&MemberName>,
    node: &NodeName,
) -> impl Iterator<Item = MemberName> {
    let account = account.map_or("person", MemberName::as_str).to_owned();
    let with_node = fitted(&account, &format!("-{node}"));
    let numbered = with_node.clone();
    [account, with_node]
        .into_iter()
        .chain((2_u32..).map(move |number| fitted(&numbered, &format!("-{number}"))))
        .map(|name| name.parse().expect("cut from legal names at legal characters"))
}

/// `stem` and `tail` within the bound; the tail, which tells names apart, is what stays whole.
fn fitted(stem: &str, tail: &str) -> String {
    let tail = &tail[..tail.len().min(limits::NAME_BYTES_MAX - 1)];
    let stem = &stem[..stem.len().min(limits::NAME_BYTES_MAX - tail.len())];
    format!("{stem}{tail}")
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
