//! Reading a body.

use std::error::Error;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http_body_util::BodyExt;
use model::ErrorCode;
use serde::de::DeserializeOwned;

use super::{Refusal, strict};
use crate::guard::BodyRefused;

/// A JSON body, read strictly. An extractor whose rejection is a refusal, never a 500.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

/// The whole body, within the bounds the door's guard put around it.
pub async fn read_body(body: Body) -> Result<Bytes, Refusal> {
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => match cause(&error) {
            Some(refused) => Err(Refusal::plain(refused.code())),
            None => {
                Err(Refusal::new(ErrorCode::InvalidRequest, "The body ended early or is not well formed."))
            }
        },
    }
}

/// The whole body as `T`.
pub async fn read_json<T: DeserializeOwned>(body: Body) -> Result<T, Refusal> {
    parse(&read_body(body).await?)
}

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        read_json(request.into_body()).await.map(Json)
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
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
