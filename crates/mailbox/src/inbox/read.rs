//! Looking at the inbox, and marking what was read. Read state is no rung.

use model::turn::TurnMark;
use model::{ClientMessageId, ConversationId, DeliveryRung, MemberId, MessageId, Timestamp, limits};
use rusqlite::{Connection, Row, named_params};
use sqlite::StorageError;

use crate::column::{Sql, get};
use crate::{Mailbox, sql};

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Its place in this inbox, in order of arrival.
    pub seq: u64,
    /// The broker's message.
    pub id: MessageId,
    /// Who sent it.
    pub sender: MemberId,
    /// The sender's id for it.
    pub client_message_id: ClientMessageId,
    /// For whom.
    pub recipient: MemberId,
    /// Its log.
    pub conversation: ConversationId,
    /// Its place there.
    pub history_id: u64,
    /// What arrived; absent once scrubbed.
    pub envelope: Option<Vec<u8>>,
    /// Its own deadline, in broker time: later nobody is woken for it.
    pub deliver_by: Option<Timestamp>,
    /// When it was stored here.
    pub received_at: Timestamp,
    /// How far it came.
    pub rung: DeliveryRung,
    /// When it was handed to its recipient.
    pub notified_at: Option<Timestamp>,
    /// When it was read.
    pub read_at: Option<Timestamp>,
    /// Whether an earlier life of this inbox may have had it.
    pub redelivered: bool,
    /// What its turns have come to.
    pub turn: TurnMark,
}

/// Which rows to show. The answer is oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxQuery {
    /// Whose mail; none is everybody's at home here.
    pub recipient: Option<MemberId>,
    /// Which part.
    pub place: InboxPlace,
    /// Read or unread.
    pub show: InboxShow,
    /// Only from this sender.
    pub from: Option<MemberId>,
    /// How many at most; bounded by [`limits::PAGE_ROWS_MAX`].
    pub limit: usize,
}

/// See [`InboxQuery::place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxPlace {
    /// The last rows.
    Newest,
    /// The last rows before this one.
    Before(u64),
    /// The first rows after this one.
    After(u64),
}

/// See [`InboxQuery::show`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxShow {
    /// Everything that is kept.
    All,
    /// What was not read yet.
    Unread,
}

/// One recipient's mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxCount {
    /// Whose.
    pub recipient: MemberId,
    /// Messages kept.
    pub total: u64,
    /// Of those, not read yet.
    pub unread: u64,
}

impl Mailbox {
    /// A page of mail, oldest first; scrubbed rows are not shown.
    pub async fn inbox(&self, query: InboxQuery) -> Result<Vec<InboxRow>, StorageError> {
        self.db.read("mailbox.inbox", move |conn| Ok(list(conn, &query)?)).await
    }

    /// The rows of a message, one per recipient at home here, scrubbed or not.
    pub async fn inbox_by_id(&self, id: MessageId) -> Result<Vec<InboxRow>, StorageError> {
        self.db
            .read("mailbox.inbox_by_id", move |conn| {
                let mut statement = conn.prepare_cached(sql::INBOX_SEQ_BY_MESSAGE)?;
                let seqs = statement.query_map(named_params! {":message": Sql(&id)}, |row| row.get(0))?;
                let rows = seqs.map(|seq| by_seq(conn, seq?)).collect::<rusqlite::Result<_>>()?;
                Ok(rows)
            })
            .await
    }

    /// Marks a recipient's messages as read; answers how many were not before.
    pub async fn mark_read(
        &self,
        recipient: MemberId,
        ids: Vec<MessageId>,
        now: Timestamp,
    ) -> Result<usize, StorageError> {
        self.db
            .write("mailbox.read", move |conn| {
                let mut marked = 0;
                for id in &ids {
                    marked += conn.prepare_cached(sql::INBOX_MARK_READ)?.execute(named_params! {
                        ":message": Sql(id), ":recipient": Sql(&recipient), ":now": Sql(&now),
                    })?;
                }
                Ok(marked)
            })
            .await
    }

    /// Mail by recipient.
    pub async fn inbox_counts(&self) -> Result<Vec<InboxCount>, StorageError> {
        self.db
            .read("mailbox.inbox_counts", |conn| {
                let count = |row: &Row<'_>| {
                    Ok(InboxCount {
                        recipient: get(row, "recipient_member_id")?,
                        total: row.get("total")?,
                        unread: row.get("unread")?,
                    })
                };
                let mut statement = conn.prepare_cached(sql::INBOX_COUNTS)?;
                let counts = statement.query_map([], count)?.collect::<Result<_, _>>()?;
                Ok(counts)
            })
            .await
    }
}

fn list(conn: &Connection, query: &InboxQuery) -> rusqlite::Result<Vec<InboxRow>> {
    let mut seqs = seqs(conn, query)?;
    match query.place {
        InboxPlace::After(_) => {}
        InboxPlace::Newest | InboxPlace::Before(_) => seqs.reverse(),
    }
    seqs.into_iter().map(|seq| by_seq(conn, seq)).collect()
}

fn seqs(conn: &Connection, query: &InboxQuery) -> rusqlite::Result<Vec<u64>> {
    let (of, all, place) = match query.place {
        InboxPlace::Newest => (sql::INBOX_OF_NEWEST, sql::INBOX_ALL_NEWEST, i64::MAX.unsigned_abs()),
        InboxPlace::Before(seq) => (sql::INBOX_OF_NEWEST, sql::INBOX_ALL_NEWEST, seq),
        InboxPlace::After(seq) => (sql::INBOX_OF_AFTER, sql::INBOX_ALL_AFTER, seq),
    };
    let unread = match query.show {
        InboxShow::All => false,
        InboxShow::Unread => true,
    };
    let limit = query.limit.min(limits::PAGE_ROWS_MAX);
    let (from, seq) = (Sql(&query.from), |row: &Row<'_>| row.get(0));
    let Some(recipient) = query.recipient else {
        let page = named_params! {":place": place, ":unread": unread, ":from": from, ":limit": limit};
        return conn.prepare_cached(all)?.query_map(page, seq)?.collect();
    };
    let page = named_params! {
        ":recipient": Sql(&recipient), ":place": place, ":unread": unread, ":from": from, ":limit": limit,
    };
    conn.prepare_cached(of)?.query_map(page, seq)?.collect()
}

pub(crate) fn by_seq(conn: &Connection, seq: u64) -> rusqlite::Result<InboxRow> {
    conn.prepare_cached(sql::INBOX_ROW)?.query_row(named_params! {":seq": seq}, row)
}

fn row(row: &Row<'_>) -> rusqlite::Result<InboxRow> {
    Ok(InboxRow {
        seq: row.get("seq")?,
        id: get(row, "broker_message_id")?,
        sender: get(row, "sender_member_id")?,
        client_message_id: get(row, "client_message_id")?,
        recipient: get(row, "recipient_member_id")?,
        conversation: get(row, "conversation")?,
        history_id: row.get("history_id")?,
        envelope: row.get("envelope")?,
        deliver_by: get(row, "deliver_by")?,
        received_at: get(row, "received_at")?,
        rung: get(row, "rung")?,
        notified_at: get(row, "notified_at")?,
        read_at: get(row, "read_at")?,
        redelivered: row.get("redelivered")?,
        turn: get(row, "turn")?,
    })
}
