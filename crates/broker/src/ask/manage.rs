//! Questions that change one thing.

use ledger::{
    ApiToken, ConnectionPolicy, InviteRow, NewToken, Role, Scopes, SecretHash, TokenId, TopicPolicy,
};
use model::outbox::DedupeWindow;
use model::{ErrorCode, MemberKind, MemberName, NodeName, TopicName, limits};
use net::Secret;
use wire::Refused;
use wire::ask::{
    Done, Invite, MemberRow, Policies, PolicyChange, Scope, Token, TokenRow, TopicRow, Webhook, WebhookRow,
};

use super::read::{member_row, topic_row};
use super::{Asker, managed, storage};
use crate::audit::{Decision, Event};
use crate::wayin::{self, hash_of};
use crate::webhook;

/// The word for ids that are never forgotten.
const PERMANENT: &str = "permanent";

/// Policies as members see them.
pub(super) fn policies_row(policies: &ledger::Policies) -> Policies {
    Policies {
        topics: policies.topics.word().to_owned(),
        dedupe_days: match policies.dedupe {
            DedupeWindow::Days(days) => Some(days),
            DedupeWindow::Permanent => None,
        },
        connections: policies.connections.word().to_owned(),
    }
}

impl Asker<'_> {
    pub(super) async fn topic_create(&self, topic: TopicName) -> Result<TopicRow, Refused> {
        let mesh = self.shared.ledger.mesh().await.map_err(storage)?;
        match mesh.policies.topics {
            TopicPolicy::Open => {}
            TopicPolicy::Declared => drop(self.owner()?),
        }
        let row = self.shared.ledger.create_topic(self.member.id, &topic).await.map_err(managed)?;
        self.decided(Decision::TopicCreated { topic: &topic });
        Ok(topic_row(row))
    }

    pub(super) async fn topic_subscribe(&self, topic: TopicName) -> Result<Done, Refused> {
        self.shared.ledger.subscribe(self.member.id, &topic).await.map_err(managed)?;
        Ok(Done {})
    }

    pub(super) async fn topic_unsubscribe(&self, topic: TopicName) -> Result<Done, Refused> {
        self.shared.ledger.unsubscribe(self.member.id, &topic).await.map_err(managed)?;
        Ok(Done {})
    }

    /// Any member of a home may bring further members of that home in: they share its key anyway. A node has
    /// exactly one person, made by its join.
    pub(super) async fn member_register(
        &self,
        name: MemberName,
        kind: MemberKind,
    ) -> Result<MemberRow, Refused> {
        match kind {
            MemberKind::Person => {
                return Err(Refused::new(ErrorCode::Forbidden, "A node has one person, made by its join."));
            }
            MemberKind::Agent | MemberKind::Service => {}
        }
        let registered = self.shared.ledger.register_member(self.link, &name, kind).await.map_err(managed)?;
        Ok(member_row(registered.member()))
    }

    pub(super) async fn member_remove(&self, name: MemberName) -> Result<Done, Refused> {
        self.shared.ledger.remove_member(&name).await.map_err(managed)?;
        self.decided(Decision::MemberRemoved { member: &name });
        Ok(Done {})
    }

    pub(super) async fn invite_create(&self, node: Option<NodeName>) -> Result<Invite, Refused> {
        let invite = wayin::create_invite(self.shared, node, Role::Member).await.map_err(storage)?;
        self.decided(Decision::InviteCreated { node: invite.node.as_ref() });
        Ok(invite)
    }

    pub(super) async fn invites(&self) -> Result<Vec<wire::ask::InviteRow>, Refused> {
        let rows = self.shared.ledger.invites().await.map_err(storage)?;
        Ok(rows.into_iter().map(invite_row).collect())
    }

    pub(super) async fn invite_revoke(&self, id: &str) -> Result<Done, Refused> {
        let rows = self.shared.ledger.invites().await.map_err(storage)?;
        let row = rows.iter().find(|row| invite_id(&row.hash) == id);
        let row = row.ok_or_else(|| Refused::plain(ErrorCode::NotFound))?;
        if self.shared.ledger.revoke_invite(row.hash).await.map_err(storage)? {
            self.decided(Decision::InviteRevoked { id });
            Ok(Done {})
        } else {
            Err(Refused::plain(ErrorCode::TokenAlreadyUsed))
        }
    }

    /// A name nobody has becomes a service that the broker hosts.
    pub(super) async fn token_create(&self, name: MemberName, scopes: &[Scope]) -> Result<Token, Refused> {
        if scopes.is_empty() {
            return Err(Refused::new(
                ErrorCode::InvalidRequest,
                "Name at least one scope: send, read or hub.",
            ));
        }
        let known = self.shared.ledger.member_named(&name).await.map_err(storage)?;
        let member = match known {
            Some(member) => member,
            None => {
                let hosted =
                    self.shared.ledger.host_member(&name, MemberKind::Service).await.map_err(managed)?;
                hosted.member().clone()
            }
        };
        let token = Secret::mint(self.shared.entropy.as_ref());
        let new = NewToken { hash: hash_of(&token), member: member.id, scopes: scopes_of(scopes) };
        let created = self.shared.ledger.create_token(new).await.map_err(managed)?;
        self.decided(Decision::TokenCreated { id: created.id.0, member: &created.member.name });
        Ok(Token { token: token.reveal().to_owned(), row: token_row(created) })
    }

    pub(super) async fn tokens(&self) -> Result<Vec<TokenRow>, Refused> {
        let rows = self.shared.ledger.tokens().await.map_err(storage)?;
        Ok(rows.into_iter().map(token_row).collect())
    }

    pub(super) async fn token_revoke(&self, id: u64) -> Result<Done, Refused> {
        if self.shared.ledger.revoke_token(TokenId(id)).await.map_err(storage)? {
            self.decided(Decision::TokenRevoked { id });
            Ok(Done {})
        } else {
            Err(Refused::plain(ErrorCode::NotFound))
        }
    }

    pub(super) async fn policies_set(&self, change: PolicyChange) -> Result<Policies, Refused> {
        let mesh = self.shared.ledger.mesh().await.map_err(storage)?;
        let policies = changed(mesh.policies, &change)?;
        let mesh = self.shared.ledger.set_policies(policies).await.map_err(storage)?;
        self.decided(Decision::PoliciesSet);
        Ok(policies_row(&mesh.policies))
    }

    pub(super) async fn webhook_create(
        &self,
        name: MemberName,
        url: &str,
        topics: Vec<TopicName>,
    ) -> Result<Webhook, Refused> {
        let (webhooks, entropy) = (&self.shared.webhooks, self.shared.entropy.as_ref());
        let made = webhooks.create(self.ledger(), entropy, name.clone(), url, topics).await?;
        self.decided(Decision::WebhookCreated { name: &name });
        Ok(made)
    }

    pub(super) async fn webhook_rotate(&self, name: &MemberName) -> Result<Webhook, Refused> {
        let rotated = webhook::rotate(self.ledger(), self.shared.entropy.as_ref(), name).await?;
        self.decided(Decision::WebhookRotated { name });
        Ok(rotated)
    }

    pub(super) async fn webhook_enable(&self, name: &MemberName) -> Result<WebhookRow, Refused> {
        let enabled = webhook::enable(self.ledger(), name).await?;
        self.decided(Decision::WebhookEnabled { name });
        Ok(enabled)
    }

    pub(super) async fn webhook_remove(&self, name: &MemberName) -> Result<Done, Refused> {
        let removed = webhook::remove(self.ledger(), name).await?;
        self.decided(Decision::WebhookRemoved { name });
        Ok(removed)
    }

    fn decided(&self, what: Decision<'_>) {
        Event::Decided { by: &self.member.name, what }.record();
    }
}

