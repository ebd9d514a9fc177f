//! A write that may wait: stored first, then forwarded; or stored, and a receipt given.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, ETAG, EXPECT, HeaderMap, IF_MATCH, IF_UNMODIFIED_SINCE};
use http_body_util::BodyExt;
use mailbox::relay::{
    Envelope, Envelopes, Forgetting, Heard, LeftVersion, NewEnvelope, Response as Kept, Source, Start, Stored,
};
use model::error::Malformed;
use model::relay::{Answer, BreakerState, Outcome, Precondition, Status};
use model::route_class::{OrderKey, Route, RouteClass};
use model::secrets::{Allowed, looks_secret, scan_json};
use model::{ErrorCode, hub, limits};
use net::respond::Refusal;
use sqlite::{StorageError, fault};
use wire::hub::CREATED_HEADER;
use wire::relay::{AGENT_HEADER, KEY_HEADER, PRINCIPAL_HEADER, SESSION_HEADER, instant, is_outage};

use crate::board::Place;
use crate::receipt::{self, Why};
use crate::relay::{Lends, Shared};
use crate::upstream::SendError;
use crate::{drain, forward, head, online, upstream, versions};

/// A bug that proofs plant: a stored write is refused for want of room.
const REFUSED_AND_STORED: &str = "relay.refused_and_stored";
/// Between two looks at the upstream while a write waits for its turn.
const TURN_LOOK_EVERY: Duration = Duration::from_millis(50);

/// A write as it will be stored and sent.
struct Asked {
    new: NewEnvelope,
    held: Held,
}

/// What sends it once it is stored, or without that.
struct Held {
    parts: http::request::Parts,
    body: Bytes,
    lends: Lends,
    order_key: OrderKey,
    minted: bool,
    speaker: String,
}

/// Stores and forwards a write, or gives a receipt for it.
pub(crate) async fn write(
    shared: &Arc<Shared>,
    request: Request,
    route: &Route,
    resource: Option<OrderKey>,
    lends: Lends,
) -> Response {
    let pass = |request, resource, why| Box::pin(online::write(shared, request, resource, why, lends));
    let Some(envelopes) = shared.envelopes.clone() else {
        return pass(request, resource, Why::NoRoom).await;
    };
    let (parts, body) = match read_body(request).await {
        Ok(Read::Whole(parts, body)) => (parts, body),
        Ok(Read::Over(request)) => return pass(request, resource, Why::TooLarge).await,
        Err(response) => return response,
    };
    let asked = match ask(shared, parts, body, route, resource, lends) {
        Ok(asked) => asked,
        Err(Cannot::Wait(request, resource, why)) => return pass(*request, resource, why).await,
        Err(Cannot::Pass(refusal)) => return refusal.into_response(),
    };
    let shared = Arc::clone(shared);
    // A caller that leaves must not leave a write half on its way: it is carried to its end without it.
    let work = tokio::spawn(async move { place(&shared, &envelopes, asked).await });
    work.await.unwrap_or_else(|_| Refusal::plain(ErrorCode::Internal).into_response())
}

/// A body up to what may be stored.
enum Read {
    Whole(Box<http::request::Parts>, Bytes),
    /// More than that: the request again, with what was read before the rest.
    Over(Request),
}

async fn read_body(request: Request) -> Result<Read, Response> {
    let (parts, mut body) = request.into_parts();
    let hinted = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if hinted > limits::RELAY_BODY_BYTES_MAX {
        return Ok(Read::Over(Request::from_parts(parts, body)));
    }
    let mut read = BytesMut::with_capacity(hinted);
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Err(()) };
            if let Ok(data) = frame.into_data() {
                read.extend_from_slice(&data);
            }
            if read.len() > limits::RELAY_BODY_BYTES_MAX {
                break;
            }
        }
        Ok(())
    };
    match tokio::time::timeout(limits::BODY_TIMEOUT, reading).await {
        Ok(Ok(())) => {}
        Ok(Err(())) => return Err(Refusal::plain(ErrorCode::InvalidRequest).into_response()),
        Err(_) => return Err(Refusal::plain(ErrorCode::RequestTimeout).into_response()),
    }
    if read.len() <= limits::RELAY_BODY_BYTES_MAX {
        return Ok(Read::Whole(Box::new(parts), read.freeze()));
    }
    let rest = stream::once(std::future::ready(Ok(read.freeze()))).chain(body.into_data_stream());
    Ok(Read::Over(Request::from_parts(parts, Body::from_stream(rest))))
}

