//! The drainer: looks whether the upstream is back, then carries what waits to it, in order and paced.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};
use mailbox::relay::{Envelope, Envelopes, Heard, LeftVersion, Response as Kept, Taken, Task};
use model::relay::{Answer, BreakerState, Precondition, Status};
use model::route_class::RouteClass;
use model::{Timestamp, limits};
use sqlite::{StorageError, fault};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::relay::{AGENT_HEADER, PRINCIPAL_HEADER, SESSION_HEADER, answer_of};

use crate::relay::{Credential, Shared, UPSTREAM_ID};
use crate::upstream::{Seen, SendError};
use crate::{ask, head, live, upstream, versions};

/// Between two looks when nothing wakes the drainer.
const LOOK_EVERY: Duration = limits::SAFETY_POLL_EVERY;
/// Between two rounds of forgetting what was done long ago.
const TRIM_EVERY: Duration = limits::JANITOR_EVERY;
/// A burst this long may catch up with the pace: timers are not finer.
const PACE_SLACK: Duration = Duration::from_millis(5);

/// A bug that proofs plant: what was begun is replayed on, through pauses and stops.
const ENDLESS_REPLAY: &str = "relay.endless_replay";

/// Replays until `stop`.
pub(crate) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let Some(envelopes) = shared.envelopes.clone() else { return stop.cancelled().await };
    let mut drainer = Drainer {
        stop: stop.clone(),
        trimmed_at: shared.clock.monotonic(),
        aged: None,
        aged_at: Duration::ZERO,
        next_slot: Duration::ZERO,
        was_away: false,
        shared,
        envelopes,
        under_way: JoinSet::new(),
    };
    loop {
        let pause = match drainer.round().await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::error!(%error, "the outbox could not be read or written");
                LOOK_EVERY
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = drainer.shared.wake.notified() => {}
            Some(_) = drainer.under_way.join_next() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    // What is on the wire is under a lease: the next start takes it up with an unknown outcome.
    let ending = async { while drainer.under_way.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits::RELAY_STOP_TIMEOUT, ending).await;
}

struct Drainer {
    stop: CancellationToken,
    shared: Arc<Shared>,
    envelopes: Envelopes,
    under_way: JoinSet<()>,
    next_slot: Duration,
    trimmed_at: Duration,
    /// What the look at the clock bore out when envelopes were trimmed last.
    aged: Option<Timestamp>,
    aged_at: Duration,
    was_away: bool,
}

impl Drainer {
    /// One look; says how long nothing need be done unless somebody wakes the drainer.
    async fn round(&mut self) -> Result<Duration, StorageError> {
        self.trim().await?;
        if self.shared.board.rows() == 0 {
            // Without anything that waits only an upstream that is away needs to be looked at.
            return Ok(self.look_if_away().await);
        }
        if !self.may_send().await? {
            self.age().await?;
            return Ok(self.until_look());
        }
        let mut free = self.free_lanes();
        while free > 0 && !self.is_halted() {
            let claims = self.envelopes.claim(self.shared.moment(), free).await?;
            claims.ended.iter().for_each(|envelope| self.shared.changed(Status::Queued, envelope));
            if claims.taken.is_empty() {
                return Ok(self.until(claims.next_due));
            }
            for taken in claims.taken {
                self.pace().await;
                if self.is_halted() {
                    self.envelopes.unclaim(taken).await?;
                    continue;
                }
                let (shared, envelopes) = (Arc::clone(&self.shared), self.envelopes.clone());
                self.under_way.spawn(async move {
                    if let Err(error) = carry(&shared, &envelopes, taken).await {
                        tracing::error!(%error, "a result could not be recorded; its lease runs out by itself");
                    }
                });
            }
            while self.under_way.try_join_next().is_some() {}
            free = self.free_lanes();
        }
        Ok(LOOK_EVERY)
    }

    /// Whether no more may leave: the process ends, or a person is awaited.
    fn is_halted(&self) -> bool {
        if fault::bug(ENDLESS_REPLAY) {
            return false;
        }
        self.stop.is_cancelled() || self.shared.standing().paused.is_some()
    }

