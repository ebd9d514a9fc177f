//! The courier: takes what may leave, hands it to the broker, and settles what comes back.
//!
//! - A lane has one frame on the wire; lanes never wait for each other.
//! - Rows were marked inflight, durably, before their first byte left.
//! - Answers are matched by row and fingerprint; a row without its answer is lost, not refused.
//! - A link that does not answer in time is over: what was on it goes back to pending.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mailbox::{ClaimRequest, Claimed, LaneFrame, LaneKey, Leased, RowAnswer, Settlement};
use model::outbox::{Answer, BrokerReceipt};
use model::{ErrorCode, Timestamp, limits};
use net::socket::Close;
use serde_json::value::RawValue;
use sqlite::StorageError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::link::{SendItem, SendOutcome, SendResult, refusal_code};

use crate::link::{LinkEnd, Live, NoAnswer};
use crate::mesh::Mesh;

/// Remembers, from one link to the next, that a frame of ours made the broker close: until one is answered,
/// frames go one at a time, so that the next such close names its frame.
#[derive(Default)]
pub(crate) struct Suspicion(AtomicBool);

/// One link's courier.
pub(crate) struct Courier {
    mesh: Arc<Mesh>,
    live: Arc<Live>,
    busy: Vec<LaneKey>,
    after: Option<LaneKey>,
    frames: JoinSet<Carried>,
}

/// A frame that came to its end.
struct Carried {
    lane: LaneKey,
    end: Result<FrameEnd, StorageError>,
}

enum FrameEnd {
    /// Settled by the broker's word.
    Answered,
    /// Settled without it; the link's own end says why.
    Lost,
    /// Settled without it, because it took too long.
    Late,
}

impl Suspicion {
    /// Whether frames go one at a time.
    pub(crate) fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The broker closed on a frame it could not read.
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Courier {
    /// A courier over `live`.
    pub(crate) fn new(mesh: Arc<Mesh>, live: Arc<Live>) -> Self {
        Self { mesh, live, busy: Vec::new(), after: None, frames: JoinSet::new() }
    }

    /// Carries until `stop`, then waits for what is on the wire. Ends early, with the reason, when the link is
    /// of no more use; whatever is on it then is settled as lost.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), LinkEnd> {
        let mut end = self.carry_until(&stop).await;
        if end.is_err() {
            self.live.abandon(None);
        }
        while let Some(carried) = self.frames.join_next().await {
            end = end.and(self.put_down(carried));
        }
        end
    }

    async fn carry_until(&mut self, stop: &CancellationToken) -> Result<(), LinkEnd> {
        let mut queued = self.mesh.bells.queued.listen();
        while !stop.is_cancelled() {
            queued.reset();
            let next_due = self.take_on().await?;
            let wait = self.pause(next_due);
            tokio::select! {
                () = stop.cancelled() => {}
                () = queued.wait(wait) => {}
                Some(carried) = self.frames.join_next() => self.put_down(carried)?,
            }
            // Frames that were settled by one commit are followed by frames that are claimed by one.
            while let Some(carried) = self.frames.try_join_next() {
                self.put_down(carried)?;
            }
        }
        Ok(())
    }

    /// Claims for every lane that may have a frame, and sends them off.
    async fn take_on(&mut self) -> Result<Option<Timestamp>, LinkEnd> {
        let lanes_max = if self.mesh.suspicion.holds() { 1 } else { limits::LANES_IN_FLIGHT_MAX };
        let free = lanes_max.saturating_sub(self.busy.len());
        if free == 0 {
            return Ok(None);
        }
        let request = ClaimRequest {
            now: self.mesh.clock.now(),
            broker_now: self.live.broker_now(&*self.mesh.clock),
            max_age: self.mesh.terms().max_age(),
            lanes_max: free,
            busy: self.busy.clone(),
            after: self.after.take(),
        };
        let Claimed { frames, buried, next_due, after } = self.mesh.mailbox.claim(request).await?;
        self.after = after;
        if buried > 0 {
            self.mesh.tally.buried(buried);
            self.mesh.bells.moved.ring();
            self.mesh.bells.ended.ring();
        }
        let alone = frames.len() == 1 && self.busy.is_empty();
        for frame in frames {
            self.busy.push(frame.lane.clone());
            self.frames.spawn(carry(self.mesh.clone(), self.live.clone(), frame, alone));
        }
        Ok(next_due)
    }

    /// A lane that waits is due by this machine's clock, which may be set back: no pause is long.
    fn pause(&self, next_due: Option<Timestamp>) -> Duration {
        let due = next_due.map(|due| due.since(self.mesh.clock.now()));
        due.unwrap_or(limits::RETRY_DELAY_MAX).min(limits::RETRY_DELAY_MAX)
    }