/// Why a write is not stored.
enum Cannot {
    /// It may pass.
    Wait(Box<Request>, Option<OrderKey>, Why),
    /// It is wrong.
    Pass(Refusal),
}

fn ask(
    shared: &Shared,
    parts: Box<http::request::Parts>,
    body: Bytes,
    route: &Route,
    resource: Option<OrderKey>,
    lends: Lends,
) -> Result<Box<Asked>, Cannot> {
    let headers = &parts.headers;
    let Ok(named) = head::key(headers) else {
        let wrong = "Idempotency-Key must be one line of 1 to 128 visible characters";
        return Err(Cannot::Pass(Refusal::new(ErrorCode::InvalidRequest, wrong)));
    };
    let found = match scan_json(&body, Allowed(&route.allowed_fields)) {
        Ok(found) => found,
        Err(_) => return Err(cannot(*parts, body, resource, Why::Online)),
    };
    if !found.is_empty() {
        return Err(cannot(*parts, body, resource, Why::Secret(found)));
    }
    let value = serde_json::from_slice(&body).ok();
    let path = parts.uri.path().to_owned();
    let fingerprint =
        hub::request_fingerprint(parts.method.as_str(), &path, parts.uri.query(), value.as_ref());
    let now = shared.clock.now();
    let source = Source {
        agent: head::short_text(headers, AGENT_HEADER),
        session: head::short_text(headers, SESSION_HEADER),
        principal: head::short_text(headers, PRINCIPAL_HEADER),
    };
    let speaker =
        source.session.clone().or_else(|| source.agent.clone()).unwrap_or_else(|| "host".to_owned());
    let order_key = resource.unwrap_or_else(|| OrderKey::session(&speaker, &route.pattern));
    let (minted, twin) = (named.is_none(), shared.twins.twin(&speaker, fingerprint, now));
    let Ok(asked_condition) = condition_of(headers) else {
        return Err(cannot(*parts, body, Some(order_key), Why::Online));
    };
    let chains = route.class == RouteClass::Replace && asked_condition.is_none();
    let mut new = NewEnvelope {
        idempotency_key: named,
        fingerprint,
        method: parts.method.to_string(),
        path,
        query: parts.uri.query().map(str::to_owned),
        route_class: route.class,
        order_key,
        precondition: asked_condition,
        chains,
        source,
        upstream_id: shared.standing().upstream_id.clone(),
        created_at: shared.upstream.now(),
        possible_duplicate_of: twin.filter(|_| minted),
        body: body.to_vec(),
        base: None,
    };
    condition(shared, &mut new);
    if new.precondition.as_ref().is_some_and(|condition| looks_secret(&condition.to_text())) {
        return Err(cannot(*parts, body, Some(new.order_key), Why::Secret(vec!["If-Match".to_owned()])));
    }
    let order_key = new.order_key.clone();
    let held = Held { parts: *parts, body, lends, order_key, minted, speaker };
    Ok(Box::new(Asked { new, held }))
}

/// The caller's own condition. A tag is exact and wins; an instant nobody can read cannot be kept.
fn condition_of(headers: &HeaderMap) -> Result<Option<Precondition>, Malformed> {
    let line = |name| headers.get(name).and_then(|line| line.to_str().ok());
    if let Some(tag) = line(IF_MATCH) {
        return Ok(Some(Precondition::Match(tag.to_owned())));
    }
    line(IF_UNMODIFIED_SINCE).map(|at| hub::instant_of(at).map(Precondition::UnmodifiedSince)).transpose()
}

/// Puts a change under its condition. Without one of its caller's it is the last version that passed here, or that
/// nothing changed since now: asked for again when the write's turn comes, because a write before it made another.
fn condition(shared: &Shared, new: &mut NewEnvelope) {
    if new.route_class != RouteClass::Replace {
        new.precondition = None;
        return;
    }
    let tag_key = versions::tag_key(&new.order_key, &new.path);
    let asked = new.precondition.take().filter(|_| !new.chains);
    let condition =
        Precondition::of(asked, shared.tags.of(&tag_key), versions::unchanged_since(shared, &new.order_key));
    new.base = base_of(shared, &tag_key, &condition);
    new.precondition = Some(condition);
}

fn condition_again(shared: &Shared, new: &mut NewEnvelope) {
    if new.chains {
        condition(shared, new);
    }
}

/// What passed here under that condition, when it may be kept: a conflict shows it as what was there.
fn base_of(shared: &Shared, tag_key: &OrderKey, condition: &Precondition) -> Option<Vec<u8>> {
    let Precondition::Match(tag) = condition else { return None };
    let content = shared.bases.of(tag_key, tag)?;
    let clean = scan_json(&content, Allowed::default()).is_ok_and(|found| found.is_empty());
    clean.then(|| content.to_vec())
}

