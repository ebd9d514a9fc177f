//! An operator frees the payloads of rows that have ended, before their time. Ids stay, and so does what each id answers.
//!
//! - Each transaction frees few bytes: with `secure_delete` it writes as many to the log, and a full disk has little room.
//! - A row that waits or is on the wire keeps its payload.
//! - A done row without its payload is not sent again when its broker was restored from an older copy; a dead one can be
//!   retired, and not be replaced by a successor.

use std::ops::AddAssign;

use model::outbox::Status;
use model::{Timestamp, limits};
use rusqlite::{Connection, Row, named_params};
use sqlite::StorageError;

use crate::column::Sql;
use crate::{Mailbox, sql};

/// Rows that have ended, by how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedRows {
    /// Accepted by the broker.
    Done,
    /// Given up.
    Dead,
    /// Retired.
    Aborted,
}

/// Payloads, and how many bytes they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadCount {
    /// Rows that have one.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where a walk through the rows of one class has come to.
#[derive(Clone, Copy)]
struct PrunePlace {
    at: i64,
    after: u64,
}

struct PrunePage {
    count: PayloadCount,
    /// The last row looked at, when there may be more behind it.
    next: Option<PrunePlace>,
}

impl EndedRows {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Done, Self::Dead, Self::Aborted];

    /// The rows of this state; none of a row that has not ended.
    pub fn of(status: Status) -> Option<Self> {
        match status {
            Status::Pending | Status::Inflight => None,
            Status::Done => Some(Self::Done),
            Status::Dead => Some(Self::Dead),
            Status::Aborted => Some(Self::Aborted),
        }
    }

    fn page(self) -> &'static str {
        match self {
            Self::Done => sql::PRUNABLE_DONE,
            Self::Dead => sql::PRUNABLE_DEAD,
            Self::Aborted => sql::PRUNABLE_ABORTED,
        }
    }
}

impl AddAssign for PayloadCount {
    fn add_assign(&mut self, more: Self) {
        self.rows += more.rows;
        self.bytes += more.bytes;
    }
}

impl Mailbox {
    /// The payloads that [`Mailbox::prune_outbox`] would free.
    pub async fn prunable(&self, ended: EndedRows) -> Result<PayloadCount, StorageError> {
        let (mut count, mut place) = (PayloadCount::default(), Some(PrunePlace::START));
        while let Some(from) = place {
            let page = self.db.read("mailbox.prunable", move |conn| Ok(look(conn, ended, from)?)).await;
            let page: PrunePage = page.map_err(|error: StorageError| error)?;
            count += page.count;
            place = page.next;
        }
        Ok(count)
    }

    /// Frees the payloads of rows that have ended so; what it freed.
    pub async fn prune_outbox(&self, ended: EndedRows, now: Timestamp) -> Result<PayloadCount, StorageError> {
        let (mut count, mut place) = (PayloadCount::default(), Some(PrunePlace::START));
        while let Some(from) = place {
            let job = move |conn: &Connection| Ok::<_, StorageError>(free(conn, ended, from, now)?);
            let page = self.db.write("mailbox.prune", job).await?;
            count += page.count;
            place = page.next;
        }
        Ok(count)
    }

    /// Bytes of the file that hold nothing and are written to before the file grows.
    pub async fn bytes_reusable(&self) -> Result<u64, StorageError> {
        self.db
            .read("mailbox.bytes_reusable", |conn| {
                Ok(conn.prepare_cached(sql::BYTES_REUSABLE)?.query_row([], |row| row.get(0))?)
            })
            .await
    }
}

impl PrunePlace {
    const START: Self = Self { at: i64::MIN, after: 0 };
}

type PrunableRow = (PrunePlace, Option<u64>);

fn rows(conn: &Connection, ended: EndedRows, from: PrunePlace) -> rusqlite::Result<Vec<PrunableRow>> {
    let page = named_params! {":at": from.at, ":after": from.after, ":limit": limits::SWEEP_ROWS_MAX};
    let read =
        |row: &Row<'_>| Ok((PrunePlace { at: row.get("at")?, after: row.get("seq")? }, row.get("bytes")?));
    conn.prepare_cached(ended.page())?.query_map(page, read)?.collect()
}

fn look(conn: &Connection, ended: EndedRows, from: PrunePlace) -> rusqlite::Result<PrunePage> {
    let rows = rows(conn, ended, from)?;
    let mut count = PayloadCount::default();
    rows.iter().filter_map(|(_, bytes)| *bytes).for_each(|bytes| count += PayloadCount { rows: 1, bytes });
    Ok(PrunePage { count, next: rows.last().map(|(place, _)| *place) })
}

fn free(
    conn: &Connection,
    ended: EndedRows,
    from: PrunePlace,
    now: Timestamp,
) -> rusqlite::Result<PrunePage> {
    let mut page = PrunePage { count: PayloadCount::default(), next: None };
    for (place, bytes) in rows(conn, ended, from)? {
        page.next = Some(place);
        let Some(bytes) = bytes else { continue };
        let seq = place.after;
        match ended {
            EndedRows::Done | EndedRows::Aborted => {
                conn.prepare_cached(sql::SCRUB_OUTBOX_MARK)?
                    .execute(named_params! {":seq": seq, ":now": Sql(&now)})?;
            }
            EndedRows::Dead => {
                conn.prepare_cached(sql::PRUNE_DEAD)?.execute(named_params! {":seq": seq})?;
            }
        }
        conn.prepare_cached(sql::SCRUB_OUTBOX_PAYLOAD)?.execute(named_params! {":seq": seq})?;
        page.count += PayloadCount { rows: 1, bytes };
        if page.count.bytes >= limits::PRUNE_BYTES_MAX {
            break;
        }
    }
    Ok(page)
}
