//! What the relay says to its callers and its operator, and how it reads an upstream's answer.

mod explain;

use model::relay::{Answer, CommittedRequest, KeyAnswer};
use model::{ClientMessageId, ErrorCode, Fingerprint, Timestamp, hub};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::local::SendRequest;

pub use explain::{RelayExplained, RelayFound, RelayStep};

/// On every answer: `forwarded` or `queued`.
pub const RELAY_HEADER: &str = "statehub-relay";
/// On reads of a resource with writes that wait.
pub const PENDING_HEADER: &str = "statehub-pending-writes";
/// The key of a write.
pub const KEY_HEADER: &str = "idempotency-key";
/// Who asks, in the caller's own words.
pub const AGENT_HEADER: &str = "statehub-agent";
/// In which session.
pub const SESSION_HEADER: &str = "statehub-session";
/// On whose behalf, when the relay sends with its own credential.
pub const PRINCIPAL_HEADER: &str = "statehub-principal";
/// The local credential of a relay that lends its own.
pub const LOCAL_TOKEN_HEADER: &str = "statehub-relay-token";
/// Where a hub serves its records, whatever address a relay reaches it by.
const HUB_BASE: &str = "/hub";
/// The hub's messages: what is recorded of one is the message's own fingerprint.
const MESSAGES_PATH: &str = "/hub/messages";
/// The status of a write that was sent on, whose answer did not come, and that is not kept.
pub const UNKNOWN_AFTER_SEND: u16 = 504;

/// What an answer to an attempt means for its envelope.
pub fn answer_of(status: u16, code: Option<&str>) -> Answer {
    match status {
        200..=299 => Answer::Committed,
        _ if refuses_credential(status) => Answer::Unauthorized,
        409 if code == Some(ErrorCode::IdempotencyInProgress.code()) => Answer::Busy,
        // Of a copy whose key is retired nothing more can come; the key itself says how it ends.
        409 if code == Some(ErrorCode::IdempotencyKeyRetired.code()) => Answer::Refused,
        409 | 412 => Answer::Conflict,
        422 if code == Some(ErrorCode::IdempotencyKeyExpired.code()) => Answer::KeyExpired,
        408 | 425 | 429 | 500..=599 => Answer::Busy,
        _ => Answer::Refused,
    }
}

/// Whether an answer to a live write says that the upstream is away rather than what it thinks of the write.
pub const fn is_outage(status: u16) -> bool {
    matches!(status, 502..=504)
}

/// Whether an answer speaks of the relay's own credential.
pub const fn refuses_credential(status: u16) -> bool {
    matches!(status, 401 | 403)
}

/// Whether an upstream without the question about keys gave this answer to it.
pub const fn lacks_fence(status: u16) -> bool {
    matches!(status, 400 | 404 | 405 | 410 | 501)
}

/// The answer to a stored write: pending evidence, not a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedReceipt {
    /// `queued`.
    pub status: String,
    /// False: the upstream has said nothing yet.
    pub committed: bool,
    /// `not_sent` or `unknown`.
    pub outcome: String,
    /// Its id here.
    pub envelope_id: String,
    /// The key it is sent under.
    pub idempotency_key: String,
    /// `append` or `replace`.
    pub route_class: String,
    /// What its order is kept over.
    pub order_key: String,
    /// When it was stored.
    pub queued_at: String,
    /// Older writes it waits for.
    pub queued_behind: u64,
    /// The same words came from the same caller a moment before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub possible_duplicate_of: Option<String>,
}

/// The upstream's word on a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyStatus {
    /// `committed`, `retired`, `absent` or `unknown`.
    pub state: String,
    /// Of the request that was committed under it. Upstreams that do not say so are older, or not ours.
    #[serde(default)]
    pub fingerprint: Option<String>,
    /// When that was recorded, in the upstream's time.
    #[serde(default)]
    pub recorded_at: Option<String>,
}

impl KeyStatus {
    /// As the rules need it.
    pub fn answer(&self) -> KeyAnswer {
        let named = self.fingerprint.as_deref().and_then(|text| text.parse().ok());
        let recorded_at = self.recorded_at.as_deref().and_then(|at| at.parse().ok());
        match self.state.as_str() {
            "committed" => {
                KeyAnswer::Committed(named.map(|fingerprint| CommittedRequest { fingerprint, recorded_at }))
            }
            "retired" => KeyAnswer::Retired,
            _ => KeyAnswer::Unknown,
        }
    }
}

