//! How a door's work is run: in a transaction, in a task of its own.

use std::sync::Arc;

use ::sqlite::fault;
use futures_util::future::BoxFuture;

use super::super::session::{Mode, Tx};
use super::super::trouble::PostgresError;
use super::PostgresLedger;
use crate::StorageError;

impl PostgresLedger {
    /// Runs `job` in a transaction and in a task of its own: whoever asked may go away, the transaction ends.
    pub(super) async fn write<T, E>(
        &self,
        name: &'static str,
        job: impl for<'t> FnOnce(&'t Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let (core, wake) = (Arc::clone(&self.core), self.wake.clone());
        let task = tokio::spawn(async move {
            let tx = core.begin(Mode::Write).await?;
            match job(&tx).await {
                Ok(value) => {
                    fault::point_of(name, "before_commit");
                    tx.commit().await?;
                    fault::point_of(name, "after_commit");
                    wake.committed();
                    Ok(value)
                }
                Err(error) => {
                    tx.roll_back().await;
                    Err(error)
                }
            }
        });
        task.await.unwrap_or_else(|_| Err(panicked(name).into()))
    }

    /// Runs `job` over one snapshot, in a task of its own.
    pub(super) async fn read<T, E>(
        &self,
        name: &'static str,
        job: impl for<'t> FnOnce(&'t Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let core = Arc::clone(&self.core);
        let task = tokio::spawn(async move {
            let tx = core.begin(Mode::Read).await?;
            let result = job(&tx).await;
            tx.roll_back().await;
            result
        });
        task.await.unwrap_or_else(|_| Err(panicked(name).into()))
    }
}

fn panicked(name: &'static str) -> StorageError {
    StorageError::Postgres(PostgresError::Panicked { name })
}
