//! Asking the upstream what became of a key, and what it has instead.

use axum::body::Body;
use http::Request;
use http::header::ETAG;
use http_body_util::{BodyExt, Limited};
use mailbox::relay::{Envelope, Envelopes, Response as Kept, Taken};
use model::relay::{Fenced, KeyAnswer, KeyedWrite, Status, conclude, delay, fenced};
use model::route_class::RouteClass;
use model::secrets::{Allowed, scan_json};
use model::{ErrorCode, RowId, limits};
use sqlite::{StorageError, fault};
use wire::relay::{KeyStatus, hub_fingerprint, instant, lacks_fence, refuses_credential};

use crate::relay::Shared;

/// A bug that proofs plant: a key that was committed counts as this write's, whichever request has it.
const KEY_WITHOUT_FINGERPRINT: &str = "relay.key_without_fingerprint";
/// The code of an answer that refuses a write because another request has its key.
pub(crate) const KEY_REUSED: &str = ErrorCode::IdempotencyKeyReused.code();

/// The upstream's word on the key of an envelope that waits to end; then it ends.
pub(crate) async fn end(shared: &Shared, envelopes: &Envelopes, taken: &Taken) -> Result<(), StorageError> {
    let (envelope, now) = (&taken.envelope, shared.clock.now());
    let fenced = match fence(shared, envelopes, envelope).await? {
        Word::Said(fenced) => fenced,
        Word::Silent => {
            let pause = delay(envelope.attempts, None, shared.entropy.next_u64());
            return envelopes.give_back(envelope, taken.lease, pause, now).await;
        }
        Word::Refused(status) => {
            shared.pause(format!("the upstream refuses the relay's own credential ({status})")).await;
            return envelopes.give_back(envelope, taken.lease, limits::RELAY_RETRY_DELAY_MIN, now).await;
        }
    };
    let ends = envelope.ending.map(|ending| conclude(ending, fenced).0);
    if ends == Some(Status::Conflict) && envelope.route_class == RouteClass::Replace {
        // Before it shows as one: a person who decides must see what the upstream has.
        let (theirs, etag) = theirs(shared, envelope).await;
        envelopes.keep_theirs(envelope.local_seq, theirs, etag).await?;
    }
    // Also where the upstream never refused it for its key: it was asked about it.
    let code = (fenced == Fenced::AnotherRequest).then(|| KEY_REUSED.to_owned());
    let response = Kept { code, ..Kept::default() };
    let ended = envelopes.conclude(envelope.local_seq, taken.lease, fenced, response, now).await?;
    let Some(ended) = ended else { return Ok(()) };
    shared.changed(Status::Inflight, &ended);
    Ok(())
}

/// What the upstream said about a key.
pub(crate) enum Word {
    Said(Fenced),
    /// Nothing: it is away.
    Silent,
    /// It does not let the relay ask.
    Refused(u16),
}

/// Asks, and retires the key if nothing was committed under it.
pub(crate) async fn fence(
    shared: &Shared,
    envelopes: &Envelopes,
    envelope: &Envelope,
) -> Result<Word, StorageError> {
    let (key, created) = (escaped(&envelope.idempotency_key), instant(envelope.created_at));
    let path = format!("/idempotency/{key}?fence=true&created={created}");
    let request = Request::builder().uri(path).body(Body::empty());
    let Ok(mut request) = request else { return Ok(Word::Said(Fenced::Unknown)) };
    shared.upstream.lend(request.headers_mut());
    let Ok(answer) = shared.upstream.send(request, shared.config.answer_timeout).await else {
        return Ok(Word::Silent);
    };
    let status = answer.status().as_u16();
    if answer.status().is_success() {
        let Some(body) = read(answer).await else { return Ok(Word::Silent) };
        let answer =
            serde_json::from_slice(&body).map_or(KeyAnswer::Unknown, |said: KeyStatus| said.answer());
        return Ok(Word::Said(judged(answer, &keyed(envelopes, envelope).await?)));
    }
    Ok(match status {
        status if refuses_credential(status) => Word::Refused(status),
        status if lacks_fence(status) => Word::Said(Fenced::Unknown),
        _ => Word::Silent,
    })
}

fn judged(answer: KeyAnswer, write: &KeyedWrite) -> Fenced {
    match answer {
        KeyAnswer::Committed(_) if fault::bug(KEY_WITHOUT_FINGERPRINT) => Fenced::Committed,
        answer => fenced(answer, write),
    }
}

/// An envelope as the upstream would have recorded it.
async fn keyed(envelopes: &Envelopes, envelope: &Envelope) -> Result<KeyedWrite, StorageError> {
    let held = envelopes.bodies(envelope.local_seq).await?;
    let fingerprint = held.and_then(|held| {
        hub_fingerprint(&envelope.method, &envelope.path, envelope.query.as_deref(), &held.mine)
    });
    let was_refused_as_reused = envelope.response.code.as_deref() == Some(KEY_REUSED);
    Ok(KeyedWrite { fingerprint, created_at: envelope.created_at, was_refused_as_reused })
}

/// What the upstream has in place of ours, when that may be kept.
async fn theirs(shared: &Shared, envelope: &Envelope) -> (Option<Vec<u8>>, Option<String>) {
    let request = Request::builder().uri(envelope.path.as_str()).body(Body::empty());
    let Ok(mut request) = request else { return (None, None) };
    shared.upstream.lend(request.headers_mut());
    let Ok(answer) = shared.upstream.send(request, shared.config.answer_timeout).await else {
        return (None, None);
    };
    if !answer.status().is_success() {
        return (None, None);
    }
    let etag = answer.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let body = read(answer).await.filter(|body| {
        body.len() <= limits::RELAY_THEIRS_BYTES_MAX
            && scan_json(body, Allowed::default()).is_ok_and(|found| found.is_empty())
    });
    (body, etag.filter(|tag| !model::secrets::looks_secret(tag)))
}

async fn read(answer: http::Response<hyper::body::Incoming>) -> Option<Vec<u8>> {
    let reading = Limited::new(answer.into_body(), limits::RELAY_THEIRS_BYTES_MAX).collect();
    let body = tokio::time::timeout(limits::ANSWER_TIMEOUT, reading).await.ok()?.ok()?;
    Some(body.to_bytes().to_vec())
}

/// A key as a path's segment.
fn escaped(key: &str) -> String {
    key.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// A new key.
pub(crate) fn mint_key(shared: &Shared) -> String {
    RowId::mint(shared.clock.now(), &*shared.entropy).to_string()
}
