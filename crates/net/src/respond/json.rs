//! Reading a body.

use std::error::Error;

use axum::BoxError;
use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use model::ErrorCode;
use serde::de::DeserializeOwned;

use super::{Refusal, strict};
use crate::guard::BodyRefused;

/// A JSON body, read strictly. An extractor whose rejection is a refusal, never a 500.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

/// The whole body, within the bounds the door's guard put around it.
pub async fn read_body<B>(mut body: B) -> Result<Bytes, Refusal>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    whole(&mut body).await.map_err(|error| match cause(&*error.into()) {
        Some(refused) => Refusal::plain(refused.code()),
        None => Refusal::new(ErrorCode::InvalidRequest, "The body ended early or is not well formed."),
    })
}

/// Most bodies come in one piece, which then is the whole.
async fn whole<B: HttpBody<Data = Bytes> + Unpin>(body: &mut B) -> Result<Bytes, B::Error> {
    let first = next(body).await?.unwrap_or_default();
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut pieces = BytesMut::from(first);
    while let Some(piece) = next(body).await? {
        pieces.extend_from_slice(&piece);
    }
    Ok(pieces.freeze())
}

/// The next piece of data.
async fn next<B: HttpBody<Data = Bytes> + Unpin>(body: &mut B) -> Result<Option<Bytes>, B::Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        parse_json(&read_body(request.into_body()).await?).map(Json)
    }
}

/// A body that was read, as `T`.
pub fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    strict::check(body).and_then(|()| serde_json::from_slice(body)).map_err(|error| {
        // serde's words name fields and places. They may quote a value of the caller's own request, which goes
        // back to that caller and nowhere else.
        Refusal::new(ErrorCode::InvalidRequest, format!("The body cannot be read: {error}."))
    })
}

/// The guard's reason somewhere in the chain; the body types between box what they pass on.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a BodyRefused> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        next = error.source();
    }
    None
}
