//! A node's mailbox as the campaign asks it: sends, arrivals, settlements and members.

use mailbox::{
    Arrival, Arrived, ClaimRequest, LaneFrame, Mailbox, Member, NewRow, OutboxKey, PutMemberError, RowAnswer,
    Settlement,
};
use model::outbox::{Answer, BrokerReceipt, Status, Verdict};
use model::{
    ConversationId, Fingerprint, MemberId, MemberKind, MessageId, OsEntropy, Priority, RowId, Timestamp,
    limits,
};
use sqlite::fault::Disk;
use sqlite::{Db, StorageError};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testkit::disk::campaign::{
    AdjustBounds, OpenStore, PendingAnswer, Request, StoreAnswer, StoreDriver, answer_to,
};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
const SENDER: MemberId = MemberId::from_bytes([0xA; 16]);
const RECIPIENT: MemberId = MemberId::from_bytes([0xB; 16]);
const CONVERSATION: ConversationId = ConversationId::from_bytes([0xC; 16]);
/// Lanes that sends are spread over.
const LANES: u64 = 3;

/// Mailboxes, one a folder.
#[derive(Default)]
pub struct MailboxDriver {
    /// Which frame a request settles: it is claimed only once.
    frames: Mutex<HashMap<PathBuf, Arc<Frames>>>,
}

#[derive(Default)]
struct Frames {
    claimed: Mutex<Vec<LaneFrame>>,
    of_request: Mutex<BTreeMap<u64, LaneFrame>>,
}

struct OpenMailbox {
    db: Db,
    mailbox: Mailbox,
    frames: Arc<Frames>,
}

impl StoreDriver for MailboxDriver {
    fn name(&self) -> &'static str {
        "mailbox"
    }

    fn kinds(&self) -> u64 {
        5
    }

    fn open(&self, folder: &Path, bounds: &AdjustBounds, disk: Disk) -> Result<Box<dyn OpenStore>, String> {
        let mut options = Mailbox::options(folder.join("mailbox.db")).fault(disk);
        options.bounds = bounds(options.bounds);
        let db = Db::open(options).map_err(|error| error.to_string())?;
        let mailbox = Mailbox::over(db.clone(), Arc::new(OsEntropy)).map_err(|error| error.to_string())?;
        let frames = Arc::clone(held(&self.frames).entry(folder.to_owned()).or_default());
        // What was claimed in an earlier life is not on the wire any more.
        held(&frames.claimed).clear();
        Ok(Box::new(OpenMailbox { db, mailbox, frames }))
    }
}

impl OpenMailbox {
    async fn accept(&self, request: Request) -> Result<StoreAnswer, StorageError> {
        let accepted = self.mailbox.accept(row(request)).await?;
        Ok(match accepted.verdict {
            Verdict::Insert | Verdict::Queued | Verdict::Inflight | Verdict::Duplicate(_) => {
                StoreAnswer::Stored
            }
            Verdict::Conflict(conflict) => StoreAnswer::Denied(format!("{conflict:?}")),
        })
    }

    async fn record(&self, request: Request) -> Result<StoreAnswer, StorageError> {
        let recorded = self.mailbox.record(vec![arrived(request)], NOW, NOW).await?;
        Ok(match recorded.first().map(|row| &row.arrival) {
            Some(Arrival::Fresh { .. } | Arrival::Duplicate { .. }) => StoreAnswer::Stored,
            other => StoreAnswer::Denied(format!("{other:?}")),
        })
    }

    /// Settles a frame that an earlier request claimed; without one it claims some, which is not judged.
    async fn settle(&self, request: Request) -> Result<StoreAnswer, StorageError> {
        let known = held(&self.frames.of_request).get(&request.number).cloned();
        let frame = known.or_else(|| held(&self.frames.claimed).pop());
        let Some(frame) = frame else {
            let claimed = self.mailbox.claim(claim()).await?;
            held(&self.frames.claimed).extend(claimed.frames);
            return Ok(StoreAnswer::NotPut);
        };
        held(&self.frames.of_request).insert(request.number, frame.clone());
        self.mailbox.settle(settlement(frame)).await?;
        Ok(StoreAnswer::Stored)
    }

