//! The hub: what agents write about their work, kept as versioned records, each write applied once.
//!
//! | part | for |
//! |---|---|
//! | `call` | the one way in of every write: who → what → known? → under way? → budget → the ledger's transaction |
//! | `records` | reading and deleting, the same for every kind |
//! | `work`, `plan` | making and changing each kind |
//! | `messages` | a message is a broker's accept under the key; what its recipient read |
//! | `keys` | what became of a key; which hub this is; the schemas |
//!
//! Invariants:
//!
//! - A key's record commits with its effect or not at all; only success is recorded.
//! - A known key is answered before any budget is spent and before its body is looked at.
//! - Every answer names the hub that gave it, refusals too.

mod answer;
mod call;
mod keys;
mod messages;
mod plan;
mod records;
mod underway;
mod work;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, patch, post};
use http::HeaderValue;
use http::header::HeaderName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::hub::INSTANCE_HEADER;

use crate::broker::Shared;

pub(crate) use underway::UnderWay;

pub(crate) fn routes(shared: &Arc<Shared>) -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(work::create_progress, records::progress::list))
        .routes(routes!(records::progress::one, records::progress::remove))
        .routes(routes!(work::create_token_event, records::token_events::list))
        .routes(routes!(work::upsert_token_event))
        .routes(routes!(records::token_events::one, records::token_events::remove))
        .routes(routes!(work::create_task, records::tasks::list))
        .routes(routes!(work::sync_statuses))
        .routes(routes!(records::tasks::one, work::patch_task, records::tasks::remove))
        .routes(routes!(plan::create_decision, records::decisions::list))
        .routes(routes!(records::decisions::one, plan::patch_decision, records::decisions::remove))
        .routes(routes!(plan::resolve_decision))
        .routes(routes!(plan::create_workplan, records::workplans::list))
        .routes(routes!(records::workplans::one, plan::patch_workplan, records::workplans::remove))
        .routes(routes!(messages::send, messages::list))
        .routes(routes!(messages::read))
        .routes(routes!(keys::status))
        .routes(routes!(keys::health))
        .routes(routes!(keys::schemas))
        .merge(other_spellings())
        .layer(middleware::from_fn_with_state(Arc::clone(shared), name_instance))
}

/// The same doors without their last slash, and workplans by their older name.
fn other_spellings() -> OpenApiRouter<Arc<Shared>> {
    use records::{decisions, progress, tasks, token_events, workplans};
    OpenApiRouter::new()
        .route("/hub/progress", post(work::create_progress).get(progress::list))
        .route("/hub/token-events", post(work::create_token_event).get(token_events::list))
        .route("/hub/token-events/upsert/", post(work::upsert_token_event))
        .route("/hub/tasks", post(work::create_task).get(tasks::list))
        .route("/hub/tasks/bulk-status-sync/", post(work::sync_statuses))
        .route("/hub/decisions", post(plan::create_decision).get(decisions::list))
        .route("/hub/decisions/{id}/resolve/", post(plan::resolve_decision))
        .route("/hub/workplans", post(plan::create_workplan).get(workplans::list))
        .route("/hub/workstreams", post(plan::create_workplan).get(workplans::list))
        .route("/hub/workstreams/", post(plan::create_workplan).get(workplans::list))
        .route(
            "/hub/workstreams/{id}",
            get(workplans::one).patch(plan::patch_workplan).delete(workplans::remove),
        )
        .route("/hub/messages", post(messages::send).get(messages::list))
        .route("/hub/messages/{id}/read/", patch(messages::read))
        .route("/hub/health/", get(keys::health))
}

async fn name_instance(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let instance = HeaderValue::from_str(&shared.instance()).expect("an id is plain text");
    answer.headers_mut().insert(HeaderName::from_static(INSTANCE_HEADER), instance);
    answer
}

impl Shared {
    /// Which hub this is: all processes over one ledger are one.
    fn instance(&self) -> String {
        self.mesh.id.to_string()
    }
}
