//! The rows of a judged batch as columns, and the one round trip that writes and commits them.

use std::collections::HashSet;

use futures_util::future::{join, join_all};
use model::{DeliveryRung, Timestamp, TopicName};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::mail::Stretches;
use super::row::small;
use super::session::Tx;
use super::sql;
use super::status::ACCEPTED;
use crate::StorageError;
use crate::desk::{Entry, Judged, LogKey};
use crate::rules::{IdRetention, Target};
use crate::types::read::ConversationKind;

/// One array per column, so that a batch of any size is one statement a table.
#[derive(Default)]
pub(super) struct Columns<'a> {
    messages: Messages<'a>,
    stretches: Stretches,
    direct: Direct,
    mentions: Mentions,
    subscriptions: Subscriptions,
    heads: Heads,
    escalations: Escalations,
}

#[derive(Default)]
struct Messages<'a> {
    number: Vec<i64>,
    conversation: Vec<i64>,
    seq: Vec<i64>,
    id: Vec<Uuid>,
    ts: Vec<i64>,
    sender: Vec<i64>,
    client_message_id: Vec<&'a str>,
    envelope: Vec<&'a [u8]>,
    deliver_by: Vec<Option<i64>>,
    until: Vec<Option<i64>>,
    stretch: Vec<i64>,
    fingerprint: Vec<&'a [u8]>,
    kind: Vec<i16>,
    reference: Vec<String>,
}

/// Recipients that are named: mentioned members, and the other of a pair.
#[derive(Default)]
struct Direct {
    message: Vec<i64>,
    conversation: Vec<i64>,
    ts: Vec<i64>,
    sender: Vec<i64>,
    recipient: Vec<i64>,
    rung_told: Vec<Option<i16>>,
}

#[derive(Default)]
struct Mentions {
    message: Vec<i64>,
    member: Vec<i64>,
}

#[derive(Default)]
struct Subscriptions {
    conversation: Vec<i64>,
    member: Vec<i64>,
    since: Vec<i64>,
}

#[derive(Default)]
struct Heads {
    number: Vec<i64>,
    seq: Vec<i64>,
    ts: Vec<i64>,
    awaiting_seq: Vec<Option<i64>>,
    awaiting_by: Vec<Option<i64>>,
    awaiting_rev: Vec<i64>,
}

#[derive(Default)]
struct Escalations {
    conversation: Vec<i64>,
    rev: Vec<i64>,
    seq: Vec<Option<i64>>,
    asked_by: Vec<Option<i64>>,
    at: Vec<i64>,
}

type Params<'a> = Vec<&'a (dyn ToSql + Sync)>;

impl<'a> Columns<'a> {
    /// With a number for each message. `created` are the topics this transaction made: the first to write there is
    /// subscribed.
    pub fn of(
        judged: &'a Judged<'_>,
        numbers: &[i64],
        created: &HashSet<TopicName>,
        kept: IdRetention,
    ) -> Self {
        // One without a number would be answered for and not written.
        assert!(numbers.len() >= judged.entries.len(), "every message of a batch has drawn a number");
        let mut columns = Self::default();
        let mut unclaimed = created.clone();
        let log = |entry: &Entry<'_>| judged.logs.get(&entry.log).map_or(0, |log| log.number);
        // Log by log, so that the numbers of each follow one another.
        let mut entries: Vec<_> = judged.entries.iter().map(|entry| (log(entry), entry)).collect();
        entries.sort_by_key(|(log, entry)| (*log, entry.seq));
        for ((number, entry), message) in entries.into_iter().zip(numbers) {
            columns.message(entry, *message, number, kept);
            columns.recipients(entry, *message, number);
            if let LogKey::Topic(name) = &entry.log
                && unclaimed.remove(name)
            {
                columns.subscriptions.conversation.push(number);
                columns.subscriptions.member.push(entry.plan.sender.number);
                columns.subscriptions.since.push(entry.receipt.accepted_at.as_micros());
            }
        }
        for log in judged.logs.values() {
            columns.heads.number.push(log.number);
            columns.heads.seq.push(log.head_seq);
            columns.heads.ts.push(log.head_ts.as_micros());
            columns.heads.awaiting_seq.push(log.awaiting.map(|question| question.seq));
            columns.heads.awaiting_by.push(log.awaiting.map(|question| question.by));
            columns.heads.awaiting_rev.push(log.awaiting_rev);
        }
        for edge in &judged.edges {
            let number = judged.logs.get(&edge.log).map_or(0, |log| log.number);
            columns.escalations.conversation.push(number);
            columns.escalations.rev.push(edge.rev);
            columns.escalations.seq.push(edge.question.map(|question| question.seq));
            columns.escalations.asked_by.push(edge.question.map(|question| question.by));
            columns.escalations.at.push(edge.at.as_micros());
        }
        columns
    }

    fn message(&mut self, entry: &'a Entry<'_>, number: i64, log: i64, kept: IdRetention) {
        let Entry { message, plan, receipt, seq, .. } = entry;
        let kind = match plan.target {
            Target::Topic(_) | Target::NewTopic(_) => ConversationKind::Topic,
            Target::Dm { .. } => ConversationKind::Dm,
        };
        let (sender, client_message_id) = (plan.sender.number, message.client_message_id.as_str());
        let (id, ts) = (receipt.broker_message_id.as_uuid(), receipt.accepted_at.as_micros());
        let until = kept.until(receipt.accepted_at);
        let Self { messages, stretches, .. } = self;
        messages.number.push(number);
        messages.conversation.push(log);
        messages.seq.push(*seq);
        messages.id.push(id);
        messages.ts.push(ts);
        messages.sender.push(sender);
        messages.client_message_id.push(client_message_id);
        messages.envelope.push(&message.envelope);
        messages.deliver_by.push(message.deliver_by.map(Timestamp::as_micros));
        messages.until.push(until);
        messages.stretch.push(stretches.place(log, number, sender));
        messages.fingerprint.push(message.fingerprint.as_bytes());
        messages.kind.push(small(kind.code()));
        messages.reference.push(message.to.reference());
    }

