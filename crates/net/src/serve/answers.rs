//! Whoever answers the requests of a door.

use std::convert::Infallible;
use std::future::Future;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use tower::ServiceExt;

use super::Connection;

/// Answers one request after the other, of many connections at once.
pub trait Answers: Clone + Send + Sync + 'static {
    /// The answer to `request`, which came on `connection`.
    fn answer(
        &self,
        connection: &Connection,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response> + Send;
}

/// Its handlers find the connection among a request's extensions.
impl Answers for Router {
    async fn answer(&self, connection: &Connection, request: Request<Incoming>) -> Response {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(connection.clone());
        let answered: Result<Response, Infallible> = self.clone().oneshot(request).await;
        match answered {
            Ok(answer) => answer,
        }
    }
}
