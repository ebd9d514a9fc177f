//! What both stores decide alike about the hub's writes: pure functions over facts a transaction has read.

use std::collections::BTreeMap;

use model::Timestamp;
use model::ageing::ForgottenUpto;
use model::hub::{
    Change, Held, Judged, KeyAnswer, KeyVerdict, Precondition, RecordId, RecordKind, Standing, is_too_old,
    judge, key_status, look_up,
};

use crate::planted::{HUB_NO_AGE, HUB_NO_FENCE, planted};
use crate::types::hub::{
    HubAnswer, HubApplied, HubEffect, HubKey, HubKeyStatus, HubKnown, HubOutcome, HubRecord, HubRefusal,
};

/// What to write to one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    pub id: RecordId,
    pub version: u64,
    /// `None`: it is deleted.
    pub body: Option<Vec<u8>>,
    pub at: Timestamp,
    pub made: bool,
}

/// Whether the record of an earlier copy may be forgotten.
fn is_old_copy(created_at: Option<Timestamp>, forgotten: &ForgottenUpto) -> bool {
    is_too_old(created_at, forgotten.borne_out)
        || created_at.is_some_and(|created_at| forgotten.includes_key(created_at))
}

/// A key's row, written with its effect.
#[derive(Clone, Debug)]
pub(crate) struct KeyRow {
    pub principal: i64,
    pub key: HubKey,
    pub answer: HubAnswer,
    pub at: Timestamp,
}

/// What the key alone says of a write, if anything.
pub(crate) fn settled(
    known: Option<HubKnown>,
    key: &HubKey,
    forgotten: &ForgottenUpto,
) -> Option<HubOutcome> {
    let verdict = look_up(known.as_ref().map(HubKnown::known).as_ref(), &key.fingerprint);
    match (verdict, known) {
        (KeyVerdict::Replay, Some(HubKnown::Stored { answer, .. })) => Some(HubOutcome::Replayed(answer)),
        (KeyVerdict::Retired, _) => Some(HubOutcome::Refused(HubRefusal::KeyRetired)),
        (KeyVerdict::Reused | KeyVerdict::Replay, _) => Some(HubOutcome::Refused(HubRefusal::KeyReused)),
        (KeyVerdict::Fresh, _) if is_old_copy(key.created_at, forgotten) && !planted(HUB_NO_AGE) => {
            Some(HubOutcome::Refused(HubRefusal::KeyExpired))
        }
        (KeyVerdict::Fresh, _) => None,
    }
}

/// One record's part of a write.
pub(crate) type Part<'a> = (&'a RecordId, &'a Change, &'a Precondition);

/// The records a write touches, in order, and their kind.
pub(crate) fn changes(effect: &HubEffect) -> Option<(RecordKind, Vec<Part<'_>>)> {
    match effect {
        HubEffect::Record { kind, id, change, precondition } => {
            Some((*kind, vec![(id, change, precondition)]))
        }
        HubEffect::Batch { kind, changes } => Some((
            *kind,
            changes.iter().map(|(id, change, precondition)| (id, change, precondition)).collect(),
        )),
        HubEffect::Read(_) => None,
    }
}

/// All of the changes or none. A later change of a record finds what an earlier one made of it.
pub(crate) fn judge_all(
    effect: &HubEffect,
    mut standings: BTreeMap<RecordId, Standing>,
    now: Timestamp,
) -> Result<Vec<Put>, HubRefusal> {
    let Some((_, changes)) = changes(effect) else { return Ok(Vec::new()) };
    let (mut puts, mut refused) = (Vec::with_capacity(changes.len()), Vec::new());
    for (id, change, precondition) in changes {
        let standing = standings.get(id).cloned().unwrap_or(Standing::Absent);
        match judge(change, precondition, &standing) {
            Ok(judged) => {
                let put = put(id, judged, &standing, now);
                standings.insert(id.clone(), after(&put));
                puts.push(put);
            }
            Err(refusal) if !refused.iter().any(|(known, _)| known == id) => {
                refused.push((id.clone(), refusal))
            }
            Err(_) => {}
        }
    }
    match (refused.first(), effect) {
        (None, _) => Ok(puts),
        (Some((_, refusal)), HubEffect::Record { .. }) => Err(HubRefusal::Record(*refusal)),
        (Some(_), HubEffect::Batch { .. } | HubEffect::Read(_)) => Err(HubRefusal::Batch(refused)),
    }
}

/// Instants of one record rise, also when the clock goes back: a precondition may name one.
fn put(id: &RecordId, judged: Judged, standing: &Standing, now: Timestamp) -> Put {
    let at = match standing {
        Standing::Present(held) => now.max(Timestamp::from_micros(held.updated_at.as_micros() + 1)),
        Standing::Absent | Standing::Deleted { .. } => now,
    };
    let (version, body, made) = match judged {
        Judged::Make { version, body } => (version, Some(body), true),
        Judged::Change { version, body } => (version, Some(body), false),
        Judged::Delete { version } => (version, None, false),
    };
    Put { id: id.clone(), version, body, at, made }
}

fn after(put: &Put) -> Standing {
    match &put.body {
        Some(body) => {
            Standing::Present(Held { version: put.version, updated_at: put.at, body: body.clone() })
        }
        None => Standing::Deleted { version: put.version },
    }
}

/// What was done, told from the rows as they are now.
pub(crate) fn applied(effect: &HubEffect, puts: &[Put], records: Vec<HubRecord>) -> HubApplied {
    match (effect, puts) {
        (HubEffect::Record { kind, id, .. }, [Put { body: None, version, .. }]) => {
            HubApplied::Deleted { kind: *kind, id: id.clone(), version: *version }
        }
        (HubEffect::Record { .. }, [Put { made, .. }]) => {
            let record = records.into_iter().next().expect("a record that was just written is there");
            if *made { HubApplied::Made(record) } else { HubApplied::Changed(record) }
        }
        (HubEffect::Record { .. } | HubEffect::Batch { .. } | HubEffect::Read(_), _) => {
            HubApplied::Batch(records)
        }
    }
}

/// What a question found; `true` beside it: with a fence, the key is to be retired.
pub(crate) fn asked(
    known: Option<HubKnown>,
    created_at: Option<Timestamp>,
    now: Timestamp,
    forgotten: &ForgottenUpto,
) -> (HubKeyStatus, bool) {
    if known.is_none() && created_at.is_some_and(|created_at| forgotten.includes_key(created_at)) {
        return (HubKeyStatus::Unknown, false);
    }
    match (key_status(known.as_ref().map(HubKnown::known).as_ref(), created_at, now), known) {
        (KeyAnswer::Committed, Some(known)) => (HubKeyStatus::Committed(known), false),
        (KeyAnswer::Retired, _) => (HubKeyStatus::Retired, false),
        (KeyAnswer::Unknown, _) => (HubKeyStatus::Unknown, false),
        (KeyAnswer::Absent | KeyAnswer::Committed, _) => (HubKeyStatus::Absent, !planted(HUB_NO_FENCE)),
    }
}
