//! What a store's error means for a caller. Nothing was stored, so that the id may be used again as it is, except where
//! the code is `outcome_unknown`: then the same id with the same message is the way to find out.

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
    match code {
        ErrorCode::StorageBusy => Refusal::plain(code).retry_after(BUSY_RETRY_AFTER),
        // Only the error itself names the process to end.
        ErrorCode::LogFull => Refusal::new(code, error.to_string()),
        _ => Refusal::plain(code),
    }
}

fn code(error: &StorageError) -> ErrorCode {
    match error {
        StorageError::QueueFull { .. }
        | StorageError::Busy { .. }
        | StorageError::ReadTooLong { .. }
        | StorageError::RolledBack { .. } => ErrorCode::StorageBusy,
        StorageError::Full { .. } => ErrorCode::InsufficientStorage,
        StorageError::LogFull { .. } => ErrorCode::LogFull,
        StorageError::OutcomeUnknown { .. } => ErrorCode::OutcomeUnknown,
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
            (StorageError::RolledBack { path: path.clone(), name: "x" }, ErrorCode::StorageBusy),
            (StorageError::LogFull { path: path.clone(), pages: 1, readers: Vec::new() }, ErrorCode::LogFull),
            (StorageError::Stopped { path: path.clone(), cause: Arc::from("x") }, ErrorCode::StorageStopped),
            (StorageError::OutcomeUnknown { path, cause: Arc::from("x") }, ErrorCode::OutcomeUnknown),
        ] {
            assert_eq!(code(&error), expected, "{error}");
        }
    }
}
