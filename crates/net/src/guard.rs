//! What a request must be before a handler sees it.
//!
//! - A TCP door answers only to its own names: a page that made a browser resolve its own name to us is refused.
//! - A browser is heard only from the door's own page, and never told that others might be (no CORS header, ever).
//! - A credential in an address is refused and never logged.
//! - Bodies are plain JSON, bounded in bytes and time.
//! - A panic is one refused request, not a lost connection.

mod body;
mod host;
mod media;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Router};
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, ORIGIN};
use http::{HeaderMap, Method, Uri};
use model::{ErrorCode, limits};
use tokio::sync::Semaphore;

use crate::Secret;
use crate::respond::{Refusal, read_body};
use crate::serve::{Caller, Connection};

pub(crate) use body::BodyRefused;
pub use host::{Hosts, Scheme, Site};

/// What one door asks of its requests.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Which names the door answers to.
    pub hosts: Hosts,
    /// Which pages it listens to.
    pub origins: Origins,
    /// A body's size.
    pub body_bytes_max: usize,
    /// A body's time, from when it has to be waited for.
    pub body_timeout: Duration,
}

/// Which pages a door listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origins {
    /// None: whatever comes from a browser is refused.
    None,
    /// The door's own.
    Own,
}

impl Policy {
    /// `hosts` and `origins` with the bounds of `model::limits`.
    pub fn new(hosts: Hosts, origins: Origins) -> Self {
        let (body_bytes_max, body_timeout) = (limits::REQUEST_BYTES_MAX, limits::BODY_TIMEOUT);
        Self { hosts, origins, body_bytes_max, body_timeout }
    }

    /// Lets `handle` see the request of a `caller` once it was checked. For a door whose own checks stand in the same
    /// layer; [`protect`] for the others.
    pub async fn guard<F>(
        &self,
        caller: Option<Caller>,
        request: Request,
        handle: impl FnOnce(Request) -> F,
    ) -> Response
    where
        F: Future<Output = Response>,
    {
        match self.check(caller, &request) {
            Ok(()) => caught(handle(body::bounded(request, self))).await,
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Everything that can be said of a request of a `caller` before its body is read. For a handler that stands before
    /// all layers: it reads the body by [`Policy::read`], and is [`caught`].
    pub fn check<B: HttpBody>(
        &self,
        caller: Option<Caller>,
        request: &http::Request<B>,
    ) -> Result<(), Refusal> {
        let site = self.hosts.site(request.headers(), request.uri(), caller)?;
        refuse_pages(self.origins, site.as_ref(), request.method(), request.headers())?;
        refuse_token_in(request.uri())?;
        media::refuse_other_than_json(request)
    }

    /// The whole body of a request with such a head, within this policy's bounds.
    pub async fn read<B>(&self, head: &HeaderMap, body: B) -> Result<Bytes, Refusal>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        read_body(body::Bounded::new(body, head, self)).await
    }
}

/// What `handling` answers. A panic in it is an answer too.
pub async fn caught(handling: impl Future<Output = Response>) -> Response {
    AssertUnwindSafe(handling).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a handler panicked; its caller was told `internal`");
        Refusal::plain(ErrorCode::Internal).into_response()
    })
}

/// Puts `policy` before every route of `router`, its fallback included.
pub fn protect(router: Router, policy: impl Into<Arc<Policy>>) -> Router {
    router.layer(middleware::from_fn_with_state(policy.into(), check_first))
}

/// Answers `not_found` and `method_not_allowed` as JSON. For a router whose routes are all there and that has no
/// fallback of its own.
pub fn with_fallbacks(router: Router) -> Router {
    router
        .fallback(async || Refusal::plain(ErrorCode::NotFound))
        .method_not_allowed_fallback(async || Refusal::plain(ErrorCode::MethodNotAllowed))
}

/// At most `max` requests of `router` under way at once; more are told `daemon_busy`.
pub fn with_in_flight_max(router: Router, max: usize) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(Semaphore::new(max)), if_not_busy))
}

/// The credential of an `Authorization: Bearer …` line; none when there are two lines.
pub fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let (scheme, token) = line.to_str().ok()?.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty();
    is_bearer.then(|| Secret::from(token.trim_start_matches(' ').to_owned()))
}

async fn check_first(State(policy): State<Arc<Policy>>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Connection>().map(Connection::caller);
    policy.guard(caller, request, |request| next.run(request)).await
}

fn refuse_pages(
    origins: Origins,
    site: Option<&Site>,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let refused = || Err(Refusal::plain(ErrorCode::OriginRefused));
    // The own page never asks permission first; whoever does is another one.
    if method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return refused();
    }
    let mut lines = headers.get_all(ORIGIN).iter();
    let Some(origin) = lines.next() else { return Ok(()) };
    let own = match (origins, site) {
        (Origins::Own, Some(site)) => lines.next().is_none() && site.is_origin(origin.as_bytes()),
        (Origins::Own, None) | (Origins::None, _) => false,
    };
    if own { Ok(()) } else { refused() }
}

fn refuse_token_in(uri: &Uri) -> Result<(), Refusal> {
    let query = uri.query().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    if names.any(|name| name.eq_ignore_ascii_case("token") || name.eq_ignore_ascii_case("access_token")) {
        return Err(Refusal::plain(ErrorCode::TokenInUrl));
    }
    Ok(())
}

async fn if_not_busy(State(places): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    match places.try_acquire() {
        Ok(_place) => next.run(request).await,
        Err(_) => Refusal::plain(ErrorCode::DaemonBusy).retry_after(limits::RETRY_DELAY_MIN).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_bearer_is_one_line_of_the_scheme_and_nothing_else() {
        let token_of = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, HeaderValue::from_static(line));
            }
            bearer(&headers).map(|token| token.reveal().to_owned())
        };
        assert_eq!(token_of(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(token_of(&["bearer abc"]).as_deref(), Some("abc"));
        for refused in [&[][..], &["Basic abc"], &["Bearer"], &["Bearer "], &["Bearer a", "Bearer a"]] {
            assert_eq!(token_of(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn a_token_in_the_address_is_noticed_however_it_is_spelled() {
        for bad in ["/?token=x", "/a?b=1&access_token=x", "/?%74oken=x", "/?token", "/?Token=x"] {
            assert!(refuse_token_in(&Uri::from_static(bad)).is_err(), "{bad}");
        }
        for good in ["/", "/?tokens=3", "/token", "/?wait=30&q=token"] {
            assert!(refuse_token_in(&Uri::from_static(good)).is_ok(), "{good}");
        }
    }
}
