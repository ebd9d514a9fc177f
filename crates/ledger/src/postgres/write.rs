//! The rows of a judged batch as columns, and the one round trip that writes and commits them.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::{join, join_all};
use model::outbox::DedupeWindow;
use model::{DeliveryRung, Timestamp, TopicName};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::row::small;
use super::session::{Core, Tx};
use super::sql;
use super::status::ACCEPTED;
use crate::StorageError;
use crate::desk::{Entry, Judged, LogKey};
use crate::rules::{Target, forgotten_at};
use crate::types::read::ConversationKind;

/// One array per column, so that a batch of any size is one statement a table.
#[derive(Default)]
pub(super) struct Columns<'a> {
    sender: Vec<i64>,
    client_message_id: Vec<&'a str>,
    fingerprint: Vec<&'a [u8]>,
    id: Vec<Uuid>,
    conversation: Vec<i64>,
    seq: Vec<i64>,
    kind: Vec<i16>,
    reference: Vec<String>,
    ts: Vec<i64>,
    until: Vec<Option<i64>>,
    envelope: Vec<&'a [u8]>,
    deliver_by: Vec<Option<i64>>,
    direct: Direct,
    mentions: Mentions,
    subscriptions: Subscriptions,
    heads: Heads,
    escalations: Escalations,
}

/// Recipients that are named: mentioned members, and the other of a pair.
#[derive(Default)]
struct Direct {
    id: Vec<Uuid>,
    recipient: Vec<i64>,
    rung_told: Vec<Option<i16>>,
}

#[derive(Default)]
struct Mentions {
    id: Vec<Uuid>,
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
    /// `created` are the topics this transaction made: the first to write there is subscribed.
    pub fn of(judged: &'a Judged<'_>, created: &HashSet<TopicName>, window: DedupeWindow) -> Self {
        let mut columns = Self::default();
        let mut unclaimed = created.clone();
        for entry in &judged.entries {
            let number = judged.logs.get(&entry.log).map_or(0, |log| log.number);
            columns.message(entry, number, window);
            columns.recipients(entry);
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

    fn message(&mut self, entry: &'a Entry<'_>, log: i64, window: DedupeWindow) {
        let Entry { message, plan, receipt, seq, .. } = entry;
        let kind = match plan.target {
            Target::Topic(_) | Target::NewTopic(_) => ConversationKind::Topic,
            Target::Dm { .. } => ConversationKind::Dm,
        };
        self.sender.push(plan.sender.number);
        self.client_message_id.push(message.client_message_id.as_str());
        self.fingerprint.push(message.fingerprint.as_bytes());
        self.id.push(receipt.broker_message_id.as_uuid());
        self.conversation.push(log);
        self.seq.push(*seq);
        self.kind.push(small(kind.code()));
        self.reference.push(message.to.reference());
        self.ts.push(receipt.accepted_at.as_micros());
        self.until.push(forgotten_at(receipt.accepted_at, window).map(Timestamp::as_micros));
        self.envelope.push(&message.envelope);
        self.deliver_by.push(message.deliver_by.map(Timestamp::as_micros));
    }

    fn recipients(&mut self, entry: &Entry<'_>) {
        let Entry { plan, receipt, .. } = entry;
        let (id, sender) = (receipt.broker_message_id.as_uuid(), plan.sender.number);
        let mentioned = plan.mentioned.iter().map(|member| member.number);
        let readers: Vec<i64> = match &plan.target {
            // Its subscribers are known to the database.
            Target::Topic(_) | Target::NewTopic(_) => {
                for member in mentioned.clone().filter(|member| *member != sender) {
                    self.direct.push(id, member, None);
                }
                mentioned.collect()
            }
            Target::Dm { peer, .. } => {
                self.direct.push(id, peer.number, Some(small(DeliveryRung::Accepted.code())));
                // Only its two read a direct message; a third who is named in it has nothing to find.
                mentioned.filter(|member| [peer.number, sender].contains(member)).collect()
            }
        };
        self.mentions.id.extend(readers.iter().map(|_| id));
        self.mentions.member.extend(readers);
    }

    /// Writes everything and commits.
    pub async fn write(&self, tx: &mut Tx) -> Result<(), StorageError> {
        let mut steps = vec![self.ids(tx).await?];
        steps.extend(self.others(tx).await?);
        send(tx, steps).await
    }

    /// The planted bug's first transaction.
    pub async fn write_without_ids(&self, tx: &mut Tx) -> Result<(), StorageError> {
        let steps = self.others(tx).await?;
        send(tx, steps).await
    }

    /// The planted bug's second transaction.
    pub async fn write_ids(&self, core: &Arc<Core>) -> Result<(), StorageError> {
        let mut tx = core.begin_batch().await?;
        let steps = vec![self.ids(&tx).await?];
        send(&mut tx, steps).await
    }

    async fn ids(&self, tx: &Tx) -> Result<(Statement, Params<'_>), StorageError> {
        let statement = tx.prepare(sql!("accept_ids")).await?;
        let params: Params<'_> = vec![
            &self.sender,
            &self.client_message_id,
            &ACCEPTED,
            &self.fingerprint,
            &self.id,
            &self.conversation,
            &self.seq,
            &self.kind,
            &self.reference,
            &self.ts,
            &self.until,
        ];
        Ok((statement, params))
    }

    /// In the order in which one needs another.
    async fn others(&self, tx: &Tx) -> Result<Vec<(Statement, Params<'_>)>, StorageError> {
        let Self { direct, mentions, subscriptions, heads, escalations, .. } = self;
        let messages: Params<'_> = vec![
            &self.conversation,
            &self.seq,
            &self.id,
            &self.ts,
            &self.sender,
            &self.client_message_id,
            &self.envelope,
            &self.deliver_by,
            &self.until,
            &heads.number,
            &heads.seq,
            &heads.ts,
            &heads.awaiting_seq,
            &heads.awaiting_by,
            &heads.awaiting_rev,
        ];
        let subscribe: Params<'_> =
            vec![&subscriptions.conversation, &subscriptions.member, &subscriptions.since];
        let to_direct: Params<'_> = vec![&direct.id, &direct.recipient, &direct.rung_told];
        let mut steps = Vec::new();
        if !subscriptions.member.is_empty() {
            steps.push((tx.prepare(sql!("accept_subscriptions")).await?, subscribe));
        }
        steps.push((tx.prepare(sql!("accept_messages")).await?, messages));
        if !direct.id.is_empty() {
            steps.push((tx.prepare(sql!("accept_to_named")).await?, to_direct));
        }
        if !mentions.id.is_empty() {
            steps.push((tx.prepare(sql!("accept_mentions")).await?, vec![&mentions.id, &mentions.member]));
        }
        if !escalations.rev.is_empty() {
            let Escalations { conversation, rev, seq, asked_by, at } = escalations;
            let columns: Params<'_> = vec![conversation, rev, seq, asked_by, at];
            steps.push((tx.prepare(sql!("accept_escalations")).await?, columns));
        }
        Ok(steps)
    }
}

impl Direct {
    fn push(&mut self, id: Uuid, recipient: i64, rung_told: Option<i16>) {
        self.id.push(id);
        self.recipient.push(recipient);
        self.rung_told.push(rung_told);
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
