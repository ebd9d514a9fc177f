//! What comes back.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use model::{Class, ErrorCode};
use serde::de::DeserializeOwned;
use wire::ErrorBody;

use super::Target;

/// A 2xx answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// Why there is no answer, or not the one asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there, or nobody whose certificate is believed.
    #[error("{target} cannot be reached: {cause}")]
    NotRunning {
        /// The door.
        target: String,
        /// What the system said.
        cause: String,
    },
    /// No answer in time. Whether the request was carried out is not known.
    #[error("no answer in time")]
    Timeout,
    /// The connection broke. Whether the request was carried out is not known.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The door said no.
    #[error("{} ({status}): {}", body.error, body.message)]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the door said.
        body: Box<ErrorBody>,
        /// When to come back, if the door said.
        retry_after: Option<Duration>,
    },
    /// It answered something this client does not understand.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    /// It answered the upgrade with something else than a refusal.
    #[error("the address does not speak this WebSocket")]
    NoUpgrade,
    /// The path cannot stand in a request.
    #[error("the path cannot stand in a request")]
    BadPath,
}

impl Answer {
    /// The body as `T`. An empty body reads as `null`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        let text: &[u8] = if self.body.is_empty() { b"null" } else { &self.body };
        serde_json::from_slice(text).map_err(|error| ClientError::Unreadable(error.to_string()))
    }

    pub(super) async fn read(answer: Response<Incoming>, bytes_max: usize) -> Result<Self, ClientError> {
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, bytes_max).collect().await.map_err(|error| {
            match error.is::<LengthLimitError>() {
                true => ClientError::Unreadable("it is over its bound".to_owned()),
                false => ClientError::Broken(error.to_string()),
            }
        });
        let body = body?.to_bytes();
        if head.status.is_success() {
            return Ok(Self { status: head.status, headers: head.headers, body });
        }
        Err(ClientError::Refused {
            status: head.status.as_u16(),
            body: Box::new(refusal(head.status, &body)),
            retry_after: retry_after(&head.headers),
        })
    }
}

impl ClientError {
    pub(super) fn of(target: &Target, error: &legacy::Error) -> Self {
        let cause = innermost(error);
        if !error.is_connect() {
            return ClientError::Broken(cause.to_string());
        }
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::TimedOut) => ClientError::Timeout,
            Some(_) | None => {
                ClientError::NotRunning { target: target.to_string(), cause: cause.to_string() }
            }
        }
    }

    /// The code the door meant, when it refused.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            ClientError::Refused { status, body, .. } => {
                Some(wire::status::code_of(*status, Some(body.error.as_str())))
            }
            ClientError::NotRunning { .. }
            | ClientError::Timeout
            | ClientError::Broken(_)
            | ClientError::Unreadable(_)
            | ClientError::NoUpgrade
            | ClientError::BadPath => None,
        }
    }

    /// What to do about it.
    pub fn class(&self) -> Class {
        match self {
            ClientError::NotRunning { .. } | ClientError::Timeout | ClientError::Broken(_) => {
                Class::Transient
            }
            ClientError::Unreadable(_) | ClientError::NoUpgrade => Class::Transient,
            ClientError::BadPath => Class::Permanent,
            ClientError::Refused { .. } => self.code().map_or(Class::Transient, ErrorCode::class),
        }
    }
}

/// What the door said; something in between (a proxy) may have said it in its own words.
fn refusal(status: StatusCode, body: &[u8]) -> ErrorBody {
    serde_json::from_slice(body).unwrap_or_else(|_| ErrorBody {
        error: wire::status::code_of(status.as_u16(), None).code().to_owned(),
        message: status.canonical_reason().unwrap_or("refused").to_owned(),
        more: serde_json::Map::new(),
    })
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

pub(super) fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}
