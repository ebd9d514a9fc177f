//! A state that passes is remembered, so that a conflict can show what a write was asked on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use mailbox::relay::LeftVersion;
use model::limits;

use crate::head;
use crate::relay::Shared;

/// A body that passes as it is while a copy of it is made.
pub(crate) struct Kept {
    body: Incoming,
    /// Nothing once it is known not to fit, or was handed over.
    copy: Option<Copy>,
}

struct Copy {
    of: LeftVersion,
    bytes: Vec<u8>,
    shared: Arc<Shared>,
}

/// Whether the answer to a read is a whole state that may be remembered.
pub(crate) fn is_state<B>(method: &Method, answer: &Response<B>) -> bool {
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    *method == Method::GET
        && answer.status() == StatusCode::OK
        && head::is_json(answer.headers())
        && length.is_none_or(|length: usize| length <= limits::RELAY_THEIRS_BYTES_MAX)
}

impl Kept {
    pub(crate) fn new(body: Incoming, of: LeftVersion, shared: Arc<Shared>) -> Self {
        Self { body, copy: Some(Copy { of, bytes: Vec::new(), shared }) }
    }

    fn passes(&mut self, data: &[u8]) {
        let Some(copy) = &mut self.copy else { return };
        if copy.bytes.len() + data.len() > limits::RELAY_THEIRS_BYTES_MAX {
            self.copy = None;
            return;
        }
        copy.bytes.extend_from_slice(data);
    }

    fn ended(&mut self) {
        if let Some(Copy { of: LeftVersion { order_key, tag }, bytes, shared }) = self.copy.take() {
            shared.bases.saw(order_key, tag, Bytes::from(bytes));
        }
    }
}

impl Body for Kept {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.passes(data);
                }
                // Whoever reads may stop here.
                if self.body.is_end_stream() {
                    self.ended();
                }
            }
            Some(Err(_)) => self.copy = None,
            None => self.ended(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
