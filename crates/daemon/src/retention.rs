//! Bodies are kept for a while, ids for ever: looks after that as long as the daemon runs.

use std::sync::Arc;
use std::time::Duration;

use crate::ground::Ground;

/// A body may be kept this much longer than it must.
const SCRUB_EVERY: Duration = Duration::from_secs(3600);

/// Scrubs every mailbox at the start and every hour.
pub(crate) async fn keep(ground: Arc<Ground>) {
    loop {
        for mesh in ground.open_meshes() {
            let now = mesh.clock.now();
            let (outbox, inbox) = (mesh.mailbox.scrub_outbox(now).await, mesh.mailbox.scrub_inbox(now).await);
            match (outbox, inbox) {
                (Ok(0), Ok(0)) => {}
                (Ok(outbox), Ok(inbox)) => {
                    tracing::info!(mesh = mesh.slug, outbox, inbox, "old bodies are gone, their ids stay");
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::warn!(mesh = mesh.slug, %error, "old bodies could not be removed");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(SCRUB_EVERY) => {}
            () = ground.stop.cancelled() => return,
        }
    }
}
