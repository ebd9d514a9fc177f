//! The one way in, server side: invite or challenge → exchange → ticket.
//!
//! - The order is shape → rate → invite → expiry → node → proof → nonce with ticket, and only the last step stores
//!   anything but a challenge.
//! - Secrets are kept as hashes; the answer is signed with the key every invite names.

mod rate;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use axum::routing::post;
use http::StatusCode;
use ledger::{Exchange, Exchanged, NewInvite, Role, Secret as By, SecretHash, StorageError, WayInError};
use model::id::sanitise_name;
use model::{ErrorCode, MemberName, NodeName, limits};
use net::Secret;
use net::handshake::{Claim, sign_answer, verify_proof};
use net::respond::{self, Json, Refusal, read_body};
use net::serve::{Caller, Connection};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::ask::Invite;
use wire::auth::{
    AUDIENCE_DEFAULT, AUDIENCE_LINK, AUDIENCE_SUBSCRIBE, Challenge, ChallengeRequest, ExchangeAnswer,
    ExchangeRequest,
};

use crate::ask::member_ref;
use crate::broker::{Shared, storage_refused};
use crate::openapi::Refusals;

pub(crate) use rate::KnockRate;

/// Surfaces a ticket may be for.
const AUDIENCES: [&str; 4] = [AUDIENCE_DEFAULT, AUDIENCE_LINK, "postrider-pipe", AUDIENCE_SUBSCRIBE];
/// Sixteen random bytes in any spelling, with room to spare.
const NONCE_BYTES_MAX: usize = 128;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    // The seed's paths answer too, for those who speak them.
    OpenApiRouter::new()
        .routes(routes!(exchange))
        .routes(routes!(challenge))
        .route("/ansible/auth/exchange", post(exchange))
        .route("/ansible/auth/challenge", post(challenge))
}

/// Stores an invite and returns its token, which is kept nowhere else.
pub(crate) async fn create_invite(
    shared: &Shared,
    node: Option<NodeName>,
    role: Role,
) -> Result<Invite, StorageError> {
    let token = Secret::mint(shared.entropy.as_ref());
    let expires_at = shared.ledger.now().await? + limits::INVITE_TTL;
    let invite = NewInvite { hash: hash_of(&token), expected_node: node.clone(), role, expires_at };
    shared.ledger.create_invite(invite).await?;
    Ok(Invite {
        token: token.reveal().to_owned(),
        issuer_key: shared.issuer.public(),
        url: shared.config.public_url.clone(),
        expires_at,
        node,
    })
}

/// What the ledger keeps of a secret.
pub(crate) fn hash_of(secret: &Secret) -> SecretHash {
    SecretHash(*secret.token_hash().as_bytes())
}

/// A nonce for a node that comes back.
#[utoipa::path(
    post,
    path = "/v1/auth/challenge",
    tag = "way in",
    request_body = ChallengeRequest,
    responses((status = 200, body = Challenge), Refusals)
)]
async fn challenge(
    State(shared): State<Arc<Shared>>,
    connection: Connection,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: ChallengeRequest = read_small(request).await?;
    let answer = async {
        knock(&shared, &connection)?;
        let challenge = Secret::mint(shared.entropy.as_ref());
        let issued = shared.ledger.issue_challenge(&asked.node_id, hash_of(&challenge)).await;
        let now = issued.map_err(|error| refused(&error))?;
        Ok(Challenge { challenge: challenge.reveal().to_owned(), now })
    };
    let answer = counted(&shared, answer.await)?;
    Ok(respond::json(StatusCode::OK, &answer))
}

/// An invite or a signed challenge for a ticket.
#[utoipa::path(
    post,
    path = "/v1/auth/exchange",
    tag = "way in",
    request_body = ExchangeRequest,
    responses((status = 200, body = ExchangeAnswer), Refusals)
)]
async fn exchange(
    State(shared): State<Arc<Shared>>,
    connection: Connection,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: ExchangeRequest = read_small(request).await?;
    let answer = counted(&shared, exchange_for_ticket(&shared, &connection, asked).await)?;
    Ok(respond::json(StatusCode::OK, &answer))
}

