//! The one way in of every write.
//!
//! Who calls → the whole body within its bound → the request's fingerprint → is its key known? → is a copy under way? →
//! and only then what it asks: shape, budget, the ledger's transaction.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{AsHeaderName, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use ledger::{HubApplied, HubEffect, HubKey, HubKnown, HubOutcome, HubWrite, Member};
use model::hub::{
    Change, KeyVerdict, Precondition, RecordId, RecordKind, canonical_path, look_up, request_fingerprint,
};
use model::{ClientMessageId, ErrorCode, Fingerprint, MessageId, Timestamp, limits};
use net::respond::{Refusal, read_body};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wire::hub::CREATED_HEADER;

use super::answer::{self, render};
use super::underway::Holding;
use crate::broker::{Shared, storage_refused};
use crate::direct::{Caller, idempotency_key};
use crate::limiter::{Ask, Verdict};

/// A write by a known caller whose key is free. An extractor: what the key alone answers, it answers.
pub(super) struct Call {
    shared: Arc<Shared>,
    pub(super) member: Member,
    pub(super) caller: Caller,
    pub(super) headers: HeaderMap,
    method: String,
    path: String,
    key: Option<ClientMessageId>,
    fingerprint: Fingerprint,
    body: Option<Value>,
    _holding: Option<Holding>,
}

impl FromRequest<Arc<Shared>> for Call {
    type Rejection = Response;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Response> {
        let read = Call::read(request, shared).await.map_err(|refusal| refused(shared, refusal))?;
        let held = read.look_up().await;
        match held.map_err(|refusal| refused(shared, refusal))? {
            Some(answer) => Err(answer),
            None => read.hold().map_err(|refusal| refused(shared, refusal)),
        }
    }
}

