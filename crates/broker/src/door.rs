//! The fabric door: its guard, its routes, and messages before them.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::Request;
use hyper::body::Incoming;
use net::guard::{Policy, caught, protect, with_fallbacks};
use net::respond::parse_json;
use net::serve::{Answers, Connection};

use crate::broker::Shared;
use crate::direct::{post, posted_to};

/// Whoever answers at the fabric door. Messages do not go through the routes, whose futures each of them would pay for.
#[derive(Clone)]
pub struct Callers {
    shared: Arc<Shared>,
    policy: Arc<Policy>,
    routes: Router,
}

impl Answers for Callers {
    async fn answer(&self, connection: &Connection, request: Request<Incoming>) -> Response {
        match posted_to(&request) {
            // Boxed: what moves with a request shall be small.
            Some(mesh) => Box::pin(self.take(connection, mesh.to_owned(), request)).await,
            None => self.routes.answer(connection, request).await,
        }
    }
}

impl Callers {
    pub(crate) fn new(shared: Arc<Shared>, policy: Policy, routes: Router) -> Self {
        let policy = Arc::new(policy);
        Self { shared, routes: protect(with_fallbacks(routes), policy.clone()), policy }
    }

    async fn take(&self, connection: &Connection, mesh: String, request: Request<Incoming>) -> Response {
        let posted = async {
            self.policy.check(Some(connection.caller()), &request)?;
            let caller = self.shared.caller(Some(connection), request.method(), request.headers()).await?;
            let (head, body) = request.into_parts();
            let request = parse_json(&self.policy.read(&head.headers, body).await?)?;
            post(&self.shared, caller, &mesh, &head.headers, request).await
        };
        caught(posted.map(|posted| posted.unwrap_or_else(IntoResponse::into_response))).await
    }
}