async fn exchange_for_ticket(
    shared: &Shared,
    connection: &Connection,
    asked: ExchangeRequest,
) -> Result<ExchangeAnswer, Refusal> {
    let asked = Asked::check(asked)?;
    knock(shared, connection)?;
    asked.check_secret(shared).await?;
    asked.check_proof(shared)?;
    let ticket = Secret::mint(shared.entropy.as_ref());
    let exchange = asked.exchange(hash_of(&ticket));
    let exchanged = shared.ledger.exchange(exchange).await.map_err(|error| refused(&error))?;
    Ok(signed(shared, &ticket, exchanged))
}

fn signed(shared: &Shared, ticket: &Secret, exchanged: Exchanged) -> ExchangeAnswer {
    let answer = ExchangeAnswer {
        ws_ticket: ticket.reveal().to_owned(),
        expires_at: exchanged.expires_at,
        rooms: Vec::new(),
        session_id: model::RowId::mint(exchanged.now, shared.entropy.as_ref()).to_string(),
        mesh: shared.mesh.clone(),
        member: exchanged.person.as_ref().map(member_ref),
        now: exchanged.now,
        issuer_key: shared.issuer.public(),
        signature: String::new(),
    };
    sign_answer(answer, &shared.issuer)
}

/// An exchange of the right shape.
struct Asked {
    request: ExchangeRequest,
    secret: Secret,
    aud: String,
    by: By,
}

impl Asked {
    fn check(mut request: ExchangeRequest) -> Result<Asked, Refusal> {
        let (secret, by): (Secret, fn(SecretHash) -> By) =
            match (request.invite_token.take(), request.challenge.take()) {
                (Some(token), None) => (token.into(), By::Invite),
                (None, Some(challenge)) => (challenge.into(), By::Challenge),
                (Some(_), Some(_)) | (None, None) => {
                    return Err(malformed("Give inviteToken or challenge, one of them."));
                }
            };
        let aud = request.aud.take().unwrap_or_else(|| AUDIENCE_DEFAULT.to_owned());
        if !AUDIENCES.contains(&aud.as_str()) {
            return Err(malformed("aud must name a surface of this product."));
        }
        let nonce = request.nonce.as_bytes();
        if !(1..=NONCE_BYTES_MAX).contains(&nonce.len()) || !nonce.iter().all(u8::is_ascii_graphic) {
            return Err(malformed("nonce must be 1 to 128 printable characters."));
        }
        let by = by(hash_of(&secret));
        Ok(Asked { request, secret, aud, by })
    }

    /// Invite → expiry → node, and for a return that the key is the node's own.
    async fn check_secret(&self, shared: &Shared) -> Result<(), Refusal> {
        match self.by {
            By::Invite(hash) => {
                let checked = shared.ledger.check_invite(hash, &self.request.node_id).await;
                checked.map_err(|error| refused(&error))
            }
            By::Challenge(hash) => {
                let checked = shared.ledger.check_challenge(hash, &self.request.node_id).await;
                let known = checked.map_err(|error| refused(&error))?;
                if known.public_key == self.request.public_key {
                    Ok(())
                } else {
                    Err(Refusal::plain(ErrorCode::NodeProofInvalid))
                }
            }
        }
    }

    fn check_proof(&self, shared: &Shared) -> Result<(), Refusal> {
        let claim = Claim {
            issuer_key: &shared.issuer.public(),
            secret: &self.secret,
            node_id: &self.request.node_id,
            public_key: &self.request.public_key,
            aud: &self.aud,
            nonce: &self.request.nonce,
        };
        if verify_proof(&claim, &self.request.node_proof) {
            Ok(())
        } else {
            Err(Refusal::plain(ErrorCode::NodeProofInvalid))
        }
    }

