//! Following logs, what waits for an answer, what was read, and who is signed in.

use model::{ConversationId, Epoch, MemberId, MemberName, MessageId, NodeName, Timestamp};

use super::mesh::Member;
use super::read::{ConversationName, HistoryRow};

/// Who follows a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follower {
    /// A member, who must be allowed to read it.
    Member(MemberId),
    /// A broker that hands the rows on to members it has checked.
    Broker,
}

/// The rows after a place, from ONE read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// What the member calls the log; nothing for a broker.
    pub name: Option<ConversationName>,
    /// The place asked for, as a number: rows of a log are numbered without gaps.
    pub from: u64,
    /// Oldest first.
    pub rows: Vec<HistoryRow>,
    /// Whether more rows follow these.
    pub has_more: bool,
    /// The log's epoch.
    pub epoch: Epoch,
}

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHead {
    /// Which.
    pub conversation: ConversationId,
    /// The log's epoch.
    pub epoch: Epoch,
    /// The last row's number.
    pub head: u64,
}

/// What a member has read of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadState {
    /// Up to this row.
    pub read: u64,
    /// Others' messages after it, counted up to a bound.
    pub unread: u64,
}

/// A log that was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emptied {
    /// Its epoch from now on.
    pub epoch: Epoch,
    /// How many messages it had.
    pub removed: u64,
}

/// A round of emptying a log.
pub(crate) enum Emptying {
    /// There is more to remove.
    More {
        /// Messages this round removed.
        removed: u64,
    },
    /// It is empty, under a new epoch.
    Done {
        /// Messages this round removed.
        removed: u64,
        /// The new epoch.
        epoch: Epoch,
    },
}

/// A change of what a conversation waits on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// Which conversation.
    pub conversation: ConversationId,
    /// Who may know.
    pub audience: Audience,
    /// Its number among the changes of this conversation.
    pub rev: u64,
    /// When it was made.
    pub at: Timestamp,
    /// The question; nothing when the conversation waits no more.
    pub question: Option<AskedQuestion>,
}

/// A question a conversation waits on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedQuestion {
    /// Its place.
    pub history_id: u64,
    /// Who asks.
    pub by: MemberName,
    /// Its message, while that is kept.
    pub message: Option<(MessageId, Vec<u8>)>,
}

/// Who may read a conversation, and what each calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Every member.
    Everyone(model::TopicName),
    /// These two; the same one twice in a conversation with oneself.
    Two([(MemberId, MemberName); 2]),
}

/// A node as its mesh sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name.
    pub name: NodeName,
    /// When a link of it was last opened.
    pub last_seen_at: Timestamp,
    /// Messages held for its members.
    pub held: u64,
}

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// As whom.
    pub member: Member,
    /// Its end.
    pub expires_at: Timestamp,
}

impl Emptying {
    /// The whole once it is done, else what was removed so far.
    pub(crate) fn add_to(self, before: u64) -> Result<Emptied, u64> {
        match self {
            Emptying::More { removed } => Err(before + removed),
            Emptying::Done { removed, epoch } => Ok(Emptied { epoch, removed: before + removed }),
        }
    }
}

impl Audience {
    /// What `reader` calls the conversation; nothing when it is not its to read.
    pub fn name_to(&self, reader: MemberId) -> Option<ConversationName> {
        match self {
            Audience::Everyone(topic) => Some(ConversationName::Topic(topic.clone())),
            Audience::Two([one, other]) if one.0 == reader => Some(ConversationName::Dm(other.1.clone())),
            Audience::Two([one, other]) if other.0 == reader => Some(ConversationName::Dm(one.1.clone())),
            Audience::Two(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_two_calls_a_conversation_by_the_other_and_a_third_knows_none() {
        let member = |n: u8, name: &str| (MemberId::from_bytes([n; 16]), name.parse().unwrap());
        let two = Audience::Two([member(1, "jane"), member(2, "carl")]);
        let name = |n: u8| two.name_to(MemberId::from_bytes([n; 16])).map(|name| name.to_string());
        assert_eq!((name(1).as_deref(), name(2).as_deref(), name(3)), (Some("@carl"), Some("@jane"), None));
        let own = Audience::Two([member(1, "jane"), member(1, "jane")]);
        assert_eq!(own.name_to(MemberId::from_bytes([1; 16])).unwrap().to_string(), "@jane");
    }
}
