//! What can go wrong at the doors: one enum per family, from shared leaves. Each knows its [`ErrorCode`].

use model::{Cursor, ErrorCode, MemberName, TopicName};

use crate::PostgresError;

/// The store could not do its part. Nothing is claimed; unless it says otherwise, nothing was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// SQLite's engine.
    #[error(transparent)]
    Sqlite(#[from] ::sqlite::StorageError),
    /// PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// A stored value breaks its own rule: the tables were changed by another hand.
    #[error("the ledger holds {what}, which no rule of this program writes; restore a backup")]
    Broken {
        /// Which value.
        what: String,
    },
    /// The ledger has no mesh yet.
    #[error("the ledger holds no mesh yet; set one up first")]
    NoMesh,
}

/// Why a link may not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkRefused {
    /// A newer connection of the node took over.
    #[error("a newer connection of this node took over")]
    Replaced,
    /// The node was removed from the mesh.
    #[error("this node was removed from the mesh")]
    Revoked,
    /// The ledger does not know the node.
    #[error("the mesh does not know this node")]
    UnknownNode,
}

/// At a link's doors.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LinkError {
    /// The link is fenced.
    #[error(transparent)]
    Refused(#[from] LinkRefused),
    /// The store.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a node may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WayInRefused {
    /// Invite or challenge unknown, or taken back.
    #[error("the invite or challenge is unknown")]
    InvalidToken,
    /// Invite or challenge past its time.
    #[error("the invite or challenge is past its time")]
    ExpiredToken,
    /// Another join used the invite.
    #[error("the invite was used")]
    TokenAlreadyUsed,
    /// The invite or the key belongs to another node.
    #[error("the invite or the key belongs to another node")]
    NodeMismatch,
    /// The name belongs to another node.
    #[error("another node of this mesh has this name")]
    NodeNameTaken,
    /// Nonce or challenge seen before.
    #[error("the nonce or challenge was seen before")]
    ReplayDetected,
    /// Too many tickets of one invite are alive.
    #[error("too many tickets of this invite are alive")]
    RateLimited,
    /// The ledger does not know the node.
    #[error("the mesh does not know this node")]
    UnknownNode,
    /// The node was removed from the mesh.
    #[error("this node was removed from the mesh")]
    Revoked,
    /// Ticket unknown, or for another surface.
    #[error("the ticket is unknown or for another door")]
    InvalidTicket,
    /// Ticket past its time.
    #[error("the ticket is past its time")]
    ExpiredTicket,
    /// Ticket used.
    #[error("the ticket was used")]
    TicketAlreadyUsed,
}

