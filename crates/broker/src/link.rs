//! `/v1/link`: a node's connection.
//!
//! - A refusal is an HTTP answer before 101; a used ticket is one transaction before it.
//! - Nothing flows before negotiation, which has five seconds.
//! - Frames of one lane are answered in order, lanes side by side; windows push what is not acknowledged.
//! - Every transaction of a link names its epoch: a replaced link writes nothing and is closed with 4003.

mod acks;
mod end;
mod frames;
mod lanes;
mod negotiate;
mod push;
mod questions;
mod registry;
mod send;
mod session;
mod window;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::ConnectionPolicy;
use net::respond::Refusal;
use net::socket::{Socket, Upgrade};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::auth::AUDIENCE_LINK;

use crate::audit::{Event, Kept};
use crate::broker::{Shared, storage_refused};
use crate::openapi::Refusals;
use crate::wayin::{hash_of, refused};

use registry::Seat;

pub(crate) use registry::Links;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(upgrade))
}

/// A node's WebSocket: subprotocols `postrider.v1` and `ticket.<T>`.
#[utoipa::path(get, path = "/v1/link", tag = "link", responses((status = 101), Refusals))]
async fn upgrade(State(shared): State<Arc<Shared>>, upgrade: Upgrade) -> Result<Response, Refusal> {
    let admitted = admit(&shared, &upgrade).await;
    let admitted = admitted
        .inspect_err(|refusal| shared.metrics.connections_rejected.of(refusal.refused().code).add_one())?;
    let stop = upgrade.connection().stopping().clone();
    Ok(match admitted {
        Admitted::Joined(seat) => {
            upgrade.accept(async |socket| session::run(shared, seat, socket, stop).await)
        }
        Admitted::Occupied => upgrade.accept(turn_away),
    })
}

/// The close needs a socket to travel on.
async fn turn_away(socket: Socket) {
    let (mut reader, writer) = socket.split();
    writer.close(end::End::AlreadyConnected.close());
    while reader.next().await.is_ok() {}
}

/// A ticket that opens a socket.
enum Admitted {
    /// It is used, and the node is in: from here on an older link of the node is on its way out.
    Joined(Seat),
    /// It is not used: another connection of the node stays.
    Occupied,
}

async fn admit(shared: &Shared, upgrade: &Upgrade) -> Result<Admitted, Refusal> {
    let ticket = hash_of(&upgrade.ticket()?);
    let mesh = shared.ledger.mesh().await.map_err(|error| storage_refused(&error))?;
    match mesh.policies.connections {
        ConnectionPolicy::PreferNewest => {}
        ConnectionPolicy::PreferOldest => {
            let node =
                shared.ledger.ticket_node(ticket, AUDIENCE_LINK).await.map_err(|error| refused(&error))?;
            if shared.links.is_live(&node) {
                Event::ConcurrentConnection { node: &node, kept: Kept::Oldest }.record();
                return Ok(Admitted::Occupied);
            }
        }
    }
    let joined = shared.ledger.redeem(ticket, AUDIENCE_LINK).await.map_err(|error| refused(&error))?;
    let node = &joined.link.node;
    if joined.first_join {
        Event::NodeJoined { node, person: &joined.person.name }.record();
    }
    if shared.links.is_live(node) {
        Event::ConcurrentConnection { node, kept: Kept::Newest }.record();
    }
    Event::LinkOpened { node, epoch: joined.link.epoch }.record();
    Ok(Admitted::Joined(shared.links.enter(joined.link)))
}
