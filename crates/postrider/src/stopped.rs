//! What a process does after one of its stores has stopped.
//!
//! The store takes no write until the process starts anew. Readiness and health name it for a while, so that a load
//! balancer and an operator see it; then every role ends as after a signal, and the process exits with
//! [`Exit::StoreStopped`], which asks its supervisor for a start.

use model::{ErrorCode, limits};
use sqlite::{StoppedStore, Stores};
use tokio_util::sync::CancellationToken;

use crate::failure::{Exit, Failure};

/// Cancels `stop` after the first of `stores` has stopped, and ends the process where that does not.
pub fn stop_after_store(stores: &Stores, stop: &CancellationToken) {
    let (stores, stop) = (stores.clone(), stop.clone());
    tokio::spawn(async move {
        let StoppedStore { name, path, cause } = stores.first_stopped().await;
        let exit = Exit::StoreStopped as i32;
        tracing::error!(store = name, path = %path.display(), %cause, exit, "a store has stopped; the process ends");
        tokio::spawn(end_at_last());
        tokio::select! {
            () = tokio::time::sleep(limits::STORE_STOPPED_NOTICE) => {}
            () = stop.cancelled() => {}
        }
        stop.cancel();
    });
}

/// Everything acknowledged is on disk: an end that hangs may be cut.
async fn end_at_last() {
    tokio::time::sleep(limits::STORE_STOPPED_EXIT_MAX).await;
    tracing::error!("the process did not end in time after a store had stopped and is cut");
    std::process::exit(Exit::StoreStopped as i32);
}

/// How a process ended whose roles ended with `ended`: a store that stopped outweighs it.
pub fn exit_after(stores: &Stores, ended: Result<Exit, Failure>) -> Result<Exit, Failure> {
    match stores.stopped().first() {
        Some(stopped) => Err(failure(stopped)),
        None => ended,
    }
}

fn failure(stopped: &StoppedStore) -> Failure {
    let shown = crate::home::shown(&stopped.path);
    let mut failure = Failure {
        word: "stopped",
        exit: Exit::StoreStopped,
        ..Failure::refused(ErrorCode::StorageStopped, format!("the {} has stopped ({shown})", stopped.name))
    };
    failure.more.insert("store".to_owned(), stopped.name.clone().into());
    failure
        .line(format!("{}.", stopped.cause))
        .line("What was acknowledged is on disk and goes on at the next start.")
        .fix("dmesg | tail       then start it again")
}
