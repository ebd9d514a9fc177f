//! Door ②: a batch of frames becomes accepted, whole or not at all.
//!
//! 1. Begin, lock the topics that are there, in the order of their numbers, and read everything the verdicts depend on:
//!    one round trip.
//! 2. Where a log is missing, or one is a direct conversation: make and lock those, topics first, each kind in the
//!    order of their numbers.
//! 3. Write and commit, in one round trip.
//!
//! Two batches may make one topic while each holds what the other wants; the server undoes one of them, and it is
//! judged again.
//!
//! Callers have asked for their ids before (see `lookup`), so a first try does not ask again. One that comes twice breaks
//! the key of the dedupe table in the third step: the batch is undone, its ids are looked up, and it is judged again. So
//! it is before anything is refused: what was accepted before stays so.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ::sqlite::fault;
use futures_util::future::{join, try_join3, try_join4};
use model::{MemberId, MemberName, MessageId, NodeKey, NodeName, Timestamp, TopicName};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::row::{at, at_option, bound, bytes, count, epoch, id, text};
use super::session::{Core, Mode, Tx};
use super::trouble::PostgresError;
use super::write::Columns;
use super::{lookup, mesh, sql};
use crate::StorageError;
use crate::desk::{Asked, Desk, LogKey, NodeFacts, Verdicts};
use crate::planted::{DEDUPE_OWN_TRANSACTION, planted};
use crate::rules::{LogFacts, MemberFacts, Question};
use crate::types::accept::LaneSubmission;

/// Whether a try asks for what is known of its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// No: callers have just asked, and of two copies that both come to be written the key undoes the second's batch.
    No,
    /// A copy may have come first, or this batch itself; and nothing is refused that was accepted before.
    Yes,
}

/// Tries a batch once; nothing, without a trace, where it would refuse something without having looked. `minted` learns
/// the ids the try would write, for the case that its commit's answer is lost.
pub(super) async fn attempt(
    core: &Arc<Core>,
    frames: &[LaneSubmission],
    minted: &mut HashSet<MessageId>,
    look: Look,
) -> Result<Option<Verdicts>, StorageError> {
    let mut tx = core.unbegun_batch().await?;
    let ((), (mut desk, mut numbers)) = join_both(tx.open(Mode::Write), read(&tx, frames)).await?;
    let now = desk.now;
    tx.now = now;
    let kept = tx.id_retention(desk.policies.dedupe);
    if look == Look::Yes {
        desk.known = known(&tx, frames).await?;
    }
    let draft = desk.clone().judge(frames, tx.entropy());
    if draft.entries.is_empty() && look == Look::Yes {
        tx.commit().await?;
        return Ok(Some(draft.frames));
    }
    let needed: BTreeSet<LogKey> = draft.entries.iter().map(|entry| entry.log.clone()).collect();
    let (judged, created) = if needed.iter().all(|key| desk.logs.contains_key(key)) {
        (draft, HashSet::new())
    } else {
        let (logs, created) = lock_logs(&tx, &desk, &needed).await?;
        numbers = draw(&tx, frames).await?;
        (Desk { logs, ..desk }.judge(frames, tx.entropy()), created)
    };
    if look == Look::No && !judged.accepts_all() {
        tx.roll_back().await;
        return Ok(None);
    }
    judged.entries.iter().for_each(|entry| core.regressions.note(now, entry.receipt.accepted_at));
    minted.extend(judged.entries.iter().map(|entry| entry.receipt.broker_message_id));
    let columns = Columns::of(&judged, &numbers, &created, kept);
    fault::point_of("ledger.accept", "before_commit");
    if planted(DEDUPE_OWN_TRANSACTION) {
        columns.write_without_ids(&mut tx).await?;
        fault::point_of("ledger.accept_ids", "before_commit");
        columns.write_ids(&mut core.begin_batch().await?).await?;
    } else {
        columns.write(&mut tx).await?;
    }
    fault::point_of("ledger.accept", "after_commit");
    Ok(Some(judged.frames))
}

