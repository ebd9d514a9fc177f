//! What is known of an id, and the fence that makes a no last.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::admission::{Fence, Known, KnownState, StatusAnswer};
use model::ageing::ForgottenUpto;
use model::outbox::{BrokerReceipt, DedupeWindow};
use model::{ClientMessageId, ConversationId, Fingerprint, MemberId, MessageId, Timestamp};

use super::row::{at, change, count, id, one};
use super::store::World;
use super::{accept, link, mesh, sql};
use crate::rules::{IdRetention, MemberFacts, Speaker, fence_of, speaks_for, status_of};
use crate::types::accept::Via;
use crate::types::status::StatusQuestion;
use crate::{LinkError, StorageError};

/// The state of a dedupe row as it is stored.
pub(super) const ACCEPTED: i64 = 0;
/// See [`ACCEPTED`].
pub(super) const RETIRED: i64 = 1;

pub(super) fn known_of(
    conn: &Connection,
    sender: MemberId,
    id: &ClientMessageId,
) -> Result<Option<Known>, StorageError> {
    match accept::member_by_id(conn, sender)? {
        Some(sender) => known(conn, sender.number, id),
        None => Ok(None),
    }
}

pub(super) fn known(
    conn: &Connection,
    sender: i64,
    id: &ClientMessageId,
) -> Result<Option<Known>, StorageError> {
    Ok(one(conn, sql!("dedupe"), params![sender, id.as_str()], |row| read(row, 0))?)
}

/// Reads without a trace: the answer may be out of date when it arrives, because a copy may be under way.
pub(super) fn ask(
    conn: &Connection,
    now: Timestamp,
    forgotten: &ForgottenUpto,
    via: &Via,
    questions: &[StatusQuestion],
) -> Result<Vec<StatusAnswer>, LinkError> {
    let speaker = link::speaker(conn, via)?;
    let window = mesh::read(conn)?.policies.dedupe;
    let ask = |question| Ok(answer(conn, now, forgotten, window, speaker, question)?.1);
    questions.iter().map(ask).collect()
}

/// The same, and a no stays true: an id nobody knows is retired (accepting and retiring meet in one row, so one of
/// them wins), and a row that stands in the way is kept.
pub(super) fn fence(
    conn: &Connection,
    world: &World,
    via: &Via,
    questions: &[StatusQuestion],
) -> Result<Vec<StatusAnswer>, LinkError> {
    let (now, forgotten) = (world.now(), world.forgotten_upto());
    let speaker = link::speaker(conn, via)?;
    let window = mesh::read(conn)?.policies.dedupe;
    let kept = world.id_retention(window);
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let (sender, answer) = answer(conn, now, &forgotten, window, speaker, question)?;
        match (fence_of(answer), sender) {
            (Fence::Retire, Some(sender)) => retire(conn, now, kept, sender.number, question)?,
            (Fence::Keep, Some(sender)) => keep(conn, now, kept, sender.number, question)?,
            (Fence::Nothing, _) | (_, None) => {}
        }
        answers.push(answer);
    }
    Ok(answers)
}

fn answer(
    conn: &Connection,
    now: Timestamp,
    forgotten: &ForgottenUpto,
    window: DedupeWindow,
    speaker: Speaker,
    question: &StatusQuestion,
) -> Result<(Option<MemberFacts>, StatusAnswer), StorageError> {
    let sender = accept::member_by_id(conn, question.sender)?.filter(|sender| speaks_for(speaker, sender));
    let Some(sender) = sender else { return Ok((None, StatusAnswer::Unknown)) };
    let known = known(conn, sender.number, &question.client_message_id)?;
    Ok((Some(sender), status_of(known.as_ref(), question, window, now, forgotten)))
}

pub(super) fn retire(
    conn: &Connection,
    now: Timestamp,
    kept: IdRetention,
    sender: i64,
    question: &StatusQuestion,
) -> Result<(), StorageError> {
    let StatusQuestion { client_message_id, fingerprint, .. } = question;
    let params = params![
        sender,
        client_message_id.as_str(),
        RETIRED,
        fingerprint.as_bytes(),
        now.as_micros(),
        kept.until(now)
    ];
    change(conn, sql!("dedupe_retire"), params)?;
    Ok(())
}

fn keep(
    conn: &Connection,
    now: Timestamp,
    kept: IdRetention,
    sender: i64,
    question: &StatusQuestion,
) -> Result<(), StorageError> {
    change(conn, sql!("dedupe_keep"), params![sender, question.client_message_id.as_str(), kept.until(now)])?;
    Ok(())
}

/// state, fingerprint, message id, conversation id, history_id, first_seen_at, history_available
pub(super) fn read(row: &Row<'_>, first: usize) -> ::sqlite::rusqlite::Result<Known> {
    let fingerprint = Fingerprint::from_bytes(row.get(first + 1)?);
    let state = if row.get::<_, i64>(first)? == ACCEPTED {
        let receipt = BrokerReceipt {
            broker_message_id: id(row, first + 2, MessageId::from_bytes)?,
            conversation: id(row, first + 3, ConversationId::from_bytes)?,
            history_id: count(row, first + 4)?,
            accepted_at: at(row, first + 5)?,
        };
        KnownState::Accepted { receipt, history_available: row.get(first + 6)? }
    } else {
        KnownState::Retired
    };
    Ok(Known { fingerprint, state })
}