/// What a hub records of a write that is sent to it: its own form of the path, and a message's own fingerprint.
/// Nothing for a body that no hub takes.
pub fn hub_fingerprint(method: &str, path: &str, query: Option<&str>, body: &[u8]) -> Option<Fingerprint> {
    let path = hub::canonical_path(&format!("{HUB_BASE}{path}"));
    if method == "POST" && path.trim_end_matches('/') == MESSAGES_PATH {
        let id: ClientMessageId = "any".parse().ok()?;
        let request: SendRequest = serde_json::from_slice(body).ok()?;
        let draft = request.into_fields(id).ok()?.into_draft(Timestamp::default()).ok()?;
        return Some(Fingerprint::of(&draft));
    }
    let value = serde_json::from_slice(body).ok()?;
    Some(hub::request_fingerprint(method, &path, query, Some(&value)))
}

/// The versions of records that an answer about a batch names: those it made, or those that stood in its way.
pub fn versions_of(said: &Value) -> Vec<(String, String)> {
    let lists = [(said.get("tasks"), "version"), (said.get("refused"), "current_version")];
    let named = |record: &Value, name: &str| {
        let id = record.get("id")?.as_str()?.to_owned();
        Some((id, format!("\"{}\"", record.get(name)?.as_u64()?)))
    };
    let of = |(list, name): (Option<&Value>, &'static str)| {
        let records = list.and_then(Value::as_array).cloned().unwrap_or_default();
        // One that cannot be read makes the whole list unreadable.
        records.iter().map(|record| named(record, name)).collect::<Option<Vec<_>>>().unwrap_or_default()
    };
    lists.into_iter().flat_map(of).collect()
}

/// How a relay stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayStatus {
    /// Where writes go.
    pub upstream: String,
    /// Which one it is, as far as it said.
    pub upstream_id: Option<String>,
    /// Whether nothing went unanswered since its last answer. Before anything was asked it is true.
    pub reachable: bool,
    /// When it last answered; nothing when it never did since this relay's start.
    pub last_answered_at: Option<String>,
    /// Tries since then that reached nobody.
    pub unanswered_since: u32,
    /// Why the last of them did not.
    pub unanswered_because: Option<String>,
    /// For how long it has counted as away: from the third try in a row that reached nobody.
    pub away_seconds: Option<u64>,
    /// Why nothing is replayed, when a person must look.
    pub paused: Option<String>,
    /// Where a damaged outbox was set aside.
    pub set_aside: Option<String>,
    /// What became of an outbox that went back to an older copy, while that is recent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went_back: Option<String>,
    /// Why nothing is stored, when only live traffic passes.
    pub forward_only: Option<String>,
    /// The storage error after which nothing is stored until the relay starts anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Envelopes that wait or are on the wire.
    pub queued: u64,
    /// Of them: no byte left.
    pub not_sent: u64,
    /// Of them: they may have been committed.
    pub unknown: u64,
    /// Of them: they wait for a person's word on a conflict.
    pub blocked: u64,
    /// When the oldest of them was stored.
    pub oldest_queued_at: Option<String>,
    /// `old` from seven days on, `last` from twelve.
    pub age_alarm: Option<String>,
    /// Writes that may have been sent and are too old to be sent again by themselves; the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_old: Vec<TooOldWrite>,
    /// Clashes a person decides.
    pub conflict: u64,
    /// Refused for good.
    pub rejected: u64,
    /// Past their age.
    pub expired: u64,
    /// Withdrawn.
    pub cancelled: u64,
    /// Replaced.
    pub superseded: u64,
    /// Committed in the last day.
    pub done: u64,
}

/// A write whose key the upstream may have forgotten: a person decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooOldWrite {
    /// Its id.
    pub envelope_id: String,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// When it was stored.
    pub queued_at: String,
    /// `queued` until the upstream was asked about its key, then `expired`.
    pub status: String,
    /// `unknown`: it may have been applied. `not_committed`: it was not.
    pub outcome: String,
}

