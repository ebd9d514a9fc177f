//! A body bounded in bytes and time. Nothing is read before a handler asks for it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use hyper::body::{Frame, SizeHint};
use model::ErrorCode;
use tokio::time::Sleep;

use super::Policy;

/// So many times its bound is taken of a body that is refused, and thrown away. A caller hears the refusal only
/// once it has sent what it began, because closing on unread bytes resets the connection; one that sends more
/// than this is reset.
const WASTE_TIMES: usize = 4;

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyRefused {
    #[error("the body is over its bound")]
    TooLarge,
    #[error("the body took too long")]
    TooSlow,
}

impl BodyRefused {
    pub(crate) const fn code(self) -> ErrorCode {
        match self {
            BodyRefused::TooLarge => ErrorCode::TooLarge,
            BodyRefused::TooSlow => ErrorCode::RequestTimeout,
        }
    }
}

/// A body in bounds.
pub(super) struct Bounded<B> {
    inner: B,
    room: Room,
    waste_max: usize,
    timeout: Duration,
    /// Set once the body has to be waited for: most have come with their head.
    due: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy)]
enum Room {
    /// So many bytes may still come.
    Within(usize),
    /// The body is refused. So many bytes are still taken and thrown away.
    Over(usize),
}

/// The request with its body in bounds.
pub(super) fn bounded(request: Request, policy: &Policy) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    let (head, body) = request.into_parts();
    let body = Body::new(Bounded::new(body, &head.headers, policy));
    Request::from_parts(head, body)
}

impl<B: HttpBody> Bounded<B> {
    pub(super) fn new(inner: B, head: &HeaderMap, policy: &Policy) -> Self {
        let (bytes_max, timeout) = (policy.body_bytes_max, policy.body_timeout);
        // A caller that waits for leave to send has sent nothing that must be taken.
        let waste_max = if head.contains_key(EXPECT) { 0 } else { WASTE_TIMES * bytes_max };
        Self { inner, room: Room::Within(bytes_max), waste_max, timeout, due: None }
    }

    /// Refuses what is announced to be over before it is read.
    fn look_ahead(&mut self) -> Result<(), BodyRefused> {
        let announced = usize::try_from(self.inner.size_hint().lower()).unwrap_or(usize::MAX);
        if let Room::Within(left) = self.room
            && announced > left
        {
            self.room = Room::Over(self.waste_max);
        }
        match self.room {
            Room::Over(waste) if announced > waste => Err(BodyRefused::TooLarge),
            Room::Over(_) | Room::Within(_) => Ok(()),
        }
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timeout = self.timeout;
        self.due.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout))).as_mut().poll(cx)
    }

    /// Whether the frame is the handler's; if not it is waste.
    fn take(&mut self, size: usize) -> Result<bool, BodyRefused> {
        let waste = match self.room {
            Room::Within(left) if size <= left => {
                self.room = Room::Within(left - size);
                return Ok(true);
            }
            Room::Within(_) => self.waste_max,
            Room::Over(waste) => waste,
        };
        self.room = Room::Over(waste.checked_sub(size).ok_or(BodyRefused::TooLarge)?);
        Ok(false)
    }
}

impl<B> HttpBody for Bounded<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            self.look_ahead()?;
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
                ready!(self.poll_due(cx));
                return Poll::Ready(Some(Err(BodyRefused::TooSlow.into())));
            };
            match (frame, self.room) {
                (None, Room::Within(_)) => return Poll::Ready(None),
                (None | Some(Err(_)), Room::Over(_)) => {
                    return Poll::Ready(Some(Err(BodyRefused::TooLarge.into())));
                }
                (Some(Err(error)), Room::Within(_)) => return Poll::Ready(Some(Err(error.into()))),
                (Some(Ok(frame)), Room::Within(_) | Room::Over(_)) => {
                    if self.take(frame.data_ref().map_or(0, Bytes::len))? {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
            }
        }
    }

    /// One that is refused ends with the refusal.
    fn is_end_stream(&self) -> bool {
        matches!(self.room, Room::Within(_)) && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{Hosts, Origins};
    use crate::respond::read_body;
    use futures_util::stream;
    use http_body_util::StreamBody;

    const MAX: usize = 8;

    /// A body that does not announce its length.
    fn chunks(sizes: Vec<usize>) -> Body {
        let frames =
            sizes.into_iter().map(|size| Ok::<_, BoxError>(Frame::data(Bytes::from(vec![b'x'; size]))));
        Body::new(StreamBody::new(stream::iter(frames)))
    }

    async fn read(body: Body) -> Result<usize, ErrorCode> {
        let bounds = Policy { body_bytes_max: MAX, ..Policy::new(Hosts::Ignored, Origins::None) };
        let request = bounded(Request::new(body), &bounds);
        read_body(request.into_body()).await.map(|body| body.len()).map_err(|refusal| refusal.refused().code)
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_bound_whether_announced_or_not() {
        for (sizes, expected) in [
            (vec![MAX], Ok(MAX)),
            (vec![3, 5], Ok(MAX)),
            (vec![MAX + 1], Err(ErrorCode::TooLarge)),
            (vec![3, 5, 1], Err(ErrorCode::TooLarge)),
            (vec![3, 100], Err(ErrorCode::TooLarge)),
            (vec![1; 10_000], Err(ErrorCode::TooLarge)),
        ] {
            let whole: usize = sizes.iter().sum();
            assert_eq!(read(Body::from(vec![b'x'; whole])).await, expected, "{whole} announced");
            assert_eq!(read(chunks(sizes)).await, expected, "{whole} in chunks");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_a_request_timeout() {
        let endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, BoxError>>());
        assert_eq!(read(Body::new(endless)).await, Err(ErrorCode::RequestTimeout));
    }
}