    fn put_down(&mut self, carried: Result<Carried, tokio::task::JoinError>) -> Result<(), LinkEnd> {
        let carried = carried.map_err(|error| LinkEnd::Storage(error.to_string()))?;
        self.busy.retain(|lane| *lane != carried.lane);
        match carried.end {
            Ok(FrameEnd::Answered | FrameEnd::Lost) => Ok(()),
            Ok(FrameEnd::Late) => Err(LinkEnd::AnswerLate),
            Err(error) => Err(error.into()),
        }
    }
}

/// One frame's way: out, back, settled. `alone` says that no other frame was on the wire with it.
async fn carry(mesh: Arc<Mesh>, live: Arc<Live>, frame: LaneFrame, alone: bool) -> Carried {
    let LaneFrame { lane, lease, rows } = frame;
    let answer = match messages(&rows) {
        Ok(messages) => live.submit(lane.sender, messages).await,
        Err(()) => Err(NoAnswer::TooLarge),
    };
    let (answers, end) = match answer {
        Ok(sent) => {
            mesh.suspicion.clear();
            mesh.tally.answered(&sent);
            (rows.iter().map(|row| answer_of(row, &sent.results)).collect(), FrameEnd::Answered)
        }
        Err(NoAnswer::Late) => (Vec::new(), FrameEnd::Late),
        // No link takes a frame of this size, so no retry could succeed.
        Err(NoAnswer::TooLarge) => {
            (rows.iter().map(|row| refused(row, ErrorCode::TooLarge)).collect(), FrameEnd::Answered)
        }
        Err(NoAnswer::Lost) => match (&rows[..], live.refused_frame()) {
            ([row], Some(code)) if alone => (vec![refused(row, code)], FrameEnd::Lost),
            _ => (Vec::new(), FrameEnd::Lost),
        },
    };
    let settlement = Settlement {
        lane: lane.clone(),
        lease,
        now: mesh.clock.now(),
        broker_now: live.broker_now(&*mesh.clock),
        answers,
        random: mesh.entropy.next_u64(),
    };
    let settled = mesh.mailbox.settle(settlement).await;
    let end = settled.map(|settled| {
        mesh.tally.settled(&settled);
        mesh.moved(settled.done.iter().chain(&settled.retried).chain(&settled.buried));
        if !settled.buried.is_empty() {
            mesh.bells.ended.ring();
        }
        end
    });
    Carried { lane, end }
}

/// The rows as the wire has them; none when a stored payload is not the JSON it was stored as.
fn messages(rows: &[Leased]) -> Result<Vec<Box<RawValue>>, ()> {
    rows.iter().map(|row| message(row).ok_or(())).collect()
}

fn message(row: &Leased) -> Option<Box<RawValue>> {
    let payload = String::from_utf8(row.payload.clone()).ok()?;
    let item = SendItem {
        row: row.row,
        request_fingerprint: row.fingerprint,
        send_deadline: row.send_deadline,
        deliver_by: row.deliver_by,
        message: RawValue::from_string(payload).ok()?,
    };
    serde_json::value::to_raw_value(&item).ok()
}

fn answer_of(row: &Leased, results: &[SendResult]) -> RowAnswer {
    let result = results.iter().find(|result| result.row == row.row);
    match result.map(|result| &result.outcome) {
        Some(SendOutcome::Accepted(accepted)) if accepted.request_fingerprint == row.fingerprint => {
            let receipt = BrokerReceipt {
                broker_message_id: accepted.broker_message_id,
                conversation: accepted.conversation,
                history_id: accepted.history_id,
                accepted_at: accepted.created_at,
            };
            plain(row, Answer::Accepted(receipt))
        }
        Some(SendOutcome::Refused { status, error }) => {
            let code = refusal_code(*status, error);
            let retry_after = error.more.get("retry_after_ms").and_then(serde_json::Value::as_u64);
            RowAnswer {
                // The broker's sentence may quote the message; status and code cannot.
                error_text: Some(format!("{status} {code}")),
                retry_after: retry_after.map(Duration::from_millis),
                ..plain(row, Answer::Refused(code))
            }
        }
        Some(SendOutcome::NotTried) => plain(row, Answer::NotTried),
        // An acceptance of something else, or none: this row's own fate is unknown.
        Some(SendOutcome::Accepted(_)) | None => plain(row, Answer::Lost),
    }
}

fn refused(row: &Leased, code: ErrorCode) -> RowAnswer {
    let error_text = Some(format!("{} {code}", wire::status::http_status(code)));
    RowAnswer { error_text, ..plain(row, Answer::Refused(code)) }
}

fn plain(row: &Leased, answer: Answer) -> RowAnswer {
    RowAnswer { seq: row.seq, fingerprint: row.fingerprint, answer, error_text: None, retry_after: None }
}

/// What a close says about the frame it answers.
pub(crate) fn refused_frame(close: u16) -> Option<ErrorCode> {
    match close {
        Close::NOT_READABLE => Some(ErrorCode::InvalidRequest),
        Close::TOO_LARGE => Some(ErrorCode::TooLarge),
        _ => None,
    }
}
