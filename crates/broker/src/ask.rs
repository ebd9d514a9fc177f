//! What members may know and decide, asked through their node's link.
//!
//! - The asker is a member at home on the asking node; what it may read is its own and what all may read.
//! - Invites, tokens, policies, members and webhooks are the owner's; so is making topics where the mesh wants them
//!   declared.
//! - Questions read, or change one thing in one transaction; repeating one is harmless.

mod manage;
mod read;

use ledger::{Ledger, Link, LinkRefused, ManageError, Member, Role, StorageError};
use model::ErrorCode;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use wire::ask::{AnswerResult, BrokerExplained, Question};
use wire::auth::MemberRef;
use wire::link::{Answer, Ask, ToNode};
use wire::session::SignIn;
use wire::{ErrorBody, Refused};

use crate::broker::Shared;
use crate::{explain, session, webhook};

pub(crate) use read::{conversation_row, member_row, page, status_answer};

/// The answer to one question of a link.
pub(crate) async fn answer(shared: &Shared, link: &Link, ask: Ask) -> ToNode {
    let result = match asker(shared, link, &ask).await {
        Ok(asker) => Asker { shared, link, member: asker }.answer(ask.question).await,
        Err(refused) => Err(refused),
    };
    ToNode::Answer(Answer { n: ask.n, result: result_of(result) })
}

/// The answer to a question that does not parse.
pub(crate) fn unreadable(n: u64, error: &serde_json::Error) -> ToNode {
    let refused = Refused::new(ErrorCode::InvalidRequest, error.to_string());
    ToNode::Answer(Answer { n, result: result_of(Err(refused)) })
}

/// A member as others refer to it.
pub(crate) fn member_ref(member: &Member) -> MemberRef {
    MemberRef { id: member.id, name: member.name.clone(), kind: member.kind.word().to_owned() }
}

/// A store's refusal, logged where it stops travelling.
pub(crate) fn storage(error: StorageError) -> Refused {
    tracing::error!(%error, "the ledger did not do its part");
    crate::broker::refused_by_store(&error)
}

pub(crate) fn managed(error: ManageError) -> Refused {
    match error {
        ManageError::Storage(error) => storage(error),
        ManageError::NameTaken(_)
        | ManageError::MemberNotFound(_)
        | ManageError::TopicNotFound(_)
        | ManageError::ConversationNotFound
        | ManageError::LastOwner(_)
        | ManageError::Link(LinkRefused::Replaced | LinkRefused::Revoked | LinkRefused::UnknownNode) => {
            Refused::new(error.code(), error.to_string())
        }
    }
}

fn result_of(result: Result<Box<RawValue>, Refused>) -> AnswerResult {
    match result {
        Ok(value) => AnswerResult::Ok(value),
        Err(refused) => {
            let status = wire::status::http_status(refused.code);
            AnswerResult::Refused { status, error: ErrorBody::from(refused) }
        }
    }
}

async fn asker(shared: &Shared, link: &Link, ask: &Ask) -> Result<Member, Refused> {
    let member = shared.ledger.member(ask.asker).await.map_err(storage)?;
    match member {
        Some(member) if member.home.as_ref() == Some(&link.node) => match member.removed_at {
            None => Ok(member),
            Some(_) => Err(Refused::plain(ErrorCode::Revoked)),
        },
        Some(_) | None => Err(Refused::plain(ErrorCode::NotAtHome)),
    }
}

/// A member with a question.
struct Asker<'a> {
    shared: &'a Shared,
    link: &'a Link,
    member: Member,
}

impl Asker<'_> {
    async fn answer(&self, question: Question) -> Result<Box<RawValue>, Refused> {
        match question {
            Question::TopicHistory { topic, page } => value(&self.topic_history(topic, page).await?),
            Question::Conversation { conversation, page } => {
                value(&self.conversation(conversation, page).await?)
            }
            Question::Conversations => value(&self.conversations().await?),
            Question::Members => value(&self.members().await?),
            Question::Topics => value(&self.topics().await?),
            Question::Rungs { id } => value(&self.rungs(id).await?),
            Question::MessageStatus {
                sender,
                client_message_id,
                request_fingerprint,
                first_attempt_at,
                fence,
            } => {
                let question = ledger::StatusQuestion {
                    sender,
                    client_message_id,
                    fingerprint: request_fingerprint,
                    first_attempt_at,
                };
                value(&self.message_status(question, fence).await?)
            }
            Question::TopicCreate { topic } => value(&self.topic_create(topic).await?),
            Question::TopicSubscribe { topic } => value(&self.topic_subscribe(topic).await?),
            Question::TopicUnsubscribe { topic } => value(&self.topic_unsubscribe(topic).await?),
            Question::MemberRegister { name, kind } => value(&self.member_register(name, kind).await?),
            Question::MemberRemove { name } => value(&self.owner()?.member_remove(name).await?),
            Question::InviteCreate { node } => value(&self.owner()?.invite_create(node).await?),
            Question::Invites => value(&self.owner()?.invites().await?),
            Question::InviteRevoke { id } => value(&self.owner()?.invite_revoke(&id).await?),
            Question::TokenCreate { member, scopes } => {
                value(&self.owner()?.token_create(member, &scopes).await?)
            }
            Question::Tokens => value(&self.owner()?.tokens().await?),
            Question::TokenRevoke { id } => value(&self.owner()?.token_revoke(id).await?),
            Question::SignIn => value(&self.sign_in().await?),
            Question::Policies => value(&self.policies().await?),
            Question::PoliciesSet(change) => value(&self.owner()?.policies_set(change).await?),
            Question::Explain { id } => value(&self.explain(&id).await?),
            Question::WebhookCreate { name, url, topics } => {
                value(&self.owner()?.webhook_create(name, &url, topics).await?)
            }
            Question::Webhooks => value(&webhook::list(self.owner()?.ledger()).await?),
            Question::WebhookRotate { name } => value(&self.owner()?.webhook_rotate(&name).await?),
            Question::WebhookEnable { name } => value(&self.owner()?.webhook_enable(&name).await?),
            Question::WebhookRemove { name } => value(&self.owner()?.webhook_remove(&name).await?),
        }
    }

    async fn explain(&self, id: &str) -> Result<BrokerExplained, Refused> {
        explain::explain(self.shared, &self.member, id, Some(&self.link.node)).await.map_err(storage)
    }

    async fn sign_in(&self) -> Result<SignIn, Refused> {
        session::create_sign_in(self.shared, self.member.id).await.map_err(managed)
    }

    fn ledger(&self) -> &dyn Ledger {
        self.shared.ledger.as_ref()
    }

    /// This asker, if it owns the mesh.
    fn owner(&self) -> Result<&Self, Refused> {
        match self.member.role {
            Role::Owner => Ok(self),
            Role::Member => Err(Refused::new(ErrorCode::Forbidden, "Only the mesh's owner may do this.")),
        }
    }
}

fn value(value: &impl Serialize) -> Result<Box<RawValue>, Refused> {
    to_raw_value(value).map_err(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        Refused::plain(ErrorCode::Internal)
    })
}
