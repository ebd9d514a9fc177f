//! `send`: one lane's next messages.

use ledger::{Admission, LinkError};
use model::{ErrorCode, MemberId, MemberName, RowId, To, limits};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::link::{AcceptedRow, Send, SendItem, SendItemRow, SendOutcome, SendResult, Sent, ToNode};
use wire::{ErrorBody, MessageFields, Refused};

use super::end::End;
use super::lanes::{Lanes, Turn};
use super::session::Ctx;
use crate::accept::{Item, Sender, Times, Word};

/// Who sends where, as asked.
pub(crate) type Lane = (MemberId, String);

/// A frame with its place in its lane.
pub(crate) struct Frame {
    n: u64,
    sender: MemberId,
    /// The sender's name, when it is at home here.
    name: Option<MemberName>,
    lane: String,
    messages: Vec<Box<RawValue>>,
    rows: Vec<RowId>,
    turn: Turn,
}

/// As much of an item as its lane needs.
#[derive(Deserialize)]
struct Destination {
    message: DestinationFields,
}

#[derive(Deserialize)]
struct DestinationFields {
    #[serde(with = "wire::text")]
    to: To,
}

impl Frame {
    /// Queues the frame in its lane. Called in the order in which frames arrive.
    pub(crate) async fn enter(ctx: &Ctx, send: Send, lanes: &mut Lanes<Lane>) -> Result<Frame, End> {
        if send.messages.len() > limits::FRAME_MESSAGES_MAX {
            return Err(End::Unreadable { detail: "a send frame has more than 64 messages".to_owned() });
        }
        let rows: Result<Vec<RowId>, serde_json::Error> = send
            .messages
            .iter()
            .map(|raw| serde_json::from_str::<SendItemRow>(raw.get()).map(|item| item.row))
            .collect();
        // Without its row a message cannot even be refused.
        let rows = rows.map_err(|error| End::Unreadable { detail: error.to_string() })?;
        let name = ctx.at_home(send.sender).await.map_err(|error| ctx.link_end(&error))?;
        let lane = lane(name.as_ref(), &send.messages);
        let turn = lanes.enter((send.sender, lane.clone()));
        Ok(Frame { n: send.n, sender: send.sender, name, lane, messages: send.messages, rows, turn })
    }

    /// The frame's answer, after every earlier one of its lane.
    pub(crate) async fn answer(mut self, ctx: &Ctx) -> Result<Vec<String>, LinkError> {
        self.turn.come().await;
        let words = match &self.name {
            Some(name) => {
                let items = self.messages.iter().map(|raw| check(raw, name, &self.lane)).collect();
                ctx.shared.accept_lane(ctx.via(), Sender { id: self.sender, name }, items).await?
            }
            None => vec![Word::Refused(Refused::plain(ErrorCode::NotAtHome)); self.rows.len()],
        };
        let results =
            self.rows.iter().zip(words).map(|(row, word)| SendResult { row: *row, outcome: outcome(word) });
        Ok(vec![ToNode::Sent(Sent { n: self.n, results: results.collect() }).text()])
    }
}

/// The lane of the first message that names one.
fn lane(sender: Option<&MemberName>, messages: &[Box<RawValue>]) -> String {
    let mut destinations =
        messages.iter().filter_map(|raw| serde_json::from_str::<Destination>(raw.get()).ok());
    match (destinations.next(), sender) {
        (Some(Destination { message }), Some(sender)) => message.to.lane(sender),
        (Some(_), None) | (None, _) => String::new(),
    }
}

fn check(raw: &RawValue, sender: &MemberName, lane: &str) -> Result<Item, Refused> {
    let malformed = |error: serde_json::Error| Refused::new(ErrorCode::InvalidRequest, error.to_string());
    let item: SendItem = serde_json::from_str(raw.get()).map_err(malformed)?;
    let fields: MessageFields = serde_json::from_str(item.message.get()).map_err(malformed)?;
    let times = Times::of_node(&fields, item.send_deadline, item.deliver_by)?;
    let checked = Item::check(fields, Some(item.request_fingerprint), times)?;
    if checked.lane(sender) == lane {
        Ok(checked)
    } else {
        Err(Refused::new(ErrorCode::InvalidRequest, "a send frame holds messages of one lane"))
    }
}

fn outcome(word: Word) -> SendOutcome {
    match word {
        Word::Accepted { fingerprint, receipt, admission } => {
            let (status, duplicate, history_available) = match admission {
                Admission::New { .. } => (201, false, true),
                Admission::Duplicate { history_available } => (200, true, history_available),
            };
            SendOutcome::Accepted(AcceptedRow {
                status,
                request_fingerprint: fingerprint,
                broker_message_id: receipt.broker_message_id,
                conversation: receipt.conversation,
                history_id: receipt.history_id,
                created_at: receipt.accepted_at,
                duplicate,
                history_available,
            })
        }
        Word::Refused(refused) => {
            let refused = for_node(refused);
            let status = wire::status::http_status(refused.code);
            SendOutcome::Refused { status, error: ErrorBody::from(refused) }
        }
        Word::NotTried => SendOutcome::NotTried,
    }
}

/// A node sends a row again under its id whatever its fate is. Nodes of earlier versions took `outcome_unknown` for final.
fn for_node(refused: Refused) -> Refused {
    match refused.code {
        ErrorCode::OutcomeUnknown => Refused::plain(ErrorCode::Unavailable),
        _ => refused,
    }
}
