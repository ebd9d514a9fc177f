//! A mailbox on a temporary file, in inline mode, with hands for the usual steps. A crash is a file
//! abandoned without closing and opened again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mailbox::{
    Accepted, Arrived, ClaimRequest, Claimed, LaneFrame, LaneKey, Mailbox, NewRow, OutboxKey, OutboxRow,
    RowAnswer, Settled, Settlement,
};
use model::outbox::{Answer, BrokerReceipt, Status};
use model::{
    ClientMessageId, ConversationId, ErrorCode, Fingerprint, MemberId, MessageId, RowId, Timestamp, limits,
};
use sqlite::fault::{Disk, Synced};
use sqlite::{Db, Options};
use testkit::SeededEntropy;

pub const HOUR: Duration = Duration::from_secs(3600);
/// Of a broker that remembers for a week.
pub const MAX_AGE: Duration = Duration::from_secs(144 * 3600);

pub const ANN: MemberId = MemberId::from_bytes([0xA; 16]);
pub const BOB: MemberId = MemberId::from_bytes([0xB; 16]);

pub struct Desk {
    folder: tempfile::TempDir,
    db: Db,
    entropy: Arc<SeededEntropy>,
    pub mailbox: Mailbox,
    /// This host's clock.
    pub now: Timestamp,
    /// The broker's, an hour ahead, so that mixing them up shows.
    pub broker_now: Timestamp,
}

impl Desk {
    pub fn open() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let entropy = Arc::new(SeededEntropy::new(7));
        let (db, mailbox) = open(&folder, &entropy);
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        Desk { folder, db, entropy, mailbox, now, broker_now: now + HOUR }
    }

    /// The process dies and starts again; what was not committed is gone.
    pub fn crash(&mut self) {
        self.db.abandon();
        let (db, mailbox) = open(&self.folder, &self.entropy);
        (self.db, self.mailbox) = (db, mailbox);
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("mailbox.db")
    }

    pub fn advance(&mut self, span: Duration) {
        self.now = self.now + span;
        self.broker_now = self.broker_now + span;
    }

    pub fn row_id(&self) -> RowId {
        RowId::mint(self.now, &*self.entropy)
    }

    pub fn lease(&self) -> model::LeaseToken {
        model::LeaseToken::mint(self.now, &*self.entropy)
    }

    /// A message whose payload is its text.
    pub fn draft(&self, sender: MemberId, id: &str, lane: &str, text: &str) -> NewRow {
        NewRow {
            row: self.row_id(),
            sender,
            client_message_id: client_id(id),
            fingerprint: fingerprint(lane, text),
            to_asked: lane.to_owned(),
            lane: lane.to_owned(),
            payload: text.as_bytes().to_vec(),
            deliver_by: None,
            enqueued_at: self.now,
        }
    }

    pub async fn send(&self, sender: MemberId, id: &str, lane: &str) -> Accepted {
        self.mailbox.accept(self.draft(sender, id, lane, id)).await.unwrap()
    }

    pub fn request(&self) -> ClaimRequest {
        ClaimRequest {
            now: self.now,
            broker_now: self.broker_now,
            max_age: MAX_AGE,
            lanes_max: limits::LANES_IN_FLIGHT_MAX,
            busy: Vec::new(),
            after: None,
        }
    }

    pub async fn claim(&self) -> Claimed {
        self.mailbox.claim(self.request()).await.unwrap()
    }

    /// The one frame there is.
    pub async fn frame(&self) -> LaneFrame {
        let mut frames = self.claim().await.frames;
        assert_eq!(frames.len(), 1, "{frames:?}");
        frames.remove(0)
    }

    /// Settles a frame with one answer per row; rows beyond the answers get none.
    pub async fn settle(&self, frame: &LaneFrame, answers: &[Answer]) -> Settled {
        let answers = frame.rows.iter().zip(answers).map(|(row, answer)| RowAnswer {
            seq: row.seq,
            fingerprint: row.fingerprint,
            answer: *answer,
            error_text: None,
            retry_after: None,
        });
        self.settle_rows(frame, answers.collect()).await
    }

    pub async fn settle_rows(&self, frame: &LaneFrame, answers: Vec<RowAnswer>) -> Settled {
        let settlement = Settlement {
            lane: frame.lane.clone(),
            lease: frame.lease,
            now: self.now,
            broker_now: self.broker_now,
            answers,
            random: 0,
        };
        self.mailbox.settle(settlement).await.unwrap()
    }

    /// The broker accepts a whole frame.
    pub async fn deliver(&self, frame: &LaneFrame) -> Settled {
        let answers: Vec<Answer> = frame.rows.iter().map(|row| self.accepted(row.seq)).collect();
        self.settle(frame, &answers).await
    }

    /// The broker's word that it has row `seq`.
    pub fn accepted(&self, seq: u64) -> Answer {
        Answer::Accepted(self.receipt(seq))
    }

    pub fn receipt(&self, seq: u64) -> BrokerReceipt {
        BrokerReceipt {
            broker_message_id: message(seq),
            conversation: ConversationId::from_bytes([0xC; 16]),
            history_id: seq,
            accepted_at: self.broker_now,
        }
    }

    pub async fn row(&self, sender: MemberId, id: &str) -> OutboxRow {
        let key = OutboxKey::Client { sender, client_message_id: client_id(id) };
        self.mailbox.outbox_row(key).await.unwrap().unwrap_or_else(|| panic!("{id} has a row"))
    }

    pub async fn status(&self, sender: MemberId, id: &str) -> Status {
        self.row(sender, id).await.state.status()
    }

    /// Message `n` for `recipient`, from Ann.
    pub fn mail(&self, n: u64, recipient: MemberId) -> Arrived {
        Arrived {
            id: message(n),
            sender: ANN,
            client_message_id: client_id(&format!("m{n}")),
            recipient,
            conversation: ConversationId::from_bytes([0xC; 16]),
            history_id: n,
            envelope: format!("mail {n}").into_bytes(),
            deliver_by: None,
            read_at: None,
            redelivered: false,
            priority: model::Priority::Next,
            again: None,
        }
    }
}

