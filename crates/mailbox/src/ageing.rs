//! What was seen of this host's clock (`model::ageing`), kept among the facts of a file: bodies and envelopes end by age as
//! far as time that was seen to pass bears the clock out.

use model::Timestamp;
use model::ageing::AgeingRecord;
use rusqlite::{Connection, OptionalExtension, named_params};
use sqlite::StorageError;

use crate::meta::parse;
use crate::relay::Envelopes;
use crate::{Mailbox, sql};

const AGEING: &str = "ageing";

impl Mailbox {
    /// Looks at the wall clock and keeps what was seen; the instant by which ages are judged. `counted` is what this
    /// process bears out by itself: the answer of its last look, and the running time since.
    pub async fn look_at_clock(
        &self,
        wall: Timestamp,
        counted: Option<Timestamp>,
    ) -> Result<Timestamp, StorageError> {
        let look = move |conn: &Connection| Ok::<_, StorageError>(look(conn, wall, counted)?);
        self.db.write("mailbox.look_at_clock", look).await
    }
}

impl Envelopes {
    /// [`Mailbox::look_at_clock`] for a relay's file.
    pub async fn look_at_clock(
        &self,
        wall: Timestamp,
        counted: Option<Timestamp>,
    ) -> Result<Timestamp, StorageError> {
        let look = move |conn: &Connection| Ok::<_, StorageError>(look(conn, wall, counted)?);
        self.db.write("relay.look_at_clock", look).await
    }
}

/// Both files keep facts in a table of the same form.
fn look(conn: &Connection, wall: Timestamp, counted: Option<Timestamp>) -> rusqlite::Result<Timestamp> {
    // A file without a record begins with its first look.
    let stored = record(conn)?.unwrap_or(AgeingRecord::new(wall));
    let record = stored.look(wall, counted);
    conn.prepare_cached(sql::META_PUT)?.execute(named_params! {":k": AGEING, ":v": record.to_string()})?;
    Ok(record.borne_out)
}

/// What the last look bore out, and never more than `now`; a file without a look has its clock's word.
pub(crate) fn aged(conn: &Connection, now: Timestamp) -> rusqlite::Result<Timestamp> {
    Ok(record(conn)?.map_or(now, |record| record.borne_out.min(now)))
}

fn record(conn: &Connection) -> rusqlite::Result<Option<AgeingRecord>> {
    let text: Option<String> =
        conn.prepare_cached(sql::AGEING_GET)?.query_row([], |row| row.get("v")).optional()?;
    text.map(|text| parse(&text)).transpose()
}
