//! Where is it, and why: everything the broker holds about an id, with a verdict, also for ids never seen.
//!
//! Only the sender, a recipient and the mesh's owner are told. To anybody else an id is one that was never seen.
//! The homes involved are asked too, for an owner's unseen id all of them; each part names its observer, or that it
//! could not be asked.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use ledger::{AcceptedFacts, DedupeFacts, DeliveryFacts, Explained, Member, Role, StorageError, Wanted};
use model::admission::KnownState;
use model::{ClientMessageId, NodeName, limits, receipt};
use wire::ask::{
    AnswerResult, BrokerExplained, ExplainedHome, ExplainedRecipient, ExplainedRecord, NodeQuestion,
    NodeRecord,
};

use crate::ask::member_ref;
use crate::broker::Shared;
use crate::webhook;

/// Who speaks in the broker's parts.
const OBSERVER: &str = "broker";

/// All `asker` may know about `id`, a message's or a caller's.
///
/// `asked_from` is the node the question came from: it knows its own part.
pub(crate) async fn explain(
    shared: &Shared,
    asker: &Member,
    id: &str,
    asked_from: Option<&NodeName>,
) -> Result<BrokerExplained, StorageError> {
    let mut found: Vec<Explained> = Vec::new();
    for wanted in wanted(id) {
        for explained in shared.ledger.explain(&wanted).await? {
            if !found.contains(&explained) {
                found.push(explained);
            }
        }
    }
    found.retain(|explained| may_know(asker, explained));
    let homes = ask_homes(shared, whom_to_ask(shared, asker, id, &found, asked_from)).await;
    let mut records: Vec<ExplainedRecord> = found.iter().map(record).collect();
    for record in &mut records {
        if let Some(id) = record.broker_message_id {
            record.webhooks = webhook::explained(shared.ledger.as_ref(), id).await?;
        }
    }
    let verdict = records.first().map_or("never_seen".to_owned(), |record| record.state.clone());
    Ok(BrokerExplained {
        observer: OBSERVER.to_owned(),
        verdict,
        records,
        homes,
        now: shared.ledger.now().await?,
    })
}

/// A UUID may be either kind of id.
fn wanted(id: &str) -> Vec<Wanted> {
    let message = id.parse().ok().map(Wanted::Message);
    let client = id.parse().ok().map(Wanted::Client);
    message.into_iter().chain(client).collect()
}

/// What to ask which node.
type Asking = (NodeName, NodeQuestion);

fn whom_to_ask(
    shared: &Shared,
    asker: &Member,
    id: &str,
    found: &[Explained],
    asked_from: Option<&NodeName>,
) -> Vec<Asking> {
    let mut asking: Vec<Asking> = found.iter().flat_map(about).collect();
    if let (true, Role::Owner, Ok(client_message_id)) =
        (found.is_empty(), asker.role, id.parse::<ClientMessageId>())
    {
        let question =
            NodeQuestion::Explain { client_message_id, sender: None, broker_message_id: id.parse().ok() };
        asking.extend(shared.links.nodes().into_iter().map(|node| (node, question.clone())));
    }
    asking.retain(|(node, _)| Some(node) != asked_from);
    asking.truncate(limits::NODE_QUESTIONS_MAX);
    asking
}

/// The homes of one message: its sender's and its recipients', each once.
fn about(explained: &Explained) -> Vec<Asking> {
    let question = NodeQuestion::Explain {
        client_message_id: explained.client_message_id.clone(),
        sender: Some(explained.sender.id),
        broker_message_id: explained.accepted.as_ref().map(|facts| facts.id),
    };
    let deliveries = explained.accepted.iter().flat_map(|facts| &facts.deliveries);
    let members = std::iter::once(&explained.sender).chain(deliveries.map(|copy| &copy.recipient));
    let homes: BTreeSet<&NodeName> = members.filter_map(|member| member.home.as_ref()).collect();
    homes.into_iter().map(|home| (home.clone(), question.clone())).collect()
}

async fn ask_homes(shared: &Shared, asking: Vec<Asking>) -> Vec<ExplainedHome> {
    join_all(asking.into_iter().map(async |(node, question)| {
        let answer = shared.links.ask(&node, question).await;
        let records = match answer {
            Some(AnswerResult::Ok(value)) => serde_json::from_str::<Vec<NodeRecord>>(value.get()).ok(),
            Some(AnswerResult::Refused { .. }) | None => None,
        };
        let unreachable = records.is_none();
        ExplainedHome { node, records: records.unwrap_or_default(), unreachable }
    }))
    .await
}

fn may_know(asker: &Member, explained: &Explained) -> bool {
    let is_recipient =
        |facts: &AcceptedFacts| facts.deliveries.iter().any(|copy| copy.recipient.id == asker.id);
    asker.role == Role::Owner
        || explained.sender.id == asker.id
        || explained.accepted.as_ref().is_some_and(is_recipient)
}

fn record(explained: &Explained) -> ExplainedRecord {
    let accepted = explained.accepted.as_ref();
    ExplainedRecord {
        sender: member_ref(&explained.sender),
        client_message_id: explained.client_message_id.clone(),
        state: state(explained.dedupe.as_ref()).to_owned(),
        standing: accepted.map(standing),
        fingerprint_prefix: explained.dedupe.map(|facts| facts.known.fingerprint.prefix()),
        broker_message_id: accepted.map(|facts| facts.id),
        conversation: accepted.map(|facts| facts.place.conversation),
        conversation_name: accepted.map(|facts| facts.place.name.to_string()),
        history_id: accepted.map(|facts| facts.history_id),
        accepted_at: accepted.map(|facts| facts.accepted_at),
        deliver_by: accepted.and_then(|facts| facts.deliver_by),
        remembered_until: explained.dedupe.and_then(|facts| facts.expires_at),
        history_available: accepted.is_some(),
        recipients: accepted.map_or_else(Vec::new, |facts| facts.deliveries.iter().map(recipient).collect()),
        webhooks: Vec::new(),
    }
}

fn state(dedupe: Option<&DedupeFacts>) -> &'static str {
    match dedupe.map(|facts| facts.known.state) {
        Some(KnownState::Accepted { .. }) => "accepted",
        Some(KnownState::Retired) => "retired",
        // The window has passed; the message itself may still be there.
        None => "forgotten",
    }
}

fn standing(facts: &AcceptedFacts) -> String {
    let rungs: Vec<_> = facts.deliveries.iter().map(|copy| copy.rung).collect();
    receipt::standing(&rungs).to_string()
}

fn recipient(copy: &DeliveryFacts) -> ExplainedRecipient {
    ExplainedRecipient {
        name: copy.recipient.name.clone(),
        home: copy.recipient.home.as_ref().map(ToString::to_string),
        rung: copy.rung,
        delivered_at: copy.delivered_at,
        notified_at: copy.notified_at,
        engaged_at: copy.engaged_at,
        processed_at: copy.processed_at,
        ended_at: copy.ended_at,
        ended_code: copy.ended_code.clone(),
        read_at: copy.read_at,
    }
}