    /// How many more may leave at once: one alone until the upstream took the relay's credential.
    fn free_lanes(&self) -> usize {
        let lanes = match self.shared.standing().credential {
            Credential::Untried if !fault::bug(ENDLESS_REPLAY) => 1,
            Credential::Untried | Credential::Accepted => limits::RELAY_LANES_MAX,
        };
        lanes.saturating_sub(self.under_way.len())
    }

    /// Ages pass while nothing may be sent. Every stored write wakes the drainer, and none of them for this.
    async fn age(&mut self) -> Result<(), StorageError> {
        let now = self.shared.clock.monotonic();
        if now.saturating_sub(self.aged_at) >= LOOK_EVERY {
            self.aged_at = now;
            let claims = self.envelopes.claim(self.shared.moment(), 0).await?;
            claims.ended.iter().for_each(|envelope| self.shared.changed(Status::Queued, envelope));
        }
        Ok(())
    }

    async fn look_if_away(&mut self) -> Duration {
        match self.shared.upstream.breaker() {
            BreakerState::Closed => {}
            BreakerState::Open(Duration::ZERO) => {
                let _ = self.probe().await;
            }
            BreakerState::Open(_) => {}
        }
        self.until_look()
    }

    /// Whether the upstream answers, is the right one, and nobody asked to pause.
    async fn may_send(&mut self) -> Result<bool, StorageError> {
        if self.shared.standing().paused.is_some() {
            return Ok(false);
        }
        if let BreakerState::Open(due) = self.shared.upstream.breaker() {
            self.was_away = true;
            self.shared.standing().credential = Credential::Untried;
            if !due.is_zero() {
                return Ok(false);
            }
        }
        let seen = match self.shared.upstream.seen() {
            Some(seen) => seen,
            None => match self.probe().await {
                Ok(seen) => seen,
                Err(SendError::NotSent(_) | SendError::Lost(_)) => {
                    self.was_away = true;
                    return Ok(false);
                }
            },
        };
        if !self.is_right_one(seen).await? {
            return Ok(false);
        }
        if std::mem::take(&mut self.was_away) {
            self.envelopes.all_due(self.shared.clock.now()).await?;
        }
        Ok(true)
    }

    /// Looks at the upstream, but not longer than the process lives.
    async fn probe(&self) -> Result<Seen, SendError> {
        tokio::select! {
            () = self.stop.cancelled() => Err(SendError::NotSent("the relay stops".to_owned())),
            seen = self.shared.upstream.probe() => seen,
        }
    }

    async fn is_right_one(&self, seen: Seen) -> Result<bool, StorageError> {
        let Some(named) = seen.instance else { return Ok(true) };
        let recorded = self.shared.standing().upstream_id.clone();
        match recorded {
            Some(recorded) if recorded == named => Ok(true),
            Some(recorded) => {
                let why = format!("wrong_instance: the upstream is {named}, these writes are for {recorded}");
                self.shared.pause(why).await;
                Ok(false)
            }
            None => {
                self.envelopes.keep_fact(UPSTREAM_ID, Some(named.clone())).await?;
                self.shared.standing().upstream_id = Some(named);
                Ok(true)
            }
        }
    }

