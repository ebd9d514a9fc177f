//! `GET /v1/explain/{id}`

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use net::respond::{Refusal, json};
use serde::Deserialize;
use wire::local::ACT_AS_HEADER;

use super::send::line;
use crate::explain;
use crate::ground::{Caller, Ground};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    mesh: Option<String>,
}

pub(super) async fn about(
    State(ground): State<Arc<Ground>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked: Asked = super::query(&uri)?;
    let actor = ground.act(&caller, asked.mesh.as_deref(), line(&headers, ACT_AS_HEADER)?)?;
    let sees_all = matches!(caller, Caller::Operator);
    Ok(json(StatusCode::OK, &explain::explain(&ground, &actor, &id, sees_all).await?))
}