/// Everything the verdicts depend on but what is known of ids, and a number for every message; what nobody asked for is
/// not looked for.
async fn read(tx: &Tx, frames: &[LaneSubmission]) -> Result<(Desk, Vec<i64>), StorageError> {
    let asked = Asked::of(frames);
    let nodes: Vec<_> = asked.nodes.into_iter().map(NodeName::as_str).collect();
    let ids: Vec<_> = asked.ids.iter().map(MemberId::as_uuid).collect();
    let names: Vec<_> = asked.names.into_iter().map(MemberName::as_str).collect();
    let keys: Vec<_> = asked.keys.iter().map(|key| key.as_bytes().as_slice()).collect();
    let topics: Vec<_> = asked.topics.into_iter().map(TopicName::as_str).collect();
    // Prepared before anything is sent, so that what follows arrives in its order: numbers are drawn behind the locks.
    for statement in [sql!("accept_lock_topics"), sql!("accept_mesh")] {
        tx.prepare(statement).await?;
    }
    let (topics, mesh_rows, (by_id, by_name, by_key)) = try_join3(
        some(tx, sql!("accept_lock_topics"), &topics),
        tx.all(sql!("accept_mesh"), &[&nodes, &messages(frames)]),
        try_join3(
            some(tx, sql!("accept_members_by_id"), &ids),
            some(tx, sql!("accept_members_by_name"), &names),
            some(tx, sql!("accept_members_by_key"), &keys),
        ),
    )
    .await?;
    let mesh_row = mesh_rows.first().ok_or(StorageError::NoMesh)?;
    let now = tx.shifted(mesh_row.try_get(5)?);
    let desk = Desk {
        now,
        forgotten: tx.forgotten_upto(now),
        policies: mesh::mesh(mesh_row)?.policies,
        nodes: mesh_rows.iter().filter_map(|row| node_facts(row).transpose()).collect::<Result<_, _>>()?,
        by_id: keyed_facts(&by_id, |row| id(row, 0))?,
        by_name: keyed_facts(&by_name, |row| text(row, 0))?,
        by_key: keyed_facts(&by_key, |row| bytes(row, 0).map(NodeKey::from_bytes))?,
        known: HashMap::new(),
        logs: topics.iter().map(|row| log_facts(row, 0)).collect::<Result<_, _>>()?,
    };
    Ok((desk, mesh_row.try_get(6)?))
}

/// What is known of the ids, behind the locks: what another batch has just written there is found, not run into.
async fn known(tx: &Tx, frames: &[LaneSubmission]) -> Result<lookup::Found, StorageError> {
    let asked = Asked::of(frames).known;
    let (senders, ids): (Vec<_>, Vec<_>) =
        asked.iter().map(|(sender, id)| (sender.as_uuid(), id.as_str())).unzip();
    lookup::found(&tx.all(sql!("accept_known"), &[&senders, &ids]).await?)
}