impl Call {
    async fn read(request: Request, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, shared).await?.may_use_hub()?;
        let key = idempotency_key(&parts.headers)?.map(str::parse).transpose()?;
        let bytes = read_body(body).await?;
        if bytes.len() > limits::BODY_BYTES_MAX {
            return Err(Refusal::plain(ErrorCode::TooLarge));
        }
        let body = if bytes.is_empty() { None } else { Some(model::meta::parse_canonical(&bytes)?) };
        let path = canonical_path(parts.uri.path());
        let method = parts.method.as_str().to_owned();
        let fingerprint = request_fingerprint(&method, &path, parts.uri.query(), body.as_ref());
        Ok(Call {
            shared: Arc::clone(shared),
            member: caller.member.clone(),
            caller,
            headers: parts.headers,
            method,
            path,
            key,
            fingerprint,
            body,
            _holding: None,
        })
    }

    /// The answer the key has, if it has one.
    async fn look_up(&self) -> Result<Option<Response>, Refusal> {
        let Some(key) = &self.key else { return Ok(None) };
        let known = self.shared.ledger.hub_known(self.member.id, key).await;
        let known = known.map_err(|error| storage_refused(&error))?;
        // The broker's own dedupe row answers copies of a message.
        if self.is_message() && matches!(known, Some(HubKnown::Message { .. })) {
            return Ok(None);
        }
        match (look_up(known.as_ref().map(HubKnown::known).as_ref(), &self.fingerprint), known) {
            (KeyVerdict::Fresh, _) => Ok(None),
            (KeyVerdict::Replay, Some(HubKnown::Stored { answer, .. })) => {
                self.shared.metrics.hub_replayed.add_one();
                Ok(Some(answer::replayed(answer)))
            }
            (KeyVerdict::Retired, _) => Err(Refusal::plain(ErrorCode::IdempotencyKeyRetired)),
            (KeyVerdict::Reused | KeyVerdict::Replay, _) => Err(answer::reused()),
        }
    }

    fn hold(mut self) -> Result<Self, Refusal> {
        if let Some(key) = &self.key {
            let holding = self.shared.hub_under_way.hold(self.member.id, key);
            self._holding = Some(holding.ok_or_else(|| {
                Refusal::plain(ErrorCode::IdempotencyInProgress).retry_after(limits::RETRY_DELAY_MIN)
            })?);
        }
        Ok(self)
    }

    fn is_message(&self) -> bool {
        self.path.trim_end_matches('/') == "/hub/messages"
    }

    /// The body as `T`, and as it was sent.
    pub(super) fn fields<T: DeserializeOwned>(&self) -> Result<(T, Map<String, Value>), Refusal> {
        let Some(body @ Value::Object(fields)) = &self.body else {
            return Err(Refusal::new(ErrorCode::InvalidRequest, "The body must be a JSON object."));
        };
        let parsed = serde_json::from_value(body.clone()).map_err(|error| {
            // The caller's own words, back to the caller and nowhere else.
            Refusal::new(ErrorCode::InvalidRequest, format!("The body cannot be read: {error}."))
        })?;
        Ok((parsed, fields.clone()))
    }

    /// Refuses a body where none is asked for; an empty object counts as none.
    pub(super) fn no_fields(&self) -> Result<(), Refusal> {
        match &self.body {
            None => Ok(()),
            Some(Value::Object(fields)) if fields.is_empty() => Ok(()),
            Some(_) => Err(Refusal::new(ErrorCode::InvalidRequest, "This address takes no body.")),
        }
    }

    /// What a body of nothing but `read` says.
    pub(super) fn read_flag(&self) -> Result<Option<Value>, Refusal> {
        match &self.body {
            Some(Value::Object(fields)) if fields.len() == 1 && fields.contains_key("read") => {
                Ok(fields.get("read").cloned())
            }
            Some(_) | None => self.no_fields().map(|()| None),
        }
    }

    /// What the caller had seen.
    pub(super) fn precondition(&self) -> Result<Precondition, Refusal> {
        let line = |name| one_line(&self.headers, name);
        Ok(Precondition::parse(line(IF_MATCH)?, line(IF_NONE_MATCH)?, line(IF_UNMODIFIED_SINCE)?)?)
    }

    /// A key or a minted id.
    pub(super) async fn id(&self) -> Result<ClientMessageId, Refusal> {
        match &self.key {
            Some(key) => Ok(key.clone()),
            None => self.mint().await,
        }
    }

    async fn mint(&self) -> Result<ClientMessageId, Refusal> {
        let now = self.shared.ledger.now().await.map_err(|error| storage_refused(&error))?;
        Ok(ClientMessageId::mint(now, self.shared.entropy.as_ref()))
    }

    /// Makes a record. Its id is the caller's or a new one.
    pub(super) async fn create(
        self,
        kind: RecordKind,
        id: Option<String>,
        fields: Map<String, Value>,
    ) -> Result<Response, Refusal> {
        let id = match id {
            Some(id) => id.parse()?,
            None => self.mint().await?.as_str().parse()?,
        };
        self.change(kind, id, Change::Create(fields)).await
    }

    /// Changes a record, under the caller's precondition.
    pub(super) async fn change(
        self,
        kind: RecordKind,
        id: RecordId,
        change: Change,
    ) -> Result<Response, Refusal> {
        let precondition = self.precondition()?;
        self.write(HubEffect::Record { kind, id, change, precondition }).await
    }

    /// Marks a message as read.
    pub(super) async fn read_message(self, id: MessageId) -> Result<Response, Refusal> {
        self.write(HubEffect::Read(id)).await
    }

    /// Takes the budget and hands the effect to the ledger.
    pub(super) async fn write(self, effect: HubEffect) -> Result<Response, Refusal> {
        let written = self.try_write(effect).await;
        if let Err(refusal) = &written {
            self.shared.metrics.hub_refused.of(refusal.refused().code).add_one();
        }
        written
    }

    async fn try_write(&self, effect: HubEffect) -> Result<Response, Refusal> {
        let created_at = self.created_at()?;
        self.take_budget().await?;
        let key = self.key.clone().map(|key| HubKey {
            key,
            method: self.method.clone(),
            path: self.path.clone(),
            fingerprint: self.fingerprint,
            created_at,
        });
        let render: fn(&HubApplied) -> ledger::HubAnswer = render;
        let write = HubWrite { principal: self.member.id, key, effect, render };
        match self.shared.ledger.hub_write(write).await.map_err(|error| storage_refused(&error))? {
            HubOutcome::Applied(answer) => {
                self.shared.metrics.hub_writes.add_one();
                Ok(answer::first(answer))
            }
            HubOutcome::Replayed(answer) => {
                self.shared.metrics.hub_replayed.add_one();
                Ok(answer::replayed(answer))
            }
            HubOutcome::Refused(refusal) => Err(answer::refused(refusal)),
        }
    }

    /// When the request was first made, as its carrier tells it in the hub's own time.
    pub(super) fn created_at(&self) -> Result<Option<Timestamp>, Refusal> {
        Ok(one_line(&self.headers, CREATED_HEADER)?.map(str::parse).transpose()?)
    }

    async fn take_budget(&self) -> Result<(), Refusal> {
        let (mesh, member) = (self.shared.mesh.id, self.member.id);
        let too_soon = |wait| Refusal::plain(ErrorCode::RateLimited).retry_after(wait);
        self.shared.requests.admit(mesh, member, 1).map_err(|refused| too_soon(refused.retry_after))?;
        let [a, b, c, d, e, f, g, h, ..] = *self.fingerprint.as_bytes();
        let ask = Ask {
            mesh,
            member,
            client_message_id: self.id().await?,
            fingerprint_prefix: [a, b, c, d, e, f, g, h],
            cost: 1,
        };
        match self.shared.limiter.consume(&ask).await {
            Verdict::Granted | Verdict::AlreadyGranted => Ok(()),
            Verdict::Denied { retry_after } => Err(too_soon(retry_after)),
        }
    }
}

fn refused(shared: &Shared, refusal: Refusal) -> Response {
    shared.metrics.hub_refused.of(refusal.refused().code).add_one();
    refusal.into_response()
}

/// A header that may stand there once.
pub(super) fn one_line(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&str>, Refusal> {
    let text = name.as_str().to_owned();
    let malformed =
        || Refusal::new(ErrorCode::InvalidRequest, format!("{text} must be one line of plain text."));
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => line.to_str().map(Some).map_err(|_| malformed()),
        (Some(_), Some(_)) => Err(malformed()),
    }
}
