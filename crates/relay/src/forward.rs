//! Passing a request on, and its answer back.

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use model::limits;
use tokio_util::sync::CancellationToken;
use wire::relay::RELAY_HEADER;

use crate::head;

const RELAY: HeaderName = HeaderName::from_static(RELAY_HEADER);
const FORWARDED: HeaderValue = HeaderValue::from_static("forwarded");

/// The upstream's answer as it is, marked as forwarded.
pub(crate) fn answer<B>(answer: http::Response<B>) -> Response
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let (mut parts, body) = answer.into_parts();
    head::strip_hop(&mut parts.headers);
    parts.headers.insert(RELAY, FORWARDED);
    Response::from_parts(parts, Body::new(body))
}

/// Reads an answer before it is passed on. One that is too large passes unread.
pub(crate) async fn read_first(answer: http::Response<Incoming>) -> (Response, Option<Bytes>) {
    let (parts, mut body) = answer.into_parts();
    let mut read = BytesMut::new();
    let mut is_whole = false;
    let reading = async {
        while read.len() <= limits::RELAY_BATCH_ANSWER_BYTES_MAX {
            match body.frame().await {
                Some(Ok(frame)) => read.extend_from_slice(frame.data_ref().map_or(&[][..], |data| &data[..])),
                Some(Err(_)) => return,
                None => {
                    is_whole = true;
                    return;
                }
            }
        }
    };
    // One that stalls passes as far as it came, with the rest behind it.
    let _ = tokio::time::timeout(limits::RELAY_PROBE_TIMEOUT, reading).await;
    let read = read.freeze();
    if is_whole {
        return (Response::from_parts(parts, Body::from(read.clone())), Some(read));
    }
    let rest = stream::once(std::future::ready(Ok(read))).chain(body.into_data_stream());
    (Response::from_parts(parts, Body::from_stream(rest)), None)
}

/// The protocol a request wants to change to.
pub(crate) fn upgrade_of(request: &Request<Body>) -> Option<HeaderValue> {
    let wanted = request.headers().get(CONNECTION)?.to_str().ok()?;
    let asks = wanted.split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    if asks { request.headers().get(UPGRADE).cloned() } else { None }
}

/// Puts the change of protocol back on a request whose hop headers were taken away.
pub(crate) fn ask_upgrade(headers: &mut http::HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// The upstream changed protocols: so does the caller's connection, and bytes pass both ways until either ends.
pub(crate) fn switch(
    caller: hyper::upgrade::OnUpgrade,
    mut upstream: http::Response<Incoming>,
    stop: CancellationToken,
) -> Response {
    let there = hyper::upgrade::on(&mut upstream);
    let protocol = upstream.headers().get(UPGRADE).cloned();
    tokio::spawn(async move {
        let (Ok(here), Ok(there)) = (caller.await, there.await) else { return };
        let (mut here, mut there) = (TokioIo::new(here), TokioIo::new(there));
        tokio::select! {
            // Either end may break; there is nobody left to be told.
            _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
            () = stop.cancelled() => {}
        }
    });
    let (mut parts, _) = upstream.into_parts();
    head::strip_hop(&mut parts.headers);
    parts.headers.insert(RELAY, FORWARDED);
    parts.status = StatusCode::SWITCHING_PROTOCOLS;
    if let Some(protocol) = protocol {
        ask_upgrade(&mut parts.headers, protocol);
    }
    Response::from_parts(parts, Body::empty())
}
