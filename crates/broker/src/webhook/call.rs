//! One call: what is said, what is heard.
//!
//! - The status says everything: an answer's body is read for a moment, for the other end's sake, and forgotten.
//! - A redirect is an answer like any other that is not success. Cookies and other headers are not looked at.
//! - One deadline covers all of it; a status heard before it counts.

use std::future::Future;
use std::pin::pin;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ledger::Push;
use model::limits;
use model::webhook::{self, Heard, WebhookUrl};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::sleep;
use wire::message::Message;

use super::Webhooks;
use super::dial::{NoLine, dial};
use super::gate::Closed;
use crate::message::of_mail;

/// The one status that means more than "not now".
const GONE: u16 = 410;

/// What an endpoint is told.
#[derive(Serialize)]
struct Told {
    r#type: &'static str,
    #[serde(flatten)]
    message: Message,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Called {
    /// What it means.
    pub heard: Heard,
    /// The same in a word, for people.
    pub answer: String,
}

/// Why nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum NoAnswer {
    #[error("url_unreadable")]
    Url,
    #[error("message_unreadable")]
    Message,
    #[error("unresolved")]
    Unresolved,
    #[error("address_refused")]
    AddressRefused,
    #[error("unreachable")]
    Unreachable,
    #[error("tls")]
    Tls,
    #[error("broken")]
    Broken,
    #[error("timeout")]
    Timeout,
}

impl Webhooks {
    /// Makes the call and waits for its end.
    pub(super) async fn call(&self, push: &Push) -> Called {
        let mut time_is_up = pin!(sleep(self.timeout));
        // Ends the connection with this call, whatever is still on its way.
        let mut connection = JoinSet::new();
        let answered = tokio::select! {
            answered = self.ask(push, &mut connection) => answered,
            () = &mut time_is_up => Err(NoAnswer::Timeout),
        };
        match answered {
            Ok(answer) => {
                let called = called(&answer, push);
                tokio::select! {
                    () = skim(answer) => {}
                    () = &mut time_is_up => {}
                }
                called
            }
            Err(none) => Called { heard: Heard::NotTaken { retry_after: None }, answer: none.to_string() },
        }
    }

    async fn ask(&self, push: &Push, connection: &mut JoinSet<()>) -> Result<Response<Incoming>, NoAnswer> {
        let url: WebhookUrl = push.url.parse().map_err(|_| NoAnswer::Url)?;
        let request = self.request(push, &url)?;
        let addresses = self.gate.pass(&url).await.map_err(|closed| match closed {
            Closed::Unresolved => NoAnswer::Unresolved,
            Closed::NotPublic(_) => NoAnswer::AddressRefused,
        })?;
        let line = dial(&self.trust, &url, &addresses).await.map_err(|none| match none {
            NoLine::Unreachable => NoAnswer::Unreachable,
            NoLine::Tls(error) => {
                tracing::debug!(host = %url.host(), %error, "no TLS with a webhook's endpoint");
                NoAnswer::Tls
            }
        })?;
        let (mut sender, running) = http1::Builder::new()
            .max_buf_size(limits::HEADER_BYTES_MAX)
            .handshake(TokioIo::new(line))
            .await
            .map_err(|_| NoAnswer::Broken)?;
        connection.spawn(quietly(running));
        sender.send_request(request).await.map_err(|_| NoAnswer::Broken)
    }

    fn request(&self, push: &Push, url: &WebhookUrl) -> Result<Request<Full<Bytes>>, NoAnswer> {
        let message = of_mail(&push.row).map_err(|_| NoAnswer::Message)?;
        let told = Told { r#type: "message", message };
        let body = serde_json::to_vec(&told).map_err(|_| NoAnswer::Message)?;
        let id = webhook::delivery_id(push.claim.id, push.claim.recipient);
        let (signature, at) = webhook::sign(&push.secrets, &id, push.now, &body);
        Request::builder()
            .method(Method::POST)
            .uri(url.target())
            .header(HOST, url.authority())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, &self.agent)
            .header(CONNECTION, "close")
            .header("webhook-id", id)
            .header("webhook-timestamp", at)
            .header("webhook-signature", signature)
            .body(Full::new(body.into()))
            .map_err(|_| NoAnswer::Url)
    }
}

fn called(answer: &Response<Incoming>, push: &Push) -> Called {
    let status = answer.status();
    let heard = if status.is_success() {
        Heard::Taken
    } else if status.as_u16() == GONE {
        Heard::Gone
    } else {
        let named = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Heard::NotTaken { retry_after: named.and_then(|text| webhook::retry_after(text, push.now)) }
    };
    Called { heard, answer: format!("http_{}", status.as_u16()) }
}

/// Reads a little of the body, so that the other end can finish what it says, and no more.
async fn skim(answer: Response<Incoming>) {
    let mut body = answer.into_body();
    let mut read = 0;
    while read < limits::WEBHOOK_ANSWER_BYTES_MAX {
        match body.frame().await {
            Some(Ok(frame)) => read += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => return,
        }
    }
}

async fn quietly(running: impl Future<Output = hyper::Result<()>>) {
    // Its end is told to whoever waits for the answer.
    let _told_elsewhere = running.await;
}
