//! What became of an older file that was put back: of this mailbox's own, and of the broker's ledger.
//!
//! - The broker notices and says so at each link; the facts are kept here so that people are told without a link.
//! - How many messages came back is counted in the transaction that records them.

use std::fmt;
use std::str::FromStr;

use model::Timestamp;
use model::error::Malformed;
use rusqlite::{Connection, OptionalExtension, named_params};
use sqlite::StorageError;

use crate::restored::{InboxRestored, RESTORED};
use crate::{Mailbox, meta, sql};

/// An older copy of this mailbox was put back: its inbox had fewer rows than it had told the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxWentBack {
    /// When the broker noticed it; names this occurrence.
    pub noticed_at: Timestamp,
    /// The highest place of the inbox before.
    pub from: u64,
    /// The highest place then.
    pub to: u64,
    /// The newest instant of any row that the older copy held.
    pub ends_at: Timestamp,
    /// Messages that were lacking and came again.
    pub back: u64,
    /// Whether everything came again that the broker still holds.
    pub is_complete: bool,
}

/// An older copy of the broker's ledger was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerWentBack {
    /// When the broker noticed it; names this occurrence.
    pub noticed_at: Timestamp,
    /// The newest instant that the older copy held.
    pub ends_at: Timestamp,
    /// Up to when messages were accepted that the copy lacks.
    pub upto: Timestamp,
    /// The node, or the file, that knew more.
    pub noticed_by: String,
    /// Messages that this node sent again.
    pub sent_again: u64,
}

/// See [`Mailbox::went_back`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WentBack {
    /// The last time that this file was restored from a backup.
    pub restored: Option<InboxRestored>,
    /// The last time that this inbox did.
    pub inbox: Option<InboxWentBack>,
    /// The last time that the broker's ledger did.
    pub ledger: Option<LedgerWentBack>,
}

const INBOX: &str = "inbox_went_back";
const LEDGER: &str = "ledger_went_back";

impl InboxWentBack {
    /// Rows that the copy lacked.
    pub fn lacking(&self) -> u64 {
        self.from.saturating_sub(self.to)
    }
}

impl Mailbox {
    /// The highest place of the inbox. Rows are never deleted, so an older copy of the file has a lower one.
    pub async fn received_upto(&self) -> Result<u64, StorageError> {
        self.db
            .read("mailbox.received_upto", |conn| {
                Ok(conn.prepare_cached(sql::INBOX_LAST)?.query_row([], |row| row.get(0))?)
            })
            .await
    }

    /// What is known of older files that were put back.
    pub async fn went_back(&self) -> Result<WentBack, StorageError> {
        self.db
            .read("mailbox.went_back", |conn| {
                Ok(WentBack {
                    restored: get(conn, RESTORED)?,
                    inbox: get(conn, INBOX)?,
                    ledger: get(conn, LEDGER)?,
                })
            })
            .await
    }

    /// Keeps what the broker says of this inbox; an occurrence that is known keeps its count.
    pub async fn note_inbox_went_back(
        &self,
        noticed_at: Timestamp,
        from: u64,
        to: u64,
        left: u64,
    ) -> Result<(), StorageError> {
        self.db
            .write("mailbox.went_back", move |conn| {
                let known: Option<InboxWentBack> = get(conn, INBOX)?;
                let noted = match known.filter(|known| known.noticed_at == noticed_at) {
                    Some(known) if known.is_complete || left > 0 => return Ok(()),
                    Some(known) => InboxWentBack { is_complete: true, ..known },
                    None => {
                        let ends_at = Timestamp::from_micros(
                            conn.prepare_cached(sql::NEWEST_INSTANT)?.query_row([], |row| row.get(0))?,
                        );
                        InboxWentBack { noticed_at, from, to, ends_at, back: 0, is_complete: left == 0 }
                    }
                };
                Ok::<_, StorageError>(meta::put(conn, INBOX, &noted.to_string())?)
            })
            .await
    }

    /// Everything came again that the broker still holds.
    pub async fn inbox_is_complete(&self) -> Result<(), StorageError> {
        self.db
            .write("mailbox.went_back", |conn| {
                let known: Option<InboxWentBack> = get(conn, INBOX)?;
                let Some(known) = known.filter(|known| !known.is_complete) else { return Ok(()) };
                let complete = InboxWentBack { is_complete: true, ..known };
                Ok::<_, StorageError>(meta::put(conn, INBOX, &complete.to_string())?)
            })
            .await
    }

