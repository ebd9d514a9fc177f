//! Bodies are plain JSON. A form cannot send that type without asking first, so this also stops other pages.

use axum::body::HttpBody;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Request};
use model::ErrorCode;

use crate::respond::Refusal;

pub(super) fn refuse_other_than_json<B: HttpBody>(request: &Request<B>) -> Result<(), Refusal> {
    let refused = || Err(Refusal::plain(ErrorCode::UnsupportedMediaType));
    // Compressed, a small request could become a large one behind every bound.
    if request.headers().contains_key(CONTENT_ENCODING) {
        return refused();
    }
    if request.body().is_end_stream() || is_json(request.headers()) { Ok(()) } else { refused() }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return false };
    let Ok(line) = line.to_str() else { return false };
    let (kind, parameters) = line.split_once(';').unwrap_or((line, ""));
    let parameters = parameters.trim();
    kind.trim().eq_ignore_ascii_case("application/json")
        && (parameters.is_empty() || parameters.eq_ignore_ascii_case("charset=utf-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn code(body: &'static str, lines: &[(&str, &str)]) -> Option<ErrorCode> {
        let request =
            lines.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
        let request = request.body(Body::from(body)).unwrap();
        refuse_other_than_json(&request).err().map(|refusal| refusal.refused().code)
    }

    #[test]
    fn a_body_is_declared_as_json_and_not_compressed() {
        let json = ("content-type", "application/json");
        for good in [json, ("content-type", "Application/JSON; charset=UTF-8")] {
            assert_eq!(code("{}", &[good]), None, "{good:?}");
        }
        assert_eq!(code("", &[]), None, "no body needs no type");
        for bad in
            ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json;v=1"]
        {
            assert_eq!(code("{}", &[("content-type", bad)]), Some(ErrorCode::UnsupportedMediaType), "{bad}");
        }
        for bad in [&[][..], &[json, json], &[json, ("content-encoding", "gzip")]] {
            assert_eq!(code("{}", bad), Some(ErrorCode::UnsupportedMediaType), "{bad:?}");
        }
    }
}
