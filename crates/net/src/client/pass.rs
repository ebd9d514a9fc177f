//! Handing requests on as they are.
//!
//! - The task that asks drives the connection it asks on: nothing passes between tasks until an answer's body turns
//!   out to be longer than what came with its head.
//! - A connection is asked again only when its last answer was read to the end. One that closed meanwhile gives the
//!   request back unsent, and the next one gets it.

mod idle;
mod line;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::answer::innermost;
use super::dial::Dial;
use super::{ClientError, Target};
use crate::guard::Scheme;
use crate::tls::Trust;
use idle::Idle;
use line::{Line, Unanswered};

/// Hands requests on to one door: bodies are streamed both ways, connections are kept. Clones share them.
#[derive(Clone)]
pub struct Pass {
    target: Arc<Target>,
    host: HeaderValue,
    dial: Dial,
    idle: Arc<Idle>,
}

impl Pass {
    /// To the door at `target`; `trust` says whose certificates are believed, else the public authorities'.
    pub fn to(target: Target, trust: Option<Trust>) -> Self {
        let (target, host) = (Arc::new(target.clone()), host(&target));
        Self { dial: Dial::new(target.clone(), trust), target, host, idle: Arc::default() }
    }

    /// Sends `request`, whose address is only a path and query: they follow the door's own. Its answer has to begin
    /// within `answer_max`. `NotRunning` means that no byte of it left.
    pub async fn send(
        &self,
        mut request: Request<Body>,
        answer_max: Duration,
    ) -> Result<Response<Incoming>, ClientError> {
        let due_at = Instant::now() + answer_max;
        let address = self.address(request.uri())?;
        *request.uri_mut() = address;
        request.headers_mut().insert(HOST, self.host.clone());
        while let Some(line) = self.idle.take() {
            match line.ask(request, due_at, &self.idle).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Unsent(back, _)) => request = *back,
                Err(Unanswered::Lost(error)) => return Err(broken(&error)),
                Err(Unanswered::Late) => return Err(ClientError::Timeout),
            }
        }
        // Apart, because it is rare and long: every request would carry it along.
        let line = Box::pin(self.connect(due_at)).await?;
        line.ask(request, due_at, &self.idle).await.map_err(|error| match error {
            Unanswered::Unsent(_, error) | Unanswered::Lost(error) => broken(&error),
            Unanswered::Late => ClientError::Timeout,
        })
    }

    /// The door.
    pub fn target(&self) -> &Target {
        &self.target
    }

    async fn connect(&self, due_at: Instant) -> Result<Line, ClientError> {
        let dialled = timeout_at(due_at, self.dial.line()).await;
        let dialled = dialled.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let stream = dialled.map_err(|error| {
            let cause = match error.kind() {
                std::io::ErrorKind::TimedOut => "connecting took too long".to_owned(),
                _ => innermost(&error).to_string(),
            };
            ClientError::NotRunning { target: self.target.to_string(), cause }
        })?;
        Line::over(stream).await.map_err(|error| broken(&error))
    }

    /// What stands in the request's first line.
    fn address(&self, asked: &Uri) -> Result<Uri, ClientError> {
        let path = asked.path_and_query();
        let base = match &*self.target {
            Target::Tcp { base, .. } if !base.is_empty() => base,
            Target::Tcp { .. } | Target::Unix(_) => {
                return Ok(path.cloned().unwrap_or_else(|| PathAndQuery::from_static("/")).into());
            }
        };
        let whole = format!("{base}{}", path.map_or("/", PathAndQuery::as_str));
        whole.parse::<PathAndQuery>().map(Uri::from).map_err(|_| ClientError::BadPath)
    }
}

fn broken(error: &hyper::Error) -> ClientError {
    ClientError::Broken(innermost(error).to_string())
}

/// The door's name in a request, with its port unless that is the usual one.
fn host(target: &Target) -> HeaderValue {
    let name = match target {
        Target::Unix(_) => "localhost".to_owned(),
        Target::Tcp { scheme, host, port, .. } => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            if *port == Scheme::port(*scheme) { host } else { format!("{host}:{port}") }
        }
    };
    // An address was read from a URL's authority, and a header carries whatever may stand there.
    HeaderValue::from_str(&name).unwrap_or_else(|_| HeaderValue::from_static("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_door_and_goes_below_its_base() {
        for (url, asked, named, line) in [
            ("http://127.0.0.1:7440", "/a?b=1", "127.0.0.1:7440", "/a?b=1"),
            ("http://[::1]:7440/", "/a", "[::1]:7440", "/a"),
            ("http://example.org", "http://elsewhere/a", "example.org", "/a"),
            ("https://example.org/post/", "/a?b=1", "example.org", "/post/a?b=1"),
            ("https://example.org:80", "/", "example.org:80", "/"),
        ] {
            let pass = Pass::to(Target::of_url(url).unwrap(), None);
            assert_eq!(pass.host, named, "{url}");
            assert_eq!(pass.address(&asked.parse().unwrap()).unwrap(), line, "{url}");
        }
    }
}