    /// Keeps what the broker says of its ledger; an occurrence that is known keeps its count.
    pub async fn note_ledger_went_back(&self, noted: LedgerWentBack) -> Result<(), StorageError> {
        self.db
            .write("mailbox.went_back", move |conn| {
                let known: Option<LedgerWentBack> = get(conn, LEDGER)?;
                if known.is_some_and(|known| known.noticed_at == noted.noticed_at) {
                    return Ok(());
                }
                Ok::<_, StorageError>(meta::put(conn, LEDGER, &noted.to_string())?)
            })
            .await
    }
}

/// Counts messages that came again. Part of the transaction that records them.
pub(crate) fn count_back(conn: &Connection, messages: u64) -> rusqlite::Result<()> {
    if messages == 0 {
        return Ok(());
    }
    match get::<InboxWentBack>(conn, INBOX)? {
        Some(known) => {
            let counted = InboxWentBack { back: known.back + messages, ..known };
            meta::put(conn, INBOX, &counted.to_string())
        }
        None => Ok(()),
    }
}

/// Counts messages that are sent again. Part of the transaction that makes them pending.
pub(crate) fn count_sent_again(conn: &Connection, messages: u64) -> rusqlite::Result<()> {
    match get::<LedgerWentBack>(conn, LEDGER)? {
        Some(known) => {
            let counted = LedgerWentBack { sent_again: known.sent_again + messages, ..known };
            meta::put(conn, LEDGER, &counted.to_string())
        }
        None => Ok(()),
    }
}

pub(crate) fn get<T>(conn: &Connection, key: &str) -> rusqlite::Result<Option<T>>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let mut statement = conn.prepare_cached(sql::META_GET)?;
    let text = statement.query_row(named_params! {":k": key}, |row| row.get::<_, String>(0)).optional()?;
    text.map(|text| meta::parse(&text)).transpose()
}

/// Numbers in their order, as the table of facts keeps them.
impl fmt::Display for InboxWentBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noticed_at, from, to, ends_at, back, is_complete } = self;
        let (noticed_at, ends_at) = (noticed_at.as_micros(), ends_at.as_micros());
        write!(f, "{noticed_at} {from} {to} {ends_at} {back} {is_complete}")
    }
}

impl FromStr for InboxWentBack {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let fields: Vec<&str> = text.split(' ').collect();
        let [noticed_at, from, to, ends_at, back, is_complete] = fields[..] else { return Err(malformed()) };
        Ok(Self {
            noticed_at: instant(noticed_at)?,
            from: number(from)?,
            to: number(to)?,
            ends_at: instant(ends_at)?,
            back: number(back)?,
            is_complete: is_complete.parse().map_err(|_| malformed())?,
        })
    }
}

impl fmt::Display for LedgerWentBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noticed_at, ends_at, upto, noticed_by, sent_again } = self;
        let [noticed_at, ends_at, upto] = [noticed_at, ends_at, upto].map(|at| at.as_micros());
        write!(f, "{noticed_at} {ends_at} {upto} {sent_again} {noticed_by}")
    }
}

impl FromStr for LedgerWentBack {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let fields: Vec<&str> = text.splitn(5, ' ').collect();
        let [noticed_at, ends_at, upto, sent_again, noticed_by] = fields[..] else { return Err(malformed()) };
        Ok(Self {
            noticed_at: instant(noticed_at)?,
            ends_at: instant(ends_at)?,
            upto: instant(upto)?,
            noticed_by: noticed_by.to_owned(),
            sent_again: number(sent_again)?,
        })
    }
}

pub(crate) fn number(text: &str) -> Result<u64, Malformed> {
    text.parse().map_err(|_| malformed())
}

pub(crate) fn instant(text: &str) -> Result<Timestamp, Malformed> {
    text.parse().map(Timestamp::from_micros).map_err(|_| malformed())
}

pub(crate) fn malformed() -> Malformed {
    Malformed::new("went_back", "numbers in the order of this program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back_and_anything_else_is_refused() {
        let at = Timestamp::from_micros;
        let inbox =
            InboxWentBack { noticed_at: at(9), from: 8, to: 3, ends_at: at(7), back: 4, is_complete: true };
        assert_eq!(inbox.to_string().parse(), Ok(inbox));
        assert_eq!(inbox.lacking(), 5);
        let noticed_by = "a file with spaces".to_owned();
        let ledger =
            LedgerWentBack { noticed_at: at(9), ends_at: at(1), upto: at(5), noticed_by, sent_again: 2 };
        assert_eq!(ledger.to_string().parse(), Ok(ledger));
        for bad in ["", "1 2 3", "1 2 3 4 5 maybe", "x 2 3 4 5 true"] {
            assert!(bad.parse::<InboxWentBack>().is_err(), "{bad}");
            assert!(bad.parse::<LedgerWentBack>().is_err() || bad.ends_with("maybe"), "{bad}");
        }
    }
}
