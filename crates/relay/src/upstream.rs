//! The upstream: dialled, timed, looked at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use http::header::{AUTHORIZATION, DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use model::relay::{Breaker, BreakerState};
use model::{Clock, Timestamp, limits};
use net::Secret;
use net::client::{ClientError, Pass, Target};
use serde_json::Value;
use wire::hub::INSTANCE_HEADER;
use wire::relay::is_outage;

use crate::config::Config;

/// The upstream and what is known of it.
pub(crate) struct Upstream {
    pass: Pass,
    own: Option<HeaderValue>,
    health_path: String,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    breaker: Breaker,
    /// Its clock's distance from ours, in microseconds.
    ahead_micros: i64,
    /// It told its own time, to the microsecond: dates of its answers say less.
    tells_time: bool,
    /// Which one answered the last look; nothing after a connection could not be made.
    seen: Option<Seen>,
    /// When it last answered, with whatever.
    answered_at: Option<Timestamp>,
    /// Why the last try since then reached nobody.
    cause: Option<String>,
}

/// What is known of it, without a guess about what would happen now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// When it last answered.
    pub(crate) answered_at: Option<Timestamp>,
    /// Tries since then that reached nobody.
    pub(crate) unanswered: u32,
    /// Why the last of them did not.
    pub(crate) cause: Option<String>,
    /// For how long it has not been dialled any more but by the drainer's looks.
    pub(crate) away_for: Option<Duration>,
}

/// What a look at the upstream found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its own name, when it says one.
    pub(crate) instance: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum SendError {
    /// No byte left.
    NotSent(String),
    /// It left, and nothing came back.
    Lost(String),
}

impl Upstream {
    pub(crate) fn new(config: &Config, clock: Arc<dyn Clock>) -> Self {
        let pass = Pass::to(config.upstream.clone(), config.trust.clone());
        let own = config.upstream_token.as_ref().and_then(bearer);
        let health_path = config.health_path.clone();
        Self { pass, own, health_path, clock, known: Mutex::default() }
    }

    /// The address.
    pub(crate) fn target(&self) -> &Target {
        self.pass.target()
    }

    /// Adds the relay's own credential.
    pub(crate) fn lend(&self, headers: &mut HeaderMap) {
        if let Some(own) = &self.own {
            headers.insert(AUTHORIZATION, own.clone());
        }
    }

    /// Hands a request on and waits for the head of its answer.
    pub(crate) async fn send(
        &self,
        request: Request<Body>,
        timeout: Duration,
    ) -> Result<Response<Incoming>, SendError> {
        match self.pass.send(request, timeout).await {
            // What answers stands before the upstream; the caller hears it all the same.
            Ok(answer) if is_outage(answer.status().as_u16()) => {
                let cause = format!("it answers {}", answer.status());
                self.unreachable(&cause, retry_after(answer.headers()));
                Ok(answer)
            }
            Ok(answer) => {
                let mut known = self.known();
                known.breaker.answered();
                (known.answered_at, known.cause) = (Some(self.clock.now()), None);
                drop(known);
                Ok(answer)
            }
            Err(ClientError::NotRunning { cause, .. }) => {
                self.unreachable(&cause, None);
                Err(SendError::NotSent(cause))
            }
            Err(ClientError::BadPath) => Err(SendError::NotSent("the path cannot stand in a request".into())),
            Err(error) => Err(SendError::Lost(error.to_string())),
        }
    }

    /// Looks whether it lives, and which one it is.
    pub(crate) async fn probe(&self) -> Result<Seen, SendError> {
        let request =
            Request::builder().method(Method::GET).uri(self.health_path.as_str()).body(Body::empty());
        let request = request.map_err(|error| SendError::NotSent(error.to_string()))?;
        let answer = match self.send(request, limits::RELAY_PROBE_TIMEOUT).await {
            Ok(answer) => answer,
            Err(error) => {
                // A server that takes connections and says nothing is away as well.
                if let SendError::Lost(cause) = &error {
                    self.unreachable(cause, None);
                }
                return Err(error);
            }
        };
        if is_outage(answer.status().as_u16()) {
            return Err(SendError::Lost(format!("it answers {}", answer.status())));
        }
        self.heard_time(answer.headers());
        let (instance, told) = health(answer).await;
        if let Some(told) = told {
            let mut known = self.known();
            known.ahead_micros = told.as_micros() - self.clock.now().as_micros();
            known.tells_time = true;
        }
        let seen = Seen { instance };
        self.known().seen = Some(seen.clone());
        Ok(seen)
    }

    /// What the last look found, unless a connection could not be made since.
    pub(crate) fn seen(&self) -> Option<Seen> {
        self.known().seen.clone()
    }

    /// Whether it is worth dialling.
    pub(crate) fn breaker(&self) -> BreakerState {
        self.known().breaker.state(self.clock.monotonic())
    }

    /// What is known of it.
    pub(crate) fn word(&self) -> Word {
        let (now, known) = (self.clock.monotonic(), self.known());
        Word {
            answered_at: known.answered_at,
            unanswered: known.breaker.failures(),
            cause: known.cause.clone(),
            away_for: known.breaker.away_for(now),
        }
    }

    /// Learns the upstream's time from an answer. Its seconds are cut, so the time is never ahead.
    pub(crate) fn heard_time(&self, headers: &HeaderMap) {
        if self.known().tells_time {
            return;
        }
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let told = date.and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        if let Some(told) = told {
            let ahead = told.as_microsecond() - self.clock.now().as_micros();
            // Within a second both clocks may well be the same: a cut date says no more.
            self.known().ahead_micros = if (-1_000_000..=0).contains(&ahead) { 0 } else { ahead };
        }
    }

    /// The upstream's time, as well as it is known: never ahead of it.
    pub(crate) fn now(&self) -> Timestamp {
        let ahead_micros = self.known().ahead_micros;
        Timestamp::from_micros(self.clock.now().as_micros().saturating_add(ahead_micros))
    }

    fn unreachable(&self, cause: &str, retry_after: Option<Duration>) {
        let now = self.clock.monotonic();
        let mut known = self.known();
        known.breaker.unreachable(now, retry_after);
        known.seen = None;
        known.cause = Some(model::secrets::storable_text(cause));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long it wants to be left alone.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

fn bearer(token: &Secret) -> Option<HeaderValue> {
    let mut line = HeaderValue::from_str(&format!("Bearer {}", token.reveal())).ok()?;
    line.set_sensitive(true);
    Some(line)
}

/// The name it gives itself, in a header or in the JSON of its health, and its time.
async fn health(answer: Response<Incoming>) -> (Option<String>, Option<Timestamp>) {
    let named = answer.headers().get(INSTANCE_HEADER).and_then(|name| name.to_str().ok()).and_then(short);
    let reading = Limited::new(answer.into_body(), limits::RELAY_RESPONSE_BYTES_MAX).collect();
    let read = tokio::time::timeout(limits::RELAY_PROBE_TIMEOUT, reading).await;
    let Ok(Ok(body)) = read else { return (named, None) };
    let said: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    let word = |name: &str| said.get(name).and_then(Value::as_str);
    (named.or_else(|| word("instance").and_then(short)), word("now").and_then(|now| now.parse().ok()))
}

fn short(name: &str) -> Option<String> {
    let fits = !name.is_empty() && name.len() <= limits::RELAY_SOURCE_BYTES_MAX;
    (fits && !model::secrets::looks_secret(name)).then(|| name.to_owned())
}
