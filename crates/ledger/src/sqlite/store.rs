//! The handle, and each door's way into the engine.

mod open;
mod run;
mod tokens;

use ::sqlite::Db;
use ::sqlite::rusqlite::Connection;
use async_trait::async_trait;
use model::admission::{Known, StatusAnswer};
use model::ageing::ForgottenUpto;
use model::hub::{RecordId, RecordKind};
use model::webhook::WebhookSecret;
use model::{
    ClientMessageId, ConversationId, Cursor, DeliveryRung, MemberId, MemberKind, MemberName, MessageId,
    NodeName, Timestamp, TopicName,
};
use tokio::sync::watch;

use self::run::{Accepts, LookUp, LookUps};
use self::tokens::Tokens;
use super::{
    chat, explain, history, hub, janitor, join, link, list, manage, mesh, push, signin, status, token, wayin,
    webhook, window,
};
use crate::*;

pub(super) use open::World;

/// A ledger in one file.
pub struct SqliteLedger {
    db: Db,
    world: World,
    committed: watch::Sender<()>,
    stirred: watch::Sender<()>,
    accepts: Accepts,
    look_ups: LookUps,
    tokens: Tokens,
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn now(&self) -> Result<Timestamp, StorageError> {
        Ok(self.world.now())
    }

    fn committed(&self) -> watch::Receiver<()> {
        self.committed.subscribe()
    }

