//! Facts about this node in this mesh, each learnt once and kept: who we are, whom we trust, how long the
//! broker remembers.

use std::fmt;
use std::str::FromStr;

use model::error::Malformed;
use model::outbox::DedupeWindow;
use model::{Entropy, MemberId, MeshId, NodeKey, NodeName};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, named_params};
use sqlite::StorageError;

use crate::{Mailbox, sql};

/// Names one life of an inbox, so that the broker marks what it may have pushed to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InboxEpoch(u64);

/// A fact to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The mesh this node joined.
    Mesh(MeshId),
    /// This node's name there.
    Node(NodeName),
    /// Whose signature the broker's answers carry; another one later parks the mesh.
    IssuerKey(NodeKey),
    /// The home's person, for whom the command line acts.
    Person(MemberId),
    /// How long the broker remembers ids, as last negotiated: valid offline too.
    DedupeWindow(DedupeWindow),
    /// Whether the inbox was rebuilt from a damaged file, and may lack what the broker's logs still hold.
    InboxRebuilt(bool),
}

/// What is known so far; a fact is absent until the join or the first negotiation told it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// See [`Fact::Mesh`].
    pub mesh: Option<MeshId>,
    /// See [`Fact::Node`].
    pub node: Option<NodeName>,
    /// See [`Fact::IssuerKey`].
    pub issuer_key: Option<NodeKey>,
    /// See [`Fact::Person`].
    pub person: Option<MemberId>,
    /// See [`Fact::DedupeWindow`].
    pub dedupe_window: Option<DedupeWindow>,
    /// See [`Fact::InboxRebuilt`].
    pub inbox_rebuilt: bool,
}

pub(crate) const INBOX_EPOCH: &str = "inbox_epoch";
pub(crate) const INBOX_EPOCH_BEFORE: &str = "inbox_epoch_before";
const MESH: &str = "mesh_id";
const NODE: &str = "node_id";
const ISSUER_KEY: &str = "issuer_key";
const PERSON: &str = "person";
const DEDUPE_WINDOW: &str = "dedupe_window_days";
pub(crate) const INBOX_REBUILT: &str = "inbox_rebuilt";
const PERMANENT: &str = "permanent";

impl Mailbox {
    /// Keeps facts, all or none; a newer one takes the place of an older.
    pub async fn put_meta(&self, facts: Vec<Fact>) -> Result<(), StorageError> {
        self.db
            .write("mailbox.meta", move |conn| {
                for fact in &facts {
                    let (key, text) = fact.stored();
                    put(conn, key, &text)?;
                }
                Ok(())
            })
            .await
    }

    /// What is known so far.
    pub async fn meta(&self) -> Result<Meta, StorageError> {
        self.db.read("mailbox.meta", read).await
    }
}

impl Fact {
    fn stored(&self) -> (&'static str, String) {
        match self {
            Fact::Mesh(mesh) => (MESH, mesh.to_string()),
            Fact::Node(node) => (NODE, node.to_string()),
            Fact::IssuerKey(key) => (ISSUER_KEY, key.to_string()),
            Fact::Person(person) => (PERSON, person.to_string()),
            Fact::DedupeWindow(DedupeWindow::Days(days)) => (DEDUPE_WINDOW, days.to_string()),
            Fact::DedupeWindow(DedupeWindow::Permanent) => (DEDUPE_WINDOW, PERMANENT.to_owned()),
            Fact::InboxRebuilt(rebuilt) => (INBOX_REBUILT, rebuilt.to_string()),
        }
    }
}

impl InboxEpoch {
    pub(crate) fn draw(entropy: &dyn Entropy) -> InboxEpoch {
        InboxEpoch(entropy.next_u64())
    }
}

impl fmt::Display for InboxEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for InboxEpoch {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::new("inbox_epoch", "16 hexadecimal characters");
        let plain = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = plain.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(InboxEpoch).ok_or_else(malformed)
    }
}

pub(crate) fn put(conn: &Connection, key: &str, text: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql::META_PUT)?.execute(named_params! {":k": key, ":v": text})?;
    Ok(())
}

/// A stored text as its type; what does not parse was not written by us.
pub(crate) fn parse<T>(text: &str) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    Ok(text.parse().map_err(FromSqlError::other)?)
}

fn read(conn: &Connection) -> Result<Meta, StorageError> {
    let mut meta = Meta::default();
    let mut statement = conn.prepare_cached(sql::META_ALL)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, text): (String, String) = (row.get("k")?, row.get("v")?);
        match key.as_str() {
            MESH => meta.mesh = Some(parse(&text)?),
            NODE => meta.node = Some(parse(&text)?),
            ISSUER_KEY => meta.issuer_key = Some(parse(&text)?),
            PERSON => meta.person = Some(parse(&text)?),
            DEDUPE_WINDOW if text == PERMANENT => meta.dedupe_window = Some(DedupeWindow::Permanent),
            DEDUPE_WINDOW => meta.dedupe_window = Some(DedupeWindow::Days(parse(&text)?)),
            INBOX_REBUILT => meta.inbox_rebuilt = parse(&text)?,
            // The epoch has its own door, and a newer program may keep more than we know.
            _ => {}
        }
    }
    Ok(meta)
}
