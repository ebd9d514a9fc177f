//! A person's browser signs in with the key of a link, and gets tickets for its sockets.
//!
//! - The key stands in the address's fragment, which no request carries; the page posts it. One use, fifteen minutes.
//! - The session is a cookie no script can read and no other site can send.
//! - Secrets are kept as hashes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue, StatusCode};
use ledger::{ManageError, Member, Session};
use model::{ErrorCode, MemberId, Timestamp, limits};
use net::Secret;
use net::respond::{self, Json, Refusal};
use net::serve::Connection;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::session::{SessionAnswer, SessionRequest, SignIn, TicketAnswer};

use crate::ask::member_ref;
use crate::broker::{Shared, storage_refused};
use crate::credential::{cookie_name, session_cookie};
use crate::direct::Caller;
use crate::openapi::Refusals;
use crate::wayin::{hash_of, knock};

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(sign_in, who, sign_out)).routes(routes!(ticket))
}

/// A key with which the member's browser may sign in once.
pub(crate) async fn create_sign_in(shared: &Shared, member: MemberId) -> Result<SignIn, ManageError> {
    let key = Secret::mint(shared.entropy.as_ref());
    let expires_at = shared.ledger.create_sign_in(hash_of(&key), member).await?;
    Ok(SignIn { key: key.reveal().to_owned(), url: shared.config.public_url.clone(), expires_at })
}

/// Signs a browser in: uses the key, sets the cookie.
#[utoipa::path(
    post,
    path = "/v1/session",
    tag = "session",
    request_body = SessionRequest,
    responses((status = 200, body = SessionAnswer), Refusals)
)]
async fn sign_in(
    State(shared): State<Arc<Shared>>,
    connection: Connection,
    Json(request): Json<SessionRequest>,
) -> Result<Response, Refusal> {
    knock(&shared, &connection)?;
    let (key, secret) = (Secret::from(request.key), Secret::mint(shared.entropy.as_ref()));
    let opened = shared.ledger.open_session(hash_of(&key), hash_of(&secret)).await;
    let opened = opened.map_err(|error| storage_refused(&error))?;
    let session = opened.ok_or_else(|| Refusal::plain(ErrorCode::SignInRefused))?;
    connection.authenticated();
    let answer = answer(&shared, session.member, session.expires_at).await?;
    Ok(with_cookie(
        &shared,
        respond::json(StatusCode::OK, &answer),
        secret.reveal(),
        limits::SESSION_TTL.as_secs(),
    ))
}

/// Who is signed in.
#[utoipa::path(
    get,
    path = "/v1/session",
    tag = "session",
    responses((status = 200, body = SessionAnswer), Refusals)
)]
async fn who(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Response, Refusal> {
    let Session { member, expires_at } = signed_in(&shared, &headers).await?;
    Ok(respond::json(StatusCode::OK, &answer(&shared, member, expires_at).await?))
}

/// Signs the browser out, for good.
#[utoipa::path(delete, path = "/v1/session", tag = "session", responses((status = 204), Refusals))]
async fn sign_out(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<Response, Refusal> {
    let ended = shared.ledger.end_session(caller.credential).await;
    if !ended.map_err(|error| storage_refused(&error))? {
        return Err(Refusal::new(ErrorCode::Forbidden, "Only a browser's session can be ended here."));
    }
    Ok(with_cookie(&shared, StatusCode::NO_CONTENT.into_response(), "", 0))
}

/// A ticket for one WebSocket at `/v1/subscribe`.
#[utoipa::path(
    post,
    path = "/v1/tickets",
    tag = "session",
    responses((status = 200, body = TicketAnswer), Refusals),
    security(("token" = ["read"]), ("cookie" = []))
)]
async fn ticket(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<Response, Refusal> {
    let caller = caller.may_read()?;
    let ticket = Secret::mint(shared.entropy.as_ref());
    let stored = shared.ledger.create_socket_ticket(hash_of(&ticket), caller.credential).await;
    let expires_at = stored.map_err(|error| storage_refused(&error))?;
    let answer = TicketAnswer { ticket: ticket.reveal().to_owned(), expires_at };
    Ok(respond::json(StatusCode::OK, &answer))
}

/// The session a request's cookie stands for.
pub(crate) async fn signed_in(shared: &Shared, headers: &HeaderMap) -> Result<Session, Refusal> {
    let unknown = || Refusal::plain(ErrorCode::Unauthorized);
    let secret = session_cookie(headers, shared.mesh.id).ok_or_else(unknown)?;
    let session = shared.ledger.session(hash_of(&secret)).await;
    session.map_err(|error| storage_refused(&error))?.ok_or_else(unknown)
}

async fn answer(shared: &Shared, member: Member, expires_at: Timestamp) -> Result<SessionAnswer, Refusal> {
    let now = shared.ledger.now().await.map_err(|error| storage_refused(&error))?;
    Ok(SessionAnswer {
        member: member_ref(&member),
        role: member.role.word().to_owned(),
        mesh: shared.mesh.clone(),
        expires_at,
        now,
    })
}

fn with_cookie(shared: &Shared, mut answer: Response, value: &str, max_age_s: u64) -> Response {
    let name = cookie_name(shared.mesh.id);
    let secure = if shared.config.secure_page { "; Secure" } else { "" };
    let line = format!("{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}");
    let line = HeaderValue::try_from(line).expect("a minted secret is plain text");
    answer.headers_mut().insert(SET_COOKIE, line);
    answer
}
