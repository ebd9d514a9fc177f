//! The rows of a judged batch, table by table.

use std::collections::HashSet;

use ::sqlite::rusqlite::{Connection, params};
use model::{DeliveryRung, Timestamp, TopicName};

use super::accept::subscribe;
use super::mail::{Mail, Reach};
use super::row::{change, code, one};
use super::sql;
use super::status::ACCEPTED;
use crate::StorageError;
use crate::desk::{Entry, Judged, LogKey};
use crate::rules::{IdRetention, Target};
use crate::types::read::ConversationKind;

/// What a batch left behind, beside longer logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// A delivery, a mention or a question that somebody has to see to.
    Work,
    Nothing,
}

/// Writes everything. `created` are the topics this batch made: the first to write there is subscribed.
pub(super) fn rows(
    conn: &Connection,
    judged: &Judged<'_>,
    mut created: HashSet<TopicName>,
    kept: IdRetention,
) -> Result<Left, StorageError> {
    for entry in &judged.entries {
        if let LogKey::Topic(name) = &entry.log
            && created.remove(name)
        {
            subscribe(conn, entry.receipt.accepted_at, log(judged, &entry.log), entry.plan.sender.number)?;
        }
    }
    dedupe(conn, judged, kept)?;
    let numbers = messages(conn, judged, kept)?;
    let delivered = deliveries(conn, judged, &numbers)?;
    heads(conn, judged)?;
    let left = delivered > 0 || !judged.edges.is_empty() || judged.entries.iter().any(Entry::names_somebody);
    Ok(if left { Left::Work } else { Left::Nothing })
}

impl Entry<'_> {
    fn names_somebody(&self) -> bool {
        matches!(self.plan.target, Target::Dm { .. }) || !self.plan.mentioned.is_empty()
    }
}

fn log(judged: &Judged<'_>, key: &LogKey) -> i64 {
    judged.logs.get(key).map_or(0, |log| log.number)
}

fn dedupe(conn: &Connection, judged: &Judged<'_>, kept: IdRetention) -> Result<(), StorageError> {
    let mut insert = conn.prepare_cached(sql!("dedupe_insert"))?;
    for entry in &judged.entries {
        let Entry { message, plan, receipt, seq, .. } = entry;
        let kind = match plan.target {
            Target::Topic(_) | Target::NewTopic(_) => ConversationKind::Topic,
            Target::Dm { .. } => ConversationKind::Dm,
        };
        insert.execute(params![
            plan.sender.number,
            message.client_message_id.as_str(),
            ACCEPTED,
            message.fingerprint.as_bytes(),
            receipt.broker_message_id.as_bytes(),
            log(judged, &entry.log),
            seq,
            kind.code(),
            message.to.reference(),
            receipt.accepted_at.as_micros(),
            kept.until(receipt.accepted_at)
        ])?;
    }
    Ok(())
}

/// The numbers of the messages, in their order.
fn messages(conn: &Connection, judged: &Judged<'_>, kept: IdRetention) -> Result<Vec<i64>, StorageError> {
    let mut insert = conn.prepare_cached(sql!("message_insert"))?;
    let last = one(conn, sql!("message_last_number"), [], |row| row.get::<_, i64>(0))?.unwrap_or(0);
    let mut numbers = Vec::with_capacity(judged.entries.len());
    for (number, entry) in (last + 1..).zip(&judged.entries) {
        let Entry { message, plan, receipt, seq, .. } = entry;
        insert.execute(params![
            number,
            log(judged, &entry.log),
            seq,
            receipt.broker_message_id.as_bytes(),
            receipt.accepted_at.as_micros(),
            plan.sender.number,
            message.client_message_id.as_str(),
            message.envelope,
            message.deliver_by.map(Timestamp::as_micros),
            kept.until(receipt.accepted_at)
        ])?;
        numbers.push(number);
    }
    Ok(numbers)
}

