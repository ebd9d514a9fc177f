//! After a start nobody holds anything: what was on the wire is pending again. Its try was counted, and
//! its first attempt fixed, when it was claimed.

use sqlite::StorageError;

use crate::planted::{INFLIGHT_STAYS, planted};
use crate::{Mailbox, sql};

impl Mailbox {
    /// Returns rows that were on the wire, and frees what operators held. To be called before the first
    /// claim of a process; answers how many rows went back.
    pub async fn recover(&self) -> Result<usize, StorageError> {
        self.db
            .write("mailbox.recover", |conn| {
                conn.prepare_cached(sql::RECOVER_HOLDS)?.execute([])?;
                if planted(INFLIGHT_STAYS) {
                    return Ok(0);
                }
                Ok(conn.prepare_cached(sql::RECOVER_INFLIGHT)?.execute([])?)
            })
            .await
    }
}
