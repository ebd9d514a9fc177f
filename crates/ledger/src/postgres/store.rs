//! The handle, and each door's way to the server.

mod open;
mod run;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use model::admission::{Known, StatusAnswer};
use model::ageing::ForgottenUpto;
use model::hub::{RecordId, RecordKind};
use model::webhook::WebhookSecret;
use model::{
    ClientMessageId, ConversationId, Cursor, DeliveryRung, MemberId, MemberKind, MemberName, MessageId,
    NodeName, Timestamp, TopicName,
};
use tokio::sync::watch;

use super::batch::Queue;
use super::hub_batch::HubQueue;
use super::lookup::LookUps;
use super::session::Core;
use super::wake::{Bell, Wake};
use super::{
    chat, durable, explain, history, hub, janitor, join, link, list, manage, mesh, push, signin, status,
    token, wayin, webhook, window,
};
use crate::*;

/// A ledger in a PostgreSQL database.
pub struct PostgresLedger {
    core: Arc<Core>,
    queue: Queue,
    hub_queue: HubQueue,
    look_ups: LookUps,
    wake: Wake,
    _bell: Bell,
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn now(&self) -> Result<Timestamp, StorageError> {
        self.core.now().await
    }

    fn committed(&self) -> watch::Receiver<()> {
        self.wake.subscribe()
    }

    fn clock_regressed(&self) -> watch::Receiver<Regressed> {
        self.core.regressions.subscribe()
    }

    async fn durability(&self) -> Result<Vec<DurabilityWarning>, StorageError> {
        self.read("ledger.durability", |tx| durable::warnings(tx).boxed()).await
    }

    async fn look_at_clock(&self) -> Result<ClockLook, StorageError> {
        self.look().await
    }

    fn forgotten_upto(&self, now: Timestamp) -> ForgottenUpto {
        self.core.watch.forgotten_upto(now, self.core.running())
    }

    async fn setup(&self, setup: MeshSetup) -> Result<Mesh, StorageError> {
        self.write("ledger.setup", move |tx| async move { mesh::setup(tx, &setup).await }.boxed()).await
    }

    async fn mesh(&self) -> Result<Mesh, StorageError> {
        self.read("ledger.mesh", |tx| mesh::read(tx).boxed()).await
    }

    async fn set_policies(&self, policies: Policies) -> Result<Mesh, StorageError> {
        self.write("ledger.set_policies", move |tx| mesh::set_policies(tx, policies).boxed()).await
    }

    async fn issuer(&self) -> Result<IssuerSeed, StorageError> {
        self.read("ledger.issuer", |tx| mesh::issuer(tx).boxed()).await
    }

    async fn has_owner(&self) -> Result<bool, StorageError> {
        self.read("ledger.has_owner", |tx| mesh::has_owner(tx).boxed()).await
    }

    async fn create_invite(&self, invite: NewInvite) -> Result<(), StorageError> {
        self.write("ledger.create_invite", move |tx| {
            async move { wayin::create_invite(tx, &invite).await }.boxed()
        })
        .await
    }

    async fn invites(&self) -> Result<Vec<InviteRow>, StorageError> {
        self.read("ledger.invites", |tx| wayin::invites(tx).boxed()).await
    }

    async fn revoke_invite(&self, hash: SecretHash) -> Result<bool, StorageError> {
        self.write("ledger.revoke_invite", move |tx| wayin::revoke_invite(tx, hash).boxed()).await
    }

    async fn check_invite(&self, hash: SecretHash, node: &NodeName) -> Result<(), WayInError> {
        let node = node.clone();
        self.read("ledger.check_invite", move |tx| {
            async move { wayin::check_invite(tx, hash, &node).await.map(drop) }.boxed()
        })
        .await
    }

    async fn issue_challenge(&self, node: &NodeName, hash: SecretHash) -> Result<Timestamp, WayInError> {
        let node = node.clone();
        self.write("ledger.issue_challenge", move |tx| {
            async move { wayin::issue_challenge(tx, &node, hash).await }.boxed()
        })
        .await
    }

