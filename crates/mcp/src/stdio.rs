//! Over stdin and stdout, for a client that starts us.

use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};

use crate::server::Server;

/// Why the conversation with the client broke.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client's first words made no sense.
    #[error("the client did not begin as the protocol asks: {0}")]
    Opening(String),
    /// The task of the conversation died.
    #[error("the conversation broke: {0}")]
    Broken(String),
}

/// Answers the client on stdin and stdout until it closes them.
pub async fn serve(server: Server) -> Result<(), ServeError> {
    let running = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // It looked and went away: nothing was asked, so nothing is wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Opening(error.to_string())),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) => Err(ServeError::Broken(error.to_string())),
        Ok(_) => Ok(()),
        Err(error) => Err(ServeError::Broken(error.to_string())),
    }
}
