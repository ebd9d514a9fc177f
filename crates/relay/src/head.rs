//! Headers: what travels on, what stays on its hop, what is a credential.

use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT,
};
use model::{limits, secrets};
use wire::relay::{KEY_HEADER, LOCAL_TOKEN_HEADER};

/// Headers of one hop, whatever `Connection` says.
static HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers that would give a write another meaning at the upstream than the one it was judged by here.
static OVERRIDES: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-method-override"),
];

static KEY: HeaderName = HeaderName::from_static(KEY_HEADER);
static LOCAL_TOKEN: HeaderName = HeaderName::from_static(LOCAL_TOKEN_HEADER);

/// Takes away what belongs to this hop alone.
pub(crate) fn strip_hop(headers: &mut HeaderMap) {
    strip(headers, |name| HOP.contains(name));
}

/// Takes away those, and what `Connection` names.
fn strip(headers: &mut HeaderMap, is_one: impl Fn(&HeaderName) -> bool) {
    // One look at each header: most requests have fewer of them than there are names to look for.
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_one(name)).cloned().collect();
    if found.contains(&CONNECTION) {
        remove_named(headers);
    }
    for name in found {
        headers.remove(name);
    }
}

fn remove_named(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        // What nearly every answer says, and a header of its hop in any case.
        .filter(|name| !name.eq_ignore_ascii_case("keep-alive"))
        .filter_map(|name| name.parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// Takes away what the upstream must not see of a request: this hop, this door's name and credential, overrides.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    let own = |name: &HeaderName| *name == HOST || *name == LOCAL_TOKEN;
    strip(headers, |name| own(name) || HOP.contains(name) || OVERRIDES.contains(name));
}

/// Whether the caller brings a credential of its own for the upstream.
pub(crate) fn has_authorization(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || headers.contains_key(COOKIE)
}

/// Names that nearly every request has and that stand before no secret: not worth a look at each of them.
static PLAIN: [HeaderName; 6] = [HOST, CONTENT_TYPE, CONTENT_LENGTH, ACCEPT, USER_AGENT, CONNECTION];

/// Whether any header looks like a credential; such a request is never stored.
pub(crate) fn has_credentials(headers: &HeaderMap) -> bool {
    headers.iter().any(|(name, value)| {
        let is_named = || !PLAIN.contains(name) && secrets::is_secret_name(name.as_str());
        name != LOCAL_TOKEN_HEADER && (is_named() || value.to_str().is_ok_and(secrets::looks_secret))
    })
}

/// Whether the body is said to be JSON, the one kind that is ever stored.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") && !headers.contains_key(http::header::CONTENT_ENCODING)
}

/// Whether the caller can do without the id of what it makes.
pub(crate) fn prefers_async(headers: &HeaderMap) -> bool {
    headers
        .get_all("prefer")
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split([',', ';']))
        .any(|wish| wish.trim().eq_ignore_ascii_case("respond-async"))
}

/// A header's text, when it is one and not longer than a name should be.
pub(crate) fn short_text(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty() && text.len() <= limits::RELAY_SOURCE_BYTES_MAX).then(|| text.to_owned())
}

/// The caller's key: nothing when it sent none, an error when it is none.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, ()> {
    let mut lines = headers.get_all(&KEY).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let text = line.to_str().map_err(|_| ())?;
    let fits = !text.is_empty()
        && text.len() <= limits::CLIENT_MESSAGE_ID_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits && lines.next().is_none() { Ok(Some(text.to_owned())) } else { Err(()) }
}

/// A value made of text of ours; nothing when no header can carry it.
pub(crate) fn value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn what_belongs_to_one_hop_stays_there_with_what_connection_names() {
        let mut map = headers(&[
            ("connection", "close, x-private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "Basic x"),
            ("host", "relay"),
            ("statehub-relay-token", "t"),
            ("x-http-method-override", "DELETE"),
            ("x-kept", "1"),
            ("content-type", "application/json"),
        ]);
        strip_request(&mut map);
        let mut left: Vec<&str> = map.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "x-kept"]);
    }

    #[test]
    fn credentials_are_known_by_name_and_by_value() {
        for (name, value, found) in [
            ("authorization", "Basic eDp5", true),
            ("cookie", "a=b", true),
            ("x-api-key", "k", true),
            ("x-auth-token", "k", true),
            ("x-note", "Bearer abc123DEF456ghi", true),
            ("idempotency-key", "01M7GH3C2R6V0D9QK1TJX4N8YE", false),
            ("statehub-relay-token", "k", false),
            ("content-type", "application/json", false),
        ] {
            assert_eq!(has_credentials(&headers(&[(name, value)])), found, "{name}");
        }
    }

    #[test]
    fn a_key_is_one_line_of_visible_characters() {
        assert_eq!(key(&headers(&[])), Ok(None));
        assert_eq!(key(&headers(&[("idempotency-key", "a-1")])), Ok(Some("a-1".into())));
        for bad in ["", "a b", "\u{e9}"] {
            let mut map = HeaderMap::new();
            map.insert(KEY_HEADER, HeaderValue::from_bytes(bad.as_bytes()).unwrap());
            assert_eq!(key(&map), Err(()), "{bad}");
        }
        let mut twice = headers(&[("idempotency-key", "a")]);
        twice.append(KEY_HEADER, HeaderValue::from_static("b"));
        assert_eq!(key(&twice), Err(()));
    }

    #[test]
    fn only_plain_json_is_json() {
        assert!(is_json(&headers(&[("content-type", "application/json; charset=utf-8")])));
        for (name, value) in [("content-type", "text/plain"), ("content-type", "application/problem+json")] {
            assert!(!is_json(&headers(&[(name, value)])));
        }
        assert!(!is_json(&headers(&[("content-type", "application/json"), ("content-encoding", "gzip")])));
    }
}