/// How many subscribers' rows there are.
fn deliveries(conn: &Connection, judged: &Judged<'_>, numbers: &[i64]) -> Result<usize, StorageError> {
    let mut delivered = 0;
    let topics = judged.logs.iter().filter(|(key, _)| matches!(key, LogKey::Topic(_)));
    let mut mail = Mail::to(conn, topics.map(|(_, log)| log.number))?;
    // One writer draws the numbers: between the first and the last stands this batch and nothing else.
    if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
        let reaches = judged.entries.iter().map(|entry| {
            let to = log(judged, &entry.log);
            mail.reach(to, entry.plan.sender.number)
        });
        let reach = reaches.fold(Reach::default(), Reach::or);
        if reach.at_nodes {
            delivered += change(conn, sql!("delivery_to_subscribers"), [first, last])?;
        }
        if reach.served_here {
            delivered += change(conn, sql!("delivery_to_hosted"), [first, last])?;
        }
    }
    for (entry, number) in judged.entries.iter().zip(numbers) {
        match &entry.plan.target {
            Target::Topic(_) | Target::NewTopic(_) => {
                mail.for_log(log(judged, &entry.log), entry.plan.sender.number, *number);
                mentioned(conn, entry, *number, &mut mail)?;
            }
            Target::Dm { peer, .. } => direct(conn, entry, peer.number, *number, &mut mail)?,
        }
    }
    mail.write(conn)?;
    Ok(delivered)
}

fn mentioned(conn: &Connection, entry: &Entry<'_>, number: i64, mail: &mut Mail) -> Result<(), StorageError> {
    let sender = entry.plan.sender.number;
    for member in &entry.plan.mentioned {
        change(conn, sql!("mention_insert"), params![member.number, number])?;
        if member.number != sender {
            deliver(conn, sql!("delivery_to_mentioned"), entry, member.number, number, mail)?;
        }
    }
    Ok(())
}

fn direct(
    conn: &Connection,
    entry: &Entry<'_>,
    peer: i64,
    number: i64,
    mail: &mut Mail,
) -> Result<(), StorageError> {
    deliver(conn, sql!("delivery_to_peer"), entry, peer, number, mail)?;
    // Only its two read a direct message; a third who is named in it has nothing to find.
    let readers = [peer, entry.plan.sender.number];
    for member in entry.plan.mentioned.iter().filter(|member| readers.contains(&member.number)) {
        change(conn, sql!("mention_insert"), params![member.number, number])?;
    }
    Ok(())
}

/// A row for one that is named, who may have it at once.
fn deliver(
    conn: &Connection,
    statement: &str,
    entry: &Entry<'_>,
    recipient: i64,
    number: i64,
    mail: &mut Mail,
) -> Result<(), StorageError> {
    let ts = entry.receipt.accepted_at.as_micros();
    let params = params![number, recipient, entry.plan.sender.number, ts];
    let rung = one(conn, statement, params, |row| code(row, 0, DeliveryRung::from_code))?;
    if rung == Some(DeliveryRung::Accepted) {
        mail.for_one(recipient, number);
    }
    Ok(())
}

/// Each log's last place, and every change of what it waits on.
fn heads(conn: &Connection, judged: &Judged<'_>) -> Result<(), StorageError> {
    for log in judged.logs.values() {
        let params = params![
            log.number,
            log.head_seq,
            log.head_ts.as_micros(),
            log.awaiting.map(|question| question.seq),
            log.awaiting.map(|question| question.by),
            log.awaiting_rev
        ];
        change(conn, sql!("conversation_advance"), params)?;
    }
    for edge in &judged.edges {
        let (question, by) =
            (edge.question.map(|question| question.seq), edge.question.map(|question| question.by));
        let params = params![log(judged, &edge.log), edge.rev, question, by, edge.at.as_micros()];
        change(conn, sql!("escalation_insert"), params)?;
    }
    Ok(())
}
