//! What a store's trouble means for a caller. Nothing was stored in any of these cases, so an id may be used
//! again as it is.

use std::time::Duration;

use model::ErrorCode;
use net::respond::Refusal;
use sqlite::StorageError;

/// The line of waiting jobs empties within a few commits.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The answer to a caller whose job met `error`.
pub(crate) fn refusal(error: &StorageError) -> Refusal {
    let code = code(error);
    match code {
        ErrorCode::Internal => tracing::error!(%error, "a store refused a statement"),
        _ => tracing::warn!(%error, "a store could not answer"),
    }
    let refusal = Refusal::plain(code);
    if code == ErrorCode::StorageBusy { refusal.retry_after(BUSY_RETRY_AFTER) } else { refusal }
}

fn code(error: &StorageError) -> ErrorCode {
    match error {
        StorageError::QueueFull { .. }
        | StorageError::Busy { .. }
        | StorageError::ReadTooLong { .. }
        | StorageError::RolledBack { .. } => ErrorCode::StorageBusy,
        StorageError::Full { .. } => ErrorCode::InsufficientStorage,
        StorageError::Io { .. }
        | StorageError::Corrupt { .. }
        | StorageError::Closed { .. }
        | StorageError::Stopped { .. } => ErrorCode::StorageStopped,
        StorageError::Panicked { .. } | StorageError::Sql { .. } => ErrorCode::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn each_trouble_has_its_code() {
        let path: Arc<Path> = Arc::from(Path::new("mailbox.db"));
        let detail = String::new;
        for (error, expected) in [
            (StorageError::QueueFull { path: path.clone(), waiting_max: 1 }, ErrorCode::StorageBusy),
            (StorageError::Busy { path: path.clone() }, ErrorCode::StorageBusy),
            (StorageError::Full { path: path.clone() }, ErrorCode::InsufficientStorage),
            (StorageError::Io { path: path.clone(), detail: detail() }, ErrorCode::StorageStopped),
            (StorageError::Corrupt { path: path.clone(), detail: detail() }, ErrorCode::StorageStopped),
            (StorageError::Closed { path: path.clone() }, ErrorCode::StorageStopped),
            (StorageError::Panicked { path: path.clone(), name: "x" }, ErrorCode::Internal),
            (StorageError::RolledBack { path, name: "x" }, ErrorCode::StorageBusy),
        ] {
            assert_eq!(code(&error), expected, "{error}");
        }
    }
}