    async fn member(&self, request: Request) -> StoreAnswer {
        match self.mailbox.put_member(member(request)).await {
            Ok(()) => StoreAnswer::Stored,
            Err(PutMemberError::Storage(error)) => StoreAnswer::of(&error),
            Err(error) => StoreAnswer::Denied(error.to_string()),
        }
    }
}

impl OpenStore for OpenMailbox {
    fn db(&self) -> &Db {
        &self.db
    }

    fn ask(&self, request: Request) -> PendingAnswer<'_> {
        Box::pin(async move {
            let answer = match request.kind {
                0 | 1 => self.accept(request).await,
                2 => self.record(request).await,
                3 => self.settle(request).await,
                _ => Ok(self.member(request).await),
            };
            answer.unwrap_or_else(|error| StoreAnswer::of(&error))
        })
    }

    fn holds(&self, request: Request) -> Result<bool, String> {
        let held = match request.kind {
            0 | 1 => {
                let row = row(request);
                let key = OutboxKey::Client { sender: SENDER, client_message_id: row.client_message_id };
                answer_to(self.mailbox.outbox_row(key))?.map(|found| found.is_some())
            }
            2 => answer_to(self.mailbox.inbox_by_id(message(request.number)))?.map(|rows| !rows.is_empty()),
            3 => {
                let Some(frame) = held(&self.frames.of_request).get(&request.number).cloned() else {
                    return Ok(false);
                };
                let Some(first) = frame.rows.first() else { return Ok(false) };
                let key =
                    OutboxKey::Client { sender: SENDER, client_message_id: first.client_message_id.clone() };
                let found = answer_to(self.mailbox.outbox_row(key))?;
                found.map(|row| row.is_some_and(|row| row.state.status() == Status::Done))
            }
            _ => {
                let found = answer_to(self.mailbox.member_by_name(member(request).name))?;
                found.map(|member| member.is_some())
            }
        };
        held.map_err(|error| error.to_string())
    }
}

fn row(request: Request) -> NewRow {
    let lane = format!("#lane-{}", request.number % LANES);
    NewRow {
        row: RowId::mint(NOW, &OsEntropy),
        sender: SENDER,
        client_message_id: format!("request-{}", request.number).parse().expect("a short word is an id"),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        to_asked: lane.clone(),
        lane,
        payload: body(request),
        deliver_by: None,
        enqueued_at: NOW,
    }
}

fn arrived(request: Request) -> Arrived {
    Arrived {
        id: message(request.number),
        sender: SENDER,
        client_message_id: format!("arrived-{}", request.number).parse().expect("a short word is an id"),
        recipient: RECIPIENT,
        conversation: CONVERSATION,
        history_id: request.number,
        envelope: body(request),
        deliver_by: None,
        read_at: None,
        redelivered: false,
        priority: Priority::Next,
        again: None,
    }
}

fn claim() -> ClaimRequest {
    ClaimRequest {
        now: NOW,
        broker_now: NOW,
        max_age: Duration::from_secs(144 * 3600),
        lanes_max: limits::LANES_IN_FLIGHT_MAX,
        busy: Vec::new(),
        after: None,
    }
}

/// The broker accepted the whole frame.
fn settlement(frame: LaneFrame) -> Settlement {
    let answer = |seq: u64| {
        Answer::Accepted(BrokerReceipt {
            broker_message_id: message(seq),
            conversation: CONVERSATION,
            history_id: seq,
            accepted_at: NOW,
        })
    };
    let answers = frame.rows.iter().map(|row| RowAnswer {
        seq: row.seq,
        fingerprint: row.fingerprint,
        answer: answer(row.seq),
        error_text: None,
        retry_after: None,
    });
    let answers = answers.collect();
    Settlement { lane: frame.lane, lease: frame.lease, now: NOW, broker_now: NOW, answers, random: 0 }
}

fn member(request: Request) -> Member {
    let name = format!("member-{}", request.number).parse().expect("a short word is a name");
    Member {
        id: MemberId::from_bytes(u128::from(request.number).to_be_bytes()),
        name,
        kind: MemberKind::Agent,
    }
}

fn message(number: u64) -> MessageId {
    MessageId::from_bytes(u128::from(number).to_be_bytes())
}

fn body(request: Request) -> Vec<u8> {
    vec![b'x'; request.bytes]
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
