//! The relay's own answers.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use mailbox::relay::Envelope;
use model::ErrorCode;
use net::respond::{self, Refusal};
use wire::Refused;
use wire::relay::{KEY_HEADER, QueuedReceipt, RELAY_HEADER, instant};

use crate::head;

/// Why a write cannot wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its route never does.
    Online,
    /// It carries credentials.
    Credentials,
    /// The caller needs the id of what it makes.
    NeedsId,
    /// It is too large.
    TooLarge,
    /// It looks like it holds a secret there.
    Secret(Vec<String>),
    /// There is no room, or no file.
    NoRoom,
}

/// 202: stored here, not committed there.
pub(crate) fn queued(envelope: &Envelope, queued_behind: u64) -> Response {
    let receipt = QueuedReceipt {
        status: "queued".to_owned(),
        committed: false,
        outcome: envelope.outcome.word().to_owned(),
        envelope_id: envelope.envelope_id.to_string(),
        idempotency_key: envelope.idempotency_key.clone(),
        route_class: envelope.route_class.word().to_owned(),
        order_key: envelope.order_key.to_string(),
        queued_at: instant(envelope.queued_at),
        queued_behind,
        possible_duplicate_of: envelope.possible_duplicate_of.map(|twin| twin.to_string()),
    };
    let mut answer = respond::json(StatusCode::ACCEPTED, &receipt);
    answer.headers_mut().insert(RELAY_HEADER, HeaderValue::from_static("queued"));
    if let Some(key) = head::value(&envelope.idempotency_key) {
        answer.headers_mut().insert(KEY_HEADER, key);
    }
    answer
}

/// The upstream is away, and the write cannot wait.
pub(crate) fn cannot_wait(why: &Why) -> Response {
    let code = match why {
        Why::Online => ErrorCode::UpstreamUnreachable,
        Why::Credentials => ErrorCode::CredentialsNotQueueable,
        Why::NeedsId => ErrorCode::IdRequired,
        Why::TooLarge => ErrorCode::PayloadTooLargeToQueue,
        Why::Secret(pointers) => {
            let refused = Refused::plain(ErrorCode::SecretInPayload).with("pointers", pointers.clone());
            return Refusal::from(refused).into_response();
        }
        Why::NoRoom => ErrorCode::OutboxFull,
    };
    Refusal::plain(code).into_response()
}
