//! The command line's side of the relay's operator door.

use std::path::PathBuf;
use std::time::Duration;

use daemon::home::Home;
use http::Method;
use model::{ErrorCode, limits};
use net::client::{Ask, Client, ClientError, Target};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::home;

/// The relay of one home.
pub struct RelayDoor {
    client: Client,
    shown: String,
}

/// The relay's folder.
pub fn folder(home: &Home) -> PathBuf {
    home.relay()
}

/// Where its socket is.
pub fn socket(home: &Home) -> Result<PathBuf, Failure> {
    home.relay_socket(home::runtime_dir().as_deref()).map_err(|error| Failure::usage(error.to_string()))
}

impl RelayDoor {
    /// The door of `home`.
    pub fn of(home: &Home) -> Result<Self, Failure> {
        let socket = socket(home)?;
        let shown = home::shown(&socket);
        Ok(Self { client: Client::new(Target::Unix(socket)), shown })
    }

    /// Whether a relay answers there.
    pub async fn answers(&self) -> bool {
        let asked = self.client.ask(Ask::new(Method::GET, "/v1/relay/status".to_owned())).await;
        !matches!(asked, Err(ClientError::NotRunning { .. }))
    }

    /// `GET path`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Ask::new(Method::GET, format!("/v1/relay{path}"))).await
    }

    /// `POST path`.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        let patience = limits::RELAY_ANSWER_TIMEOUT + Duration::from_secs(10);
        self.ask(Ask::new(Method::POST, format!("/v1/relay{path}")).json(body).timeout(patience)).await
    }

    async fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T, Failure> {
        let answer = self.client.ask(ask).await.map_err(|error| self.failure(error))?;
        answer.json().map_err(|error| self.failure(error))
    }

    fn failure(&self, error: ClientError) -> Failure {
        match error {
            ClientError::NotRunning { .. } | ClientError::Timeout | ClientError::Broken(_) => {
                Failure::unreachable(
                    ErrorCode::RelayNotRunning,
                    format!("no relay answers at {}", self.shown),
                )
                .line("What waits stays on disk.")
                .fix("postrider relay serve --upstream URL")
            }
            ClientError::Refused { body, .. } => {
                let code = ErrorCode::parse(&body.error).unwrap_or(ErrorCode::InvalidRequest);
                let mut failure = Failure::refused(code, body.message).fix(remedy(code));
                failure.more = body.more;
                failure
            }
            ClientError::Unreadable(_) | ClientError::NoUpgrade | ClientError::BadPath => {
                Failure::refused(ErrorCode::InvalidRequest, error.to_string())
            }
        }
    }
}

/// What helps at the relay: the table's own words name the daemon's commands for some codes.
fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::RowInflight => {
            "postrider relay outbox inspect ID shows its answer; then ask for the same again."
        }
        ErrorCode::RowAborted => {
            "postrider relay outbox inspect ID shows how it ended and what took its place."
        }
        ErrorCode::OutcomeUnknown => {
            "postrider relay outbox inspect ID shows how it stands; retry ID --force-duplicate accepts a possible double."
        }
        ErrorCode::NotFound => {
            "postrider relay outbox list shows what is kept; what is done is kept for a day."
        }
        other => other.remedy(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_relay_names_no_command_of_the_daemon() {
        for code in ErrorCode::ALL {
            assert!(!remedy(*code).contains("postrider daemon"), "{code}: {}", remedy(*code));
        }
        for code in
            [ErrorCode::RowAborted, ErrorCode::RowInflight, ErrorCode::OutcomeUnknown, ErrorCode::NotFound]
        {
            assert!(remedy(code).starts_with("postrider relay outbox"), "{code}: {}", remedy(code));
        }
    }
}
