//! The one way in, from the joiner's side: invite or challenge → exchange → ticket → upgrade.

use std::sync::Arc;

use model::{Entropy, NodeKey, NodeName};
use net::Secret;
use net::client::{Client, ClientError};
use net::handshake::{Claim, KeyPair, believe_answer, mint_nonce};
use net::socket::{Bounds, Socket};
use wire::auth::{AUDIENCE_LINK, Challenge, ChallengeRequest, ExchangeAnswer, ExchangeRequest};

use super::verdict::LinkEnd;

const CHALLENGE: &str = "/v1/auth/challenge";
const EXCHANGE: &str = "/v1/auth/exchange";
const LINK: &str = "/v1/link";

/// Who knocks, and where.
#[derive(Clone)]
pub(crate) struct WayIn {
    pub(crate) client: Client,
    pub(crate) node: NodeName,
    pub(crate) key: KeyPair,
    /// The account's name, from which a first join makes its person.
    pub(crate) person: Option<String>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// What is shown at the door.
pub(crate) enum Credential<'a> {
    /// A first join.
    Invite(&'a Secret),
    /// A return: the broker knows the key and asks for proof of it.
    Key,
}

/// An upgraded link, before negotiation.
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    pub(crate) answer: ExchangeAnswer,
}

impl WayIn {
    /// Goes the whole way. `issuer` must sign the broker's answer.
    pub(crate) async fn open(&self, issuer: &NodeKey, by: Credential<'_>) -> Result<Opened, LinkEnd> {
        let answer = self.exchange(issuer, by).await?;
        let ticket = Secret::from(answer.ws_ticket.clone());
        let socket = self.client.upgrade(LINK, &ticket, Bounds::default()).await.map_err(lost_or_refused)?;
        Ok(Opened { socket, answer })
    }

    /// Shows the credential and gets a ticket; nothing is used up yet.
    pub(crate) async fn exchange(
        &self,
        issuer: &NodeKey,
        by: Credential<'_>,
    ) -> Result<ExchangeAnswer, LinkEnd> {
        let (secret, is_invite) = match by {
            Credential::Invite(token) => (token.clone(), true),
            Credential::Key => (self.challenge().await?, false),
        };
        let (public_key, nonce) = (self.key.public(), mint_nonce(&*self.entropy));
        let claim = Claim {
            issuer_key: issuer,
            secret: &secret,
            node_id: &self.node,
            public_key: &public_key,
            aud: AUDIENCE_LINK,
            nonce: &nonce,
        };
        let node_proof = claim.prove(&self.key);
        let secret = secret.reveal().to_owned();
        let (invite_token, challenge) = if is_invite { (Some(secret), None) } else { (None, Some(secret)) };
        let request = ExchangeRequest {
            invite_token,
            challenge,
            node_id: self.node.clone(),
            public_key,
            nonce,
            node_proof,
            aud: Some(AUDIENCE_LINK.to_owned()),
            person: self.person.clone(),
            requested_rooms: None,
        };
        let heard = self.client.post(EXCHANGE, &request).await.map_err(lost_or_refused)?;
        // Whoever signs with another key is not the broker this mesh was joined through.
        believe_answer(heard, issuer).map_err(|error| {
            tracing::error!(%error, node = %self.node, "the broker's answer is not to be believed");
            LinkEnd::IssuerChanged
        })
    }

    async fn challenge(&self) -> Result<Secret, LinkEnd> {
        let request = ChallengeRequest { node_id: self.node.clone() };
        let challenge: Challenge = self.client.post(CHALLENGE, &request).await.map_err(lost_or_refused)?;
        Ok(Secret::from(challenge.challenge))
    }
}

fn lost_or_refused(error: ClientError) -> LinkEnd {
    match error {
        ClientError::Refused { status, body, retry_after } => LinkEnd::Refused {
            code: wire::status::code_of(status, Some(&body.error)),
            message: body.message.clone(),
            retry_after,
        },
        ClientError::NotRunning { .. }
        | ClientError::Timeout
        | ClientError::Broken(_)
        | ClientError::Unreadable(_)
        | ClientError::NoUpgrade
        | ClientError::BadPath => LinkEnd::Lost(error.to_string()),
    }
}
