//! Bodies are kept for a while, ids for ever: looks after that as long as the daemon runs. A clock that stands ahead for an
//! hour takes no body: what is old is judged by time that was seen to pass.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::Timestamp;
use sqlite::StorageError;

use crate::ground::Ground;
use crate::mesh::Mesh;

/// A body may be kept this much longer than it must. A stop loses at most this much of the counted running time, so that a
/// daemon that runs for minutes a day still lets bodies go.
const SCRUB_EVERY: Duration = Duration::from_secs(60);

/// What the last look at a mesh's clock bore out, and this process's running time then.
type LastLooks = HashMap<String, (Timestamp, Duration)>;

/// Scrubs every mailbox at the start and every minute.
pub(crate) async fn keep(ground: Arc<Ground>) {
    let mut looks = LastLooks::new();
    loop {
        for mesh in ground.open_meshes() {
            match scrub(&mesh, &mut looks).await {
                Ok((0, 0)) => {}
                Ok((outbox, inbox)) => {
                    tracing::info!(mesh = mesh.slug, outbox, inbox, "old bodies are gone, their ids stay");
                }
                Err(error) => {
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

async fn scrub(mesh: &Mesh, looks: &mut LastLooks) -> Result<(usize, usize), StorageError> {
    let running = mesh.clock.monotonic();
    let counted = looks.get(&mesh.slug).map(|(borne_out, at)| *borne_out + running.saturating_sub(*at));
    let aged = mesh.mailbox.look_at_clock(mesh.clock.now(), counted).await?;
    looks.insert(mesh.slug.clone(), (aged, running));
    Ok((mesh.mailbox.scrub_outbox(aged).await?, mesh.mailbox.scrub_inbox(aged).await?))
}