/// One envelope as an operator sees it. No secret is in it: none was ever stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeView {
    /// Its place in the file.
    pub local_seq: u64,
    /// Its id.
    pub envelope_id: String,
    /// Its key.
    pub idempotency_key: String,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query.
    pub query: Option<String>,
    /// `append` or `replace`.
    pub route_class: String,
    /// What its order is kept over.
    pub order_key: String,
    /// The condition it is sent under.
    pub precondition: Option<String>,
    /// The write it waited behind.
    pub base_envelope: Option<String>,
    /// The caller's agent.
    pub agent: Option<String>,
    /// The caller's session.
    pub session: Option<String>,
    /// On whose behalf.
    pub principal_hint: Option<String>,
    /// The upstream it is for.
    pub upstream_id: Option<String>,
    /// Where it is.
    pub status: String,
    /// What is known of the upstream's side.
    pub outcome: String,
    /// How it will end once its key was asked about.
    pub ending: Option<String>,
    /// Tries so far.
    pub attempts: u32,
    /// When it is tried next.
    pub next_attempt_at: Option<String>,
    /// When it was stored.
    pub queued_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// When it turned out to be committed after it was withdrawn.
    pub late_ack_at: Option<String>,
    /// The last answer in words.
    pub last_error: Option<String>,
    /// The upstream's status.
    pub response_status: Option<u16>,
    /// The resource's tag after it.
    pub response_etag: Option<String>,
    /// The upstream's code.
    pub response_code: Option<String>,
    /// What took its place.
    pub superseded_by: Option<String>,
    /// Whose place it took.
    pub supersedes: Option<String>,
    /// What a person decided.
    pub resolution: Option<String>,
    /// The same words a moment before.
    pub possible_duplicate_of: Option<String>,
    /// Length of its body.
    pub body_bytes: u64,
    /// What was there when it was asked, when bodies were asked for and it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Value>,
    /// Why that cannot be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_unknown: Option<String>,
    /// What was asked for, when bodies were asked for and it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mine: Option<Value>,
    /// What the upstream has, in a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Value>,
    /// The tag of what the upstream has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs_etag: Option<String>,
}

/// A page of envelopes, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvelopePage {
    /// The rows.
    pub envelopes: Vec<EnvelopeView>,
}

/// Asks for a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// Take the upstream as the right one although it says to be another.
    #[serde(default)]
    pub force_upstream: bool,
}

/// Asks for a new try of one envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// A possible double is accepted.
    #[serde(default)]
    pub force_duplicate: bool,
}

/// A person's word on a conflict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// `keep` (mine, on the version that was seen), `drop` (theirs stands) or `edit`.
    pub choice: String,
    /// The tag of the state the person saw.
    #[serde(default)]
    pub seen_etag: Option<String>,
    /// The edited body.
    #[serde(default)]
    pub body: Option<Value>,
}

/// What an act did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acted {
    /// `cancelled`, `cancelling`, `due`, `done` or `superseded`.
    pub did: String,
    /// The envelope now.
    pub envelope: EnvelopeView,
    /// What took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<EnvelopeView>,
    /// What is still true and may surprise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// An instant as it is printed.
pub fn instant(at: Timestamp) -> String {
    at.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_meaning_for_a_replay() {
        for (status, code, expected) in [
            (200, None, Answer::Committed),
            (201, None, Answer::Committed),
            (204, None, Answer::Committed),
            (409, Some("idempotency_key_reused"), Answer::Conflict),
            (409, Some("state_conflict"), Answer::Conflict),
            (409, None, Answer::Conflict),
            (412, None, Answer::Conflict),
            (409, Some("idempotency_in_progress"), Answer::Busy),
            (409, Some("idempotency_key_retired"), Answer::Refused),
            (408, None, Answer::Busy),
            (425, None, Answer::Busy),
            (429, None, Answer::Busy),
            (500, None, Answer::Busy),
            (503, None, Answer::Busy),
            (401, None, Answer::Unauthorized),
            (403, None, Answer::Unauthorized),
            (400, None, Answer::Refused),
            (404, None, Answer::Refused),
            (422, None, Answer::Refused),
            (422, Some("idempotency_key_expired"), Answer::KeyExpired),
            (302, None, Answer::Refused),
        ] {
            assert_eq!(answer_of(status, code), expected, "{status} {code:?}");
        }
    }

    #[test]
    fn the_versions_of_a_batch_are_read_whole_or_not_at_all() {
        let of = |text: &str| versions_of(&serde_json::from_str(text).unwrap());
        let pair = |id: &str, tag: &str| (id.to_owned(), tag.to_owned());
        for (text, expected) in [
            (
                r#"{"tasks":[{"id":"a","version":2},{"id":"b","version":7}]}"#,
                vec![pair("a", "\"2\""), pair("b", "\"7\"")],
            ),
            (
                r#"{"error":"state_conflict","refused":[{"id":"a","current_version":3}]}"#,
                vec![pair("a", "\"3\"")],
            ),
            (r#"{"refused":[{"id":"a","current_version":3},{"id":"b","error":"not_found"}]}"#, vec![]),
            (r#"{"tasks":"many"}"#, vec![]),
            ("[]", vec![]),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn only_gateway_answers_are_an_outage() {
        let outages: Vec<u16> = (400..600).filter(|status| is_outage(*status)).collect();
        assert_eq!(outages, [502, 503, 504]);
    }
}
