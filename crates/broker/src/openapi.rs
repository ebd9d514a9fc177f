//! `/openapi.json`: the fabric door's HTTP surface, from the handlers that serve it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;
use net::respond;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi as Document, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use wire::ErrorBody;
use wire::chat::{FromSubscriber, ToSubscriber};

use crate::broker::Shared;

/// The document before the routes add theirs.
#[derive(OpenApi)]
#[openapi(
    info(title = "Postrider", description = "The fabric door: the way in, direct messages, conversations, health."),
    components(schemas(ErrorBody, FromSubscriber, ToSubscriber)),
    modifiers(&Tokens)
)]
struct Surface;

/// API tokens as the document names them.
struct Tokens;

/// How every address refuses: JSON with a code of `docs/errors.md`.
pub(crate) struct Refusals;

/// The routes, and one more that shows what they are.
pub(crate) fn with_document(routes: OpenApiRouter<Arc<Shared>>) -> Router<Arc<Shared>> {
    let (router, mut document) =
        OpenApiRouter::with_openapi(Surface::openapi()).merge(routes).split_for_parts();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let document: Arc<Document> = Arc::new(document);
    router.route("/openapi.json", get(async move || show(&document)))
}

fn show(document: &Document) -> Response {
    respond::json(StatusCode::OK, document)
}

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
        let cookie = ApiKey::Cookie(ApiKeyValue::new("pr_<mesh>"));
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
    }
}

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let content = || ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
        let refusal = |description: &str| {
            let response =
                ResponseBuilder::new().description(description).content("application/json", content());
            RefOr::T(response.build())
        };
        BTreeMap::from([
            ("4XX".to_owned(), refusal("Refused: the code says why and whether to ask again.")),
            ("5XX".to_owned(), refusal("Not now; ask again with the same id.")),
        ])
    }
}