fn open(folder: &tempfile::TempDir, entropy: &Arc<SeededEntropy>) -> (Db, Mailbox) {
    let db = Db::open_inline(options(folder.path())).unwrap();
    let mailbox = Mailbox::over(db.clone(), entropy.clone()).unwrap();
    (db, mailbox)
}

/// These tests are about rules and crashes of the process; that a commit outlives the power is proven for the
/// engine itself. Without the sync they take seconds instead of minutes, and a machine that stalls for a moment
/// shall not end a read.
pub fn options(folder: &Path) -> Options {
    let unsynced = Disk { synced: Synced::Normal, ..Disk::default() };
    let mut options = Mailbox::options(folder.join("mailbox.db")).fault(unsynced);
    options.bounds.read_max = Duration::from_secs(60);
    options.bounds.busy_wait = Duration::from_secs(90);
    options
}

pub fn refused(code: ErrorCode) -> Answer {
    Answer::Refused(code)
}

pub fn client_id(text: &str) -> ClientMessageId {
    text.parse().unwrap()
}

pub fn message(n: u64) -> MessageId {
    MessageId::from_bytes(u128::from(n).to_be_bytes())
}

pub fn lane(sender: MemberId, lane: &str) -> LaneKey {
    LaneKey { sender, lane: lane.to_owned() }
}

pub fn fingerprint(lane: &str, text: &str) -> Fingerprint {
    let mut bytes = [0; 32];
    for (place, byte) in lane.bytes().chain([0]).chain(text.bytes()).enumerate() {
        bytes[place % 32] ^= byte.rotate_left(u32::try_from(place / 32 % 8).unwrap());
    }
    Fingerprint::from_bytes(bytes)
}

/// Client ids of a frame's rows, in order.
pub fn ids(frame: &LaneFrame) -> Vec<&str> {
    frame.rows.iter().map(|row| row.client_message_id.as_str()).collect()
}