    fn recipients(&mut self, entry: &Entry<'_>, number: i64, log: i64) {
        let Entry { plan, receipt, .. } = entry;
        let sender = plan.sender.number;
        let mentioned = plan.mentioned.iter().map(|member| member.number);
        let mut to = |recipient, rung_told| {
            self.direct.message.push(number);
            self.direct.conversation.push(log);
            self.direct.ts.push(receipt.accepted_at.as_micros());
            self.direct.sender.push(sender);
            self.direct.recipient.push(recipient);
            self.direct.rung_told.push(rung_told);
        };
        let readers: Vec<i64> = match &plan.target {
            // Its subscribers are known to the database.
            Target::Topic(_) | Target::NewTopic(_) => {
                mentioned.clone().filter(|member| *member != sender).for_each(|member| to(member, None));
                mentioned.collect()
            }
            Target::Dm { peer, .. } => {
                to(peer.number, Some(small(DeliveryRung::Accepted.code())));
                // Only its two read a direct message; a third who is named in it has nothing to find.
                mentioned.filter(|member| [peer.number, sender].contains(member)).collect()
            }
        };
        self.mentions.message.extend(readers.iter().map(|_| number));
        self.mentions.member.extend(readers);
    }

    /// Writes everything and commits.
    pub async fn write(&self, tx: &mut Tx) -> Result<(), StorageError> {
        let steps = self.steps(tx, true).await?;
        send(tx, steps).await
    }

    /// The planted bug's first transaction: everything but the ids.
    pub async fn write_without_ids(&self, tx: &mut Tx) -> Result<(), StorageError> {
        let steps = self.steps(tx, false).await?;
        send(tx, steps).await
    }

    /// The planted bug's second transaction.
    pub async fn write_ids(&self, tx: &mut Tx) -> Result<(), StorageError> {
        let Messages { conversation, seq, id, ts, sender, client_message_id, until, .. } = &self.messages;
        let Messages { fingerprint, kind, reference, .. } = &self.messages;
        let ids: Params<'_> = vec![
            conversation,
            seq,
            id,
            ts,
            sender,
            client_message_id,
            until,
            fingerprint,
            kind,
            reference,
            &ACCEPTED,
        ];
        let statement = tx.prepare(sql!("accept_ids")).await?;
        send(tx, vec![(statement, ids)]).await
    }

    /// In the order in which one needs another.
    async fn steps(&self, tx: &Tx, with_ids: bool) -> Result<Vec<(Statement, Params<'_>)>, StorageError> {
        let Self { messages, stretches, direct, mentions, subscriptions, heads, escalations } = self;
        let rows: Params<'_> = vec![
            &messages.number,
            &messages.conversation,
            &messages.seq,
            &messages.id,
            &messages.ts,
            &messages.sender,
            &messages.client_message_id,
            &messages.envelope,
            &messages.deliver_by,
            &messages.until,
            &messages.stretch,
            &messages.fingerprint,
            &messages.kind,
            &messages.reference,
            &heads.number,
            &heads.seq,
            &heads.ts,
            &heads.awaiting_seq,
            &heads.awaiting_by,
            &heads.awaiting_rev,
            &ACCEPTED,
            &stretches.conversation,
            &stretches.first,
            &stretches.last,
            &stretches.only_sender,
            if with_ids { &true } else { &false },
        ];
        let subscribe: Params<'_> =
            vec![&subscriptions.conversation, &subscriptions.member, &subscriptions.since];
        let to_direct: Params<'_> = vec![
            &direct.message,
            &direct.conversation,
            &direct.ts,
            &direct.sender,
            &direct.recipient,
            &direct.rung_told,
        ];
        let mut steps = Vec::new();
        if !subscriptions.member.is_empty() {
            steps.push((tx.prepare(sql!("accept_subscriptions")).await?, subscribe));
        }
        steps.push((tx.prepare(sql!("accept_rows")).await?, rows));
        if !direct.message.is_empty() {
            steps.push((tx.prepare(sql!("accept_to_named")).await?, to_direct));
        }
        if !mentions.message.is_empty() {
            steps.push((
                tx.prepare(sql!("accept_mentions")).await?,
                vec![&mentions.message, &mentions.member],
            ));
        }
        if !escalations.rev.is_empty() {
            let Escalations { conversation, rev, seq, asked_by, at } = escalations;
            let columns: Params<'_> = vec![conversation, rev, seq, asked_by, at];
            steps.push((tx.prepare(sql!("accept_escalations")).await?, columns));
        }
        Ok(steps)
    }
}

/// Sends all steps and the commit without waiting in between. After a step that did not work the server takes
/// the commit for a rollback; the first error is the one that says why.
async fn send(tx: &mut Tx, steps: Vec<(Statement, Params<'_>)>) -> Result<(), StorageError> {
    let client = tx.client();
    let sent = steps.iter().map(|(statement, params)| client.execute(statement, params));
    // Polled in this order, so the commit is sent behind the steps.
    let (written, committed) = join(join_all(sent), client.batch_execute("COMMIT")).await;
    let step = written.into_iter().try_for_each(|result| result.map(drop));
    if committed.is_ok() {
        tx.ended();
    }
    Ok(step.and(committed)?)
}
