//! How a door's work is run: in a transaction, in a task of its own.

use std::sync::Arc;

use ::sqlite::fault;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use model::{ClientMessageId, ConversationId, MemberId, Timestamp};

use super::super::session::{Mode, Tx};
use super::super::trouble::PostgresError;
use super::super::{ageing, chat, hub};
use super::PostgresLedger;
use crate::{ClockLook, Emptied, Fence, HubKeyStatus, StorageError};

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

    /// What became of a hub key; with a fence an absent one is retired.
    pub(super) async fn ask_hub(
        &self,
        principal: MemberId,
        key: ClientMessageId,
        created_at: Option<Timestamp>,
        fence: Fence,
    ) -> Result<HubKeyStatus, StorageError> {
        match fence {
            Fence::None => {
                self.read("ledger.hub_key_status", move |tx| {
                    async move { hub::ask(tx, principal, &key, created_at).await }.boxed()
                })
                .await
            }
            Fence::Retire => {
                self.write("ledger.hub_fence", move |tx| {
                    async move { hub::fence(tx, principal, &key, created_at).await }.boxed()
                })
                .await
            }
        }
    }

    /// Looks at the clock.
    pub(super) async fn look(&self) -> Result<ClockLook, StorageError> {
        self.write("ledger.look_at_clock", |tx| ageing::look(tx).boxed()).await
    }

    /// Ends what is too old, by the instant that a look moments ago bore out, or one of its own.
    pub(super) async fn sweep<T: Send + 'static>(
        &self,
        name: &'static str,
        job: impl for<'t> FnOnce(&'t Tx, Timestamp) -> BoxFuture<'t, Result<T, StorageError>> + Send + 'static,
    ) -> Result<T, StorageError> {
        let now = self.core.now().await?;
        let aged = match self.core.watch.recent(now, self.core.running()) {
            Some(aged) => aged,
            None => self.look().await?.borne_out,
        };
        self.write(name, move |tx| job(tx, aged)).await
    }

    /// In bounded rounds, until nothing is left.
    pub(super) async fn empty_log(&self, id: ConversationId) -> Result<Option<Emptied>, StorageError> {
        let mut removed = 0;
        loop {
            let round =
                self.write("ledger.empty_conversation", move |tx| chat::empty(tx, id).boxed()).await?;
            match round.map(|round| round.add_to(removed)) {
                None => return Ok(None),
                Some(Ok(emptied)) => return Ok(Some(emptied)),
                Some(Err(so_far)) => removed = so_far,
            }
        }
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