fn cannot(parts: http::request::Parts, body: Bytes, resource: Option<OrderKey>, why: Why) -> Cannot {
    Cannot::Wait(Box::new(Request::from_parts(parts, Body::from(body))), resource, why)
}

/// Finds the write's place in its order: first and on its way, or behind others with a receipt. What most writes do not
/// need is boxed, so that none carries it along.
async fn place(shared: &Shared, envelopes: &Envelopes, asked: Box<Asked>) -> Response {
    let (key, class) = (&asked.held.order_key, asked.new.route_class);
    let bytes = asked.new.body.len() as u64;
    let first = match shared.upstream.breaker() {
        BreakerState::Open(_) => Place::Behind(0),
        BreakerState::Closed => wait_for_turn(shared, key, class, bytes).await,
    };
    match first {
        Place::First => Box::pin(forward_live(shared, envelopes, asked, bytes)).await,
        Place::Behind(_) | Place::Blocked(_) => match shared.board.enter_last(key, bytes, shared.room()) {
            Place::Behind(before) | Place::Blocked(before) => park(shared, envelopes, asked, before).await,
            Place::First => unreachable!("the last place is never the first one"),
            Place::NoRoom => without_room(shared, asked.held).await,
        },
        Place::NoRoom => without_room(shared, asked.held).await,
    }
}

/// Nothing can be stored: it passes while the upstream answers, and is refused otherwise.
async fn without_room(shared: &Shared, held: Held) -> Response {
    let request = Request::from_parts(held.parts, Body::from(held.body));
    let resource = Some(held.order_key).filter(|key| !key.is_append());
    Box::pin(online::write(shared, request, resource, Why::NoRoom, held.lends)).await
}

async fn wait_for_turn(shared: &Shared, key: &OrderKey, class: RouteClass, bytes: u64) -> Place {
    let turn = async {
        loop {
            let left = shared.board.someone_left();
            match shared.board.try_first(key, class, bytes, shared.room()) {
                Place::Behind(_) => shared.wake.notify_one(),
                found => return found,
            }
            // Nobody leaves while the upstream is away: then there is nothing to wait for.
            if tokio::time::timeout(TURN_LOOK_EVERY, left).await.is_err()
                && let BreakerState::Open(_) = shared.upstream.breaker()
            {
                return Place::Behind(0);
            }
        }
    };
    tokio::time::timeout(limits::RELAY_ORDER_WAIT, turn).await.unwrap_or(Place::Behind(0))
}

/// Stores it to wait.
async fn park(shared: &Shared, envelopes: &Envelopes, asked: Box<Asked>, before: u64) -> Response {
    let Asked { mut new, held } = *asked;
    let bytes = new.body.len() as u64;
    condition_again(shared, &mut new);
    match envelopes.store(new, Start::Waiting, shared.clock.now()).await {
        Ok(Stored::New(envelope)) => {
            note(shared, &held, &envelope);
            if fault::bug(REFUSED_AND_STORED) {
                return receipt::cannot_wait(&Why::NoRoom);
            }
            // Nothing leaves while the upstream is away, and the drainer looks by itself whether it is back.
            if let BreakerState::Closed = shared.upstream.breaker() {
                shared.wake.notify_one();
            }
            receipt::queued(&envelope, before)
        }
        Ok(Stored::Known { envelope, matches }) => {
            shared.board.leave(&held.order_key, bytes);
            known(shared, held, &envelope, matches).await
        }
        Err(error) => {
            shared.board.leave(&held.order_key, bytes);
            not_stored(shared, held, &error).await
        }
    }
}

/// A write whose fate is unknown is not sent: a copy that the file holds after all would be sent once more.
async fn not_stored(shared: &Shared, held: Held, error: &StorageError) -> Response {
    tracing::error!(%error, "a write could not be stored");
    if error.denies_storage() {
        without_room(shared, held).await
    } else {
        Refusal::plain(ErrorCode::OutcomeUnknown).into_response()
    }
}

/// The key was used before.
async fn known(shared: &Shared, held: Held, envelope: &Envelope, matches: bool) -> Response {
    let resource = match (KeyHolder::of(envelope), matches) {
        (KeyHolder::Envelope, true) => {
            let before = shared.board.pending(&envelope.order_key).saturating_sub(1);
            return receipt::queued(envelope, before);
        }
        (KeyHolder::Envelope | KeyHolder::Committed, false) => {
            return Refusal::plain(ErrorCode::IdempotencyKeyReused).into_response();
        }
        // A copy of what was committed is answered from the key: nothing can be overtaken.
        (KeyHolder::Committed, true) => None,
        (KeyHolder::Upstream, _) => Some(held.order_key).filter(|key| !key.is_append()),
    };
    let request = Request::from_parts(held.parts, Body::from(held.body));
    Box::pin(online::write(shared, request, resource, Why::Online, held.lends)).await
}

