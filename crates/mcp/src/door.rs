//! The daemon's local door, as one caller sees it.

use std::path::PathBuf;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, Method};
use model::{ErrorCode, limits};
use net::Secret;
use net::client::{Answer, Ask, Client, ClientError, Target};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::local::ACT_AS_HEADER;

use crate::told::Trouble;

/// The door of one home, for one caller, in one mesh.
#[derive(Clone)]
pub struct Door {
    client: Client,
    /// The socket as people read it.
    shown: String,
    act_as: Option<String>,
    mesh: Option<String>,
}

impl Door {
    /// The door at `socket`, as the home's person in its default mesh.
    pub fn at(socket: PathBuf, shown: String) -> Self {
        Self { client: Client::new(Target::Unix(socket)), shown, act_as: None, mesh: None }
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

    /// The same with whatever credential and choice of member these headers carry.
    pub fn on_behalf(&self, headers: &HeaderMap) -> Self {
        let mut door = self.clone();
        if let Some(token) = net::guard::bearer(headers) {
            door = door.with_token(&token);
        }
        if let Some(name) = headers.get(ACT_AS_HEADER).and_then(|name| name.to_str().ok()) {
            door.act_as = Some(name.to_owned());
        }
        door
    }

    /// The mesh that was named, for bodies that carry it.
    pub(crate) fn mesh(&self) -> Option<String> {
        self.mesh.clone()
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Trouble> {
        self.get_within(path, query, limits::ANSWER_TIMEOUT).await
    }

    /// For long polls: `wait` is what the daemon was asked to wait.
    pub(crate) async fn get_waiting<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        wait: Duration,
    ) -> Result<T, Trouble> {
        self.get_within(path, query, wait + limits::ASK_TIMEOUT * 2).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Trouble> {
        let answer = self.ask(Ask::new(Method::POST, path).json(body)).await?;
        answer.json().map_err(|error| self.trouble(error))
    }

    async fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        timeout: Duration,
    ) -> Result<T, Trouble> {
        let query = self.query(query);
        let joint = if query.is_empty() { "" } else { "?" };
        let ask = Ask::new(Method::GET, format!("{path}{joint}{query}")).timeout(timeout);
        self.ask(ask).await?.json().map_err(|error| self.trouble(error))
    }

    fn query(&self, query: &[(&str, String)]) -> String {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(query.iter().map(|(name, value)| (*name, value.as_str())));
        if let Some(mesh) = &self.mesh {
            pairs.append_pair("mesh", mesh);
        }
        pairs.finish()
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, Trouble> {
        let ask = match &self.act_as {
            Some(name) => ask.header(HeaderName::from_static(ACT_AS_HEADER), name),
            None => ask,
        };
        self.client.ask(ask).await.map_err(|error| self.trouble(error))
    }

    fn trouble(&self, error: ClientError) -> Trouble {
        match error {
            ClientError::NotRunning { .. } => {
                Trouble::new(ErrorCode::DaemonNotRunning, format!("No daemon answers at {}.", self.shown))
                    .still("Nothing was stored.")
                    .fix("Run in a terminal: postrider up")
            }
            ClientError::Timeout | ClientError::Broken(_) => Trouble::new(
                ErrorCode::DaemonNotRunning,
                format!("The daemon at {} did not finish its answer.", self.shown),
            )
            .still("Whether it was stored is not known.")
            .fix("Call again with the same client_message_id: that can never double it."),
            ClientError::Refused { body, .. } => Trouble::refused(*body),
            ClientError::Unreadable(_) | ClientError::NoUpgrade | ClientError::BadPath => {
                Trouble::new(ErrorCode::InvalidRequest, error.to_string())
                    .fix("The daemon may be of another version: postrider down && postrider up")
            }
        }
    }
}
