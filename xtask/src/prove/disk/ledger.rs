//! The broker's books as the campaign asks them: messages accepted through a link, acks of deliveries, and invites.

use ledger::{
    Ack, LaneSubmission, Ledger, Link, LinkError, MailRow, MeshSetup, NewInvite, Outcome, Policies, Role,
    SQLITE_SCHEMA, SecretHash, SqliteLedger, StorageError, Submission, Via,
};
use ledger_rounds::join;
use model::{ClientMessageId, DeliveryRung, Fingerprint, MemberId, OsEntropy, SystemClock, Timestamp};
use sqlite::fault::Disk;
use sqlite::{Bounds, Db, Options};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use testkit::disk::campaign::{
    AdjustBounds, OpenStore, PendingAnswer, Request, StoreAnswer, StoreDriver, answer_to,
};

const FILE: &str = "ledger.db";
/// Messages to the second home that wait for their acks when a trial begins.
const MAIL: u64 = 40;

/// Ledgers, one a folder; each begins as a copy of one with two homes in it.
pub struct LedgerDriver {
    begun: TempDir,
    sender: MemberId,
    near: Link,
    far: Link,
    /// Which mail a request acks.
    acked: Mutex<HashMap<PathBuf, Arc<Acked>>>,
}

type Acked = Mutex<BTreeMap<u64, MailRow>>;

struct OpenLedger {
    ledger: SqliteLedger,
    sender: MemberId,
    near: Link,
    far: Link,
    mail: Mutex<Vec<MailRow>>,
    acked: Arc<Acked>,
}

impl LedgerDriver {
    /// Makes the books that each trial begins with.
    pub fn new() -> anyhow::Result<Self> {
        let begun = tempfile::tempdir()?;
        let bounds = Bounds { lone_commit_max: std::time::Duration::ZERO, ..Bounds::default() };
        let db = Db::open(Options::new(begun.path().join(FILE), SQLITE_SCHEMA).bounds(bounds))?;
        let ledger = SqliteLedger::with(db.clone(), Arc::new(SystemClock::start()), Arc::new(OsEntropy));
        let made = answer_to(async {
            ledger.setup(MeshSetup { slug: "home".into(), policies: Policies::default() }).await?;
            let (near, sender) = join(&ledger, "near", Role::Owner).await?;
            let (far, _) = join(&ledger, "far", Role::Member).await?;
            for number in 0..MAIL {
                let message = submission("@far", &format!("mail-{number}"), 90)?;
                let lane = lane(&near, sender, message);
                ledger.accept(lane).await?;
            }
            anyhow::Ok((near, far, sender))
        });
        let (near, far, sender) = made.map_err(anyhow::Error::msg)??;
        db.close_blocking();
        Ok(Self { begun, sender, near, far, acked: Mutex::default() })
    }
}

impl StoreDriver for LedgerDriver {
    fn name(&self) -> &'static str {
        "ledger"
    }

    fn kinds(&self) -> u64 {
        4
    }

    fn open(&self, folder: &Path, bounds: &AdjustBounds, disk: Disk) -> Result<Box<dyn OpenStore>, String> {
        let path = folder.join(FILE);
        if !path.exists() {
            std::fs::copy(self.begun.path().join(FILE), &path).map_err(|error| error.to_string())?;
        }
        // As the product opens it.
        let product = Bounds { readers_here: 2, ..Bounds::default() };
        let options = Options::new(&path, SQLITE_SCHEMA).bounds(bounds(product)).fault(disk);
        let db = Db::open(options).map_err(|error| error.to_string())?;
        let ledger = SqliteLedger::with(db, Arc::new(SystemClock::start()), Arc::new(OsEntropy));
        let mail = answer_to(ledger.mail(&self.far, &[], 100))?;
        let acked = Arc::clone(held(&self.acked).entry(folder.to_owned()).or_default());
        Ok(Box::new(OpenLedger {
            ledger,
            sender: self.sender,
            near: self.near.clone(),
            far: self.far.clone(),
            // Read on the failing disk, or not at all: then no ack is put.
            mail: Mutex::new(mail.unwrap_or_default()),
            acked,
        }))
    }
}

