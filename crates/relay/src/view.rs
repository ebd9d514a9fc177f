//! Envelopes and the relay's standing as an operator sees them.

use mailbox::relay::{Count, Envelope, Envelopes};
use model::limits;
use model::relay::{Age, Base, Outcome, Status, age};
use sqlite::StorageError;
use wire::relay::{EnvelopeView, RelayStatus, TooOldWrite, instant};

use crate::mark::OutboxWentBack;
use crate::relay::Shared;

/// One envelope, without bodies.
pub(crate) fn envelope(row: &Envelope) -> EnvelopeView {
    let id = |id: &Option<model::RowId>| id.map(|id| id.to_string());
    EnvelopeView {
        local_seq: row.local_seq,
        envelope_id: row.envelope_id.to_string(),
        idempotency_key: row.idempotency_key.clone(),
        method: row.method.clone(),
        path: row.path.clone(),
        query: row.query.clone(),
        route_class: row.route_class.word().to_owned(),
        order_key: row.order_key.to_string(),
        precondition: row.sent_precondition.as_ref().or(row.precondition.as_ref()).map(ToString::to_string),
        base_envelope: id(&row.base_envelope),
        agent: row.source.agent.clone(),
        session: row.source.session.clone(),
        principal_hint: row.source.principal.clone(),
        upstream_id: row.upstream_id.clone(),
        status: row.status.word().to_owned(),
        outcome: row.outcome.word().to_owned(),
        ending: row.ending.map(|ending| ending.status().word().to_owned()),
        attempts: row.attempts,
        next_attempt_at: (row.status == Status::Queued).then(|| instant(row.next_attempt_at)),
        queued_at: instant(row.queued_at),
        ended_at: row.ended_at.map(instant),
        late_ack_at: row.late_ack_at.map(instant),
        last_error: row.last_error.clone(),
        response_status: row.response.status,
        response_etag: row.response.etag.clone(),
        response_code: row.response.code.clone(),
        superseded_by: id(&row.superseded_by),
        supersedes: id(&row.supersedes),
        resolution: row.resolution.clone(),
        possible_duplicate_of: id(&row.possible_duplicate_of),
        body_bytes: row.body_bytes,
        base: None,
        base_unknown: None,
        mine: None,
        theirs: None,
        theirs_etag: row.theirs_etag.clone(),
    }
}

/// The same with what was asked for, on what, and what the upstream has.
pub(crate) async fn with_bodies(envelopes: &Envelopes, row: &Envelope) -> Result<EnvelopeView, StorageError> {
    let mut view = envelope(row);
    if let Some(held) = envelopes.bodies(row.local_seq).await? {
        let parsed = |body: Vec<u8>| serde_json::from_slice(&body).ok();
        let base = held.base.and_then(parsed);
        let known = Base::of(row.precondition.as_ref(), row.sent_precondition.as_ref(), base.is_some());
        view.base = base.filter(|_| known == Base::Kept);
        view.base_unknown = known.why_unknown().map(str::to_owned);
        view.mine = parsed(held.mine);
        view.theirs = held.theirs.and_then(parsed);
    }
    Ok(view)
}

/// How the relay stands.
pub(crate) async fn status(shared: &Shared) -> Result<RelayStatus, StorageError> {
    let (counts, blocked, too_old) = match &shared.envelopes {
        Some(envelopes) => {
            let too_old = envelopes.too_old(shared.moment(), limits::RELAY_TOO_OLD_NAMED_MAX).await?;
            (envelopes.counts().await?, envelopes.blocked().await?, too_old)
        }
        None => (Vec::new(), 0, Vec::new()),
    };
    let of = |wanted: Status| sum(counts.iter().filter(|count| count.status == wanted));
    let open = || counts.iter().filter(|count| count.status.is_unfinished());
    let oldest = open().map(|count| count.oldest).min();
    let now = shared.clock.now();
    let alarm = oldest.and_then(|oldest| match age(oldest, now) {
        Age::Fresh => None,
        Age::Old => Some("old"),
        Age::Last | Age::Over => Some("last"),
    });
    let word = shared.upstream.word();
    let standing = shared.standing().clone();
    Ok(RelayStatus {
        upstream: shared.upstream.target().to_string(),
        upstream_id: standing.upstream_id,
        reachable: word.unanswered == 0,
        last_answered_at: word.answered_at.map(instant),
        unanswered_since: word.unanswered,
        unanswered_because: word.cause,
        away_seconds: word.away_for.map(|away| away.as_secs()),
        paused: standing.paused,
        set_aside: standing.set_aside,
        went_back: standing.went_back.filter(|it| it.is_recent(now)).map(OutboxWentBack::sentence),
        forward_only: shared.envelopes.is_none().then(|| "the outbox was damaged".to_owned()),
        stopped: shared.config.stores.stopped().first().map(|store| store.cause.to_string()),
        queued: sum(open()),
        not_sent: sum(open().filter(|count| count.outcome == Outcome::NotSent)),
        unknown: sum(open().filter(|count| count.outcome != Outcome::NotSent)),
        blocked,
        oldest_queued_at: oldest.map(instant),
        age_alarm: alarm.map(str::to_owned),
        too_old: too_old.iter().map(too_old_write).collect(),
        conflict: of(Status::Conflict),
        rejected: of(Status::Rejected),
        expired: of(Status::Expired),
        cancelled: of(Status::Cancelled),
        superseded: of(Status::Superseded),
        done: of(Status::Done),
    })
}

fn too_old_write(row: &Envelope) -> TooOldWrite {
    TooOldWrite {
        envelope_id: row.envelope_id.to_string(),
        method: row.method.clone(),
        path: row.path.clone(),
        queued_at: instant(row.queued_at),
        status: row.status.word().to_owned(),
        outcome: row.outcome.word().to_owned(),
    }
}

fn sum<'a>(counts: impl Iterator<Item = &'a Count>) -> u64 {
    counts.map(|count| count.rows).sum()
}
