//! A file that `postrider restore` put in place: the mark beside it says so, and the first to open it takes the mark.
//!
//! - Messages that wait in the file may have been worked on since the backup: all are marked redelivered.
//! - Rows that had not left may have left since: the backup's instant is their first attempt, so that their age counts and
//!   nobody takes them for never sent.
//! - The inbox gets a new epoch. The broker marks what it delivers from then on to another epoch, and learns which epoch
//!   the file had: of the same file, places still say what it lacks.
//! - All of it is one transaction; the mark is removed behind it. A mark that is found again is known by its instant.

use std::fmt;
use std::str::FromStr;

use model::error::Malformed;
use model::{Entropy, Timestamp, limits};
use rusqlite::{Connection, named_params};
use sqlite::{Db, FileMark, MarkedBy, StorageError, fault};

use crate::ageing::aged;
use crate::column::Sql;
use crate::meta::{self, INBOX_EPOCH, INBOX_EPOCH_BEFORE, InboxEpoch};
use crate::went_back::{get, instant, malformed, number};
use crate::{OpenError, sql};

/// The last time that this file was restored from a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxRestored {
    /// When; names this occurrence.
    pub restored_at: Timestamp,
    /// When the backup was begun.
    pub backup_at: Timestamp,
    /// Messages that waited in the backup.
    pub waiting: u64,
}

pub(crate) const RESTORED: &str = "inbox_restored";

/// Takes the mark of a restore, where there is one.
pub(crate) fn take_mark(db: &Db, entropy: &dyn Entropy) -> Result<(), OpenError> {
    let unreadable = |source| OpenError::Mark { path: db.path().to_owned(), source };
    let Some(FileMark { at_us, by, .. }) = FileMark::read(db.path()).map_err(unreadable)? else {
        return Ok(());
    };
    let MarkedBy::Restore { backup_at_us } = by else { return Ok(()) };
    let [restored_at, backup_at] = [at_us, backup_at_us].map(Timestamp::from_micros);
    let epoch = InboxEpoch::draw(entropy);
    db.write_blocking("mailbox.restored", move |conn| {
        let known: Option<InboxRestored> = get(conn, RESTORED)?;
        if known.is_some_and(|known| known.restored_at == restored_at) {
            return Ok(());
        }
        let waiting = conn.prepare_cached(sql::RESTORED_INBOX)?.execute([])? as u64;
        conn.prepare_cached(sql::RESTORED_TURNS)?.execute([])?;
        let first_attempt_at = in_broker_time(conn, backup_at.min(restored_at))?;
        conn.prepare_cached(sql::RESTORED_OUTBOX)?.execute(named_params! {":at": Sql(&first_attempt_at)})?;
        let before: Option<InboxEpoch> = get(conn, INBOX_EPOCH)?;
        if let Some(before) = before {
            meta::put(conn, INBOX_EPOCH_BEFORE, &before.to_string())?;
        }
        meta::put(conn, INBOX_EPOCH, &epoch.to_string())?;
        let restored = InboxRestored { restored_at, backup_at, waiting };
        Ok::<_, StorageError>(meta::put(conn, RESTORED, &restored.to_string())?)
    })?;
    fault::point("mailbox.restored");
    // One that stays is known at the next opening.
    let _ = FileMark::remove(db.path());
    Ok(())
}

/// The backup's instant in broker time, rather too early than too late: too late, a copy could arrive after its id was
/// forgotten. Without a link nobody knows that time. So it is this host's, not later than what its clock is borne out to, and
/// moved back by as much as the last accepted rows say that the broker stands behind it.
fn in_broker_time(conn: &Connection, backup_at: Timestamp) -> rusqlite::Result<Timestamp> {
    let mut statement = conn.prepare_cached(sql::RESTORED_CLOCK)?;
    let limit = named_params! {":limit": limits::RESTORE_WITNESSES_MAX};
    let ahead_us: Option<i64> = statement.query_row(limit, |row| row.get(0))?;
    let moved_us = ahead_us.unwrap_or(0).min(0);
    Ok(Timestamp::from_micros(aged(conn, backup_at)?.as_micros().saturating_add(moved_us)))
}

/// Numbers in their order, as the table of facts keeps them.
impl fmt::Display for InboxRestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { restored_at, backup_at, waiting } = self;
        write!(f, "{} {} {waiting}", restored_at.as_micros(), backup_at.as_micros())
    }
}

impl FromStr for InboxRestored {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let fields: Vec<&str> = text.split(' ').collect();
        let [restored_at, backup_at, waiting] = fields[..] else { return Err(malformed()) };
        Ok(Self {
            restored_at: instant(restored_at)?,
            backup_at: instant(backup_at)?,
            waiting: number(waiting)?,
        })
    }
}
