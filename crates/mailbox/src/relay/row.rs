//! An envelope as it stands in the file.

use model::relay::{Ending, Outcome, Precondition, Status};
use model::route_class::{OrderKey, RouteClass};
use model::{Fingerprint, LeaseToken, RowId, Timestamp};
use rusqlite::Row;

use crate::column::get;

/// One waiting, moving or ended write, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its place in the file.
    pub local_seq: u64,
    /// Its id.
    pub envelope_id: RowId,
    /// The key every attempt carries.
    pub idempotency_key: String,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// The method.
    pub method: String,
    /// The path as it was asked.
    pub path: String,
    /// The query as it was asked.
    pub query: Option<String>,
    /// Its class.
    pub route_class: RouteClass,
    /// What its order is kept over.
    pub order_key: OrderKey,
    /// The condition it was stored with.
    pub precondition: Option<Precondition>,
    /// The condition it is sent with, once it was.
    pub sent_precondition: Option<Precondition>,
    /// The write it waited behind when it was stored.
    pub base_envelope: Option<RowId>,
    /// Who asked.
    pub source: Source,
    /// Which upstream it was stored for.
    pub upstream_id: Option<String>,
    /// Where it is.
    pub status: Status,
    /// What is known of the upstream's side.
    pub outcome: Outcome,
    /// How it will end once its key was asked about.
    pub ending: Option<Ending>,
    /// Its caller heard the upstream itself.
    pub told: bool,
    /// Tries so far.
    pub attempts: u32,
    /// Not before.
    pub next_attempt_at: Timestamp,
    /// The attempt under way.
    pub lease: Option<LeaseToken>,
    /// When it was stored.
    pub queued_at: Timestamp,
    /// The same in the upstream's time.
    pub created_at: Timestamp,
    /// When it first went on the wire.
    pub first_attempt_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it turned out to be committed although it was withdrawn.
    pub late_ack_at: Option<Timestamp>,
    /// The last answer in words.
    pub last_error: Option<String>,
    /// What the upstream said at the end.
    pub response: Response,
    /// The tag of the upstream's own state, in a conflict.
    pub theirs_etag: Option<String>,
    /// What took its place.
    pub superseded_by: Option<RowId>,
    /// Whose place it took.
    pub supersedes: Option<RowId>,
    /// What a person decided.
    pub resolution: Option<String>,
    /// The same words came from the same caller a moment before.
    pub possible_duplicate_of: Option<RowId>,
    /// Length of its body.
    pub body_bytes: u64,
}

/// Who asked, in the caller's own words; never a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its agent.
    pub agent: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// On whose behalf.
    pub principal: Option<String>,
}

/// What is kept of an upstream's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Its status.
    pub status: Option<u16>,
    /// The resource's tag.
    pub etag: Option<String>,
    /// Its code.
    pub code: Option<String>,
    /// The resource's id.
    pub resource: Option<String>,
}

impl Envelope {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            local_seq: row.get("local_seq")?,
            envelope_id: get(row, "envelope_id")?,
            idempotency_key: row.get("idempotency_key")?,
            fingerprint: get(row, "fingerprint")?,
            method: row.get("method")?,
            path: row.get("path")?,
            query: row.get("query")?,
            route_class: get(row, "route_class")?,
            order_key: get(row, "order_key")?,
            precondition: get(row, "precondition")?,
            sent_precondition: get(row, "sent_precondition")?,
            base_envelope: get(row, "base_envelope")?,
            source: Source {
                agent: row.get("source_agent")?,
                session: row.get("source_session")?,
                principal: row.get("principal_hint")?,
            },
            upstream_id: row.get("upstream_id")?,
            status: get(row, "status")?,
            outcome: get(row, "outcome")?,
            ending: get(row, "ending")?,
            told: row.get("told")?,
            attempts: row.get("attempts")?,
            next_attempt_at: get(row, "next_attempt_at")?,
            lease: get(row, "lease_token")?,
            queued_at: get(row, "queued_at")?,
            created_at: get(row, "created_at")?,
            first_attempt_at: get(row, "first_attempt_at")?,
            ended_at: get(row, "ended_at")?,
            late_ack_at: get(row, "late_ack_at")?,
            last_error: row.get("last_error")?,
            response: Response {
                status: row.get("response_status")?,
                etag: row.get("response_etag")?,
                code: row.get("response_code")?,
                resource: row.get("response_resource")?,
            },
            theirs_etag: row.get("theirs_etag")?,
            superseded_by: get(row, "superseded_by")?,
            supersedes: get(row, "supersedes")?,
            resolution: row.get("resolution")?,
            possible_duplicate_of: get(row, "possible_duplicate_of")?,
            body_bytes: row.get("body_bytes")?,
        })
    }
}
