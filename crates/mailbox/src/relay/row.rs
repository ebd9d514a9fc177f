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

macro_rules! columns {
    ($($column:ident $name:literal)*) => {
        /// The table's columns in their order. A row is read by them: looking forty names up in forty columns costs
        /// more than the statement.
        #[derive(Clone, Copy)]
        #[expect(dead_code, reason = "a place is taken by every column, also by one that only statements use")]
        enum Column { $($column,)* }

        #[cfg(test)]
        const NAMES: &[&str] = &[$($name,)*];
    };
}

columns! {
    LocalSeq "local_seq"
    Place "place"
    EnvelopeId "envelope_id"
    IdempotencyKey "idempotency_key"
    Fingerprint "fingerprint"
    Method "method"
    Path "path"
    Query "query"
    RouteClass "route_class"
    Scope "scope"
    OrderKey "order_key"
    Barrier "barrier"
    Precondition "precondition"
    SentPrecondition "sent_precondition"
    BaseEnvelope "base_envelope"
    SourceAgent "source_agent"
    SourceSession "source_session"
    PrincipalHint "principal_hint"
    UpstreamId "upstream_id"
    Status "status"
    Outcome "outcome"
    Ending "ending"
    Attempts "attempts"
    NextAttemptAt "next_attempt_at"
    LeaseToken "lease_token"
    LeaseUntil "lease_until"
    QueuedAt "queued_at"
    CreatedAt "created_at"
    FirstAttemptAt "first_attempt_at"
    EndedAt "ended_at"
    LateAckAt "late_ack_at"
    LastError "last_error"
    ResponseStatus "response_status"
    ResponseEtag "response_etag"
    ResponseCode "response_code"
    ResponseResource "response_resource"
    TheirsEtag "theirs_etag"
    SupersededBy "superseded_by"
    Supersedes "supersedes"
    Resolution "resolution"
    PossibleDuplicateOf "possible_duplicate_of"
    BodyBytes "body_bytes"
    Body "body"
    Named "named"
    Sorted "sorted"
}

impl Envelope {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            local_seq: row.get(Column::LocalSeq as usize)?,
            envelope_id: get(row, Column::EnvelopeId as usize)?,
            idempotency_key: row.get(Column::IdempotencyKey as usize)?,
            fingerprint: get(row, Column::Fingerprint as usize)?,
            method: row.get(Column::Method as usize)?,
            path: row.get(Column::Path as usize)?,
            query: row.get(Column::Query as usize)?,
            route_class: get(row, Column::RouteClass as usize)?,
            order_key: get(row, Column::OrderKey as usize)?,
            precondition: get(row, Column::Precondition as usize)?,
            sent_precondition: get(row, Column::SentPrecondition as usize)?,
            base_envelope: get(row, Column::BaseEnvelope as usize)?,
            source: Source {
                agent: row.get(Column::SourceAgent as usize)?,
                session: row.get(Column::SourceSession as usize)?,
                principal: row.get(Column::PrincipalHint as usize)?,
            },
            upstream_id: row.get(Column::UpstreamId as usize)?,
            status: get(row, Column::Status as usize)?,
            outcome: get(row, Column::Outcome as usize)?,
            ending: get(row, Column::Ending as usize)?,
            attempts: row.get(Column::Attempts as usize)?,
            next_attempt_at: get(row, Column::NextAttemptAt as usize)?,
            lease: get(row, Column::LeaseToken as usize)?,
            queued_at: get(row, Column::QueuedAt as usize)?,
            created_at: get(row, Column::CreatedAt as usize)?,
            first_attempt_at: get(row, Column::FirstAttemptAt as usize)?,
            ended_at: get(row, Column::EndedAt as usize)?,
            late_ack_at: get(row, Column::LateAckAt as usize)?,
            last_error: row.get(Column::LastError as usize)?,
            response: Response {
                status: row.get(Column::ResponseStatus as usize)?,
                etag: row.get(Column::ResponseEtag as usize)?,
                code: row.get(Column::ResponseCode as usize)?,
                resource: row.get(Column::ResponseResource as usize)?,
            },
            theirs_etag: row.get(Column::TheirsEtag as usize)?,
            superseded_by: get(row, Column::SupersededBy as usize)?,
            supersedes: get(row, Column::Supersedes as usize)?,
            resolution: row.get(Column::Resolution as usize)?,
            possible_duplicate_of: get(row, Column::PossibleDuplicateOf as usize)?,
            body_bytes: row.get(Column::BodyBytes as usize)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_in_the_order_of_the_table() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        conn.execute_batch(super::super::RELAY_SCHEMA.sum).unwrap();
        let all = conn.prepare("SELECT * FROM envelope").unwrap();
        assert_eq!(all.column_names().collect::<Vec<_>>(), NAMES);
    }
}
