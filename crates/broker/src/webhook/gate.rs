//! Where a call may go.
//!
//! - A host is resolved once a call, every address it has is checked, and the call goes to one of those by number:
//!   what a name means a moment later does not matter.
//! - One address that is not public closes the gate for the host: which one would be dialled is not ours to say.
//! - A host the operator named may be anywhere.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use model::webhook::{Host, NotPublic, WebhookUrl, address};

/// Who turns names into addresses.
#[async_trait]
pub(super) trait Resolve: Send + Sync {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own way.
pub(super) struct SystemResolver;

/// See the module.
pub(super) struct Gate {
    allowed: Vec<Host>,
    resolver: Arc<dyn Resolve>,
}

/// Why a call may not go there.
#[derive(Debug, thiserror::Error)]
pub(super) enum Closed {
    /// The name means nothing now.
    #[error("the host does not resolve")]
    Unresolved,
    /// It leads to a place that is not public.
    #[error("the host has a {0} address")]
    NotPublic(NotPublic),
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect())
    }
}

impl Gate {
    pub(super) fn new(allowed: Vec<Host>, resolver: Arc<dyn Resolve>) -> Self {
        Self { allowed, resolver }
    }

    /// Where to dial for `url` now.
    pub(super) async fn pass(&self, url: &WebhookUrl) -> Result<Vec<SocketAddr>, Closed> {
        let found = match url.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.resolver.resolve(name).await.map_err(|_| Closed::Unresolved)?,
        };
        if found.is_empty() {
            return Err(Closed::Unresolved);
        }
        if !self.allowed.contains(url.host()) {
            found.iter().try_for_each(|found| address::check(*found)).map_err(Closed::NotPublic)?;
        }
        Ok(found.into_iter().map(|found| SocketAddr::new(found, url.port())).collect())
    }
}
