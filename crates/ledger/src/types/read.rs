//! Reading logs and lists.

use std::fmt;

use model::{
    ClientMessageId, ConversationId, Cursor, Epoch, MemberId, MemberName, MessageId, Timestamp, TopicName,
};

use super::mesh::stored_words;

/// Which log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// By id.
    Conversation(ConversationId),
    /// A topic by name.
    Topic(TopicName),
}

/// Which rows of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryPage {
    /// The newest, for a first look.
    Newest,
    /// The newest before this place, for paging back.
    Before(Cursor),
    /// The oldest after this place, for following.
    After(Cursor),
}

/// A conversation and what a reader calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its id.
    pub conversation: ConversationId,
    /// Its name to that reader.
    pub name: ConversationName,
}

/// What a reader calls a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationName {
    /// `#topic`
    Topic(TopicName),
    /// `@other`, or the reader's own name.
    Dm(MemberName),
}

/// What a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ConversationKind {
    /// Read by all members.
    Topic = 0,
    /// Read by its two.
    Dm = 1,
}

/// Whether a conversation takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ConversationState {
    /// It does, and somebody works on it.
    Active = 0,
    /// It does not.
    Closed = 1,
    /// It does, and nobody works on it now.
    Paused = 2,
}

stored_words! {
    ConversationKind "kind" "topic or dm" { Topic "topic" Dm "dm" }
    ConversationState "state" "active, paused or closed" { Active "active" Closed "closed" Paused "paused" }
}

/// Rows of a log and the log's head, from ONE read: what follows `cursor` joins them without gap or repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The log.
    pub place: Place,
    /// Oldest first.
    pub rows: Vec<HistoryRow>,
    /// For `After`: the last row's place, or the asked one when nothing followed. Else the head.
    pub cursor: Cursor,
    /// Where the page before this one ends; the start when there is none.
    pub before: Cursor,
    /// Whether rows are left in the direction asked.
    pub has_more: bool,
    /// The log's epoch.
    pub epoch: Epoch,
}

/// One message of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// Its id.
    pub id: MessageId,
    /// Its place.
    pub history_id: u64,
    /// The same place as a cursor.
    pub cursor: Cursor,
    /// Who sent it.
    pub sender: MemberId,
    /// The sender's name.
    pub sender_name: MemberName,
    /// The sender's idempotency key.
    pub client_message_id: ClientMessageId,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The sender's fields.
    pub envelope: Vec<u8>,
}

/// What a reader may read of all logs, newest first. Rows are numbered as they were begun, not as they were committed,
/// so paging back sees whatever stood there at the first page, once; what comes later is on a new first page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    /// Newest first. Fewer than asked may come although there is more: a read has a bound.
    pub rows: Vec<MessageRow>,
    /// Where to go on; nothing when the first message was reached.
    pub before: Option<u64>,
}

/// One message of any log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number in the mesh.
    pub number: u64,
    /// Its log, as this reader calls it.
    pub place: Place,
    /// The message.
    pub row: HistoryRow,
    /// When this reader marked its copy as read.
    pub read_at: Option<Timestamp>,
}

impl MessagePage {
    /// The page of `rows`, read from the numbers `[floor, before)` of a mesh whose oldest message is `first`.
    pub(crate) fn of(rows: Vec<MessageRow>, limit: usize, floor: i64, first: i64) -> Self {
        let before = match rows.last() {
            Some(last) if rows.len() >= limit => Some(last.number),
            Some(_) | None => (floor > first).then_some(floor.unsigned_abs()),
        };
        Self { rows, before }
    }
}

/// A conversation as a reader's list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationRow {
    /// Which.
    pub place: Place,
    /// Topic or dm.
    pub kind: ConversationKind,
    /// Whether it takes messages.
    pub state: ConversationState,
    /// Messages so far.
    pub head: u64,
    /// When the last one came.
    pub last_at: Option<Timestamp>,
    /// The question it waits on.
    pub awaiting: Option<Awaiting>,
    /// How often `awaiting` changed.
    pub awaiting_rev: u64,
    /// The last row the reader has read.
    pub read: u64,
    /// Others' messages after it, counted up to a bound.
    pub unread: u64,
}

/// A conversation waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaiting {
    /// The question's place.
    pub history_id: u64,
    /// Who asked.
    pub by: MemberId,
}

/// A topic as a member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRow {
    /// Its name.
    pub topic: TopicName,
    /// Its log.
    pub conversation: ConversationId,
    /// Messages so far.
    pub head: u64,
    /// Members subscribed.
    pub subscribers: u64,
    /// Whether the asker is.
    pub subscribed: bool,
}

impl fmt::Display for ConversationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConversationName::Topic(topic) => write!(f, "#{topic}"),
            ConversationName::Dm(member) => write!(f, "@{member}"),
        }
    }
}