    fn exchange(self, ticket: SecretHash) -> Exchange {
        Exchange {
            by: self.by,
            node: self.request.node_id,
            public_key: self.request.public_key,
            nonce: hash_of(&self.request.nonce.into()),
            aud: self.aud,
            ticket,
            person: self.request.person.as_deref().and_then(person_name),
        }
    }
}

/// The nearest legal name to an account's; none when nothing legal is left, and the ledger finds one.
fn person_name(account: &str) -> Option<MemberName> {
    sanitise_name(account, "").parse().ok()
}

/// A handshake body; its bound is smaller than the door's, because strangers send it.
async fn read_small<T: serde::de::DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    let body = read_body(request.into_body()).await?;
    if body.len() > limits::EXCHANGE_BYTES_MAX {
        return Err(Refusal::plain(ErrorCode::TooLarge));
    }
    let Json(asked) = Json::from_request(Request::new(Body::from(body)), &()).await?;
    Ok(asked)
}

/// Strangers of one address may ask only so often.
pub(crate) fn knock(shared: &Shared, connection: &Connection) -> Result<(), Refusal> {
    let address = match connection.caller() {
        Caller::Tcp { remote, .. } => remote.ip().to_canonical(),
        // A Unix caller is this account itself: one budget for all of them.
        Caller::Unix { .. } => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let knocked = shared.knocks.knock(address, shared.clock.monotonic());
    knocked.map_err(|wait| Refusal::plain(ErrorCode::RateLimited).retry_after(wait))
}

pub(crate) fn refused(error: &WayInError) -> Refusal {
    match error {
        WayInError::Refused(refused) => {
            let refusal = Refusal::plain(refused.code());
            match refused.code() {
                // The invite's other tickets end by themselves.
                ErrorCode::RateLimited => refusal.retry_after(limits::TICKET_TTL),
                _ => refusal,
            }
        }
        WayInError::Storage(error) => storage_refused(error),
    }
}

fn counted<T>(shared: &Shared, answer: Result<T, Refusal>) -> Result<T, Refusal> {
    answer.inspect_err(|refusal| shared.metrics.connections_rejected.of(refusal.refused().code).add_one())
}

fn malformed(message: &str) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(json: &str) -> Result<(), ErrorCode> {
        let rest = format!(r#""nodeId":"lab","publicKey":"{}","nodeProof":"""#, "ab".repeat(32));
        let request: ExchangeRequest = serde_json::from_str(&format!("{{{rest},{json}}}")).unwrap();
        Asked::check(request).map(|_| ()).map_err(|refusal| refusal.refused().code)
    }

    #[test]
    fn an_exchange_names_one_secret_a_known_surface_and_a_nonce() {
        assert_eq!(asked(r#""inviteToken":"t","nonce":"n""#), Ok(()));
        assert_eq!(asked(r#""challenge":"c","nonce":"n","aud":"postrider-link""#), Ok(()));
        let long = "n".repeat(NONCE_BYTES_MAX + 1);
        for bad in [
            r#""nonce":"n""#,
            r#""inviteToken":"t","challenge":"c","nonce":"n""#,
            r#""inviteToken":"t","nonce":"""#,
            r#""inviteToken":"t","nonce":"a b""#,
            r#""inviteToken":"t","nonce":"n","aud":"elsewhere""#,
            &format!(r#""inviteToken":"t","nonce":"{long}""#),
        ] {
            assert_eq!(asked(bad), Err(ErrorCode::InvalidRequest), "{bad}");
        }
    }

    #[test]
    fn a_person_is_named_after_the_account_as_far_as_names_allow() {
        assert_eq!(person_name("Jane Doe").unwrap().as_str(), "jane-doe");
        assert_eq!(person_name("日本"), None);
        assert_eq!(person_name("me"), None);
    }
}
