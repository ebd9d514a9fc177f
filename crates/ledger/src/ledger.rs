//! The contract.

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

use crate::*;

/// One mesh's books. Every door is one transaction, or one read; `Ok` means committed.
///
/// Doors do not check who may ask: the broker does, with the role of [`Ledger::member`]. They do check what
/// only a transaction can: epochs, homes, removals, uses.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Store time: the one clock that ages, deadlines and windows are compared with.
    async fn now(&self) -> Result<Timestamp, StorageError>;

    /// Changes whenever something was committed that a reader may be waiting for. Carries nothing; a
    /// change may be missed or be about something else, so the woken side reads, and polls besides.
    fn committed(&self) -> watch::Receiver<()>;

    /// [`Ledger::committed`] without those commits that only made logs longer: nothing was left to be delivered, no rung
    /// climbed and nobody was asked anything.
    fn stirred(&self) -> watch::Receiver<()> {
        self.committed()
    }

    /// Whether other processes commit to these books too, of which this one knows from [`Ledger::committed`] alone.
    fn is_shared(&self) -> bool {
        true
    }

    /// What was seen of the store's clock going back; changes with every message placed meanwhile.
    fn clock_regressed(&self) -> watch::Receiver<Regressed>;

    /// Looks at the store's clock and keeps durably what was seen: sweeps end by age what [`ClockLook::borne_out`] has
    /// passed, and nothing else.
    async fn look_at_clock(&self) -> Result<ClockLook, StorageError>;

    /// Which ids may be forgotten by now, at `now` of the store's clock.
    fn forgotten_upto(&self, now: Timestamp) -> ForgottenUpto;

    /// Settings under which what was acknowledged may be lost although the store's own disk has it. A file has none.
    async fn durability(&self) -> Result<Vec<DurabilityWarning>, StorageError> {
        Ok(Vec::new())
    }

    // The mesh.

    /// Makes the mesh and its issuer key on an empty ledger; else answers with what is there.
    async fn setup(&self, setup: MeshSetup) -> Result<Mesh, StorageError>;

    /// The mesh as it is now.
    async fn mesh(&self) -> Result<Mesh, StorageError>;

    /// Changes the policies, from the next transaction on.
    async fn set_policies(&self, policies: Policies) -> Result<Mesh, StorageError>;

    /// The key that signs exchanges; all broker processes share it.
    async fn issuer(&self) -> Result<IssuerSeed, StorageError>;

    /// Whether somebody owns the mesh. Nobody does on an empty store: print an owner invite.
    async fn has_owner(&self) -> Result<bool, StorageError>;

    // The way in: shape → rate → invite → expiry → node → proof → nonce with ticket.

    /// Stores an invite.
    async fn create_invite(&self, invite: NewInvite) -> Result<(), StorageError>;

    /// Invites not yet swept.
    async fn invites(&self) -> Result<Vec<InviteRow>, StorageError>;

    /// Takes an unused invite back, with every ticket exchanged for it. False: there was none.
    async fn revoke_invite(&self, hash: SecretHash) -> Result<bool, StorageError>;

    /// The invite's part of the order, up to the node; what the broker asks before it checks the proof.
    async fn check_invite(&self, hash: SecretHash, node: &NodeName) -> Result<(), WayInError>;

    /// Stores a challenge for a known node; answers with store time.
    async fn issue_challenge(&self, node: &NodeName, hash: SecretHash) -> Result<Timestamp, WayInError>;

    /// The challenge's part of the order; answers with the key the proof must be checked with.
    async fn check_challenge(&self, hash: SecretHash, node: &NodeName) -> Result<KnownNode, WayInError>;

    /// Repeats the checks, then claims nonce and challenge and stores the ticket, in one transaction.
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, WayInError>;

    /// Whose ticket it is, while it may be used: for a broker that would rather keep the link it has.
    async fn ticket_node(&self, ticket: SecretHash, aud: &str) -> Result<NodeName, WayInError>;

    /// Uses a ticket: ticket, invite, key, node, person and a new link epoch, in one transaction.
    async fn redeem(&self, ticket: SecretHash, aud: &str) -> Result<Joined, WayInError>;

    /// Uses a ticket that opens no link: the same without a new epoch, which would fence the link the node has.
    async fn enter(&self, ticket: SecretHash, aud: &str) -> Result<Entered, WayInError>;

    /// Negotiation: restores members a restored ledger lacks, notices a lost inbox and lost rows.
    async fn open_link(&self, opening: LinkOpening) -> Result<LinkOpened, LinkError>;

    // Accept.

    /// Commits messages in order: one outcome each. A permanent refusal lets the lane go on; any other
    /// ends it, and the rest is [`Outcome::NotTried`]. Concurrent calls share a commit, and a refusal
    /// touches nobody else.
    async fn accept(&self, lane: LaneSubmission) -> Result<Vec<Outcome>, LinkError>;

    /// What is known of a sender's ids, one answer each, by one read; the answers of B0.
    async fn known_all(
        &self,
        sender: MemberId,
        ids: &[ClientMessageId],
    ) -> Result<Vec<Option<Known>>, StorageError>;

    /// What is known of one id.
    async fn known(&self, sender: MemberId, id: &ClientMessageId) -> Result<Option<Known>, StorageError> {
        Ok(self.known_all(sender, std::slice::from_ref(id)).await?.pop().flatten())
    }

    /// What became of ids, one answer each; with [`Fence::Retire`] an absent one is retired in the same
    /// transaction. Through a link only for members at home there: others' ids are `Unknown`.
    async fn message_status(
        &self,
        via: &Via,
        questions: Vec<StatusQuestion>,
        fence: Fence,
    ) -> Result<Vec<StatusAnswer>, LinkError>;

    // Windows.

    /// Undelivered rows of members at home at the link's node, oldest first, without those in `unacked`.
    async fn mail(
        &self,
        link: &Link,
        unacked: &[(MessageId, MemberId)],
        limit: usize,
    ) -> Result<Vec<MailRow>, LinkError>;

    /// Records rungs; they only rise. Through a link for members at home there, through the broker for
    /// those it hosts; other rows are passed over. A row the ledger lost is confirmed: it will come again.
    async fn ack(&self, via: &Via, rows: Vec<Ack>) -> Result<Vec<AckedRow>, LinkError>;

    /// Ends rows the recipient's node cannot store, so that they stop nobody.
    async fn nack(&self, link: &Link, rows: Vec<Nack>) -> Result<Vec<AckedRow>, LinkError>;

    /// Rungs of direct messages that senders at home at the link's node have not been told.
    async fn receipts(
        &self,
        link: &Link,
        unacked: &[(MessageId, MemberId)],
        limit: usize,
    ) -> Result<Vec<ReceiptRow>, LinkError>;

    /// Records what senders' nodes have committed.
    async fn receipts_ack(&self, link: &Link, rows: Vec<ReceiptAck>) -> Result<(), LinkError>;

    // Reads.

    /// A page of a log and the log's head, from one read. `None`: unknown, or not this reader's to read.
    async fn history(
        &self,
        log: &Log,
        reader: MemberId,
        page: HistoryPage,
        limit: usize,
    ) -> Result<Option<History>, HistoryError>;

    /// Messages of every log the reader may read, newest first, numbered below `before`.
    async fn messages(
        &self,
        reader: MemberId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StorageError>;

    /// All topics and the reader's own direct conversations, last active first.
    async fn conversations(
        &self,
        reader: MemberId,
        limit: usize,
    ) -> Result<Vec<ConversationRow>, StorageError>;

    /// One conversation as a reader sees it. `None`: unknown, or not this reader's to read.
    async fn conversation(
        &self,
        id: ConversationId,
        reader: MemberId,
    ) -> Result<Option<ConversationRow>, StorageError>;

    /// Members by name, after `after`, removed ones included.
    async fn members(&self, after: Option<&MemberName>, limit: usize) -> Result<Vec<Member>, StorageError>;

    /// One member by id.
    async fn member(&self, id: MemberId) -> Result<Option<Member>, StorageError>;

    /// One member by name.
    async fn member_named(&self, name: &MemberName) -> Result<Option<Member>, StorageError>;

    /// Topics by name, after `after`, as `reader` sees them.
    async fn topics(
        &self,
        reader: MemberId,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicRow>, StorageError>;

    /// All facts about an id; several when several senders used it. Reads only.
    async fn explain(&self, wanted: &Wanted) -> Result<Vec<Explained>, StorageError>;

    /// The rungs of a message's recipients, for counts and for [`model::receipt::standing`].
    async fn rungs(&self, id: MessageId) -> Result<Vec<(MemberId, DeliveryRung)>, StorageError>;

    // Chat.

    /// The rows after a place, for whoever follows a log. `None`: unknown, or not this follower's to read.
    async fn follow(
        &self,
        id: ConversationId,
        follower: Follower,
        after: Cursor,
        limit: usize,
    ) -> Result<Option<Followed>, HistoryError>;

    /// The ends of those of the logs that exist, from one read.
    async fn heads(&self, ids: &[ConversationId]) -> Result<Vec<LogHead>, StorageError>;

    /// Everything up to a place was read; a lower place changes nothing. `None`: unknown, or not this reader's.
    async fn mark_read(
        &self,
        reader: MemberId,
        id: ConversationId,
        upto: Cursor,
    ) -> Result<Option<ReadState>, HistoryError>;

    /// Removes a log's messages, in bounded rounds, and then raises its epoch. `None`: unknown.
    async fn empty_conversation(&self, id: ConversationId) -> Result<Option<Emptied>, StorageError>;

    /// What waits for an answer, of all a reader may read; oldest question first.
    async fn escalations(&self, reader: MemberId, limit: usize) -> Result<Vec<Escalation>, StorageError>;

    /// Changes of what conversations wait on, made at `since` or later; of one conversation in their order.
    async fn escalation_edges(&self, since: Timestamp, limit: usize)
    -> Result<Vec<Escalation>, StorageError>;

    /// Nodes that were not removed, by name.
    async fn nodes(&self, limit: usize) -> Result<Vec<NodeFacts>, StorageError>;

    // Browsers.

    /// Stores a key with which the member's browser may sign in once; answers with its end.
    async fn create_sign_in(&self, key: SecretHash, member: MemberId) -> Result<Timestamp, ManageError>;

    /// Uses a key and stores a session, in one transaction. `None`: no such key, or used, or past its time.
    async fn open_session(
        &self,
        key: SecretHash,
        session: SecretHash,
    ) -> Result<Option<Session>, StorageError>;

    /// The live session of a live member.
    async fn session(&self, session: SecretHash) -> Result<Option<Session>, StorageError>;

    /// Ends a session. False: there was no live one.
    async fn end_session(&self, session: SecretHash) -> Result<bool, StorageError>;

    /// Stores a ticket that opens one socket for the bearer of `credential`; answers with its end.
    async fn create_socket_ticket(
        &self,
        ticket: SecretHash,
        credential: SecretHash,
    ) -> Result<Timestamp, StorageError>;

    /// Uses a ticket; answers with its credential. `None`: no such ticket, or used, or past its time.
    async fn use_socket_ticket(&self, ticket: SecretHash) -> Result<Option<SecretHash>, StorageError>;

    // Management.

    /// A member at home at the link's node, made when its name is free.
    async fn register_member(
        &self,
        link: &Link,
        name: &MemberName,
        kind: MemberKind,
    ) -> Result<Registered, ManageError>;

    /// A member the broker hosts, made when its name is free.
    async fn host_member(&self, name: &MemberName, kind: MemberKind) -> Result<Registered, ManageError>;

    /// Removes a member; a node's person goes with its node and all members at home there.
    async fn remove_member(&self, name: &MemberName) -> Result<(), ManageError>;

    /// Makes a topic and subscribes its creator; a topic that is there stays as it is.
    async fn create_topic(&self, creator: MemberId, topic: &TopicName) -> Result<TopicRow, ManageError>;

    /// From now on the topic's messages are delivered to the member. Repeating it changes nothing.
    async fn subscribe(&self, member: MemberId, topic: &TopicName) -> Result<(), ManageError>;

    /// From now on they are not. Repeating it changes nothing.
    async fn unsubscribe(&self, member: MemberId, topic: &TopicName) -> Result<(), ManageError>;

    /// Opens or closes a conversation.
    async fn set_conversation_state(
        &self,
        id: ConversationId,
        state: ConversationState,
    ) -> Result<(), ManageError>;

    /// Stores an API token.
    async fn create_token(&self, token: NewToken) -> Result<ApiToken, ManageError>;

    /// All API tokens, revoked ones included.
    async fn tokens(&self) -> Result<Vec<ApiToken>, StorageError>;

    /// Takes a token back. False: there was no live one.
    async fn revoke_token(&self, id: TokenId) -> Result<bool, StorageError>;

    /// The live token of a live member.
    async fn resolve_token(&self, hash: SecretHash) -> Result<Option<ApiToken>, StorageError>;

    // Webhooks: members the broker hosts whose rows are `delivered` when an endpoint took them.

    /// Gives a member a webhook: a new member, or a hosted service that has none.
    async fn create_webhook(&self, new: NewWebhook) -> Result<Webhook, WebhookError>;

    /// All webhooks, by name.
    async fn webhooks(&self) -> Result<Vec<Webhook>, StorageError>;

    /// A new secret; the one before signs too for a while.
    async fn rotate_webhook(&self, name: &MemberName, secret: WebhookSecret)
    -> Result<Webhook, WebhookError>;

    /// Starts a webhook again; what waited is due at once. Repeating it changes nothing.
    async fn enable_webhook(&self, name: &MemberName) -> Result<Webhook, WebhookError>;

    /// Takes a member's webhook and subscriptions away; what waits for it ends. The member stays.
    async fn remove_webhook(&self, name: &MemberName) -> Result<(), WebhookError>;

    /// Claims calls that are due, who waited longest first: of each log for each webhook its oldest undelivered
    /// row, and of one webhook as many as its endpoint gets at once. Claims lapse by themselves.
    async fn claim_pushes(&self, limit: usize) -> Result<Vec<Push>, StorageError>;

    /// Records what became of a call.
    async fn settle_push(&self, claim: PushClaim, outcome: PushOutcome) -> Result<PushSettled, StorageError>;

    /// How far the pushes of a message came, for explain.
    async fn pushes(&self, id: MessageId) -> Result<Vec<PushFacts>, StorageError>;

    // The hub: versioned records, and writes that happen once under a key.

    /// Makes a write: its key is looked up, its precondition checked, its effect and its key's record written, in
    /// one transaction. Concurrent calls share a commit, and a refusal touches nobody else.
    async fn hub_write(&self, write: HubWrite) -> Result<HubOutcome, StorageError>;

    /// What a principal's key is known for, as a hub write or as a message's id.
    async fn hub_known(
        &self,
        principal: MemberId,
        key: &ClientMessageId,
    ) -> Result<Option<HubKnown>, StorageError>;

    /// What became of a key whose request was first made at `created_at`; with [`Fence::Retire`] an absent one is
    /// retired in the same transaction.
    async fn hub_key_status(
        &self,
        principal: MemberId,
        key: &ClientMessageId,
        created_at: Option<Timestamp>,
        fence: Fence,
    ) -> Result<HubKeyStatus, StorageError>;

    /// One record.
    async fn hub_record(&self, kind: RecordKind, id: &RecordId) -> Result<Option<HubRecord>, StorageError>;

    /// Records of a kind by their last change, those after place `after`. Who follows misses none: a record that
    /// changes meanwhile comes again.
    async fn hub_list(&self, kind: RecordKind, after: u64, limit: usize) -> Result<HubPage, StorageError>;

    // The janitor. Each call does a bounded round and says how many rows it changed.

    /// A step of a walk over all ids: forgets those whose window has passed, of at most `limit`.
    async fn expire_dedupe(&self, from: IdPlace, limit: usize) -> Result<Forgotten, StorageError>;

    /// Forgets keys of hub writes whose time is over.
    async fn expire_hub_keys(&self, limit: usize) -> Result<u64, StorageError>;

    /// Ends undelivered rows past their `deliver_by`, or older than the bound for undelivered rows.
    async fn expire_undelivered(&self, limit: usize) -> Result<u64, StorageError>;

    /// Removes messages accepted before `before`, oldest first, with what hangs on them, and says so in
    /// their dedupe rows, in one transaction.
    async fn prune_messages(&self, before: Timestamp, limit: usize) -> Result<Pruned, StorageError>;

    /// Forgets nonces, challenges, tickets and invites whose time is over.
    async fn sweep_way_in(&self) -> Result<u64, StorageError>;

    /// Rows older than `before` that contradict each other. A row and what it is compared with are read in one
    /// transaction.
    async fn orphans(&self, before: Timestamp, limit: usize) -> Result<Vec<Orphan>, StorageError>;
}
