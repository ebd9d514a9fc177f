//! The one shape of a refusal, and JSON in and out.
//!
//! - Every refusal is `{"error": code, "message": …, …}` with the status `wire` gives its code.
//! - What a caller sends is read strictly: whatever two readers could understand differently is refused.

mod json;
mod strict;

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use model::ErrorCode;
use model::error::Malformed;
use serde::Serialize;
use wire::{ErrorBody, Refused};

pub use json::{Json, parse_json, read_body};

/// Room for most answers; a longer one makes its own.
const ANSWER_BYTES: usize = 512;

/// A refusal as an HTTP answer. Handlers return `Result<_, Refusal>` and use `?` on [`Refused`] and
/// [`Malformed`].
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    refused: Box<Refused>,
    /// In place of the code's own.
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// In the code's own words.
    pub fn plain(code: ErrorCode) -> Self {
        Refused::plain(code).into()
    }

    /// With a sentence of its own; never a secret, never a caller's body.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Refused::new(code, message).into()
    }

    /// Tells the caller when to come back: `Retry-After` in whole seconds, rounded up, and the exact
    /// `retry_after_ms` in the body.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.refused.more.insert("retry_after_ms".to_owned(), wait_ms.into());
        self.retry_after = Some(wait);
        self
    }

    /// A request was handed on to another server, and its answer did not come: the status says that a gateway
    /// speaks.
    pub fn unknown_after_send(message: impl Into<String>) -> Response {
        let refused = Refused::new(ErrorCode::OutcomeUnknown, message);
        let status = StatusCode::from_u16(wire::relay::UNKNOWN_AFTER_SEND).expect("three digits");
        let code = refused.code;
        let mut answer = json(status, &ErrorBody::from(refused));
        answer.extensions_mut().insert(code);
        answer
    }

    /// Answers with another HTTP status than the code's own, where one code serves two kinds of request.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// What was refused, and why.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self { refused: Box::new(refused), status: None, retry_after: None }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Refused::from(malformed).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status.unwrap_or_else(|| wire::status::http_status(self.refused.code));
        let status = StatusCode::from_u16(status).expect("wire's statuses are three digits");
        let code = self.refused.code;
        let mut answer = json(status, &ErrorBody::from(*self.refused));
        // For whoever looks at the answer on its way out.
        answer.extensions_mut().insert(code);
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            answer.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        answer
    }
}

/// The caller has it already.
pub fn not_modified() -> Response {
    StatusCode::NOT_MODIFIED.into_response()
}

/// `body` as JSON. Nothing a door says may be kept by a cache.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let mut text = Vec::with_capacity(ANSWER_BYTES);
    if let Err(error) = serde_json::to_writer(&mut text, body) {
        tracing::error!(%error, "an answer could not be written as JSON");
        return Refusal::plain(ErrorCode::Internal).into_response();
    }
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
