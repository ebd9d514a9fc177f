//! What is known of an id, and retiring one that nobody knows.

use model::admission::{Fence, Known, KnownState, StatusAnswer};
use model::outbox::{BrokerReceipt, DedupeWindow};
use model::{ClientMessageId, Fingerprint, MemberId};
use tokio_postgres::Row;

use super::row::{at, bytes, count, id};
use super::session::Tx;
use super::{accept, link, mesh, sql};
use crate::rules::{MemberFacts, Speaker, fence_of, speaks_for, status_of};
use crate::types::accept::Via;
use crate::types::status::StatusQuestion;
use crate::{LinkError, StorageError};

/// The state of a dedupe row as it is stored.
pub(super) const ACCEPTED: i16 = 0;
/// See [`ACCEPTED`].
pub(super) const RETIRED: i16 = 1;

pub(super) async fn known_of(
    tx: &Tx,
    sender: MemberId,
    id: &ClientMessageId,
) -> Result<Option<Known>, StorageError> {
    match accept::member_by_id(tx, sender).await? {
        Some(sender) => known(tx, sender.number, id).await,
        None => Ok(None),
    }
}

pub(super) async fn known(tx: &Tx, sender: i64, id: &ClientMessageId) -> Result<Option<Known>, StorageError> {
    tx.one(sql!("dedupe"), &[&sender, &id.as_str()]).await?.map(|row| read(&row, 0)).transpose()
}

/// Reads without a trace: the answer may be out of date when it arrives, because a copy may be under way.
pub(super) async fn ask(
    tx: &Tx,
    via: &Via,
    questions: &[StatusQuestion],
) -> Result<Vec<StatusAnswer>, LinkError> {
    let speaker = match via {
        Via::Link(link) => Speaker::Node(link::check(tx, link).await?.number),
        Via::Broker => Speaker::Broker,
    };
    let window = mesh::read(tx).await?.policies.dedupe;
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        answers.push(answer(tx, window, speaker, question).await?.1);
    }
    Ok(answers)
}

/// The same, and a no stays true: an id nobody knows is retired (accepting and retiring meet in one row, so one of
/// them wins), and a row that stands in the way is kept.
pub(super) async fn fence(
    tx: &Tx,
    via: &Via,
    questions: &[StatusQuestion],
) -> Result<Vec<StatusAnswer>, LinkError> {
    let speaker = link::speaker(tx, via).await?;
    let window = mesh::read(tx).await?.policies.dedupe;
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        answers.push(fenced(tx, window, speaker, question).await?);
    }
    Ok(answers)
}

async fn fenced(
    tx: &Tx,
    window: DedupeWindow,
    speaker: Speaker,
    question: &StatusQuestion,
) -> Result<StatusAnswer, StorageError> {
    loop {
        let (sender, said) = answer(tx, window, speaker, question).await?;
        let stands = match (fence_of(said), sender) {
            (Fence::Retire, Some(sender)) => retire(tx, window, sender.number, question).await?,
            (Fence::Keep, Some(sender)) => keep(tx, window, sender.number, question).await?,
            (Fence::Nothing, _) | (_, None) => true,
        };
        // An accept may have committed the id since it was looked up, or the janitor have swept it: then it is
        // looked up anew.
        if stands {
            return Ok(said);
        }
    }
}

async fn answer(
    tx: &Tx,
    window: DedupeWindow,
    speaker: Speaker,
    question: &StatusQuestion,
) -> Result<(Option<MemberFacts>, StatusAnswer), StorageError> {
    let sender = accept::member_by_id(tx, question.sender).await?;
    let Some(sender) = sender.filter(|sender| speaks_for(speaker, sender)) else {
        return Ok((None, StatusAnswer::Unknown));
    };
    let known = known(tx, sender.number, &question.client_message_id).await?;
    Ok((Some(sender), status_of(known.as_ref(), question, window, tx.now, &tx.forgotten_upto(tx.now))))
}

/// False when somebody else wrote the id in the meantime.
pub(super) async fn retire(
    tx: &Tx,
    window: DedupeWindow,
    sender: i64,
    question: &StatusQuestion,
) -> Result<bool, StorageError> {
    let expires_at = tx.id_retention(window).until(tx.now);
    let (id, fingerprint) = (question.client_message_id.as_str(), question.fingerprint.as_bytes().as_slice());
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&sender, &id, &RETIRED, &fingerprint, &tx.now.as_micros(), &expires_at];
    Ok(tx.change(sql!("dedupe_retire"), &params).await? == 1)
}

/// False when the row was swept in the meantime.
async fn keep(
    tx: &Tx,
    window: DedupeWindow,
    sender: i64,
    question: &StatusQuestion,
) -> Result<bool, StorageError> {
    let expires_at = tx.id_retention(window).until(tx.now);
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&sender, &question.client_message_id.as_str(), &expires_at];
    Ok(tx.change(sql!("dedupe_keep"), &params).await? == 1)
}

/// state, fingerprint, message id, conversation id, history_id, first_seen_at, history_available
pub(super) fn read(row: &Row, first: usize) -> Result<Known, StorageError> {
    let fingerprint = Fingerprint::from_bytes(bytes(row, first + 1)?);
    let state = if row.try_get::<_, i16>(first)? == ACCEPTED {
        let receipt = BrokerReceipt {
            broker_message_id: id(row, first + 2)?,
            conversation: id(row, first + 3)?,
            history_id: count(row, first + 4)?,
            accepted_at: at(row, first + 5)?,
        };
        KnownState::Accepted { receipt, history_available: row.try_get(first + 6)? }
    } else {
        KnownState::Retired
    };
    Ok(Known { fingerprint, state })
}