impl OpenLedger {
    async fn accept(&self, request: Request) -> StoreAnswer {
        let Ok(message) = submission("#campaign", &format!("request-{}", request.number), request.bytes)
        else {
            return StoreAnswer::NotPut;
        };
        match self.ledger.accept(lane(&self.near, self.sender, message)).await {
            Ok(outcomes) => match outcomes.first() {
                Some(Outcome::Admitted { .. }) => StoreAnswer::Stored,
                other => StoreAnswer::Denied(format!("{other:?}")),
            },
            Err(error) => word_of_link(&error),
        }
    }

    async fn ack(&self, request: Request) -> StoreAnswer {
        let known = held(&self.acked).get(&request.number).cloned();
        let Some(row) = known.or_else(|| held(&self.mail).pop()) else { return StoreAnswer::NotPut };
        let ack = Ack {
            id: row.id,
            recipient: row.recipient,
            rung: DeliveryRung::Delivered,
            at: row.created_at,
            read_at: None,
            place: None,
        };
        held(&self.acked).insert(request.number, row);
        match self.ledger.ack(&Via::Link(self.far.clone()), vec![ack]).await {
            Ok(_) => StoreAnswer::Stored,
            Err(error) => word_of_link(&error),
        }
    }

    async fn invite(&self, request: Request) -> StoreAnswer {
        let expires_at = Timestamp::from_micros(i64::MAX / 2);
        let invite =
            NewInvite { hash: invite_hash(request), expected_node: None, role: Role::Member, expires_at };
        match self.ledger.create_invite(invite).await {
            Ok(()) => StoreAnswer::Stored,
            // PendingAnswer again after it was stored.
            Err(StorageError::Sqlite(sqlite::StorageError::Sql { source, .. }))
                if source.to_string().contains("UNIQUE") =>
            {
                StoreAnswer::Stored
            }
            Err(error) => word_of(&error),
        }
    }
}

impl OpenStore for OpenLedger {
    fn db(&self) -> &Db {
        self.ledger.db()
    }

    fn ask(&self, request: Request) -> PendingAnswer<'_> {
        Box::pin(async move {
            match request.kind {
                0 | 1 => self.accept(request).await,
                2 => self.ack(request).await,
                _ => self.invite(request).await,
            }
        })
    }

    fn holds(&self, request: Request) -> Result<bool, String> {
        match request.kind {
            0 | 1 => {
                let id: ClientMessageId =
                    format!("request-{}", request.number).parse().map_err(|error| format!("{error}"))?;
                let known = answer_to(self.ledger.known(self.sender, &id))?;
                known.map(|known| known.is_some()).map_err(|error| error.to_string())
            }
            2 => {
                let Some(row) = held(&self.acked).get(&request.number).cloned() else { return Ok(false) };
                let rungs = answer_to(self.ledger.rungs(row.id))?.map_err(|error| error.to_string())?;
                Ok(rungs.iter().any(|(_, rung)| *rung == DeliveryRung::Delivered))
            }
            _ => {
                let invites = answer_to(self.ledger.invites())?.map_err(|error| error.to_string())?;
                Ok(invites.iter().any(|invite| invite.hash == invite_hash(request)))
            }
        }
    }
}

fn word_of_link(error: &LinkError) -> StoreAnswer {
    match error {
        LinkError::Storage(error) => word_of(error),
        LinkError::Refused(refused) => StoreAnswer::Denied(refused.to_string()),
    }
}

fn word_of(error: &StorageError) -> StoreAnswer {
    match error {
        StorageError::Sqlite(error) => StoreAnswer::of(error),
        other => StoreAnswer::Denied(other.to_string()),
    }
}

fn lane(link: &Link, sender: MemberId, message: Submission) -> LaneSubmission {
    LaneSubmission { via: Via::Link(link.clone()), sender, messages: vec![message] }
}

fn submission(to: &str, id: &str, bytes: usize) -> anyhow::Result<Submission> {
    Ok(Submission {
        client_message_id: id.parse()?,
        fingerprint: Fingerprint::from_bytes([7; 32]),
        to: to.parse()?,
        mentions: Vec::new(),
        expects_input: false,
        send_deadline: None,
        deliver_by: None,
        envelope: vec![b'x'; bytes],
    })
}

fn invite_hash(request: Request) -> SecretHash {
    let mut bytes = [0x5a; 32];
    bytes[..8].copy_from_slice(&request.number.to_be_bytes());
    SecretHash(bytes)
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
