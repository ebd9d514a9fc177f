//! Where a broker keeps its books: `sqlite:PATH` or `postgres://…`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use ledger::{Ledger, PostgresLedger, SqliteLedger};
use model::error::Malformed;
use model::{Clock, Entropy, ErrorCode};
use sqlite::Stores;

use crate::failure::Failure;
use crate::home::shown;

/// A store by its address.
#[derive(Clone)]
pub enum Store {
    /// A file of this machine.
    Sqlite(PathBuf),
    /// A database that any number of brokers share; the address may hold a password.
    Postgres(String),
}

/// An open store.
#[derive(Clone)]
pub enum Books {
    /// See [`Store::Sqlite`].
    Sqlite(Arc<SqliteLedger>),
    /// See [`Store::Postgres`].
    Postgres(Arc<PostgresLedger>),
}

impl Store {
    /// Opens the books, or makes them.
    pub async fn open(&self, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Result<Books, Failure> {
        let refused = |error: String| {
            Failure::refused(ErrorCode::Unavailable, error)
                .line(format!("The books are {self}; nothing was changed."))
        };
        match self {
            Store::Sqlite(path) => SqliteLedger::open(path, clock, entropy)
                .map(|ledger| Books::Sqlite(Arc::new(ledger)))
                .map_err(|error| refused(error.to_string())),
            Store::Postgres(url) => PostgresLedger::open(url, entropy)
                .await
                .map(|ledger| Books::Postgres(Arc::new(ledger)))
                .map_err(|error| refused(error.to_string())),
        }
    }
}

impl Books {
    /// The books as the broker takes them.
    pub fn ledger(&self) -> Arc<dyn Ledger> {
        match self {
            Books::Sqlite(ledger) => ledger.clone(),
            Books::Postgres(ledger) => ledger.clone(),
        }
    }

    /// Enters a file among the stores of the process. A database is none of them: it decides itself what a failed sync
    /// means, an unreachable one is waited for, and a start of this process would change neither.
    pub fn enter(&self, stores: &Stores) {
        match self {
            Books::Sqlite(ledger) => stores.enter("ledger", ledger.db()),
            Books::Postgres(_) => {}
        }
    }

    /// Leaves the file as one piece; a database needs no goodbye.
    pub async fn close(self) {
        match self {
            Books::Sqlite(ledger) => {
                // The mark is for the next start, which can do without a younger one.
                if let Err(error) = ledger.keep_mark().await {
                    tracing::debug!(%error, "the mark beside the books was not brought up");
                }
                ledger.db().clone().close().await;
            }
            Books::Postgres(_) => {}
        }
    }
}

impl FromStr for Store {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Store::Sqlite(PathBuf::from(path))),
            None if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                Ok(Store::Postgres(text.to_owned()))
            }
            Some(_) | None => Err(Malformed::new("--store", "sqlite:PATH or postgres://USER@HOST/DATABASE")),
        }
    }
}

impl fmt::Display for Store {
    /// Without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Store::Sqlite(path) => f.write_str(&shown(path)),
            Store::Postgres(url) => {
                let place = url.rsplit_once('@').map_or(url.as_str(), |(_, place)| place);
                let place = place.trim_start_matches("postgresql://").trim_start_matches("postgres://");
                write!(f, "postgres at {}", place.split('?').next().unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_file_or_a_database_and_never_shows_its_password() {
        let shown = |text: &str| text.parse::<Store>().map(|store| store.to_string());
        assert_eq!(shown("sqlite:/x/ledger.db").as_deref(), Ok("/x/ledger.db"));
        assert_eq!(
            shown("postgres://u:secret@db:5432/mesh?x=secret").as_deref(),
            Ok("postgres at db:5432/mesh")
        );
        assert_eq!(shown("postgresql:///mesh").as_deref(), Ok("postgres at /mesh"));
        for bad in ["", "sqlite:", "mysql://x", "/x/ledger.db"] {
            assert!(shown(bad).is_err(), "{bad}");
        }
    }
}
