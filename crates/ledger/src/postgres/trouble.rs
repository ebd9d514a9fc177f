//! What PostgreSQL answers when it cannot do its part, told apart by what to do about it.

use std::sync::Arc;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::StorageError;

/// PostgreSQL could not do its part.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PostgresError {
    /// No server answers, or it is stopping. Whether a commit under way was done shows when it is back.
    #[error("PostgreSQL does not answer ({detail}); check that it runs and can be reached")]
    Unreachable {
        /// Its words, or the network's.
        detail: String,
    },
    /// It has more work than it may hold, or two transactions stood in each other's way. Nothing was stored.
    #[error("PostgreSQL is busy ({detail}); try again shortly")]
    Busy {
        /// Its words, or the pool's.
        detail: String,
    },
    /// Two transactions met, and the other was faster. Nothing was stored.
    #[error("another transaction was faster: {detail}")]
    Raced {
        /// Its words.
        detail: String,
    },
    /// No space left at the server. Nothing was stored.
    #[error("PostgreSQL has no space left ({detail}); free some, then repeat")]
    Full {
        /// Its words.
        detail: String,
    },
    /// A session of the server does not sync its commits.
    #[error("PostgreSQL would answer before a commit is on disk: {setting} is {value}; set it to on")]
    NotDurable {
        /// Which setting.
        setting: &'static str,
        /// What it says.
        value: String,
    },
    /// Work that panicked; it was rolled back.
    #[error("the job `{name}` panicked and was undone; the log shows where: report it")]
    Panicked {
        /// Which.
        name: &'static str,
    },
    /// Any other answer: a broken constraint, a mistyped statement.
    #[error("PostgreSQL: {source}")]
    Sql {
        /// Its error.
        source: Arc<tokio_postgres::Error>,
    },
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        let detail = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
        let Some(state) = error.code() else {
            // Without a code it is the network's word, or the driver's about a connection that is gone.
            let driver = std::error::Error::source(&error).is_none() && !error.is_closed();
            return if driver {
                PostgresError::Sql { source: Arc::new(error) }
            } else {
                PostgresError::Unreachable { detail: full_text(&error) }
            };
        };
        if is_race(state) {
            PostgresError::Raced { detail }
        } else if *state == SqlState::DISK_FULL {
            PostgresError::Full { detail }
        } else if is_passing(state) {
            PostgresError::Busy { detail }
        } else if is_away(state) {
            PostgresError::Unreachable { detail }
        } else {
            PostgresError::Sql { source: Arc::new(error) }
        }
    }
}

/// Two transactions met, and this one was undone.
fn is_race(state: &SqlState) -> bool {
    let races =
        [SqlState::UNIQUE_VIOLATION, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    races.contains(state)
}

/// The next try may well succeed.
fn is_passing(state: &SqlState) -> bool {
    let passing = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::OUT_OF_MEMORY,
        SqlState::CONFIGURATION_LIMIT_EXCEEDED,
    ];
    passing.contains(state)
}

/// The server, or this session of it, is going or gone.
fn is_away(state: &SqlState) -> bool {
    let away = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        // A standby that was not promoted takes no writes.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    away.contains(state) || state.code().starts_with("08")
}

fn full_text(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

impl From<PoolError> for PostgresError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::PostCreateHook(deadpool_postgres::HookError::Backend(error)) => error.into(),
            PoolError::Timeout(_) => PostgresError::Busy { detail: "no connection came free in time".into() },
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                PostgresError::Unreachable { detail: error.to_string() }
            }
        }
    }
}

impl From<tokio_postgres::Error> for StorageError {
    fn from(error: tokio_postgres::Error) -> Self {
        StorageError::Postgres(error.into())
    }
}

impl From<PoolError> for StorageError {
    fn from(error: PoolError) -> Self {
        StorageError::Postgres(error.into())
    }
}