/// On the way in.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WayInError {
    /// The ledger says no.
    #[error(transparent)]
    Refused(#[from] WayInRefused),
    /// The store.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Reading a log.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HistoryError {
    /// The cursor is not one of this log.
    #[error("the cursor is not one of this log")]
    InvalidCursor,
    /// What the cursor names is gone: pruned, reset or lost in a restore.
    #[error("the place the cursor names is gone")]
    CursorExpired {
        /// From where reading can go on.
        first_available: Cursor,
    },
    /// The store.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Managing members, topics and tokens.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ManageError {
    /// The name belongs to a member elsewhere.
    #[error("{0} is a member at another home")]
    NameTaken(MemberName),
    /// No such member, or removed.
    #[error("no member {0}")]
    MemberNotFound(String),
    /// No such topic.
    #[error("no topic {0}")]
    TopicNotFound(TopicName),
    /// No such conversation.
    #[error("no such conversation")]
    ConversationNotFound,
    /// The mesh would be left without an owner.
    #[error("{0} is the only owner")]
    LastOwner(MemberName),
    /// The link is fenced.
    #[error(transparent)]
    Link(#[from] LinkRefused),
    /// The store.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Managing webhooks.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WebhookError {
    /// Its member or topics.
    #[error(transparent)]
    Manage(#[from] ManageError),
    /// The member has one.
    #[error("{0} has a webhook already")]
    Exists(MemberName),
    /// No such webhook.
    #[error("no webhook {0}")]
    NotFound(MemberName),
    /// The mesh has as many as it may.
    #[error("the mesh has as many webhooks as it may")]
    TooMany,
    /// The store.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl StorageError {
    /// The code a client is told.
    pub fn code(&self) -> ErrorCode {
        use ::sqlite::StorageError as Sqlite;
        match self {
            StorageError::Sqlite(error) => match error {
                Sqlite::QueueFull { .. } | Sqlite::Busy { .. } | Sqlite::ReadTooLong { .. } => {
                    ErrorCode::StorageBusy
                }
                Sqlite::Full { .. } => ErrorCode::InsufficientStorage,
                Sqlite::LogFull { .. } => ErrorCode::LogFull,
                Sqlite::OutcomeUnknown { .. } => ErrorCode::OutcomeUnknown,
                Sqlite::Stopped { .. } | Sqlite::Corrupt { .. } => ErrorCode::StorageStopped,
                Sqlite::Closed { .. } => ErrorCode::Unavailable,
                Sqlite::Io { .. }
                | Sqlite::Panicked { .. }
                | Sqlite::RolledBack { .. }
                | Sqlite::Sql { .. } => ErrorCode::Internal,
            },
            StorageError::Postgres(error) => match error {
                PostgresError::Unreachable { .. } | PostgresError::NotDurable { .. } => {
                    ErrorCode::Unavailable
                }
                PostgresError::Busy { .. } | PostgresError::Raced { .. } => ErrorCode::StorageBusy,
                PostgresError::Full { .. } => ErrorCode::InsufficientStorage,
                PostgresError::Panicked { .. } | PostgresError::Sql { .. } => ErrorCode::Internal,
            },
            StorageError::Broken { .. } => ErrorCode::Internal,
            StorageError::NoMesh => ErrorCode::Unavailable,
        }
    }
}

impl LinkRefused {
    /// The code a client is told.
    pub const fn code(self) -> ErrorCode {
        match self {
            LinkRefused::Replaced => ErrorCode::LinkReplaced,
            LinkRefused::Revoked => ErrorCode::Revoked,
            LinkRefused::UnknownNode => ErrorCode::UnknownNode,
        }
    }
}

impl WayInRefused {
    /// The code a client is told.
    pub const fn code(self) -> ErrorCode {
        match self {
            WayInRefused::InvalidToken => ErrorCode::InvalidToken,
            WayInRefused::ExpiredToken => ErrorCode::ExpiredToken,
            WayInRefused::TokenAlreadyUsed => ErrorCode::TokenAlreadyUsed,
            WayInRefused::NodeMismatch => ErrorCode::NodeMismatch,
            WayInRefused::NodeNameTaken => ErrorCode::NodeNameTaken,
            WayInRefused::ReplayDetected => ErrorCode::ReplayDetected,
            WayInRefused::RateLimited => ErrorCode::RateLimited,
            WayInRefused::UnknownNode => ErrorCode::UnknownNode,
            WayInRefused::Revoked => ErrorCode::Revoked,
            WayInRefused::InvalidTicket => ErrorCode::InvalidTicket,
            WayInRefused::ExpiredTicket => ErrorCode::ExpiredTicket,
            WayInRefused::TicketAlreadyUsed => ErrorCode::TicketAlreadyUsed,
        }
    }
}

impl LinkError {
    /// The code a client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            LinkError::Refused(refused) => refused.code(),
            LinkError::Storage(error) => error.code(),
        }
    }
}

impl WayInError {
    /// The code a client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            WayInError::Refused(refused) => refused.code(),
            WayInError::Storage(error) => error.code(),
        }
    }
}

impl HistoryError {
    /// The code a client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            HistoryError::InvalidCursor => ErrorCode::InvalidCursor,
            HistoryError::CursorExpired { .. } => ErrorCode::CursorExpired,
            HistoryError::Storage(error) => error.code(),
        }
    }
}

impl ManageError {
    /// The code a client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            ManageError::NameTaken(_) => ErrorCode::NameTaken,
            ManageError::MemberNotFound(_) => ErrorCode::MemberNotFound,
            ManageError::TopicNotFound(_) => ErrorCode::TopicNotFound,
            ManageError::ConversationNotFound => ErrorCode::ConversationNotFound,
            ManageError::LastOwner(_) => ErrorCode::Forbidden,
            ManageError::Link(refused) => refused.code(),
            ManageError::Storage(error) => error.code(),
        }
    }
}

impl WebhookError {
    /// The code a client is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            WebhookError::Manage(error) => error.code(),
            WebhookError::Exists(_) => ErrorCode::NameTaken,
            WebhookError::NotFound(_) => ErrorCode::NotFound,
            WebhookError::TooMany => ErrorCode::TooLarge,
            WebhookError::Storage(error) => error.code(),
        }
    }
}

macro_rules! from_engine {
    ($($error:ident)*) => {$(
        impl From<::sqlite::StorageError> for $error {
            fn from(error: ::sqlite::StorageError) -> Self {
                $error::Storage(error.into())
            }
        }

        impl From<::sqlite::rusqlite::Error> for $error {
            fn from(error: ::sqlite::rusqlite::Error) -> Self {
                $error::Storage(error.into())
            }
        }
    )*};
}

from_engine! { LinkError WayInError HistoryError ManageError WebhookError }

impl From<::sqlite::rusqlite::Error> for StorageError {
    fn from(error: ::sqlite::rusqlite::Error) -> Self {
        StorageError::Sqlite(error.into())
    }
}
