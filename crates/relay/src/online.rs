//! Requests that are never stored: reads, and writes that pass or are refused.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use http::{Method, StatusCode};
use model::ErrorCode;
use model::limits;
use model::relay::BreakerState;
use model::route_class::OrderKey;
use net::respond::Refusal;
use net::serve::Connection;
use wire::relay::PENDING_HEADER;

use crate::config::AuthMode;
use crate::keep::{self, Kept};
use crate::receipt::{self, Why};
use crate::relay::{Lends, Shared};
use crate::upstream::SendError;
use crate::{forward, head, versions};

/// The longest a read may take to begin: a long poll and its answer.
const READ_TIMEOUT: Duration = limits::LONG_POLL_MAX.saturating_add(limits::ANSWER_TIMEOUT);

/// Passes a read on.
pub(crate) async fn read(
    shared: &Arc<Shared>,
    mut request: Request,
    resource: Option<OrderKey>,
    lends: Lends,
    connection: &Connection,
) -> Response {
    let protocol = forward::upgrade_of(&request);
    let caller = protocol.is_some().then(|| hyper::upgrade::on(&mut request));
    let asked = resource.clone().map(|resource| (resource, request.uri().path().to_owned()));
    let method = request.method().clone();
    let begun = shared.tags.read_begins();
    prepare(shared, request.headers_mut(), lends);
    if let Some(protocol) = protocol {
        forward::ask_upgrade(request.headers_mut(), protocol);
    }
    let answer = match shared.upstream.send(request, READ_TIMEOUT).await {
        Ok(answer) => answer,
        Err(SendError::NotSent(cause) | SendError::Lost(cause)) => {
            tracing::debug!(cause, "a read did not reach the upstream");
            return receipt::cannot_wait(&Why::Online);
        }
    };
    if let Some(caller) = caller
        && answer.status() == StatusCode::SWITCHING_PROTOCOLS
    {
        return forward::switch(caller, answer, connection.stopping().clone());
    }
    let tagged =
        asked.and_then(|(resource, path)| versions::read(shared, &resource, &path, answer.headers(), begun));
    let mut answer = match tagged.filter(|_| keep::is_state(&method, &answer)) {
        Some(tagged) => forward::answer(answer.map(|body| Kept::new(body, tagged, Arc::clone(shared)))),
        None => forward::answer(answer),
    };
    let pending = resource.map_or(0, |resource| shared.board.pending(&resource));
    if pending > 0 {
        answer.headers_mut().insert(PENDING_HEADER, pending.into());
    }
    answer
}

/// Passes a write on that cannot wait. One that could overtake a waiting write is refused.
pub(crate) async fn write(
    shared: &Shared,
    mut request: Request,
    resource: Option<OrderKey>,
    why: Why,
    lends: Lends,
) -> Response {
    if let Some(key) = &resource {
        if !older_writes_left(shared, key).await {
            return Refusal::plain(ErrorCode::PendingWrites).into_response();
        }
        add_condition(shared, &mut request, key);
    }
    if let BreakerState::Open(_) = shared.upstream.breaker() {
        shared.wake.notify_one();
        return receipt::cannot_wait(&why);
    }
    prepare(shared, request.headers_mut(), lends);
    let path = request.uri().path().to_owned();
    match shared.upstream.send(request, shared.config.answer_timeout).await {
        Ok(answer) => {
            if let Some(resource) = &resource {
                note(shared, resource, &path, &answer);
            }
            forward::answer(answer)
        }
        Err(SendError::NotSent(_)) => receipt::cannot_wait(&why),
        Err(SendError::Lost(cause)) => {
            let told = format!("the write was handed on and its answer did not come: {cause}");
            Refusal::unknown_after_send(model::secrets::storable_text(&told))
        }
    }
}

/// A request's headers as the upstream gets them.
pub(crate) fn prepare(shared: &Shared, headers: &mut http::HeaderMap, lends: Lends) {
    head::strip_request(headers);
    match lends {
        Lends::Own => {
            if shared.config.auth_mode == AuthMode::Relay {
                headers.remove(http::header::COOKIE);
            }
            shared.upstream.lend(headers);
        }
        Lends::Nothing if shared.config.auth_mode == AuthMode::Relay => {
            headers.remove(http::header::AUTHORIZATION);
            headers.remove(http::header::COOKIE);
        }
        Lends::Nothing => {}
    }
}

/// Waits a little for older writes of the resource; false when some are left.
async fn older_writes_left(shared: &Shared, key: &OrderKey) -> bool {
    if shared.board.pending(key) == 0 {
        return true;
    }
    shared.wake.notify_one();
    let gone = async {
        loop {
            let left = shared.board.someone_left();
            if shared.board.pending(key) == 0 {
                return;
            }
            left.await;
        }
    };
    tokio::time::timeout(limits::RELAY_ORDER_WAIT, gone).await.is_ok()
}

/// What an answer to a write says of its resource's version.
fn note<B>(shared: &Shared, resource: &OrderKey, path: &str, answer: &http::Response<B>) {
    if answer.status().is_success() {
        versions::changed(shared, resource, path, answer.headers(), None);
    } else if versions::is_clash(answer.status().as_u16()) {
        versions::clashed(shared, resource);
    }
}

/// A write that changes a resource goes under the last tag seen of it, unless the caller named a condition.
fn add_condition(shared: &Shared, request: &mut http::Request<Body>, resource: &OrderKey) {
    let named = [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE];
    let changes = *request.method() != Method::POST;
    if !changes || named.iter().any(|name| request.headers().contains_key(name)) {
        return;
    }
    let known = shared.tags.of(&versions::tag_key(resource, request.uri().path()));
    if let Some(tag) = known.and_then(|tag| head::value(&tag)) {
        request.headers_mut().insert(IF_MATCH, tag);
    }
}
