//! The page for people: the committed build of `web/`, carried in the binary.
//!
//! - Nothing but this door is ever asked by it: the policy names no other place, no inline script, no frame.
//! - Names of assets change with their content, so those are kept for ever; the page itself is asked for every time.
//! - A debug build reads the files from disk.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue};
use model::ErrorCode;
use net::respond::Refusal;

use crate::broker::Shared;

const CARRIED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const EVERY_TIME: &str = "no-cache";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(async || file("index.html", EVERY_TIME)))
        .route("/favicon.svg", get(async || file("favicon.svg", EVERY_TIME)))
        .route("/assets/{name}", get(asset))
}

async fn asset(Path(name): Path<String>) -> Response {
    file(&format!("assets/{name}"), FOR_EVER)
}

fn file(name: &str, kept: &'static str) -> Response {
    let (Some(bytes), Some(kind)) = (read(name), kind(name)) else {
        return Refusal::plain(ErrorCode::NotFound).into_response();
    };
    let mut answer = Response::new(Body::from(bytes.into_owned()));
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, kept),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Only kinds the build makes; another is no part of the page.
fn kind(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "json" | "webmanifest" => Some("application/json"),
        "woff2" => Some("font/woff2"),
        "png" => Some("image/png"),
        _ => None,
    }
}

fn read(name: &str) -> Option<Cow<'static, [u8]>> {
    if let Some((_, bytes)) = CARRIED.iter().find(|(carried, _)| *carried == name) {
        return Some(Cow::Borrowed(bytes));
    }
    from_disk(name).map(Cow::Owned)
}

#[cfg(debug_assertions)]
fn from_disk(name: &str) -> Option<Vec<u8>> {
    // One path part below a known folder: a name cannot lead out of it.
    let plain = name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'));
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    if plain && !name.contains('\\') { std::fs::read(root.join(name)).ok() } else { None }
}

#[cfg(not(debug_assertions))]
fn from_disk(_: &str) -> Option<Vec<u8>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_asked_for_every_time_and_its_assets_never_again() {
        let page = file("index.html", EVERY_TIME);
        assert_eq!(page.headers()[CACHE_CONTROL], "no-cache");
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_no_part_of_the_page() {
        for name in
            ["../index.html", "assets/../../package.json", "assets/.hidden.js", "assets/none.js", "x.exe"]
        {
            assert_eq!(file(name, EVERY_TIME).status().as_u16(), 404, "{name}");
        }
    }
}
