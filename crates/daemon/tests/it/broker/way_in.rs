//! The broker's doors: challenge, exchange, link and its first frames.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use model::{Clock, ErrorCode, OsEntropy};
use net::Secret;
use net::handshake::{Claim, sign_answer, verify_proof};
use net::respond::{Json, Refusal, json};
use net::socket::{Reader, Socket, Upgrade, Writer};
use wire::auth::{AUDIENCE_LINK, Challenge, ChallengeRequest, ExchangeAnswer, ExchangeRequest};
use wire::link::{NegotiationResponse, ToBroker, ToNode};

use super::Broker;

pub(super) async fn challenge(
    State(broker): State<Broker>,
    Json(request): Json<ChallengeRequest>,
) -> Result<Response, Refusal> {
    let challenge = Secret::mint(&OsEntropy).reveal().to_owned();
    let mut books = broker.books();
    if let Some(code) = books.refuse {
        return Err(Refusal::plain(code));
    }
    if !books.nodes.contains_key(&request.node_id) {
        return Err(Refusal::plain(ErrorCode::UnknownNode));
    }
    books.challenges.push(challenge.clone());
    Ok(json(StatusCode::OK, &Challenge { challenge, now: broker.inner.clock.now() }))
}

pub(super) async fn exchange(
    State(broker): State<Broker>,
    Json(request): Json<ExchangeRequest>,
) -> Result<Response, Refusal> {
    let issuer = broker.inner.issuer.lock().unwrap().clone();
    let now = broker.inner.clock.now();
    let mut books = broker.books();
    books.exchanges += 1;
    if let Some(code) = books.refuse {
        return Err(Refusal::plain(code));
    }
    let secret = match (&request.invite_token, &request.challenge) {
        (Some(token), None) if books.invites.contains(token) => token.clone(),
        (None, Some(challenge)) if books.challenges.contains(challenge) => challenge.clone(),
        _ => return Err(Refusal::plain(ErrorCode::InvalidToken)),
    };
    let proven = verify_proof(
        &Claim {
            issuer_key: &issuer.public(),
            secret: &Secret::from(secret),
            node_id: &request.node_id,
            public_key: &request.public_key,
            aud: AUDIENCE_LINK,
            nonce: &request.nonce,
        },
        &request.node_proof,
    );
    // A stand-in that signs with another key than it is asked for must get that far.
    let known = books.nodes.get(&request.node_id).is_none_or(|key| *key == request.public_key);
    if !known || (!proven && request.invite_token.is_some()) {
        return Err(Refusal::plain(ErrorCode::NodeProofInvalid));
    }
    books.nodes.insert(request.node_id.clone(), request.public_key);
    let ws_ticket = Secret::mint(&OsEntropy).reveal().to_owned();
    books.tickets.insert(ws_ticket.clone(), request.node_id);
    let answer = ExchangeAnswer {
        ws_ticket,
        expires_at: now + Duration::from_secs(30),
        rooms: Vec::new(),
        session_id: "s".to_owned(),
        mesh: books.mesh.clone(),
        member: None,
        now,
        issuer_key: issuer.public(),
        signature: String::new(),
    };
    Ok(json(StatusCode::OK, &sign_answer(answer, &issuer)))
}

pub(super) async fn link(State(broker): State<Broker>, upgrade: Upgrade) -> Result<Response, Refusal> {
    let ticket = upgrade.ticket()?;
    let mut books = broker.books();
    let node =
        books.tickets.remove(ticket.reveal()).ok_or_else(|| Refusal::plain(ErrorCode::InvalidTicket))?;
    books.upgrades += 1;
    drop(books);
    tracing::debug!(%node, "a link");
    Ok(upgrade.accept(move |socket| linked(broker, socket)))
}

async fn linked(broker: Broker, socket: Socket) {
    let (mut reader, writer) = socket.split();
    if negotiate(&broker, &mut reader, &writer).await.is_none() {
        return;
    }
    broker.books().links.push(writer.clone());
    broker.changed();
    while let Ok(text) = reader.next().await {
        let Ok(frame) = ToBroker::parse(&text) else { break };
        // Told after the answer left: a test that waits for the frame may push what must come behind it.
        if let Some(answer) = broker.hear(frame, &writer) {
            let _ = writer.send(answer.text()).await;
        }
        broker.changed();
    }
    broker.changed();
}

async fn negotiate(broker: &Broker, reader: &mut Reader, writer: &Writer) -> Option<()> {
    let Ok(ToBroker::FeatureNegotiationRequest(request)) = ToBroker::parse(&reader.next().await.ok()?) else {
        return None;
    };
    let response = {
        let mut books = broker.books();
        books.negotiations.push(request);
        books.epoch += 1;
        NegotiationResponse {
            supported: serde_json::from_value(books.features.clone()).unwrap(),
            missing_required: Vec::new(),
            now: broker.inner.clock.now(),
            link_epoch: books.epoch,
            mesh: books.mesh.clone(),
            restored: std::mem::take(&mut books.restored),
            members: books.members.clone(),
            version: "test".to_owned(),
            inbox_went_back: None,
            ledger_went_back: None,
        }
    };
    writer.send(ToNode::FeatureNegotiationResponse(response).text()).await.ok()
}
