//! The command line's side of the local door.

use std::path::Path;
use std::time::Duration;

use daemon::home::Home;
use http::{HeaderName, Method};
use model::{ErrorCode, limits};
use net::Secret;
use net::client::{Ask, Client, ClientError, Target};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::ask::Question;
use wire::local::ACT_AS_HEADER;

use crate::failure::Failure;
use crate::home;

/// The daemon of one home, as one member sees it in one mesh.
pub struct LocalDoor {
    client: Client,
    act_as: Option<String>,
    mesh: Option<String>,
    shown: String,
}

impl LocalDoor {
    /// The door of `home`, as the home's person in its default mesh.
    pub fn of(home: &Home) -> Result<Self, Failure> {
        let socket = home::socket(home)?;
        let shown = home::shown(&socket);
        Ok(Self { client: Client::new(Target::Unix(socket)), act_as: None, mesh: None, shown })
    }

    /// The same as another member of this home, in another mesh.
    pub fn with(mut self, act_as: Option<String>, mesh: Option<String>) -> Self {
        (self.act_as, self.mesh) = (act_as, mesh);
        self
    }

    /// The same with the token of an agent, which acts as that agent alone.
    pub fn with_token(mut self, token: &Secret) -> Self {
        self.client = self.client.with_bearer(token);
        self
    }

    /// The mesh that was named, for bodies that carry it.
    pub fn mesh(&self) -> Option<String> {
        self.mesh.clone()
    }

    /// Puts a question to the broker through the link.
    pub async fn ask_broker<T: DeserializeOwned>(&self, question: &Question) -> Result<T, Failure> {
        let mut body = serde_json::to_value(question).expect("questions are made of maps with text keys");
        if let (Some(mesh), Some(body)) = (&self.mesh, body.as_object_mut()) {
            body.insert("mesh".to_owned(), mesh.clone().into());
        }
        self.post("/v1/ask", &body).await
    }

    /// `GET path`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.get_within(path, limits::ANSWER_TIMEOUT).await
    }

    /// `GET path`, for a long poll.
    pub async fn get_within<T: DeserializeOwned>(&self, path: &str, timeout: Duration) -> Result<T, Failure> {
        self.ask(Ask::new(Method::GET, self.in_mesh(path)).timeout(timeout)).await
    }

    /// `POST path` with a JSON body.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        self.ask(Ask::new(Method::POST, path).json(body)).await
    }

    /// `POST path` with a JSON body, for a long poll.
    pub async fn post_within<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        timeout: Duration,
    ) -> Result<T, Failure> {
        self.ask(Ask::new(Method::POST, path).json(body).timeout(timeout)).await
    }

    /// `DELETE path`.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Ask::new(Method::DELETE, path)).await
    }

    /// Waits until nobody answers any more; the daemon ends its answers within a bound of its own.
    pub async fn wait_until_gone(&self) -> Result<(), Failure> {
        let gone = async {
            while self.client.get::<serde_json::Value>("/v1/version").await.is_ok() {
                tokio::time::sleep(limits::RETRY_DELAY_FLOOR).await;
            }
        };
        tokio::time::timeout(limits::DRAIN_TIMEOUT * 2, gone).await.map_err(|_| {
            Failure::refused(ErrorCode::Unavailable, "the daemon was asked to stop and still answers")
        })
    }

    fn in_mesh(&self, path: &str) -> String {
        match &self.mesh {
            Some(mesh) => {
                let joint = if path.contains('?') { '&' } else { '?' };
                format!("{path}{joint}mesh={mesh}")
            }
            None => path.to_owned(),
        }
    }

    async fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T, Failure> {
        let ask = match &self.act_as {
            Some(name) => ask.header(HeaderName::from_static(ACT_AS_HEADER), name),
            None => ask,
        };
        let answer = self.client.ask(ask).await.map_err(|error| self.failure(error))?;
        answer.json().map_err(|error| self.failure(error))
    }

    fn failure(&self, error: ClientError) -> Failure {
        match error {
            ClientError::NotRunning { .. } => Failure::unreachable(
                ErrorCode::DaemonNotRunning,
                format!("no daemon answers at {}", self.shown),
            )
            .line("Nothing was stored.")
            .fix("postrider up"),
            ClientError::Timeout | ClientError::Broken(_) => Failure::unreachable(
                ErrorCode::DaemonNotRunning,
                format!("the daemon at {} did not finish its answer", self.shown),
            )
            .line("Whether it was stored is not known; asking again with the same --id cannot double it.")
            .fix("postrider status"),
            ClientError::Refused { body, .. } => refused(*body),
            ClientError::Unreadable(_) | ClientError::NoUpgrade | ClientError::BadPath => {
                Failure::refused(ErrorCode::InvalidRequest, error.to_string())
                    .line("The daemon may be of another version.")
                    .fix("postrider down && postrider up")
            }
        }
    }
}

/// The token in `file`.
pub fn read_token(file: &Path) -> Result<Secret, Failure> {
    let shown = home::shown(file);
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("the token's file {shown} cannot be read: {error}"))
            .fix("postrider agent add NAME --quiet > FILE")
    })?;
    match text.trim() {
        "" => Err(Failure::usage(format!("the token's file {shown} is empty"))
            .fix("postrider agent add NAME --quiet > FILE")),
        token => Ok(Secret::from(token.to_owned())),
    }
}

/// The door's refusal in the command line's form.
fn refused(body: wire::ErrorBody) -> Failure {
    let known = ErrorCode::parse(&body.error);
    let unreachable = known == Some(ErrorCode::BrokerUnreachable);
    let line = body.message;
    let mut failure = match known {
        Some(code) if unreachable => Failure::unreachable(code, line),
        Some(code) => Failure::refused(code, line),
        None => Failure { code: body.error, ..Failure::refused(ErrorCode::InvalidRequest, line) },
    };
    if let Some(conflict) = body.more.get("conflict").and_then(|value| value.as_str()) {
        let kept = body.more.get("daemon_fingerprint_prefix").and_then(|value| value.as_str());
        let kept = kept.map(|prefix| format!(", kept {prefix}")).unwrap_or_default();
        failure = failure.line(format!("{conflict}{kept}"));
    }
    if let Some(code) = known {
        failure = failure.fix(code.remedy());
    }
    failure.more = body.more;
    failure
}
