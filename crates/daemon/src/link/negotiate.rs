//! The first words on a link: what this node needs and holds, what the broker offers and knows.

use std::time::Duration;

use mailbox::{Fact, Member};
use model::{BrokerClock, MemberKind, Timestamp, limits};
use net::socket::{Close, Ended, Reader, Writer};
use sqlite::{StorageError, fault};
use tokio::time::timeout;
use wire::auth::MemberRef;
use wire::link::{
    DoneWitness, FEATURE_CONNECTIONS, FEATURE_DEDUPE, FEATURE_PAYLOAD, InboxWentBack, NegotiationRequest,
    NegotiationResponse, ToBroker, ToNode,
};

use super::live::Live;
use super::terms::{Terms, TermsRefused};
use super::verdict::LinkEnd;
use super::wayin::Opened;
use crate::mesh::Mesh;

/// A difference worth a word: deadlines follow the broker's clock, logs the machine's.
const CLOCK_SKEW_WORTH_A_WORD: Duration = Duration::from_secs(30);

/// The planted bug: a node that keeps its mark of receipt to itself, as earlier versions did. An inbox that went back to
/// an older copy stays unnoticed.
const MARK_UNTOLD: &str = "daemon.mark_of_receipt_untold";

/// A link both sides agreed on.
pub(crate) struct Negotiated {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) live: Live,
    /// The broker lost rows this node knows to be accepted.
    pub(crate) restored: bool,
    /// The broker's version, for people.
    pub(crate) broker_version: String,
}

/// Agrees on terms and keeps what the broker told.
pub(crate) async fn negotiate(mesh: &Mesh, opened: Opened, version: &str) -> Result<Negotiated, LinkEnd> {
    let Opened { socket, answer } = opened;
    let (mut reader, writer) = socket.split();
    let request = request(mesh, version, answer.now).await?;
    let request = ToBroker::FeatureNegotiationRequest(request);
    writer.send(request.text()).await.map_err(|error| LinkEnd::Lost(error.to_string()))?;
    let response = timeout(limits::NEGOTIATION_TIMEOUT, response(&mut reader)).await;
    let response = response.unwrap_or_else(|_| Err(LinkEnd::Lost("no answer to the negotiation".into())))?;
    let clock = BrokerClock::heard(response.now, &*mesh.clock);
    let terms = match Terms::of(&response) {
        Ok(terms) => terms,
        Err(refused) => {
            writer.close(Close::new(refused.close_code(), &reason(&refused)));
            return Err(LinkEnd::Terms(refused));
        }
    };
    warn_of_skew(mesh, &response);
    let left = note_went_back(mesh, &response).await?;
    let told = response.members.into_iter().chain(answer.member).filter_map(member).collect();
    keep(mesh, terms, response.mesh.id, told).await?;
    let live = Live::new(writer.clone(), clock, response.link_epoch, left);
    Ok(Negotiated { reader, writer, live, restored: response.restored, broker_version: response.version })
}

async fn request(
    mesh: &Mesh,
    version: &str,
    broker_now: Timestamp,
) -> Result<NegotiationRequest, StorageError> {
    let members = mesh.everybody().into_iter().map(|member| MemberRef {
        id: member.id,
        name: member.name,
        kind: member.kind.to_string(),
    });
    let max_age = mesh.terms().max_age();
    let newest = mesh.mailbox.newest_done(limits::RESTORE_WITNESSES_MAX, broker_now, max_age).await?;
    let done = newest.into_iter().map(|witness| DoneWitness {
        sender: witness.sender,
        client_message_id: witness.client_message_id,
        broker_message_id: witness.broker_message_id,
        accepted_at: Some(witness.accepted_at),
    });
    Ok(NegotiationRequest {
        require: vec![FEATURE_DEDUPE.to_owned(), FEATURE_CONNECTIONS.to_owned()],
        optional: vec![FEATURE_PAYLOAD.to_owned()],
        inbox_epoch: mesh.mailbox.inbox_epoch().to_string(),
        inbox_epoch_before: mesh.mailbox.inbox_epoch_before().map(|epoch| epoch.to_string()),
        members: members.collect(),
        done: done.collect(),
        version: version.to_owned(),
        received: if fault::bug(MARK_UNTOLD) { None } else { Some(mesh.mailbox.received_upto().await?) },
    })
}