/// Which request a key stands for, once an envelope of it is stored here.
enum KeyHolder {
    /// The envelope: its caller has a receipt.
    Envelope,
    /// The envelope, and the upstream has it.
    Committed,
    /// Only the upstream can tell: the envelope ended otherwise.
    Upstream,
}

impl KeyHolder {
    fn of(envelope: &Envelope) -> Self {
        match envelope.status {
            Status::Queued | Status::Inflight => Self::Envelope,
            Status::Done => Self::Committed,
            Status::Conflict
            | Status::Rejected
            | Status::Expired
            | Status::Cancelled
            | Status::Superseded => Self::Upstream,
        }
    }
}

fn note(shared: &Shared, held: &Held, envelope: &Envelope) {
    if held.minted {
        let (print, id) = (envelope.fingerprint, envelope.envelope_id);
        shared.twins.note(&held.speaker, print, id, shared.clock.now());
    }
}

/// Stores it, then sends it, then settles it.
async fn forward_live(shared: &Shared, envelopes: &Envelopes, asked: Box<Asked>, bytes: u64) -> Response {
    let Asked { mut new, held } = *asked;
    condition_again(shared, &mut new);
    let envelope = match envelopes.store(new, Start::Live, shared.clock.now()).await {
        Ok(Stored::New(envelope)) => envelope,
        Ok(Stored::Known { envelope, matches }) => {
            shared.board.leave(&held.order_key, bytes);
            return known(shared, held, &envelope, matches).await;
        }
        Err(error) => {
            shared.board.leave(&held.order_key, bytes);
            return not_stored(shared, held, &error).await;
        }
    };
    note(shared, &held, &envelope);
    sqlite::fault::point("relay.before_forward");
    let mut request = Request::from_parts(held.parts, Body::from(held.body));
    request.headers_mut().remove(EXPECT);
    request.headers_mut().remove(CONTENT_LENGTH);
    online::prepare(shared, request.headers_mut(), held.lends);
    mark(request.headers_mut(), &envelope, envelope.precondition.as_ref());
    let sent = shared.upstream.send(request, shared.config.answer_timeout).await;
    sqlite::fault::point("relay.after_forward");
    settle_live(shared, envelopes, *envelope, sent).await
}

/// The headers that make an attempt one of this envelope.
pub(crate) fn mark(headers: &mut HeaderMap, envelope: &Envelope, condition: Option<&Precondition>) {
    let mut put = |name: &'static str, text: &str| {
        if let Some(value) = head::value(text) {
            headers.insert(name, value);
        }
    };
    put(KEY_HEADER, &envelope.idempotency_key);
    put(CREATED_HEADER, &instant(envelope.created_at));
    match condition {
        Some(Precondition::Match(tag)) => put("if-match", tag),
        Some(Precondition::UnmodifiedSince(at)) => put("if-unmodified-since", &hub::instant_line(*at)),
        None => {}
    }
}

async fn settle_live(
    shared: &Shared,
    envelopes: &Envelopes,
    envelope: Envelope,
    sent: Result<http::Response<hyper::body::Incoming>, SendError>,
) -> Response {
    let lease = envelope.lease.expect("a live envelope is stored under a lease");
    let mut heard = Heard {
        local_seq: envelope.local_seq,
        lease,
        // Its first attempt: before it, nothing had left.
        outcome_before: Outcome::NotSent,
        answer: Answer::Lost,
        response: Kept::default(),
        left: Vec::new(),
        error: None,
        retry_after: None,
        random: shared.entropy.next_u64(),
        now: shared.clock.now(),
    };
    let passed = match sent {
        Ok(answer) if !is_outage(answer.status().as_u16()) => {
            shared.upstream.heard_time(answer.headers());
            if !answer.status().is_success() {
                return pass_refusal(shared, envelopes, &envelope, heard, answer).await;
            }
            heard.answer = Answer::Committed;
            heard.response = kept(&answer, answer.status().as_u16());
            if envelope.route_class == RouteClass::Replace {
                let (passed, left) = changed(shared, &envelope, answer).await;
                heard.left = left;
                Some(passed)
            } else {
                Some(forward::answer(answer))
            }
        }
        Ok(answer) => {
            heard.answer = Answer::Busy;
            heard.error = Some(format!("the upstream answers {}", answer.status()));
            None
        }
        Err(SendError::NotSent(cause)) => {
            (heard.answer, heard.error) = (Answer::NotSent, Some(cause));
            None
        }
        Err(SendError::Lost(cause)) => {
            heard.error = Some(cause);
            None
        }
    };
    let settled = shared.settle(envelopes, heard).await;
    shared.wake.notify_one();
    match (passed, settled) {
        (Some(passed), Ok(_)) => passed,
        (Some(passed), Err(error)) => {
            tracing::error!(%error, "an answer could not be recorded; it is asked for again under the same key");
            passed
        }
        (None, Ok(Some(settled))) => receipt::queued(&settled.envelope, 0),
        // Stored before it was sent, so it waits all the same: the next start finds it.
        (None, Ok(None) | Err(_)) => receipt::queued(&envelope, 0),
    }
}