/// A number for every message. Drawn behind the locks of their logs, numbers rise with the places there.
async fn draw(tx: &Tx, frames: &[LaneSubmission]) -> Result<Vec<i64>, StorageError> {
    let rows = tx.all(sql!("accept_numbers"), &[&messages(frames)]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

fn messages(frames: &[LaneSubmission]) -> i64 {
    frames.iter().map(|frame| bound(frame.messages.len())).sum()
}

/// The rows of the things asked for; of no things, none.
async fn some<T: ToSql + Sync>(tx: &Tx, sql: &'static str, asked: &Vec<T>) -> Result<Vec<Row>, StorageError> {
    if asked.is_empty() { Ok(Vec::new()) } else { tx.all(sql, &[asked]).await }
}

/// Two groups of reads in one round trip.
async fn join_both<A, B>(
    one: impl Future<Output = Result<A, StorageError>>,
    other: impl Future<Output = Result<B, StorageError>>,
) -> Result<(A, B), StorageError> {
    let (one, other) = join(one, other).await;
    Ok((one?, other?))
}

/// Every needed log with its head, locked until the transaction ends; and the topics this transaction made.
async fn lock_logs(
    tx: &Tx,
    desk: &Desk,
    needed: &BTreeSet<LogKey>,
) -> Result<(HashMap<LogKey, LogFacts>, HashSet<TopicName>), StorageError> {
    let (mut topics, mut fresh, mut los, mut his) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for key in needed {
        match key {
            LogKey::Topic(name) => {
                topics.push(name.as_str());
                if !desk.logs.contains_key(key) {
                    fresh.push(name.as_str());
                }
            }
            LogKey::Dm(lo, hi) => {
                los.push(*lo);
                his.push(*hi);
            }
        }
    }
    let mint = |_| model::ConversationId::mint(tx.now, tx.entropy()).as_uuid();
    let topic_ids: Vec<_> = (0..fresh.len()).map(mint).collect();
    let dm_ids: Vec<_> = (0..los.len()).map(mint).collect();
    let now = tx.now.as_micros();
    // Prepared before they are sent together: the lock must come after what it locks.
    let (create_topics, create_dms, lock_topics, lock_dms) = (
        tx.prepare(sql!("accept_create_topics")).await?,
        tx.prepare(sql!("accept_create_dms")).await?,
        tx.prepare(sql!("accept_lock_topics")).await?,
        tx.prepare(sql!("accept_lock_dms")).await?,
    );
    let client = tx.client();
    let (created, _, locked_topics, locked_dms) = try_join4(
        client.query(&create_topics, &[&topic_ids, &fresh, &now]),
        client.execute(&create_dms, &[&dm_ids, &los, &his, &now]),
        client.query(&lock_topics, &[&topics]),
        client.query(&lock_dms, &[&los, &his]),
    )
    .await?;
    let locked = locked_topics.iter().chain(&locked_dms);
    let logs: HashMap<_, _> = locked.map(|row| log_facts(row, 0)).collect::<Result<_, _>>()?;
    if logs.len() < needed.len() {
        let detail = "a log was not there to be locked".into();
        return Err(StorageError::Postgres(PostgresError::Raced { detail }));
    }
    let created = created.iter().map(|row| text(row, 0)).collect::<Result<_, _>>()?;
    Ok((logs, created))
}

/// A member by id, as single questions need it.
pub(super) async fn member_by_id(tx: &Tx, id: MemberId) -> Result<Option<MemberFacts>, StorageError> {
    let row = tx.one(sql!("member_facts_by_id"), &[&id.as_uuid()]).await?;
    row.map(|row| member_facts(&row, 0)).transpose()
}

/// number, home, removed_at
pub(super) fn member_facts(row: &Row, first: usize) -> Result<MemberFacts, StorageError> {
    Ok(MemberFacts {
        number: row.try_get(first)?,
        home: row.try_get(first + 1)?,
        removed: at_option(row, first + 2)?.is_some(),
    })
}

fn keyed_facts<K: Eq + std::hash::Hash>(
    rows: &[Row],
    key: impl Fn(&Row) -> Result<K, StorageError>,
) -> Result<HashMap<K, MemberFacts>, StorageError> {
    rows.iter().map(|row| Ok((key(row)?, member_facts(row, 1)?))).collect()
}

/// Nothing in the one row that says that nobody speaks for a node.
fn node_facts(row: &Row) -> Result<Option<(NodeName, NodeFacts)>, StorageError> {
    let Some(number) = row.try_get(8)? else { return Ok(None) };
    let facts = NodeFacts { number, epoch: count(row, 9)?, removed: at_option(row, 10)?.is_some() };
    Ok(Some((text(row, 7)?, facts)))
}

/// topic, lo, hi, number, id, head_seq, head_ts_us, state, awaiting_seq, awaiting_by, awaiting_rev
pub(super) fn log_facts(row: &Row, first: usize) -> Result<(LogKey, LogFacts), StorageError> {
    let key = match row.try_get::<_, Option<&str>>(first)? {
        Some(_) => LogKey::Topic(text(row, first)?),
        None => LogKey::Dm(row.try_get(first + 1)?, row.try_get(first + 2)?),
    };
    let awaiting = match (row.try_get(first + 8)?, row.try_get(first + 9)?) {
        (Some(seq), Some(by)) => Some(Question { seq, by }),
        (None, _) | (_, None) => None,
    };
    let head_ts: Timestamp = at(row, first + 6)?;
    let facts = LogFacts {
        number: row.try_get(first + 3)?,
        id: id(row, first + 4)?,
        head_seq: row.try_get(first + 5)?,
        head_ts,
        closed: row.try_get::<_, i16>(first + 7)? != 0,
        awaiting,
        awaiting_rev: row.try_get(first + 10)?,
        generation: epoch(row, first + 11)?,
    };
    Ok((key, facts))
}