    /// Waits for the next slot of the pace.
    async fn pace(&mut self) {
        let step = Duration::from_secs(1) / self.shared.config.drain_per_second.max(1);
        let now = self.shared.clock.monotonic();
        self.next_slot = self.next_slot.max(now.saturating_sub(PACE_SLACK)) + step;
        let wait = self.next_slot.saturating_sub(now);
        if wait > PACE_SLACK {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn trim(&mut self) -> Result<(), StorageError> {
        let now = self.shared.clock.monotonic();
        if now.saturating_sub(self.trimmed_at) >= TRIM_EVERY {
            let counted = self.aged.map(|borne_out| borne_out + now.saturating_sub(self.trimmed_at));
            self.trimmed_at = now;
            let aged = self.envelopes.look_at_clock(self.shared.clock.now(), counted).await?;
            self.aged = Some(aged);
            while self.envelopes.trim(aged).await? == limits::SWEEP_ROWS_MAX {}
        }
        Ok(())
    }

    /// Until the upstream may be looked at again.
    fn until_look(&self) -> Duration {
        match self.shared.upstream.breaker() {
            // While a person is awaited nobody looks, however long it has been due.
            BreakerState::Open(due) if self.shared.standing().paused.is_none() => {
                due.clamp(PACE_SLACK, LOOK_EVERY)
            }
            BreakerState::Open(_) | BreakerState::Closed => LOOK_EVERY,
        }
    }

    fn until(&self, due: Option<model::Timestamp>) -> Duration {
        due.map_or(LOOK_EVERY, |due| {
            due.since(self.shared.clock.now()).clamp(Duration::from_millis(1), LOOK_EVERY)
        })
    }
}

/// Carries one claimed envelope to its next state.
async fn carry(shared: &Shared, envelopes: &Envelopes, taken: Taken) -> Result<(), StorageError> {
    match taken.task.clone() {
        Task::Send { precondition, body } => send(shared, envelopes, &taken, precondition, body).await,
        Task::Ask(_) => ask::end(shared, envelopes, &taken).await,
    }
}

async fn send(
    shared: &Shared,
    envelopes: &Envelopes,
    taken: &Taken,
    precondition: Option<Precondition>,
    body: Vec<u8>,
) -> Result<(), StorageError> {
    let envelope = &taken.envelope;
    // Before the first try: what changes after this instant is later than anything the try will find.
    let asked_at = versions::unchanged_since(shared, &envelope.order_key);
    let mut heard = attempt(shared, taken, precondition, body.clone()).await;
    if is_own_clash(envelopes, envelope, &heard).await? {
        let since = Some(Precondition::UnmodifiedSince(asked_at));
        heard = attempt(shared, taken, since, body).await;
        if is_own_clash(envelopes, envelope, &heard).await? {
            // The upstream's clock is behind its own changes, as far as it is known here: later it fits.
            heard.settles.answer = Answer::Busy;
        }
    }
    settle(shared, envelopes, envelope, heard.settles).await
}

/// Applies what came back for an attempt, and what it says of the relay's credential and of the resource.
pub(crate) async fn settle(
    shared: &Shared,
    envelopes: &Envelopes,
    envelope: &Envelope,
    mut heard: Heard,
) -> Result<(), StorageError> {
    heard.now = shared.clock.now();
    let status = heard.response.status.unwrap_or_default();
    match (heard.answer, status) {
        // Before the row is due again: nothing may claim it meanwhile.
        (Answer::Unauthorized, _) => {
            shared.pause(format!("the upstream refuses the relay's own credential ({status})")).await;
        }
        (Answer::Committed | Answer::Conflict | Answer::KeyExpired | Answer::Refused, 1..) => {
            shared.standing().credential = Credential::Accepted;
        }
        // Without a status nothing was sent.
        (Answer::Committed | Answer::Conflict | Answer::KeyExpired | Answer::Refused, 0)
        | (Answer::Busy | Answer::NotSent | Answer::Lost, _) => {}
    }
    if heard.answer == Answer::Conflict {
        versions::clashed(shared, &envelope.order_key);
    }
    shared.settle(envelopes, heard).await?;
    Ok(())
}

/// What came back for one try.
struct Reply {
    settles: Heard,
    /// The versions that stood in a batch's way.
    in_the_way: Vec<LeftVersion>,
}

/// Sends it once.
async fn attempt(shared: &Shared, taken: &Taken, precondition: Option<Precondition>, body: Vec<u8>) -> Reply {
    let settles = Heard {
        local_seq: taken.envelope.local_seq,
        lease: taken.lease,
        outcome_before: taken.envelope.outcome,
        answer: Answer::Lost,
        response: Kept::default(),
        left: Vec::new(),
        error: None,
        retry_after: None,
        random: shared.entropy.next_u64(),
        now: shared.clock.now(),
    };
    let mut reply = Reply { settles, in_the_way: Vec::new() };
    match request(shared, taken, precondition, body) {
        Ok(request) => listen(shared, request, &taken.envelope, &mut reply).await,
        Err(error) => {
            (reply.settles.answer, reply.settles.error) = (Answer::Refused, Some(error.to_string()));
        }
    }
    reply
}

/// Whether a batch that waited behind writes of this relay was refused for the versions that these left, and for
/// nothing else: then nobody else changed what it is about.
async fn is_own_clash(
    envelopes: &Envelopes,
    envelope: &Envelope,
    reply: &Reply,
) -> Result<bool, StorageError> {
    let key = &envelope.order_key;
    let waited = key.is_barrier() && envelope.base_envelope.is_some();
    if !waited || reply.settles.answer != Answer::Conflict || reply.in_the_way.is_empty() {
        return Ok(false);
    }
    let own = envelopes.left(key.scope().to_owned()).await?;
    Ok(reply.in_the_way.iter().all(|version| own.contains(version)))
}

fn request(
    shared: &Shared,
    taken: &Taken,
    precondition: Option<Precondition>,
    body: Vec<u8>,
) -> Result<Request<Body>, http::Error> {
    let envelope = &taken.envelope;
    let uri = match &envelope.query {
        Some(query) => format!("{}?{query}", envelope.path),
        None => envelope.path.clone(),
    };
    let mut request = Request::builder().method(envelope.method.as_str()).uri(uri).body(Body::from(body))?;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    for (name, text) in [
        (AGENT_HEADER, &envelope.source.agent),
        (SESSION_HEADER, &envelope.source.session),
        (PRINCIPAL_HEADER, &envelope.source.principal),
    ] {
        if let Some(value) = text.as_deref().and_then(head::value) {
            headers.insert(name, value);
        }
    }
    shared.upstream.lend(headers);
    live::mark(headers, envelope, precondition.as_ref());
    Ok(request)
}

/// Sends, and notes what came back.
async fn listen(shared: &Shared, request: Request<Body>, envelope: &Envelope, reply: &mut Reply) {
    let heard = &mut reply.settles;
    let answer = match shared.upstream.send(request, shared.config.answer_timeout).await {
        Ok(answer) => answer,
        Err(SendError::NotSent(cause)) => {
            (heard.answer, heard.error) = (Answer::NotSent, Some(cause));
            return;
        }
        Err(SendError::Lost(cause)) => {
            heard.error = Some(cause);
            return;
        }
    };
    let status = answer.status().as_u16();
    heard.response = live::kept(&answer, status);
    heard.retry_after = upstream::retry_after(answer.headers());
    let key = &envelope.order_key;
    if answer.status().is_success() {
        heard.answer = Answer::Committed;
        if envelope.route_class == RouteClass::Replace {
            let headers = answer.headers().clone();
            let batch = if key.is_barrier() { read(answer).await } else { None };
            heard.left = versions::changed(shared, key, &envelope.path, &headers, batch.as_deref());
        }
        return;
    }
    let said = read(answer).await.unwrap_or_default();
    note_refusal(heard, status, &said);
    if key.is_barrier() {
        reply.in_the_way = versions::of_batch(key, &said);
    }
}

/// Notes what a refusal with this body means.
pub(crate) fn note_refusal(heard: &mut Heard, status: u16, said: &[u8]) {
    heard.response.code = code(said);
    heard.answer = answer_of(status, heard.response.code.as_deref());
    let named = heard.response.code.as_deref().unwrap_or_default();
    heard.error = Some(format!("{status} {named}").trim_end().to_owned());
}

async fn read(answer: http::Response<hyper::body::Incoming>) -> Option<Bytes> {
    let reading = Limited::new(answer.into_body(), limits::RELAY_BATCH_ANSWER_BYTES_MAX).collect();
    Some(tokio::time::timeout(limits::RELAY_PROBE_TIMEOUT, reading).await.ok()?.ok()?.to_bytes())
}

/// The code a refusal names.
fn code(said: &[u8]) -> Option<String> {
    let refusal: serde_json::Value = serde_json::from_slice(said).ok()?;
    let code = ["error", "code"].iter().find_map(|name| refusal.get(name)?.as_str())?;
    (code.len() <= limits::RELAY_SOURCE_BYTES_MAX).then(|| code.to_owned())
}
