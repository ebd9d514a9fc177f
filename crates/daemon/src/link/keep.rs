//! Keeps a mesh's link open as long as the process runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mailbox::Fact;
use model::{ErrorCode, NodeKey, backoff};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::negotiate::{Negotiated, negotiate};
use super::session;
use super::verdict::{LinkEnd, Next};
use super::wayin::{Credential, Opened, WayIn};
use crate::Invites;
use crate::home::write_durably;
use crate::mesh::{LinkState, Mesh};

/// What keeping a link needs beside its mesh.
pub(crate) struct Keeper {
    pub(crate) way: WayIn,
    /// Where a fresh invite comes from, when the broker runs in this very process.
    pub(crate) invites: Option<Arc<dyn Invites>>,
    /// Holds the trusted issuer for a mailbox that lost it.
    pub(crate) issuer: PathBuf,
    /// An operator wants a link tried again now.
    pub(crate) resume: Arc<Notify>,
    pub(crate) version: String,
}

/// Opens the link, serves it, and opens it again, until `stop` or for ever.
pub(crate) async fn keep(mesh: Arc<Mesh>, keeper: Keeper, stop: CancellationToken) {
    let mut attempts = 0_u32;
    loop {
        let opened = tokio::select! {
            opened = keeper.open(&mesh) => opened,
            () = stop.cancelled() => return,
        };
        attempts = if opened.is_ok() { 1 } else { attempts.saturating_add(1) };
        let end = match opened {
            Ok(link) => session::serve(&mesh, link, &stop).await,
            Err(end) => end,
        };
        mesh.tally.link_ended(&end);
        let wait = match end.next() {
            Next::Stop => return,
            Next::Retry => {
                tracing::info!(mesh = mesh.slug, %end, attempts, "the link is away");
                mesh.set_link(LinkState::Away { reason: Some(end.to_string()) });
                Some(backoff::delay(attempts, mesh.entropy.next_u64()).max(end.retry_after()))
            }
            Next::Park { reason, probe } => {
                tracing::error!(mesh = mesh.slug, %end, reason, "the mesh is parked");
                mesh.set_link(LinkState::Parked { reason: reason.to_owned(), detail: end.to_string() });
                probe
            }
        };
        if matches!(end, LinkEnd::Storage(_)) {
            recover(&mesh).await;
        }
        tokio::select! {
            () = pause(wait) => {}
            () = keeper.resume.notified() => {}
            () = stop.cancelled() => return,
        }
    }
}

impl Keeper {
    async fn open(&self, mesh: &Mesh) -> Result<Negotiated, LinkEnd> {
        let opened = self.way_in(mesh).await?;
        negotiate(mesh, opened, &self.version).await
    }

    /// By the node's own key when the mesh was joined, else, or when the broker forgot the node, by a fresh
    /// invite if this process can make one.
    async fn way_in(&self, mesh: &Mesh) -> Result<Opened, LinkEnd> {
        let meta = mesh.mailbox.meta().await?;
        let unknown = match meta.issuer_key.or_else(|| read_issuer(&self.issuer)) {
            Some(issuer) => match self.way.open(&issuer, Credential::Key).await {
                Err(end @ LinkEnd::Refused { code: ErrorCode::UnknownNode, .. }) => end,
                opened => return opened,
            },
            None => not_joined(),
        };
        let Some(invites) = &self.invites else { return Err(unknown) };
        let invite = invites.fresh().await.ok_or(unknown)?;
        self.trust(mesh, invite.issuer_key).await?;
        self.way.open(&invite.issuer_key, Credential::Invite(&invite.token)).await
    }

    /// Kept before anything is redeemed: a crash right after must leave a node that can come back.
    async fn trust(&self, mesh: &Mesh, issuer: NodeKey) -> Result<(), LinkEnd> {
        write_issuer(&self.issuer, issuer).map_err(|error| LinkEnd::Storage(error.to_string()))?;
        let facts = vec![Fact::IssuerKey(issuer), Fact::Node(mesh.node.clone())];
        Ok(mesh.mailbox.put_meta(facts).await?)
    }
}

/// The issuer trusted at the join, as its file says.
fn read_issuer(path: &Path) -> Option<NodeKey> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Trusts `issuer` durably.
pub(crate) fn write_issuer(path: &Path, issuer: NodeKey) -> io::Result<()> {
    write_durably(path, issuer.to_string().as_bytes(), 0o600)
}

fn not_joined() -> LinkEnd {
    let message = "this home has not joined the mesh yet".to_owned();
    LinkEnd::Refused { code: ErrorCode::UnknownNode, message, retry_after: None }
}

/// Frames that could not be settled are still marked as on the wire, and nobody carries them.
async fn recover(mesh: &Mesh) {
    if let Err(error) = mesh.mailbox.recover().await {
        tracing::error!(mesh = mesh.slug, %error, "the store is still away");
    }
}

async fn pause(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