    fn stirred(&self) -> watch::Receiver<()> {
        self.stirred.subscribe()
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn clock_regressed(&self) -> watch::Receiver<Regressed> {
        self.world.regressions.subscribe()
    }

    async fn look_at_clock(&self) -> Result<ClockLook, StorageError> {
        self.look().await
    }

    fn forgotten_upto(&self, _: Timestamp) -> ForgottenUpto {
        self.world.forgotten_upto()
    }

    async fn setup(&self, setup: MeshSetup) -> Result<Mesh, StorageError> {
        self.write("ledger.setup", move |conn, world| mesh::setup(conn, world, &setup)).await
    }

    async fn mesh(&self) -> Result<Mesh, StorageError> {
        self.read("ledger.mesh", mesh::read).await
    }

    async fn set_policies(&self, policies: Policies) -> Result<Mesh, StorageError> {
        self.write("ledger.set_policies", move |conn, _| mesh::set_policies(conn, policies)).await
    }

    async fn issuer(&self) -> Result<IssuerSeed, StorageError> {
        self.read("ledger.issuer", mesh::issuer).await
    }

    async fn has_owner(&self) -> Result<bool, StorageError> {
        self.read("ledger.has_owner", mesh::has_owner).await
    }

    async fn create_invite(&self, invite: NewInvite) -> Result<(), StorageError> {
        self.write("ledger.create_invite", move |conn, world| {
            wayin::create_invite(conn, world.now(), &invite)
        })
        .await
    }

    async fn invites(&self) -> Result<Vec<InviteRow>, StorageError> {
        self.read("ledger.invites", wayin::invites).await
    }

    async fn revoke_invite(&self, hash: SecretHash) -> Result<bool, StorageError> {
        self.write("ledger.revoke_invite", move |conn, world| wayin::revoke_invite(conn, world.now(), hash))
            .await
    }

    async fn check_invite(&self, hash: SecretHash, node: &NodeName) -> Result<(), WayInError> {
        let (node, now) = (node.clone(), self.world.now());
        self.read("ledger.check_invite", move |conn| wayin::check_invite(conn, now, hash, &node).map(drop))
            .await
    }

    async fn issue_challenge(&self, node: &NodeName, hash: SecretHash) -> Result<Timestamp, WayInError> {
        let node = node.clone();
        self.write("ledger.issue_challenge", move |conn, world| {
            wayin::issue_challenge(conn, world.now(), &node, hash)
        })
        .await
    }

    async fn check_challenge(&self, hash: SecretHash, node: &NodeName) -> Result<KnownNode, WayInError> {
        let (node, now) = (node.clone(), self.world.now());
        self.read("ledger.check_challenge", move |conn| wayin::check_challenge(conn, now, hash, &node)).await
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, WayInError> {
        self.write("ledger.exchange", move |conn, world| wayin::exchange(conn, world.now(), &exchange)).await
    }

    async fn ticket_node(&self, ticket: SecretHash, aud: &str) -> Result<NodeName, WayInError> {
        let (aud, now) = (aud.to_owned(), self.world.now());
        self.read("ledger.ticket_node", move |conn| join::ticket_node(conn, now, ticket, &aud)).await
    }

    async fn redeem(&self, ticket: SecretHash, aud: &str) -> Result<Joined, WayInError> {
        let aud = aud.to_owned();
        self.write("ledger.redeem", move |conn, world| join::redeem(conn, world, ticket, &aud)).await
    }

    async fn enter(&self, ticket: SecretHash, aud: &str) -> Result<Entered, WayInError> {
        let aud = aud.to_owned();
        self.write("ledger.enter", move |conn, world| {
            join::enter(conn, world, ticket, &aud).map(|inside| inside.entered)
        })
        .await
    }

    async fn open_link(&self, opening: LinkOpening) -> Result<LinkOpened, LinkError> {
        self.write("ledger.open_link", move |conn, world| link::open(conn, world, &opening)).await
    }

    async fn accept(&self, lane: LaneSubmission) -> Result<Vec<Outcome>, LinkError> {
        self.accept_lane(lane).await
    }

    async fn known_all(
        &self,
        sender: MemberId,
        ids: &[ClientMessageId],
    ) -> Result<Vec<Option<Known>>, StorageError> {
        self.db.read_gathered(&self.look_ups, LookUp { sender, ids: ids.to_vec() }).await
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
                let (now, forgotten) = (self.world.now(), self.world.forgotten_upto());
                let ask = move |conn: &Connection| status::ask(conn, now, &forgotten, &via, &questions);
                self.read("ledger.message_status", ask).await
            }
            Fence::Retire => {
                self.write("ledger.fence", move |conn, world| status::fence(conn, world, &via, &questions))
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
        self.read("ledger.mail", move |conn| window::mail(conn, &link, &unacked, limit)).await
    }

    async fn ack(&self, via: &Via, rows: Vec<Ack>) -> Result<Vec<AckedRow>, LinkError> {
        let via = via.clone();
        self.write_mail("ledger.ack", move |conn, world| window::ack(conn, world.now(), &via, &rows)).await
    }

    async fn nack(&self, link: &Link, rows: Vec<Nack>) -> Result<Vec<AckedRow>, LinkError> {
        let link = link.clone();
        self.write_mail("ledger.nack", move |conn, world| window::nack(conn, world.now(), &link, &rows)).await
    }

    async fn receipts(
        &self,
        link: &Link,
        unacked: &[(MessageId, MemberId)],
        limit: usize,
    ) -> Result<Vec<ReceiptRow>, LinkError> {
        let (link, unacked) = (link.clone(), unacked.to_vec());
        self.read("ledger.receipts", move |conn| window::receipts(conn, &link, &unacked, limit)).await
    }

    async fn receipts_ack(&self, link: &Link, rows: Vec<ReceiptAck>) -> Result<(), LinkError> {
        let link = link.clone();
        self.write_mail("ledger.receipts_ack", move |conn, _| window::receipts_ack(conn, &link, &rows)).await
    }

    async fn history(
        &self,
        log: &Log,
        reader: MemberId,
        page: HistoryPage,
        limit: usize,
    ) -> Result<Option<History>, HistoryError> {
        let log = log.clone();
        self.read("ledger.history", move |conn| history::read(conn, &log, reader, page, limit)).await
    }

    async fn messages(
        &self,
        reader: MemberId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StorageError> {
        self.read("ledger.messages", move |conn| list::messages(conn, reader, before, limit)).await
    }

    async fn conversations(
        &self,
        reader: MemberId,
        limit: usize,
    ) -> Result<Vec<ConversationRow>, StorageError> {
        self.read("ledger.conversations", move |conn| list::conversations(conn, reader, limit)).await
    }

    async fn conversation(
        &self,
        id: ConversationId,
        reader: MemberId,
    ) -> Result<Option<ConversationRow>, StorageError> {
        self.read("ledger.conversation", move |conn| list::conversation(conn, id, reader)).await
    }

    async fn follow(
        &self,
        id: ConversationId,
        follower: Follower,
        after: Cursor,
        limit: usize,
    ) -> Result<Option<Followed>, HistoryError> {
        let read = move |conn: &Connection| chat::follow(conn, id, follower, after, limit);
        match follower {
            // The end of a log, for all who follow it.
            Follower::Broker => self.db.read_here("ledger.follow", read).await,
            Follower::Member(_) => self.read("ledger.follow", read).await,
        }
    }

    async fn heads(&self, ids: &[ConversationId]) -> Result<Vec<LogHead>, StorageError> {
        let ids = ids.to_vec();
        self.read("ledger.heads", move |conn| chat::heads(conn, &ids)).await
    }

    async fn mark_read(
        &self,
        reader: MemberId,
        id: ConversationId,
        upto: Cursor,
    ) -> Result<Option<ReadState>, HistoryError> {
        self.write_mail("ledger.mark_read", move |conn, world| {
            chat::mark_read(conn, world.now(), reader, id, upto)
        })
        .await
    }

    async fn empty_conversation(&self, id: ConversationId) -> Result<Option<Emptied>, StorageError> {
        let mut removed = 0;
        loop {
            let round = self.write("ledger.empty_conversation", move |conn, _| chat::empty(conn, id)).await?;
            match round.map(|round| round.add_to(removed)) {
                None => return Ok(None),
                Some(Ok(emptied)) => return Ok(Some(emptied)),
                Some(Err(so_far)) => removed = so_far,
            }
        }
    }

    async fn escalations(&self, reader: MemberId, limit: usize) -> Result<Vec<Escalation>, StorageError> {
        self.read("ledger.escalations", move |conn| chat::escalations(conn, reader, limit)).await
    }

    async fn escalation_edges(
        &self,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Escalation>, StorageError> {
        self.read("ledger.escalation_edges", move |conn| chat::edges(conn, since, limit)).await
    }

    async fn nodes(&self, limit: usize) -> Result<Vec<NodeFacts>, StorageError> {
        self.read("ledger.nodes", move |conn| chat::nodes(conn, limit)).await
    }

    async fn create_sign_in(&self, key: SecretHash, member: MemberId) -> Result<Timestamp, ManageError> {
        self.write("ledger.create_sign_in", move |conn, world| signin::create(conn, world.now(), key, member))
            .await
    }

    async fn open_session(
        &self,
        key: SecretHash,
        session: SecretHash,
    ) -> Result<Option<Session>, StorageError> {
        self.write("ledger.open_session", move |conn, world| signin::open(conn, world.now(), key, session))
            .await
    }

    async fn session(&self, session: SecretHash) -> Result<Option<Session>, StorageError> {
        let now = self.world.now();
        self.read("ledger.session", move |conn| signin::resolve(conn, now, session)).await
    }

    async fn end_session(&self, session: SecretHash) -> Result<bool, StorageError> {
        self.write("ledger.end_session", move |conn, world| signin::end(conn, world.now(), session)).await
    }

    async fn create_socket_ticket(
        &self,
        ticket: SecretHash,
        credential: SecretHash,
    ) -> Result<Timestamp, StorageError> {
        self.write("ledger.create_socket_ticket", move |conn, world| {
            signin::create_ticket(conn, world.now(), ticket, credential)
        })
        .await
    }

    async fn use_socket_ticket(&self, ticket: SecretHash) -> Result<Option<SecretHash>, StorageError> {
        self.write("ledger.use_socket_ticket", move |conn, world| {
            signin::use_ticket(conn, world.now(), ticket)
        })
        .await
    }

    async fn members(&self, after: Option<&MemberName>, limit: usize) -> Result<Vec<Member>, StorageError> {
        let after = after.cloned();
        self.read("ledger.members", move |conn| list::members(conn, after.as_ref(), limit)).await
    }

    async fn member(&self, id: MemberId) -> Result<Option<Member>, StorageError> {
        self.read("ledger.member", move |conn| list::member(conn, id)).await
    }

    async fn member_named(&self, name: &MemberName) -> Result<Option<Member>, StorageError> {
        let name = name.clone();
        self.read("ledger.member_named", move |conn| list::member_named(conn, &name)).await
    }

    async fn topics(
        &self,
        reader: MemberId,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicRow>, StorageError> {
        let after = after.cloned();
        self.read("ledger.topics", move |conn| list::topics(conn, reader, after.as_ref(), limit)).await
    }

    async fn explain(&self, wanted: &Wanted) -> Result<Vec<Explained>, StorageError> {
        let wanted = wanted.clone();
        self.read("ledger.explain", move |conn| explain::explain(conn, &wanted)).await
    }

    async fn rungs(&self, id: MessageId) -> Result<Vec<(MemberId, DeliveryRung)>, StorageError> {
        self.read("ledger.rungs", move |conn| explain::rungs(conn, id)).await
    }

    async fn register_member(
        &self,
        link: &Link,
        name: &MemberName,
        kind: MemberKind,
    ) -> Result<Registered, ManageError> {
        let (link, name) = (link.clone(), name.clone());
        self.write("ledger.register_member", move |conn, world| {
            manage::register(conn, world, &link, &name, kind)
        })
        .await
    }

    async fn host_member(&self, name: &MemberName, kind: MemberKind) -> Result<Registered, ManageError> {
        let name = name.clone();
        self.write("ledger.host_member", move |conn, world| manage::host(conn, world, &name, kind)).await
    }

    async fn remove_member(&self, name: &MemberName) -> Result<(), ManageError> {
        let name = name.clone();
        self.write("ledger.remove_member", move |conn, world| manage::remove(conn, world.now(), &name)).await
    }

    async fn create_topic(&self, creator: MemberId, topic: &TopicName) -> Result<TopicRow, ManageError> {
        let topic = topic.clone();
        self.write("ledger.create_topic", move |conn, world| {
            manage::create_topic(conn, world, creator, &topic)
        })
        .await
    }

    async fn subscribe(&self, member: MemberId, topic: &TopicName) -> Result<(), ManageError> {
        let topic = topic.clone();
        self.write("ledger.subscribe", move |conn, world| {
            manage::subscribe(conn, world.now(), member, &topic)
        })
        .await
    }

    async fn unsubscribe(&self, member: MemberId, topic: &TopicName) -> Result<(), ManageError> {
        let topic = topic.clone();
        self.write("ledger.unsubscribe", move |conn, _| manage::unsubscribe(conn, member, &topic)).await
    }

    async fn set_conversation_state(
        &self,
        id: ConversationId,
        state: ConversationState,
    ) -> Result<(), ManageError> {
        self.write("ledger.set_conversation_state", move |conn, _| manage::set_state(conn, id, state)).await
    }

    async fn create_token(&self, token: NewToken) -> Result<ApiToken, ManageError> {
        self.write("ledger.create_token", move |conn, world| super::token::create(conn, world.now(), &token))
            .await
    }

    async fn tokens(&self) -> Result<Vec<ApiToken>, StorageError> {
        self.read("ledger.tokens", token::list).await
    }

    async fn revoke_token(&self, id: TokenId) -> Result<bool, StorageError> {
        self.write("ledger.revoke_token", move |conn, world| token::revoke(conn, world.now(), id)).await
    }

    async fn resolve_token(&self, hash: SecretHash) -> Result<Option<ApiToken>, StorageError> {
        self.token_of(hash).await
    }

    async fn create_webhook(&self, new: NewWebhook) -> Result<Webhook, WebhookError> {
        self.write("ledger.create_webhook", move |conn, world| webhook::create(conn, world, &new)).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, StorageError> {
        self.read("ledger.webhooks", webhook::list).await
    }

    async fn rotate_webhook(
        &self,
        name: &MemberName,
        secret: WebhookSecret,
    ) -> Result<Webhook, WebhookError> {
        let name = name.clone();
        self.write("ledger.rotate_webhook", move |conn, world| {
            webhook::rotate(conn, world.now(), &name, &secret)
        })
        .await
    }

    async fn enable_webhook(&self, name: &MemberName) -> Result<Webhook, WebhookError> {
        let name = name.clone();
        self.write("ledger.enable_webhook", move |conn, _| webhook::enable(conn, &name)).await
    }

    async fn remove_webhook(&self, name: &MemberName) -> Result<(), WebhookError> {
        loop {
            let name = name.clone();
            let round = move |conn: &Connection, world: &World| webhook::remove(conn, world.now(), &name);
            match self.write("ledger.remove_webhook", round).await? {
                webhook::Removal::More => {}
                webhook::Removal::Done => return Ok(()),
            }
        }
    }

    async fn claim_pushes(&self, limit: usize) -> Result<Vec<Push>, StorageError> {
        let now = self.world.now();
        if !self.read("ledger.due_pushes", move |conn| push::is_due(conn, now)).await? {
            return Ok(Vec::new());
        }
        self.write_mail("ledger.claim_pushes", move |conn, world| push::claim(conn, world, limit)).await
    }

    async fn settle_push(&self, claim: PushClaim, outcome: PushOutcome) -> Result<PushSettled, StorageError> {
        self.write_mail("ledger.settle_push", move |conn, world| {
            push::settle(conn, world.now(), &claim, &outcome)
        })
        .await
    }

    async fn pushes(&self, id: MessageId) -> Result<Vec<PushFacts>, StorageError> {
        self.read("ledger.pushes", move |conn| webhook::pushes(conn, id)).await
    }

    async fn hub_write(&self, write: HubWrite) -> Result<HubOutcome, StorageError> {
        if crate::planted::planted(crate::planted::IDEM_OWN_TRANSACTION) {
            return self.hub_write_in_two_transactions(write).await;
        }
        self.write_mail("ledger.hub_write", move |conn, world| {
            let (outcome, row) = hub::write(conn, world, &write)?;
            row.iter().try_for_each(|row| hub::store_key(conn, world, row))?;
            Ok::<_, StorageError>(outcome)
        })
        .await
    }

    async fn hub_known(
        &self,
        principal: MemberId,
        key: &ClientMessageId,
    ) -> Result<Option<HubKnown>, StorageError> {
        let key = key.clone();
        self.read("ledger.hub_known", move |conn| hub::known(conn, principal, &key)).await
    }

    async fn hub_key_status(
        &self,
        principal: MemberId,
        key: &ClientMessageId,
        created_at: Option<Timestamp>,
        fence: Fence,
    ) -> Result<HubKeyStatus, StorageError> {
        let key = key.clone();
        match fence {
            Fence::None => {
                let (now, forgotten) = (self.world.now(), self.world.forgotten_upto());
                self.read("ledger.hub_key_status", move |conn| {
                    hub::ask(conn, now, &forgotten, principal, &key, created_at)
                })
                .await
            }
            Fence::Retire => {
                self.write("ledger.hub_fence", move |conn, world| {
                    hub::fence(conn, world, principal, &key, created_at)
                })
                .await
            }
        }
    }

    async fn hub_record(&self, kind: RecordKind, id: &RecordId) -> Result<Option<HubRecord>, StorageError> {
        let id = id.clone();
        self.read("ledger.hub_record", move |conn| hub::record(conn, kind, &id)).await
    }

    async fn hub_list(&self, kind: RecordKind, after: u64, limit: usize) -> Result<HubPage, StorageError> {
        self.read("ledger.hub_list", move |conn| hub::list(conn, kind, after, limit)).await
    }

    async fn expire_hub_keys(&self, limit: usize) -> Result<u64, StorageError> {
        let expire = move |conn: &_, world: &_, aged| hub::expire_keys(conn, world, aged, limit);
        self.sweep("ledger.expire_hub_keys", expire).await
    }

    async fn expire_dedupe(&self, from: IdPlace, limit: usize) -> Result<Forgotten, StorageError> {
        self.forget_ids(from, limit).await
    }

    async fn expire_undelivered(&self, limit: usize) -> Result<u64, StorageError> {
        self.sweep("ledger.expire_undelivered", move |conn, _, at| {
            janitor::expire_undelivered(conn, at, limit)
        })
        .await
    }

    async fn prune_messages(&self, before: Timestamp, limit: usize) -> Result<Pruned, StorageError> {
        self.write("ledger.prune_messages", move |conn, _| janitor::prune_messages(conn, before, limit)).await
    }

    async fn sweep_way_in(&self) -> Result<u64, StorageError> {
        self.sweep_way_in_and_mark().await
    }

    async fn orphans(&self, before: Timestamp, limit: usize) -> Result<Vec<Orphan>, StorageError> {
        self.audit(before, limit).await
    }
}