    async fn check_challenge(&self, hash: SecretHash, node: &NodeName) -> Result<KnownNode, WayInError> {
        let node = node.clone();
        self.read("ledger.check_challenge", move |tx| {
            async move { wayin::check_challenge(tx, hash, &node).await }.boxed()
        })
        .await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, WayInError> {
        self.write("ledger.exchange", move |tx| async move { wayin::exchange(tx, &exchange).await }.boxed())
            .await
    }

    async fn ticket_node(&self, ticket: SecretHash, aud: &str) -> Result<NodeName, WayInError> {
        let aud = aud.to_owned();
        self.read("ledger.ticket_node", move |tx| {
            async move { join::ticket_node(tx, ticket, &aud).await }.boxed()
        })
        .await
    }

    async fn redeem(&self, ticket: SecretHash, aud: &str) -> Result<Joined, WayInError> {
        let aud = aud.to_owned();
        self.write("ledger.redeem", move |tx| async move { join::redeem(tx, ticket, &aud).await }.boxed())
            .await
    }

    async fn enter(&self, ticket: SecretHash, aud: &str) -> Result<Entered, WayInError> {
        let aud = aud.to_owned();
        self.write("ledger.enter", move |tx| {
            async move { Ok(join::enter(tx, ticket, &aud).await?.entered) }.boxed()
        })
        .await
    }

    async fn open_link(&self, opening: LinkOpening) -> Result<LinkOpened, LinkError> {
        self.write("ledger.open_link", move |tx| async move { link::open(tx, &opening).await }.boxed()).await
    }

    async fn accept(&self, lane: LaneSubmission) -> Result<Vec<Outcome>, LinkError> {
        self.queue.accept(lane).await
    }

    async fn known_all(
        &self,
        sender: MemberId,
        ids: &[ClientMessageId],
    ) -> Result<Vec<Option<Known>>, StorageError> {
        self.look_ups.known(sender, ids).await
    }

    async fn message_status(
        &self,
        via: &Via,
        questions: Vec<StatusQuestion>,
        fence: Fence,
    ) -> Result<Vec<StatusAnswer>, LinkError> {
        let via = via.clone();
        match fence {
            Fence::None => {
                self.read("ledger.message_status", move |tx| {
                    async move { status::ask(tx, &via, &questions).await }.boxed()
                })
                .await
            }
            Fence::Retire => {
                self.write("ledger.fence", move |tx| {
                    async move { status::fence(tx, &via, &questions).await }.boxed()
                })
                .await
            }
        }
    }

    async fn mail(
        &self,
        link: &Link,
        unacked: &[(MessageId, MemberId)],
        limit: usize,
    ) -> Result<Vec<MailRow>, LinkError> {
        let (link, unacked) = (link.clone(), unacked.to_vec());
        self.read("ledger.mail", move |tx| {
            async move { window::mail(tx, &link, &unacked, limit).await }.boxed()
        })
        .await
    }

    async fn ack(&self, via: &Via, rows: Vec<Ack>) -> Result<Vec<AckedRow>, LinkError> {
        let via = via.clone();
        self.write("ledger.ack", move |tx| async move { window::ack(tx, &via, &rows).await }.boxed()).await
    }

    async fn nack(&self, link: &Link, rows: Vec<Nack>) -> Result<Vec<AckedRow>, LinkError> {
        let link = link.clone();
        self.write("ledger.nack", move |tx| async move { window::nack(tx, &link, &rows).await }.boxed()).await
    }

    async fn receipts(
        &self,
        link: &Link,
        unacked: &[(MessageId, MemberId)],
        limit: usize,
    ) -> Result<Vec<ReceiptRow>, LinkError> {
        let (link, unacked) = (link.clone(), unacked.to_vec());
        self.read("ledger.receipts", move |tx| {
            async move { window::receipts(tx, &link, &unacked, limit).await }.boxed()
        })
        .await
    }

    async fn receipts_ack(&self, link: &Link, rows: Vec<ReceiptAck>) -> Result<(), LinkError> {
        let link = link.clone();
        self.write("ledger.receipts_ack", move |tx| {
            async move { window::receipts_ack(tx, &link, &rows).await }.boxed()
        })
        .await
    }

    async fn history(
        &self,
        log: &Log,
        reader: MemberId,
        page: HistoryPage,
        limit: usize,
    ) -> Result<Option<History>, HistoryError> {
        let log = log.clone();
        self.read("ledger.history", move |tx| {
            async move { history::read(tx, &log, reader, page, limit).await }.boxed()
        })
        .await
    }

    async fn messages(
        &self,
        reader: MemberId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StorageError> {
        self.read("ledger.messages", move |tx| list::messages(tx, reader, before, limit).boxed()).await
    }

    async fn conversations(
        &self,
        reader: MemberId,
        limit: usize,
    ) -> Result<Vec<ConversationRow>, StorageError> {
        self.read("ledger.conversations", move |tx| list::conversations(tx, reader, limit).boxed()).await
    }

    async fn conversation(
        &self,
        id: ConversationId,
        reader: MemberId,
    ) -> Result<Option<ConversationRow>, StorageError> {
        self.read("ledger.conversation", move |tx| list::conversation(tx, id, reader).boxed()).await
    }

    async fn follow(
        &self,
        id: ConversationId,
        follower: Follower,
        after: Cursor,
        limit: usize,
    ) -> Result<Option<Followed>, HistoryError> {
        self.read("ledger.follow", move |tx| chat::follow(tx, id, follower, after, limit).boxed()).await
    }

    async fn heads(&self, ids: &[ConversationId]) -> Result<Vec<LogHead>, StorageError> {
        let ids = ids.to_vec();
        self.read("ledger.heads", move |tx| async move { chat::heads(tx, &ids).await }.boxed()).await
    }

    async fn mark_read(
        &self,
        reader: MemberId,
        id: ConversationId,
        upto: Cursor,
    ) -> Result<Option<ReadState>, HistoryError> {
        self.write("ledger.mark_read", move |tx| chat::mark_read(tx, reader, id, upto).boxed()).await
    }

    async fn empty_conversation(&self, id: ConversationId) -> Result<Option<Emptied>, StorageError> {
        self.empty_log(id).await
    }

    async fn escalations(&self, reader: MemberId, limit: usize) -> Result<Vec<Escalation>, StorageError> {
        self.read("ledger.escalations", move |tx| chat::escalations(tx, reader, limit).boxed()).await
    }

    async fn escalation_edges(
        &self,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Escalation>, StorageError> {
        self.read("ledger.escalation_edges", move |tx| chat::edges(tx, since, limit).boxed()).await
    }

    async fn nodes(&self, limit: usize) -> Result<Vec<NodeFacts>, StorageError> {
        self.read("ledger.nodes", move |tx| chat::nodes(tx, limit).boxed()).await
    }

    async fn create_sign_in(&self, key: SecretHash, member: MemberId) -> Result<Timestamp, ManageError> {
        self.write("ledger.create_sign_in", move |tx| signin::create(tx, key, member).boxed()).await
    }

    async fn open_session(
        &self,
        key: SecretHash,
        session: SecretHash,
    ) -> Result<Option<Session>, StorageError> {
        self.write("ledger.open_session", move |tx| signin::open(tx, key, session).boxed()).await
    }

    async fn session(&self, session: SecretHash) -> Result<Option<Session>, StorageError> {
        self.read("ledger.session", move |tx| signin::resolve(tx, session).boxed()).await
    }

    async fn end_session(&self, session: SecretHash) -> Result<bool, StorageError> {
        self.write("ledger.end_session", move |tx| signin::end(tx, session).boxed()).await
    }

    async fn create_socket_ticket(
        &self,
        ticket: SecretHash,
        credential: SecretHash,
    ) -> Result<Timestamp, StorageError> {
        self.write("ledger.create_socket_ticket", move |tx| {
            signin::create_ticket(tx, ticket, credential).boxed()
        })
        .await
    }

    async fn use_socket_ticket(&self, ticket: SecretHash) -> Result<Option<SecretHash>, StorageError> {
        self.write("ledger.use_socket_ticket", move |tx| signin::use_ticket(tx, ticket).boxed()).await
    }

    async fn members(&self, after: Option<&MemberName>, limit: usize) -> Result<Vec<Member>, StorageError> {
        let after = after.cloned();
        self.read("ledger.members", move |tx| {
            async move { list::members(tx, after.as_ref(), limit).await }.boxed()
        })
        .await
    }

    async fn member(&self, id: MemberId) -> Result<Option<Member>, StorageError> {
        self.read("ledger.member", move |tx| list::member(tx, id).boxed()).await
    }

    async fn member_named(&self, name: &MemberName) -> Result<Option<Member>, StorageError> {
        let name = name.clone();
        self.read("ledger.member_named", move |tx| async move { list::member_named(tx, &name).await }.boxed())
            .await
    }

    async fn topics(
        &self,
        reader: MemberId,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicRow>, StorageError> {
        let after = after.cloned();
        self.read("ledger.topics", move |tx| {
            async move { list::topics(tx, reader, after.as_ref(), limit).await }.boxed()
        })
        .await
    }

    async fn explain(&self, wanted: &Wanted) -> Result<Vec<Explained>, StorageError> {
        let wanted = wanted.clone();
        self.read("ledger.explain", move |tx| async move { explain::explain(tx, &wanted).await }.boxed())
            .await
    }

    async fn rungs(&self, id: MessageId) -> Result<Vec<(MemberId, DeliveryRung)>, StorageError> {
        self.read("ledger.rungs", move |tx| explain::rungs(tx, id).boxed()).await
    }

    async fn register_member(
        &self,
        link: &Link,
        name: &MemberName,
        kind: MemberKind,
    ) -> Result<Registered, ManageError> {
        let (link, name) = (link.clone(), name.clone());
        self.write("ledger.register_member", move |tx| {
            async move { manage::register(tx, &link, &name, kind).await }.boxed()
        })
        .await
    }

    async fn host_member(&self, name: &MemberName, kind: MemberKind) -> Result<Registered, ManageError> {
        let name = name.clone();
        self.write("ledger.host_member", move |tx| async move { manage::host(tx, &name, kind).await }.boxed())
            .await
    }

    async fn remove_member(&self, name: &MemberName) -> Result<(), ManageError> {
        let name = name.clone();
        self.write("ledger.remove_member", move |tx| async move { manage::remove(tx, &name).await }.boxed())
            .await
    }

    async fn create_topic(&self, creator: MemberId, topic: &TopicName) -> Result<TopicRow, ManageError> {
        let topic = topic.clone();
        self.write("ledger.create_topic", move |tx| {
            async move { manage::create_topic(tx, creator, &topic).await }.boxed()
        })
        .await
    }

    async fn subscribe(&self, member: MemberId, topic: &TopicName) -> Result<(), ManageError> {
        let topic = topic.clone();
        self.write("ledger.subscribe", move |tx| {
            async move { manage::subscribe(tx, member, &topic).await }.boxed()
        })
        .await
    }

    async fn unsubscribe(&self, member: MemberId, topic: &TopicName) -> Result<(), ManageError> {
        let topic = topic.clone();
        self.write("ledger.unsubscribe", move |tx| {
            async move { manage::unsubscribe(tx, member, &topic).await }.boxed()
        })
        .await
    }

    async fn set_conversation_state(
        &self,
        id: ConversationId,
        state: ConversationState,
    ) -> Result<(), ManageError> {
        self.write("ledger.set_conversation_state", move |tx| manage::set_state(tx, id, state).boxed()).await
    }

    async fn create_token(&self, token: NewToken) -> Result<ApiToken, ManageError> {
        self.write("ledger.create_token", move |tx| {
            async move { super::token::create(tx, &token).await }.boxed()
        })
        .await
    }

    async fn tokens(&self) -> Result<Vec<ApiToken>, StorageError> {
        self.read("ledger.tokens", |tx| token::list(tx).boxed()).await
    }

    async fn revoke_token(&self, id: TokenId) -> Result<bool, StorageError> {
        self.write("ledger.revoke_token", move |tx| token::revoke(tx, id).boxed()).await
    }

    async fn resolve_token(&self, hash: SecretHash) -> Result<Option<ApiToken>, StorageError> {
        self.read("ledger.resolve_token", move |tx| token::resolve(tx, hash).boxed()).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<Webhook, WebhookError> {
        self.write("ledger.create_webhook", move |tx| async move { webhook::create(tx, &new).await }.boxed())
            .await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, StorageError> {
        self.read("ledger.webhooks", |tx| webhook::list(tx).boxed()).await
    }

    async fn rotate_webhook(
        &self,
        name: &MemberName,
        secret: WebhookSecret,
    ) -> Result<Webhook, WebhookError> {
        let name = name.clone();
        self.write("ledger.rotate_webhook", move |tx| {
            async move { webhook::rotate(tx, &name, &secret).await }.boxed()
        })
        .await
    }

    async fn enable_webhook(&self, name: &MemberName) -> Result<Webhook, WebhookError> {
        let name = name.clone();
        self.write("ledger.enable_webhook", move |tx| async move { webhook::enable(tx, &name).await }.boxed())
            .await
    }

    async fn remove_webhook(&self, name: &MemberName) -> Result<(), WebhookError> {
        loop {
            let name = name.clone();
            let removal = self.write("ledger.remove_webhook", move |tx| {
                async move { webhook::remove(tx, &name).await }.boxed()
            });
            match removal.await? {
                webhook::Removal::More => {}
                webhook::Removal::Done => return Ok(()),
            }
        }
    }

    async fn claim_pushes(&self, limit: usize) -> Result<Vec<Push>, StorageError> {
        if !self.read("ledger.due_pushes", |tx| push::is_due(tx).boxed()).await? {
            return Ok(Vec::new());
        }
        self.write("ledger.claim_pushes", move |tx| push::claim(tx, limit).boxed()).await
    }

    async fn settle_push(&self, claim: PushClaim, outcome: PushOutcome) -> Result<PushSettled, StorageError> {
        self.write("ledger.settle_push", move |tx| {
            async move { push::settle(tx, &claim, &outcome).await }.boxed()
        })
        .await
    }

    async fn pushes(&self, id: MessageId) -> Result<Vec<PushFacts>, StorageError> {
        self.read("ledger.pushes", move |tx| webhook::pushes(tx, id).boxed()).await
    }

    async fn hub_write(&self, write: HubWrite) -> Result<HubOutcome, StorageError> {
        self.hub_queue.write(write).await
    }

    async fn hub_known(
        &self,
        principal: MemberId,
        key: &ClientMessageId,
    ) -> Result<Option<HubKnown>, StorageError> {
        let key = key.clone();
        self.read("ledger.hub_known", move |tx| async move { hub::known(tx, principal, &key).await }.boxed())
            .await
    }

    async fn hub_key_status(
        &self,
        principal: MemberId,
        key: &ClientMessageId,
        created_at: Option<Timestamp>,
        fence: Fence,
    ) -> Result<HubKeyStatus, StorageError> {
        self.ask_hub(principal, key.clone(), created_at, fence).await
    }

    async fn hub_record(&self, kind: RecordKind, id: &RecordId) -> Result<Option<HubRecord>, StorageError> {
        let id = id.clone();
        self.read("ledger.hub_record", move |tx| async move { hub::record(tx, kind, &id).await }.boxed())
            .await
    }

    async fn hub_list(&self, kind: RecordKind, after: u64, limit: usize) -> Result<HubPage, StorageError> {
        self.read("ledger.hub_list", move |tx| hub::list(tx, kind, after, limit).boxed()).await
    }

    async fn expire_hub_keys(&self, limit: usize) -> Result<u64, StorageError> {
        self.sweep("ledger.expire_hub_keys", move |tx, aged| hub::expire_keys(tx, aged, limit).boxed()).await
    }

    async fn expire_dedupe(&self, from: IdPlace, limit: usize) -> Result<Forgotten, StorageError> {
        self.sweep("ledger.expire_dedupe", move |tx, at| janitor::expire_dedupe(tx, at, from, limit).boxed())
            .await
    }

    async fn expire_undelivered(&self, limit: usize) -> Result<u64, StorageError> {
        self.sweep("ledger.expire_undelivered", move |tx, at| {
            janitor::expire_undelivered(tx, at, limit).boxed()
        })
        .await
    }

    async fn prune_messages(&self, before: Timestamp, limit: usize) -> Result<Pruned, StorageError> {
        self.write("ledger.prune_messages", move |tx| janitor::prune_messages(tx, before, limit).boxed())
            .await
    }

    async fn sweep_way_in(&self) -> Result<u64, StorageError> {
        self.sweep("ledger.sweep_way_in", |tx, aged| janitor::sweep_way_in(tx, aged).boxed()).await
    }

    async fn orphans(&self, before: Timestamp, limit: usize) -> Result<Vec<Orphan>, StorageError> {
        self.read("ledger.orphans", move |tx| janitor::orphans(tx, before, limit).boxed()).await
    }
}
