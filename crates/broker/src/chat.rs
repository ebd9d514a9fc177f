//! Conversations as people and programs follow them: fetch, subscribe, what waits for an answer.
//!
//! | part | for |
//! |---|---|
//! | `room` | the end of a followed log, read and written as text once for all who follow it |
//! | `row` | rows as the frames their readers get |
//! | `heads` | tells rooms of commits, by this process and others |
//! | `subscription` | one loop per follower and log, which owns its cursor |
//! | `socket` | `/v1/subscribe`: the frames of one connection |
//! | `events`, `poll` | the same log for plain HTTP |
//! | `escalation` | conversations that wait for an answer: the level at connect, then edges |
//! | `notice` | the rung of members the broker hosts, once a live frame was handed to them |
//! | `manage` | states, read marks, emptying, members |
//!
//! Invariants:
//!
//! - Catch-up and live are one loop over one order: whatever follows the cursor comes next, from the room when it
//!   reaches back that far, from the ledger otherwise. So neither can repeat or skip the other's rows.
//! - A cursor moves after its row was handed over, never before.
//! - A follower that takes nothing holds up nobody else: each has its own loop and a bounded writer, and no lock is
//!   held while anything is written.
//! - A conversation that is not the reader's to read looks exactly like one that does not exist.

mod escalation;
mod events;
mod heads;
mod manage;
mod notice;
mod poll;
mod room;
mod row;
mod socket;
mod subscription;

use std::sync::Arc;

use ledger::Followed;
use model::limits;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::broker::Shared;

pub(crate) use escalation::Escalations;
pub(crate) use notice::Notices;
pub(crate) use poll::page_after;
pub(crate) use room::Rooms;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(socket::subscribe))
        .routes(routes!(events::stream))
        .routes(routes!(manage::change))
        .routes(routes!(manage::read))
        .routes(routes!(manage::empty))
        .routes(routes!(manage::members))
}

/// The rows of a read that a follower may hold at once; at least one, so that it gets on.
fn bounded(mut followed: Followed) -> Followed {
    let mut bytes = 0;
    let fitting = followed.rows.iter().take_while(|row| {
        bytes += row.envelope.len();
        bytes <= limits::CATCH_UP_BYTES_MAX
    });
    let kept = fitting.count().max(1).min(followed.rows.len());
    followed.has_more |= kept < followed.rows.len();
    followed.rows.truncate(kept);
    followed
}

/// Keeps rooms and escalations informed, as long as the broker runs.
pub(crate) async fn keep(shared: Arc<Shared>) {
    tokio::join!(heads::keep(&shared), escalation::keep(&shared), notice::keep(&shared));
}
