//! What a request is, before its body is looked at.

use http::{HeaderMap, Method, Uri};
use model::route_class::{NormalPath, OrderKey, PathRefused, Route, RouteClass, RouteTable};
use model::secrets::{Allowed, scan_query};

use crate::config::AuthMode;
use crate::head;
use crate::receipt::Why;

/// What a request is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan<'table> {
    /// A read, or something that changes nothing.
    Read {
        /// What is read, when writes to it may wait.
        resource: Option<OrderKey>,
    },
    /// A write that passes or is refused.
    Online {
        /// What it writes to.
        resource: Option<OrderKey>,
        /// Why it cannot wait.
        why: Why,
    },
    /// A write that may wait, if its body allows.
    Queue {
        /// Its line of the table.
        route: &'table Route,
        /// What it writes to; nothing means its caller's session.
        resource: Option<OrderKey>,
    },
}

/// Judges a request by its head.
pub(crate) fn classify<'table>(
    table: &'table RouteTable,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    auth_mode: AuthMode,
) -> Result<Plan<'table>, PathRefused> {
    let path = NormalPath::parse(uri.path())?;
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE) {
        return Ok(Plan::Read { resource: table.resource_of(&path) });
    }
    let Some(matched) = table.find(method.as_str(), &path) else {
        // An unlisted write may still change a listed resource.
        return Ok(Plan::Online { resource: table.resource_of(&path), why: Why::Online });
    };
    let resource = matched.resource;
    let online = |why| Ok(Plan::Online { resource: resource.clone(), why });
    if matched.route.class == RouteClass::Online || !head::is_json(headers) {
        return online(Why::Online);
    }
    if has_foreign_credentials(headers, auth_mode) {
        return online(Why::Credentials);
    }
    if matched.route.gives_id && !head::prefers_async(headers) {
        return online(Why::NeedsId);
    }
    let allowed = Allowed(&matched.route.allowed_fields);
    if let Some(name) = uri.query().and_then(|query| scan_query(query, allowed)) {
        return online(Why::Secret(vec![format!("?{name}")]));
    }
    if model::secrets::looks_secret(&path.to_string()) {
        return online(Why::Secret(vec!["path".to_owned()]));
    }
    Ok(Plan::Queue { route: matched.route, resource })
}

/// In the relay's mode a caller's credential for the upstream is dropped, so it does not count.
fn has_foreign_credentials(headers: &HeaderMap, auth_mode: AuthMode) -> bool {
    match auth_mode {
        AuthMode::Strict => head::has_credentials(headers),
        AuthMode::Relay => {
            let mut rest = headers.clone();
            rest.remove(http::header::AUTHORIZATION);
            rest.remove(http::header::COOKIE);
            head::has_credentials(&rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn plan(method: Method, uri: &str, more: &[(&'static str, &'static str)], mode: AuthMode) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        for (name, value) in more {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let table = RouteTable::built_in();
        match classify(&table, &method, &uri.parse().unwrap(), &headers, mode) {
            Ok(Plan::Read { .. }) => "read".into(),
            Ok(Plan::Online { why, .. }) => format!("{why:?}"),
            Ok(Plan::Queue { .. }) => "queue".into(),
            Err(refused) => format!("{refused:?}"),
        }
    }

    #[test]
    fn a_request_is_judged_by_its_head() {
        use AuthMode::{Relay, Strict};
        let bearer = &[("authorization", "Bearer x")][..];
        for (method, uri, more, mode, expected) in [
            (Method::GET, "/tasks/1", &[][..], Strict, "read"),
            (Method::PATCH, "/tasks/1", &[][..], Strict, "queue"),
            (Method::PATCH, "/tasks/1", bearer, Strict, "Credentials"),
            (Method::PATCH, "/tasks/1", bearer, Relay, "queue"),
            (Method::PATCH, "/tasks/1", &[("x-api-key", "x")][..], Relay, "Credentials"),
            (Method::PATCH, "/tasks/1", &[("content-type", "text/plain")][..], Strict, "Online"),
            (Method::POST, "/tasks/1", &[("x-http-method-override", "PATCH")][..], Strict, "Online"),
            (Method::POST, "/decisions/", &[][..], Strict, "NeedsId"),
            (Method::POST, "/decisions/", &[("prefer", "respond-async")][..], Strict, "queue"),
            (Method::POST, "/progress/?access_token=x", &[][..], Strict, "Secret([\"?access_token\"])"),
            (Method::DELETE, "/tasks/1", &[][..], Strict, "Online"),
            (Method::POST, "/elsewhere", &[][..], Strict, "Online"),
            (Method::POST, "/a/../progress/", &[][..], Strict, "Climbs"),
            (Method::GET, "/a/%252e%252e/b", &[][..], Strict, "Encoding"),
        ] {
            assert_eq!(plan(method.clone(), uri, more, mode), expected, "{method} {uri}");
        }
    }
}
