//! Bodies are kept for a while, ids for ever. Each transaction touches few rows, so that nobody waits.

use model::admission::days_long;
use model::{MemberId, Timestamp, limits};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use sqlite::StorageError;

use crate::column::{Sql, get};
use crate::{Mailbox, sql};

impl Mailbox {
    /// Takes the payload off rows that were done or aborted [`limits::OUTBOX_PAYLOAD_KEPT_DAYS`] ago.
    pub async fn scrub_outbox(&self, now: Timestamp) -> Result<usize, StorageError> {
        let before = days_before(now, limits::OUTBOX_PAYLOAD_KEPT_DAYS);
        let mut scrubbed = 0;
        for ended in [sql::SCRUB_DONE, sql::SCRUB_ABORTED] {
            loop {
                let job =
                    move |conn: &Connection| Ok::<_, StorageError>(outbox_page(conn, ended, before, now)?);
                let batch = self.db.write("mailbox.scrub_outbox", job).await?;
                scrubbed += batch;
                if batch < limits::SWEEP_ROWS_MAX {
                    break;
                }
            }
        }
        Ok(scrubbed)
    }

    /// Takes the envelope off rows received [`limits::INBOX_RETENTION_DAYS`] ago.
    pub async fn scrub_inbox(&self, now: Timestamp) -> Result<usize, StorageError> {
        let before = days_before(now, limits::INBOX_RETENTION_DAYS);
        let recipients =
            self.db.read("mailbox.recipients", |conn| Ok::<_, StorageError>(recipients(conn)?)).await?;
        let mut scrubbed = 0;
        for recipient in recipients {
            let mut after = Some(0);
            while let Some(place) = after {
                let job = move |conn: &Connection| {
                    Ok::<_, StorageError>(inbox_page(conn, recipient, place, before, now)?)
                };
                let page = self.db.write("mailbox.scrub_inbox", job).await?;
                scrubbed += page.scrubbed;
                after = page.next;
            }
        }
        Ok(scrubbed)
    }

    /// Bytes of the file that hold something, for the bound on it.
    pub async fn bytes_in_use(&self) -> Result<u64, StorageError> {
        self.db
            .read("mailbox.bytes", |conn| {
                Ok(conn.prepare_cached(sql::BYTES_IN_USE)?.query_row([], |row| row.get(0))?)
            })
            .await
    }
}

fn outbox_page(conn: &Connection, ended: &str, before: Timestamp, now: Timestamp) -> rusqlite::Result<usize> {
    let page = named_params! {":before": Sql(&before), ":limit": limits::SWEEP_ROWS_MAX};
    let mut statement = conn.prepare_cached(ended)?;
    let seqs: Vec<u64> = statement.query_map(page, |row| row.get(0))?.collect::<Result<_, _>>()?;
    for seq in &seqs {
        conn.prepare_cached(sql::SCRUB_OUTBOX_MARK)?
            .execute(named_params! {":seq": seq, ":now": Sql(&now)})?;
        conn.prepare_cached(sql::SCRUB_OUTBOX_PAYLOAD)?.execute(named_params! {":seq": seq})?;
    }
    Ok(seqs.len())
}

struct Page {
    scrubbed: usize,
    /// The last row looked at, when there may be more to scrub behind it.
    next: Option<u64>,
}

/// One recipient's next rows. The first row of a normal age ends the walk: those behind it are younger. A row
/// from the future tells nothing, a clock was wrong when it came; it is passed over and kept.
fn inbox_page(
    conn: &Connection,
    recipient: MemberId,
    after: u64,
    before: Timestamp,
    now: Timestamp,
) -> rusqlite::Result<Page> {
    let page =
        named_params! {":recipient": Sql(&recipient), ":after": after, ":limit": limits::SWEEP_ROWS_MAX};
    let mut statement = conn.prepare_cached(sql::SCRUB_RECEIVED)?;
    let received = |row: &Row<'_>| Ok((row.get::<_, u64>("seq")?, get::<Timestamp>(row, "received_at")?));
    let rows: Vec<(u64, Timestamp)> = statement.query_map(page, received)?.collect::<Result<_, _>>()?;
    let mut scrubbed = 0;
    for (seq, received_at) in &rows {
        if *received_at > now {
            continue;
        }
        if *received_at >= before {
            return Ok(Page { scrubbed, next: None });
        }
        conn.prepare_cached(sql::SCRUB_INBOX_MARK)?
            .execute(named_params! {":seq": seq, ":now": Sql(&now)})?;
        conn.prepare_cached(sql::SCRUB_INBOX_ENVELOPE)?.execute(named_params! {":seq": seq})?;
        scrubbed += 1;
    }
    Ok(Page { scrubbed, next: rows.last().map(|(seq, _)| *seq) })
}

fn recipients(conn: &Connection) -> rusqlite::Result<Vec<MemberId>> {
    let mut recipients: Vec<MemberId> = Vec::new();
    let mut statement = conn.prepare_cached(sql::SCRUB_RECIPIENT)?;
    loop {
        let after: &[u8] = recipients.last().map_or(&[], |last| last.as_bytes());
        let next =
            statement.query_row(named_params! {":after": after}, |row| get(row, "recipient_member_id"));
        match next.optional()? {
            Some(recipient) => recipients.push(recipient),
            None => return Ok(recipients),
        }
    }
}

fn days_before(now: Timestamp, days: u32) -> Timestamp {
    let span = i64::try_from(days_long(days).as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(span))
}
