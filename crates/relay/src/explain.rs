//! What became of a write: the envelope's life, or what its caller was told when nothing was stored.

use std::sync::Arc;

use axum::extract::{Path, State};
use http::StatusCode;
use mailbox::relay::{Ahead, Envelope, Envelopes};
use model::Timestamp;
use model::relay::{Clash, Help, Hold, Life, Outcome, Said, Status, explain};
use net::respond;
use sqlite::{StorageError, fault};
use wire::relay::{RelayExplained, RelayFound, RelayStep};

use crate::ask::KEY_REUSED;
use crate::memory::Unstored;
use crate::operator::{Answer, look, stored};
use crate::relay::Shared;
use crate::view;

/// A bug that proofs plant: what waits is told as done.
const PLANTED_OPTIMISM: &str = "relay.explain_optimism";

/// By an envelope's id or the tail of one, or by a whole key. Nothing is changed by asking.
pub(crate) async fn about(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer {
    let known = match &shared.envelopes {
        Some(envelopes) => match look(envelopes, &id).await? {
            Some(row) => Some(life(&shared, envelopes, &row).await.map_err(stored)?),
            None => None,
        },
        None => None,
    };
    let found = known.or_else(|| shared.unstored.of(&id).map(|(told, at)| unstored(told, at)));
    let upstream = shared.upstream.target().to_string();
    Ok(respond::json(StatusCode::OK, &RelayExplained { upstream, found }))
}

async fn life(shared: &Shared, envelopes: &Envelopes, row: &Envelope) -> Result<RelayFound, StorageError> {
    let waits = row.status == Status::Queued;
    let ahead = if waits { envelopes.ahead(row.local_seq).await? } else { Ahead::default() };
    let optimist = waits && fault::bug(PLANTED_OPTIMISM);
    let said = explain(Life {
        status: if optimist { Status::Done } else { row.status },
        outcome: if optimist { Outcome::Committed } else { row.outcome },
        ending: row.ending,
        is_late: row.late_ack_at.is_some(),
        hold: hold(shared, row, ahead),
        clash: if row.response.code.as_deref() == Some(KEY_REUSED) { Clash::Key } else { Clash::Resource },
    });
    let code = row.response.code.clone().or_else(|| row.response.status.map(|status| status.to_string()));
    let verdict = if optimist { Status::Done } else { row.status };
    Ok(RelayFound {
        verdict: verdict.word().to_owned(),
        code: code.filter(|_| row.status != Status::Done),
        needs_person: said.needs_person(),
        steps: steps(row),
        next: said.next.to_owned(),
        fix: fixes(&said, row),
        sentence: said.sentence,
        envelope: Some(view::envelope(row)),
    })
}

/// What is nearest to a person's hand comes first.
fn hold(shared: &Shared, row: &Envelope, ahead: Ahead) -> Hold {
    let paused = shared.standing().paused.is_some();
    let delayed = row.attempts > 0 && row.next_attempt_at > shared.clock.now();
    match (paused, ahead) {
        (true, _) => Hold::Paused,
        (false, Ahead { conflicts: 1.., .. }) => Hold::Conflict,
        (false, _) if shared.upstream.word().away_for.is_some() => Hold::Away,
        (false, Ahead { older: 1.., .. }) => Hold::Older,
        (false, Ahead { older: 0, .. }) if delayed => Hold::Delayed,
        (false, Ahead { older: 0, .. }) => Hold::Nothing,
    }
}

fn steps(row: &Envelope) -> Vec<RelayStep> {
    let tries = match (row.attempts, row.outcome) {
        (tries, Outcome::NotSent) => Some(format!("{tries} tries, no byte left")),
        (0 | 1, _) => None,
        (tries, _) => Some(format!("{tries} tries")),
    };
    let answered = match (row.response.status, &row.response.code) {
        (Some(status), Some(code)) => Some(format!("{status} {code}")),
        (Some(status), None) => Some(format!("answered {status}")),
        (None, _) => row.resolution.clone(),
    };
    let queued = step("queued", row.queued_at, Some(format!("{} {}", row.method, row.path)));
    let tried = row.first_attempt_at.map(|at| step("tried", at, tries));
    let ended = row.ended_at.map(|at| step(row.status.word(), at, answered));
    let late = row.late_ack_at.map(|at| step("late_ack", at, Some("committed after all".to_owned())));
    [Some(queued), tried, ended, late].into_iter().flatten().collect()
}

fn step(step: &str, at: Timestamp, note: Option<String>) -> RelayStep {
    RelayStep { step: step.to_owned(), at, note }
}

fn fixes(said: &Said, row: &Envelope) -> Vec<String> {
    let id = row.envelope_id;
    match said.help {
        Help::None => Vec::new(),
        Help::Replay => vec!["postrider relay outbox replay".to_owned()],
        Help::Conflicts => vec!["postrider relay outbox list --status conflict".to_owned()],
        Help::Resolve => vec![format!("postrider relay outbox inspect {id}")],
        Help::Retry => vec![format!("postrider relay outbox retry {id}")],
    }
}

/// A write that left nothing behind but its caller's answer.
fn unstored(told: Unstored, at: Timestamp) -> RelayFound {
    let (verdict, sentence, code) = match told {
        Unstored::Refused(code) => {
            ("refused", "refused by the relay; nothing was stored".to_owned(), code.code().to_owned())
        }
        Unstored::Answered(status) => {
            let sentence = format!("rejected: the upstream answered {status}, and its caller heard it");
            ("rejected", sentence, status.to_string())
        }
    };
    let next = match told {
        Unstored::Refused(code) => code.remedy(),
        Unstored::Answered(_) => "Nothing is kept here and nothing more is done.",
    };
    RelayFound {
        verdict: verdict.to_owned(),
        sentence,
        needs_person: false,
        steps: vec![step(verdict, at, Some(code.clone()))],
        code: Some(code),
        next: next.to_owned(),
        fix: Vec::new(),
        envelope: None,
    }
}
