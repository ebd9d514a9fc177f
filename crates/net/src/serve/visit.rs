//! One connection, from its first byte to its end.

use std::convert::Infallible;
use std::io;
use std::pin::pin;

use axum::response::{IntoResponse, Response};
use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use model::{ErrorCode, limits};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::debug;

use super::accept::{Detached, Stream};
use super::answers::Answers;
use super::connection::Life;
use super::pace::Pace;
use super::{Bounds, Connection};
use crate::respond::Refusal;
use crate::tls::Identity;
use crate::watched::{Heard, Watched};

/// What serving one connection needs.
pub(super) struct Visit<A> {
    pub(super) bounds: Bounds,
    pub(super) answers: A,
    pub(super) connection: Connection,
    pub(super) life: Life,
}

impl<A: Answers> Visit<A> {
    /// A connection that was accepted on another runtime, perhaps.
    pub(super) async fn serve(self, stream: Detached) {
        match stream.attach() {
            Ok(Stream::Tcp(stream)) => self.serve_stream(stream).await,
            Ok(Stream::Tls(stream, identity)) => self.serve_tls(stream, identity).await,
            Ok(Stream::Unix(stream)) => self.serve_stream(stream).await,
            Err(error) => debug!(%error, "a connection could not be taken over"),
        }
    }

    /// The TLS handshake, which may take as long as a head, then the rest.
    async fn serve_tls(self, stream: TcpStream, identity: Identity) {
        let greeted = tokio::select! {
            greeted = timeout(self.bounds.header_timeout, identity.accept(stream)) => greeted,
            () = self.life.stop.cancelled() => return,
        };
        match greeted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => self.serve_stream(stream).await,
            Err(error) => debug!(%error, "a caller did not get through the TLS handshake"),
        }
    }

    /// Requests and answers until either side ends it, or the door does.
    async fn serve_stream<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { bounds, answers, connection, life } = self;
        let heard = Heard::default();
        let pace = Pace::new(bounds.header_timeout, bounds.idle_timeout, heard.clone());
        let stream = TokioIo::new(Watched::new(stream, heard, bounds.stall_timeout));
        let answer = service_fn(move |request| answer(answers.clone(), connection.clone(), request));
        let serving = http1::Builder::new()
            .timer(pace)
            .header_read_timeout(bounds.header_timeout)
            // The buffer alone would let a head of a little more pass, the head's bound alone one without end.
            .max_buf_size(limits::HEADER_BYTES_READ_MAX)
            .max_header_size(limits::HEADER_BYTES_READ_MAX)
            .serve_connection(stream, answer)
            .with_upgrades();
        let mut serving = pin!(serving);
        // Its own: whoever waits for a token takes a lock at every look, which all connections of a door would share.
        let stop = life.stop.child_token();
        let ended = tokio::select! {
            ended = serving.as_mut() => ended,
            () = stop.cancelled() => {
                serving.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = serving => ended,
                    () = life.cut.cancelled() => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            debug!(%error, "a connection ended early");
        }
    }
}

async fn answer<A: Answers>(
    answers: A,
    connection: Connection,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    if head_bytes(&request) > limits::HEADER_BYTES_MAX {
        let mut refused = Refusal::plain(ErrorCode::HeadTooLarge).into_response();
        refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return Ok(refused);
    }
    Ok(answers.answer(&connection, request).await)
}

/// As long as the head was on the line, but for blanks nobody needs.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    request.method().as_str().len() + target + lines.sum::<usize>()
}