fn changed(mut policies: ledger::Policies, change: &PolicyChange) -> Result<ledger::Policies, Refused> {
    if let Some(topics) = &change.topics {
        policies.topics = topics.parse::<TopicPolicy>()?;
    }
    if let Some(connections) = &change.connections {
        policies.connections = connections.parse::<ConnectionPolicy>()?;
    }
    if let Some(dedupe) = &change.dedupe {
        policies.dedupe = dedupe_window(dedupe)?;
    }
    Ok(policies)
}

fn dedupe_window(text: &str) -> Result<DedupeWindow, Refused> {
    if text == PERMANENT {
        return Ok(DedupeWindow::Permanent);
    }
    match text.parse::<u32>() {
        Ok(days) if days >= limits::DEDUPE_DAYS_MIN => Ok(DedupeWindow::Days(days)),
        Ok(_) | Err(_) => Err(Refused::new(
            ErrorCode::InvalidRequest,
            format!("dedupe must be permanent or a number of days from {} on.", limits::DEDUPE_DAYS_MIN),
        )),
    }
}

fn invite_row(row: InviteRow) -> wire::ask::InviteRow {
    wire::ask::InviteRow {
        id: invite_id(&row.hash),
        node: row.expected_node,
        role: row.role.word().to_owned(),
        expires_at: row.expires_at,
        used_at: row.used_at,
        revoked_at: row.revoked_at,
    }
}

/// Enough of the hash to tell two invites apart, too little to look for the token.
fn invite_id(hash: &SecretHash) -> String {
    model::hex::encode(&hash.0[..8])
}

fn scopes_of(scopes: &[Scope]) -> Scopes {
    let has = |scope| scopes.contains(&scope);
    Scopes { send: has(Scope::Send), read: has(Scope::Read), hub: has(Scope::Hub) }
}

fn token_row(token: ApiToken) -> TokenRow {
    let Scopes { send, read, hub } = token.scopes;
    let scopes = [(send, Scope::Send), (read, Scope::Read), (hub, Scope::Hub)];
    TokenRow {
        id: token.id.0,
        member: token.member.name,
        scopes: scopes.into_iter().filter_map(|(has, scope)| has.then_some(scope)).collect(),
        created_at: token.created_at,
        revoked_at: token.revoked_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_change_touches_only_what_it_names() {
        let policies = ledger::Policies {
            topics: TopicPolicy::Open,
            dedupe: DedupeWindow::Days(365),
            connections: ConnectionPolicy::PreferNewest,
        };
        let change = |topics: Option<&str>, dedupe: Option<&str>| PolicyChange {
            topics: topics.map(str::to_owned),
            dedupe: dedupe.map(str::to_owned),
            connections: None,
        };
        assert_eq!(changed(policies, &change(None, None)), Ok(policies));
        let declared = changed(policies, &change(Some("declared"), Some("permanent"))).unwrap();
        assert_eq!((declared.topics, declared.dedupe), (TopicPolicy::Declared, DedupeWindow::Permanent));
        assert_eq!(changed(policies, &change(None, Some("7"))).unwrap().dedupe, DedupeWindow::Days(7));
        for bad in ["6", "0", "-1", "for ever", ""] {
            let refused = changed(policies, &change(None, Some(bad))).unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidRequest, "{bad}");
        }
        assert!(changed(policies, &change(Some("closed"), None)).is_err());
    }

    #[test]
    fn scopes_survive_the_way() {
        assert_eq!(scopes_of(&[Scope::Hub, Scope::Send]), Scopes { send: true, read: false, hub: true });
    }
}
