//! When the broker came back from an older backup: rows it accepted and forgot are driven again.

use std::time::Duration;

use model::{ClientMessageId, MemberId, MessageId, Timestamp, limits};
use rusqlite::{Row, named_params};
use sqlite::StorageError;

use crate::column::{Sql, get};
use crate::went_back::count_sent_again;
use crate::{Mailbox, sql};

/// A row known to be accepted, named to the broker on connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Who sent it.
    pub sender: MemberId,
    /// Under which id.
    pub client_message_id: ClientMessageId,
    /// What the broker called it.
    pub broker_message_id: MessageId,
    /// When the broker accepted it.
    pub accepted_at: Timestamp,
}

impl Mailbox {
    /// The last rows accepted, newest first. None older than `max_age`, so that the broker must still know
    /// them, and none without its payload, because nothing could be done about it.
    pub async fn newest_done(
        &self,
        limit: usize,
        broker_now: Timestamp,
        max_age: Duration,
    ) -> Result<Vec<Witness>, StorageError> {
        let since = before(broker_now, max_age);
        self.db
            .read("mailbox.newest_done", move |conn| {
                let page =
                    named_params! {":since": Sql(&since), ":limit": limit.min(limits::RESTORE_WITNESSES_MAX)};
                let mut statement = conn.prepare_cached(sql::NEWEST_DONE)?;
                let rows = statement.query_map(page, witness)?.collect::<Result<_, _>>()?;
                Ok(rows)
            })
            .await
    }

    /// Sends every row accepted within `max_age` again, under its own id; what the broker still has it
    /// answers as a duplicate. Rows past their own deadline stay done. To be called before any claim of the
    /// connection: until then a crash half-way is noticed again by the rows that are left.
    pub async fn redrive(&self, broker_now: Timestamp, max_age: Duration) -> Result<usize, StorageError> {
        let since = before(broker_now, max_age);
        let mut redriven = 0;
        loop {
            let batch = self
                .db
                .write("mailbox.redrive", move |conn| {
                    let rows = conn.prepare_cached(sql::REDRIVE)?.execute(named_params! {
                        ":since": Sql(&since), ":broker_now": Sql(&broker_now), ":limit": limits::SWEEP_ROWS_MAX,
                    })?;
                    count_sent_again(conn, rows as u64)?;
                    Ok::<_, StorageError>(rows)
                })
                .await?;
            redriven += batch;
            if batch < limits::SWEEP_ROWS_MAX {
                return Ok(redriven);
            }
        }
    }
}

fn before(now: Timestamp, span: Duration) -> Timestamp {
    let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

fn witness(row: &Row<'_>) -> rusqlite::Result<Witness> {
    Ok(Witness {
        sender: get(row, "sender_member_id")?,
        client_message_id: get(row, "client_message_id")?,
        broker_message_id: get(row, "broker_message_id")?,
        accepted_at: get(row, "accepted_at")?,
    })
}
