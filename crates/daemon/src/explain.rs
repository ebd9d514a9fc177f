//! Where is it, and why: this node's own rows, the broker's books, the homes involved and this home's relay, put
//! together.
//!
//! - Nothing is changed by asking.
//! - Each part names its observer; whoever could not be asked is named too.
//! - An agent is told of its own messages; the home's owner of all that are at home here.

mod compose;
mod copy;
mod find;
mod relay;
mod sentence;

use net::respond::Refusal;
use wire::ask::{BrokerExplained, Question};
use wire::local::Explanation;

use crate::ground::{Actor, Ground};
use crate::mesh::LinkState;
use crate::{questions, view};

use compose::{Link, Parts};
use find::Found;

/// Everything `actor` may know about `id`: a client id, a message's id, an outbox row, the id or key of a relayed write,
/// or the tail of one.
pub(crate) async fn explain(
    ground: &Ground,
    actor: &Actor,
    id: &str,
    sees_all: bool,
) -> Result<Explanation, Refusal> {
    let mesh = &actor.mesh;
    let mut found = find::find(actor, id, sees_all).await?;
    let asker = found.out.as_ref().map(|row| row.sender).or(found.ins.first().map(|row| row.recipient));
    let question = Question::Explain { id: found.broker_key().unwrap_or_else(|| id.to_owned()) };
    let (broker, relay): (Result<BrokerExplained, Refusal>, _) = tokio::join!(
        questions::ask(mesh, asker.unwrap_or(actor.member.id), question),
        relay::ask(ground, id, sees_all)
    );
    if let Ok(told) = &broker {
        find::complete(actor, &mut found, told, sees_all).await?;
    }
    let ins = find::with_turns(mesh, found.ins).await?;
    Ok(compose::compose(Parts {
        id: id.to_owned(),
        node: mesh.node.to_string(),
        link: link(mesh.link().state),
        sender: found.out.as_ref().map(|row| view::name_of(mesh, row.sender).to_string()),
        out: found.out,
        ins,
        broker: broker.map_err(|refusal| refusal.refused().code.code().to_owned()),
        broker_now: mesh.broker_now(),
        relay,
    }))
}

impl Found {
    /// How the broker knows what was found here.
    fn broker_key(&self) -> Option<String> {
        let out = self.out.as_ref().map(|row| row.client_message_id.to_string());
        out.or(self.ins.first().map(|row| row.id.to_string()))
    }
}

fn link(state: LinkState) -> Link {
    match state {
        LinkState::Live => Link::Live,
        LinkState::Away { reason } => Link::Away { reason },
        LinkState::Parked { reason, .. } => Link::Parked { reason },
    }
}