async fn response(reader: &mut Reader) -> Result<NegotiationResponse, LinkEnd> {
    loop {
        let text = reader.next().await.map_err(closed)?;
        match ToNode::parse(&text) {
            Ok(ToNode::FeatureNegotiationResponse(response)) => return Ok(response),
            // A broker holds its traffic until both sides agreed; what precedes a close only explains it.
            Ok(frame) => tracing::debug!(?frame, "a frame before the negotiation's answer"),
            Err(error) => return Err(LinkEnd::Lost(error.to_string())),
        }
    }
}

/// What the end of a socket means for its link.
pub(super) fn closed(ended: Ended) -> LinkEnd {
    match ended {
        Ended::Closed(Close { code, reason }) => LinkEnd::Closed { code, reason },
        Ended::ClosedHere | Ended::Refused(_) | Ended::Silent | Ended::Broken(_) => {
            LinkEnd::Lost(ended.to_string())
        }
    }
}

fn reason(refused: &TermsRefused) -> String {
    let (kind, feature) = match refused {
        TermsRefused::Unavailable { feature } => ("feature_unavailable", feature.as_str()),
        TermsRefused::ParamInvalid { feature, .. } => ("feature_param_invalid", *feature),
        TermsRefused::BelowFloor { feature, .. } => ("feature_param_below_floor", *feature),
    };
    serde_json::json!({"kind": kind, "feature": feature}).to_string()
}

fn warn_of_skew(mesh: &Mesh, response: &NegotiationResponse) {
    let here = mesh.clock.now();
    let skew = here.since(response.now).max(response.now.since(here));
    if skew > CLOCK_SKEW_WORTH_A_WORD {
        tracing::warn!(mesh = mesh.slug, skew_s = skew.as_secs(), "this clock and the broker's differ");
    }
}

fn member(told: MemberRef) -> Option<Member> {
    let kind: MemberKind = told.kind.parse().ok()?;
    Some(Member { id: told.id, name: told.name, kind })
}

/// Keeps what the broker says of older files; answers how many messages this link brings again because of one.
async fn note_went_back(mesh: &Mesh, response: &NegotiationResponse) -> Result<u64, StorageError> {
    if let Some(ledger) = &response.ledger_went_back {
        let noted = mailbox::LedgerWentBack {
            noticed_at: ledger.noticed_at,
            ends_at: ledger.ends_at,
            upto: ledger.upto,
            noticed_by: ledger.noticed_by.clone(),
            sent_again: 0,
        };
        mesh.mailbox.note_ledger_went_back(noted).await?;
    }
    let Some(inbox) = response.inbox_went_back else { return Ok(0) };
    let InboxWentBack { noticed_at, from, to, left } = inbox;
    mesh.mailbox.note_inbox_went_back(noticed_at, from, to, left).await?;
    if left > 0 {
        tracing::warn!(
            mesh = mesh.slug,
            from,
            to,
            left,
            "the inbox went back to an older copy; its mail comes again"
        );
    }
    Ok(left)
}

async fn keep(
    mesh: &Mesh,
    terms: Terms,
    mesh_id: model::MeshId,
    told: Vec<Member>,
) -> Result<(), StorageError> {
    let terms = terms.under(mesh.mailbox.meta().await?.dedupe_window);
    mesh.mailbox.put_meta(vec![Fact::Mesh(mesh_id), Fact::DedupeWindow(terms.dedupe)]).await?;
    mesh.set_terms(terms);
    mesh.learn_members(told).await
}