/// The caller hears the upstream's own answer, and nothing is kept of the write unless the caller of a copy holds a receipt
/// for it. Its key is not asked about: that would retire it, and what the upstream refused may come again under it. Of a
/// write that stays and may be sent again nobody may hear that it was refused.
async fn pass_refusal(
    shared: &Shared,
    envelopes: &Envelopes,
    envelope: &Envelope,
    heard: Heard,
    answer: http::Response<hyper::body::Incoming>,
) -> Response {
    if envelope.route_class == RouteClass::Replace && versions::is_clash(answer.status().as_u16()) {
        versions::clashed(shared, &envelope.order_key);
    }
    let passed = match envelopes.forget_live(heard.local_seq, heard.lease).await {
        Ok(Forgetting::Forgotten) => {
            shared.board.leave(&envelope.order_key, envelope.body_bytes);
            forward::answer(answer)
        }
        Ok(Forgetting::Promised) => settle_promised(shared, envelopes, envelope, heard, answer).await,
        Ok(Forgetting::LeaseLost) => refused_and_kept(envelope, answer.status()),
        Err(error) => {
            tracing::error!(%error, "a refused write could not be forgotten; it is sent again under its key");
            refused_and_kept(envelope, answer.status())
        }
    };
    shared.wake.notify_one();
    passed
}

/// The caller of a copy holds a receipt for the write: what the upstream said does to it what it does to a replay.
async fn settle_promised(
    shared: &Shared,
    envelopes: &Envelopes,
    envelope: &Envelope,
    mut heard: Heard,
    answer: http::Response<hyper::body::Incoming>,
) -> Response {
    let status = answer.status().as_u16();
    heard.response = kept(&answer, status);
    heard.retry_after = upstream::retry_after(answer.headers());
    let (answer, said) = forward::read_first(answer).await;
    drain::note_refusal(&mut heard, status, said.as_deref().unwrap_or_default());
    if let Err(error) = drain::settle(shared, envelopes, envelope, heard).await {
        tracing::error!(%error, "a refusal could not be recorded; the write is sent again under its key");
        return refused_and_kept(envelope, answer.status());
    }
    forward::answer(answer)
}

/// The upstream refused the write, and it may be sent again all the same.
fn refused_and_kept(envelope: &Envelope, status: StatusCode) -> Response {
    let told = format!(
        "The upstream answered {}, and the relay still holds the write: it may be sent again. Ask again with the same \
         Idempotency-Key.",
        status.as_u16()
    );
    let mut answer = Refusal::new(ErrorCode::OutcomeUnknown, told).into_response();
    if let Some(key) = head::value(&envelope.idempotency_key) {
        answer.headers_mut().insert(KEY_HEADER, key);
    }
    answer
}

/// Keeps the versions that a committed change left, before its caller or a later write can rest on them.
async fn changed(
    shared: &Shared,
    envelope: &Envelope,
    answer: http::Response<hyper::body::Incoming>,
) -> (Response, Vec<LeftVersion>) {
    let (key, path) = (&envelope.order_key, &envelope.path);
    if !key.is_barrier() {
        let left = versions::changed(shared, key, path, answer.headers(), None);
        return (forward::answer(answer), left);
    }
    let (answer, batch) = forward::read_first(answer).await;
    let left = versions::changed(shared, key, path, answer.headers(), batch.as_deref());
    (forward::answer(answer), left)
}

/// What is kept of an answer.
pub(crate) fn kept<B>(answer: &http::Response<B>, status: u16) -> Kept {
    let etag = answer.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    Kept { status: Some(status), etag, ..Kept::default() }
}
