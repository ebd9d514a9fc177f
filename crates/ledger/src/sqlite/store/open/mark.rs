//! The mark beside the file: by it books that went back to an older copy are noticed although no node knew more.

use std::path::Path;

use ::sqlite::{FileMark, MarkedBy};

use super::super::super::{janitor, received};
use super::super::SqliteLedger;
use crate::StorageError;
use crate::rules::is_noted;

impl SqliteLedger {
    /// Compares the books with their mark, and notes a loss.
    pub(super) fn compare_with_mark(&self, path: &Path) {
        let mark = match FileMark::read(path) {
            Ok(mark) => mark,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the mark beside the books cannot be read");
                None
            }
        };
        let opened = self.world.opened;
        let Some(mark) = mark.filter(|mark| mark.is_ahead_of(place(opened.books_end))) else { return };
        let noticed_by = match mark.by {
            MarkedBy::Process => "the mark beside the file",
            MarkedBy::Restore { .. } => "postrider restore",
        };
        let marked_at = model::Timestamp::from_micros(mark.at_us);
        let world = self.world.clone();
        let noted = self.db.write_blocking("ledger.went_back", move |conn| {
            let last = received::last_loss(conn)?;
            match last.filter(|last| is_noted(last, marked_at, opened.books_end)) {
                Some(last) => Ok(last),
                None => received::note_loss(conn, &world, noticed_by),
            }
        });
        match noted {
            Ok(loss) => {
                tracing::warn!(ends_at = %loss.ends_at, upto = %loss.upto, noticed_by, "these books are older than they were");
                self.write_mark(path, opened.books_end);
            }
            // Nothing is forgotten: the mark stays, and the next start notes it.
            Err(error) => tracing::error!(%error, "the loss of these books cannot be noted"),
        }
    }

    /// Brings the mark up to what the books hold now.
    pub async fn keep_mark(&self) -> Result<(), StorageError> {
        let end = self.read("ledger.books_end", received::books_end).await?;
        self.write_mark(self.db.path(), end);
        Ok(())
    }

    /// Sweeps, and brings the mark up while that goes on anyway.
    pub(in super::super) async fn sweep_way_in_and_mark(&self) -> Result<u64, StorageError> {
        self.keep_mark().await?;
        self.sweep("ledger.sweep_way_in", |conn, _, aged| janitor::sweep_way_in(conn, aged)).await
    }

    fn write_mark(&self, path: &Path, end: model::Timestamp) {
        let at_us = self.world.now().as_micros();
        let mark = FileMark { place: place(end), at_us, by: MarkedBy::Process };
        if let Err(error) = mark.write(path) {
            tracing::warn!(path = %path.display(), %error, "the mark beside the books cannot be written");
        }
    }
}

/// The books' newest instant as a place.
fn place(end: model::Timestamp) -> u64 {
    u64::try_from(end.as_micros()).unwrap_or(0)
}
