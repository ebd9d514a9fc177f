//! Who calls: a program with an API token, or a browser with a session's cookie.
//!
//! - The ledger is asked at every request and nothing is kept here, so what was taken back ends at once.
//! - A cookie alone changes nothing: a browser that writes must also say that the page asking is this door's own.

use http::header::{AUTHORIZATION, COOKIE, ORIGIN};
use http::{HeaderMap, Method};
use ledger::{Member, Scopes, SecretHash, StorageError};
use model::{ErrorCode, MeshId};
use net::Secret;
use net::guard::bearer;
use net::respond::Refusal;

use crate::broker::{Shared, storage_refused};
use crate::wayin::hash_of;

/// A member, proven by a token or a session.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    /// As whom.
    pub(crate) member: Member,
    /// What it may do.
    pub(crate) scopes: Scopes,
    /// By what it is found again.
    pub(crate) hash: SecretHash,
}

/// What a person at the page may do; the hub's writers are programs.
const OF_A_PERSON: Scopes = Scopes { send: true, read: true, hub: false };

impl Shared {
    /// The credential of a request.
    pub(crate) async fn credential(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Credential, Refusal> {
        let unknown = || Refusal::plain(ErrorCode::Unauthorized);
        let found = match bearer(headers) {
            Some(token) => self.token(hash_of(&token)).await,
            // Whoever shows a token means to be judged by it.
            None if headers.contains_key(AUTHORIZATION) => return Err(unknown()),
            None => {
                let secret = session_cookie(headers, self.mesh.id).ok_or_else(unknown)?;
                refuse_foreign_writes(method, headers)?;
                self.browser(hash_of(&secret)).await
            }
        };
        found.map_err(|error| storage_refused(&error))?.ok_or_else(unknown)
    }

    /// The credential that `hash` was made of, if it still holds.
    pub(crate) async fn credential_of(&self, hash: SecretHash) -> Result<Option<Credential>, StorageError> {
        match self.browser(hash).await? {
            Some(session) => Ok(Some(session)),
            None => self.token(hash).await,
        }
    }

    async fn token(&self, hash: SecretHash) -> Result<Option<Credential>, StorageError> {
        let token = self.ledger.resolve_token(hash).await?;
        Ok(token.map(|token| Credential { member: token.member, scopes: token.scopes, hash }))
    }

    async fn browser(&self, hash: SecretHash) -> Result<Option<Credential>, StorageError> {
        let session = self.ledger.session(hash).await?;
        Ok(session.map(|session| Credential { member: session.member, scopes: OF_A_PERSON, hash }))
    }
}

/// The name of this mesh's cookie: two brokers on one host keep apart.
pub(crate) fn cookie_name(mesh: MeshId) -> String {
    let id = mesh.to_string();
    format!("pr_{}", &id[id.len() - 12..])
}

/// The session's secret, when the request carries exactly one.
pub(crate) fn session_cookie(headers: &HeaderMap, mesh: MeshId) -> Option<Secret> {
    let name = cookie_name(mesh);
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut found = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| *found == name)
        .map(|(_, value)| value.to_owned());
    match (found.next(), found.next()) {
        (Some(value), None) if !value.is_empty() => Some(Secret::from(value)),
        (Some(_) | None, _) => None,
    }
}

/// The door's guard refuses another page's Origin. A write without any comes from no page of ours.
fn refuse_foreign_writes(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let reads = method == Method::GET || method == Method::HEAD;
    if reads || headers.contains_key(ORIGIN) { Ok(()) } else { Err(Refusal::plain(ErrorCode::OriginRefused)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const MESH: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn cookie(lines: &[&'static str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(COOKIE, HeaderValue::from_static(line));
        }
        session_cookie(&headers, MESH.parse().unwrap()).map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn a_cookie_is_one_of_this_mesh_and_not_two() {
        assert_eq!(cookie(&["pr_b302099a8057=abc"]).as_deref(), Some("abc"));
        assert_eq!(cookie(&["x=1; pr_b302099a8057=abc; y=2"]).as_deref(), Some("abc"));
        for none in
            [&[][..], &["pr_other=abc"], &["pr_b302099a8057="], &["pr_b302099a8057=a; pr_b302099a8057=b"]]
        {
            assert_eq!(cookie(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_browser_that_writes_names_its_page() {
        let mut headers = HeaderMap::new();
        assert!(refuse_foreign_writes(&Method::GET, &headers).is_ok());
        assert!(refuse_foreign_writes(&Method::POST, &headers).is_err());
        headers.insert(ORIGIN, HeaderValue::from_static("http://127.0.0.1:7440"));
        assert!(refuse_foreign_writes(&Method::POST, &headers).is_ok());
    }
}
