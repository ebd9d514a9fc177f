//! Addresses at home here.

use model::{MemberId, MemberKind, MemberName, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// An address whose home is this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id in the mesh.
    pub id: MemberId,
    /// Its name, never changed.
    pub name: MemberName,
    /// Who answers there.
    pub kind: MemberKind,
}

/// Why a member was not kept.
#[derive(Debug, thiserror::Error)]
pub enum PutMemberError {
    /// Names are never changed or reused.
    #[error("{name} is already the name of {holder} here")]
    NameTaken {
        /// The name asked for.
        name: MemberName,
        /// Who has it.
        holder: MemberId,
    },
    /// The id is known under another name or kind.
    #[error("{} is known here as {} ({})", held.id, held.name, held.kind)]
    Differs {
        /// What is kept.
        held: Member,
    },
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// SHA-256 of a member's token: the token itself is never stored.
pub type TokenHash = [u8; 32];

/// Why a token was not kept.
#[derive(Debug, thiserror::Error)]
pub enum SetTokenError {
    /// Tokens belong to members at home here.
    #[error("no member {0} is at home here")]
    UnknownMember(MemberId),
    /// The file.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Mailbox {
    /// Keeps a member; keeping it again changes nothing.
    pub async fn put_member(&self, member: Member) -> Result<(), PutMemberError> {
        self.db.write("mailbox.member", move |conn| put(conn, member)).await
    }

    /// All members at home here, by name.
    pub async fn members(&self) -> Result<Vec<Member>, StorageError> {
        self.db
            .read("mailbox.members", |conn| {
                let mut statement = conn.prepare_cached(sql::MEMBER_ALL)?;
                let members = statement.query_map([], member)?.collect::<Result<_, _>>()?;
                Ok(members)
            })
            .await
    }

    /// The member of that name.
    pub async fn member_by_name(&self, name: MemberName) -> Result<Option<Member>, StorageError> {
        self.db.read("mailbox.member", move |conn| Ok(by_name(conn, &name)?)).await
    }

    /// Gives a member a new token; the one it had dies at `old_until`, an earlier one at once.
    pub async fn set_token(
        &self,
        member: MemberId,
        token_hash: TokenHash,
        old_until: Timestamp,
    ) -> Result<(), SetTokenError> {
        self.db
            .write("mailbox.token", move |conn| {
                let changed = conn.prepare_cached(sql::MEMBER_TOKEN)?.execute(named_params! {
                    ":id": Sql(&member), ":token_hash": token_hash, ":old_until": Sql(&old_until),
                })?;
                if changed == 0 { Err(SetTokenError::UnknownMember(member)) } else { Ok(()) }
            })
            .await
    }

    /// Whose token this is, now.
    pub async fn member_by_token(
        &self,
        token_hash: TokenHash,
        now: Timestamp,
    ) -> Result<Option<Member>, StorageError> {
        self.db
            .read("mailbox.token", move |conn| {
                let mut statement = conn.prepare_cached(sql::MEMBER_BY_TOKEN)?;
                let key = named_params! {":token_hash": token_hash, ":now": Sql(&now)};
                Ok(statement.query_row(key, member).optional()?)
            })
            .await
    }
}

impl From<rusqlite::Error> for SetTokenError {
    fn from(source: rusqlite::Error) -> Self {
        SetTokenError::Storage(source.into())
    }
}

impl From<rusqlite::Error> for PutMemberError {
    fn from(source: rusqlite::Error) -> Self {
        PutMemberError::Storage(source.into())
    }
}

fn put(conn: &Connection, asked: Member) -> Result<(), PutMemberError> {
    if let Some(held) = by_id(conn, asked.id)? {
        return if held == asked { Ok(()) } else { Err(PutMemberError::Differs { held }) };
    }
    if let Some(held) = by_name(conn, &asked.name)? {
        return Err(PutMemberError::NameTaken { name: asked.name, holder: held.id });
    }
    conn.prepare_cached(sql::MEMBER_PUT)?.execute(named_params! {
        ":id": Sql(&asked.id), ":name": Sql(&asked.name), ":kind": Sql(&asked.kind),
    })?;
    Ok(())
}

fn by_id(conn: &Connection, id: MemberId) -> rusqlite::Result<Option<Member>> {
    let mut statement = conn.prepare_cached(sql::MEMBER_BY_ID)?;
    statement.query_row(named_params! {":id": Sql(&id)}, member).optional()
}

fn by_name(conn: &Connection, name: &MemberName) -> rusqlite::Result<Option<Member>> {
    let mut statement = conn.prepare_cached(sql::MEMBER_BY_NAME)?;
    statement.query_row(named_params! {":name": Sql(name)}, member).optional()
}

fn member(row: &Row<'_>) -> rusqlite::Result<Member> {
    Ok(Member { id: get(row, "id")?, name: get(row, "name")?, kind: get(row, "kind")? })
}
