//! The word of this home's relay, asked over its own socket.

use model::{ErrorCode, limits};
use net::client::{Client, ClientError, Target, segment};
use wire::relay::RelayExplained;

use crate::ground::Ground;

/// What the relay said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RelayWord {
    /// None ever ran in this home.
    Absent,
    /// There is one, and it could not be asked; the code of why.
    Unasked(String),
    /// Its answer.
    Told(Box<RelayExplained>),
}

/// Asks about `id`. A relay's writes are the home's, not an agent's: only the owner is told of them.
pub(super) async fn ask(ground: &Ground, id: &str, sees_all: bool) -> RelayWord {
    if !ground.home.relay().exists() {
        return RelayWord::Absent;
    }
    if !sees_all {
        return RelayWord::Unasked(ErrorCode::Forbidden.code().to_owned());
    }
    let Ok(socket) = ground.home.relay_socket(ground.surroundings.runtime_dir.as_deref()) else {
        return RelayWord::Unasked(ErrorCode::RelayNotRunning.code().to_owned());
    };
    let client = Client::new(Target::Unix(socket)).with_timeout(limits::ASK_TIMEOUT);
    match client.get(&format!("/v1/relay/explain/{}", segment(id))).await {
        Ok(told) => RelayWord::Told(Box::new(told)),
        Err(ClientError::Refused { body, .. }) => RelayWord::Unasked(body.error),
        Err(
            ClientError::NotRunning { .. }
            | ClientError::Timeout
            | ClientError::Broken(_)
            | ClientError::Unreadable(_)
            | ClientError::NoUpgrade
            | ClientError::BadPath,
        ) => RelayWord::Unasked(ErrorCode::RelayNotRunning.code().to_owned()),
    }
}
