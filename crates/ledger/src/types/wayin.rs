//! Joining and coming back: invites, challenges, tickets, links.

use std::fmt;

use model::{ClientMessageId, MemberId, MemberKind, MemberName, MessageId, NodeKey, NodeName, Timestamp};

use super::mesh::{Member, Mesh, Role};

/// The SHA-256 of an invite, challenge, ticket or API token; the secret itself is never stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

/// An invite to hand out.
#[derive(Clone, Debug)]
pub struct NewInvite {
    /// Of the token.
    pub hash: SecretHash,
    /// The only node that may use it.
    pub expected_node: Option<NodeName>,
    /// What its person may decide.
    pub role: Role,
    /// Its end.
    pub expires_at: Timestamp,
}

/// An invite as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InviteRow {
    /// Of the token.
    pub hash: SecretHash,
    /// The only node that may use it.
    pub expected_node: Option<NodeName>,
    /// What its person may decide.
    pub role: Role,
    /// Its end.
    pub expires_at: Timestamp,
    /// When a node joined by it.
    pub used_at: Option<Timestamp>,
    /// When its owner took it back.
    pub revoked_at: Option<Timestamp>,
}

/// By what a node proves that it may come in.
#[derive(Clone, Copy, Debug)]
pub enum Secret {
    /// An invite: the first join.
    Invite(SecretHash),
    /// A challenge: every return.
    Challenge(SecretHash),
}

/// A proven request for a ticket. Shape, rate and the node's signature were checked before.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Invite or challenge.
    pub by: Secret,
    /// The name asked for, or returned under.
    pub node: NodeName,
    /// The key the proof was checked with; a join registers it.
    pub public_key: NodeKey,
    /// Of the joiner's nonce; claimed together with the ticket.
    pub nonce: SecretHash,
    /// The one surface the ticket opens.
    pub aud: String,
    /// Of the ticket.
    pub ticket: SecretHash,
    /// The account's name, from which a first join makes its person.
    pub person: Option<MemberName>,
}

/// A ticket was stored.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Its end.
    pub expires_at: Timestamp,
    /// The node's person, once there is one.
    pub person: Option<Member>,
    /// Store time.
    pub now: Timestamp,
}

/// A node the ledger knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// Its name.
    pub name: NodeName,
    /// With which its proofs are checked.
    pub public_key: NodeKey,
}

/// A used ticket: the node is in.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The link to speak through; its epoch fences all earlier ones.
    pub link: Link,
    /// The node's person.
    pub person: Member,
    /// The mesh.
    pub mesh: Mesh,
    /// Whether this ticket registered the node.
    pub first_join: bool,
    /// Store time.
    pub now: Timestamp,
}

/// A used ticket of a surface that is no link: the node is in, and its link stays what it is.
#[derive(Clone, Debug)]
pub struct Entered {
    /// Whose ticket it was.
    pub node: NodeName,
    /// The node's person.
    pub person: Member,
    /// Whether this ticket registered the node.
    pub first_join: bool,
}

/// One connection of a node. Each ticket used for one raises the epoch; a lower one is fenced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Whose.
    pub node: NodeName,
    /// Which.
    pub epoch: u64,
}

/// What a node says at negotiation.
#[derive(Clone, Debug)]
pub struct LinkOpening {
    /// The connection.
    pub link: Link,
    /// The mailbox's inbox epoch: a new one says that earlier deliveries may be seen again.
    pub inbox_epoch: String,
    /// The epoch of the backup that the mailbox was restored from.
    pub inbox_epoch_before: Option<String>,
    /// Members at home there, so that a restored ledger gets them back.
    pub members: Vec<LinkMember>,
    /// Rows it knows to be accepted, so that a restored ledger is noticed.
    pub done: Vec<Witness>,
    /// The highest place of its inbox, so that an inbox that went back is noticed. `None`: the node does not say.
    pub received: Option<u64>,
}

/// A member as its home names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkMember {
    /// Its id.
    pub id: MemberId,
    /// Its name.
    pub name: MemberName,
    /// What it is.
    pub kind: MemberKind,
}

/// A message its sender's node knows to be accepted.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Who sent it.
    pub sender: MemberId,
    /// Under which id.
    pub client_message_id: ClientMessageId,
    /// What the broker called it.
    pub broker_message_id: MessageId,
    /// When the broker accepted it. `None`: the node does not say.
    pub accepted_at: Option<Timestamp>,
}

/// What the ledger says at negotiation.
#[derive(Clone, Debug)]
pub struct LinkOpened {
    /// Whether rows the node knows to be accepted are missing here.
    pub restored: bool,
    /// The members at home there, as the ledger has them now.
    pub members: Vec<Member>,
    /// The mesh.
    pub mesh: Mesh,
    /// Store time.
    pub now: Timestamp,
    /// The last time that this node's inbox was found older than it had been.
    pub inbox_went_back: Option<InboxWentBack>,
    /// The last time that this ledger was found older than it had been.
    pub ledger_went_back: Option<LedgerWentBack>,
}

/// An inbox holds less than it told before: an older copy of its file was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxWentBack {
    /// When that was noticed.
    pub noticed_at: Timestamp,
    /// The highest place it told before.
    pub from: u64,
    /// The highest place it had then.
    pub to: u64,
    /// Deliveries still to be sent again.
    pub left: u64,
}

/// This ledger lacks what it held before: an older copy was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerWentBack {
    /// When that was noticed.
    pub noticed_at: Timestamp,
    /// The newest instant the older copy holds.
    pub ends_at: Timestamp,
    /// Up to when messages were accepted that the copy lacks. Nodes send theirs again; other senders do not know.
    pub upto: Timestamp,
    /// The node, or the file, that knew more.
    pub noticed_by: String,
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell two apart in a log, too little to look one up.
        write!(f, "SecretHash({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}
