//! The one table of texts a client may match.
//!
//! - A code never changes its meaning or class; new facts get new codes.
//! - The courier asks a code for its [`Class`] and nothing else.
//! - The HTTP status of each code stands in `wire`.

use std::fmt;

/// What a caller should do about a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The same request will be refused again.
    Permanent,
    /// The same request may pass later.
    Transient,
    /// It depends on something a person or another message may change: tried for a while, then given up.
    Conditional,
}

/// A value that does not have the form its field asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {expected}")]
pub struct Malformed {
    /// The field's name on the wire.
    pub field: &'static str,
    /// What would have been right.
    pub expected: &'static str,
}

impl Malformed {
    /// `field` must be `expected`.
    pub const fn new(field: &'static str, expected: &'static str) -> Self {
        Self { field, expected }
    }
}

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident $code:literal $class:ident $remedy:literal;)*) => {
        /// A named refusal. `docs/errors.md` is generated from this table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[doc = $doc])+ $variant,)* }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The text on the wire.
            pub const fn code(self) -> &'static str {
                match self { $(ErrorCode::$variant => $code,)* }
            }

            /// What to do about it.
            pub const fn class(self) -> Class {
                match self { $(ErrorCode::$variant => Class::$class,)* }
            }

            /// One sentence: what it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(ErrorCode::$variant => concat!($($doc),+).trim_ascii(),)* }
            }

            /// One sentence: what helps.
            pub const fn remedy(self) -> &'static str {
                match self { $(ErrorCode::$variant => $remedy,)* }
            }
        }
    };
}

error_codes! {
    /// The request does not have the form this door asks for.
    InvalidRequest "invalid_request" Permanent "Correct the field the message names and ask again.";
    /// The credential is missing or wrong.
    Unauthorized "unauthorized" Conditional "Send the door's token in the Authorization header.";
    /// The caller is known but may not do this.
    Forbidden "forbidden" Permanent "Ask as a member who may, or ask the mesh's owner.";
    /// The Host header names another place.
    HostRefused "host_refused" Permanent "Use the address the door listens on.";
    /// A web page of another origin asked.
    OriginRefused "origin_refused" Permanent "Only the product's own page may ask from a browser.";
    /// A credential stood in the address, where logs would keep it.
    TokenInUrl "token_in_url" Permanent "Send it in the Authorization header, and rotate it: it may be in a log.";
    /// The body is not declared as application/json, or is compressed.
    UnsupportedMediaType "unsupported_media_type" Permanent "Send plain JSON with content-type application/json.";
    /// The body, meta or frame is over its bound.
    TooLarge "too_large" Permanent "Shorten it; larger things belong in a file the message names.";
    /// The request's head is over its bound.
    HeadTooLarge "head_too_large" Permanent "Shorten the address and the headers.";
    /// There is nothing at this address.
    NotFound "not_found" Permanent "Check the path or the id.";
    /// This address does not take this method.
    MethodNotAllowed "method_not_allowed" Permanent "Check the method.";
    /// The request took too long to arrive.
    RequestTimeout "request_timeout" Transient "Send it again on a faster connection.";
    /// Too many requests of this connection are under way.
    DaemonBusy "daemon_busy" Transient "Wait for answers before asking more.";
    /// Too many event streams are open.
    TooManyStreams "too_many_streams" Transient "Close one, or read by long poll.";
    /// The id was already used for another message, or for one that was given up.
    IdempotencyKeyReused "idempotency_key_reused" Permanent "Leave the id out, or choose a new one.";
    /// The disk is nearly full; nothing was stored and the id is not used.
    InsufficientStorage "insufficient_storage" Transient "Free disk space, then ask again with the same id.";
    /// The store has more work than it may queue; nothing was stored.
    StorageBusy "storage_busy" Transient "Ask again with the same id after the Retry-After.";
    /// The store had stopped after a disk error before this request; nothing was stored.
    StorageStopped "storage_stopped" Transient "Check the disk, then restart the process.";
    /// Another process reads the file, so that the store's log cannot start over; nothing was stored.
    LogFull "log_full" Transient "End the process that the message names, then ask again with the same id.";
    /// The broker did not answer in time.
    BrokerUnreachable "broker_unreachable" Transient "Wait until the link is back; postrider status shows it.";
    /// No daemon answers on the home's socket.
    DaemonNotRunning "daemon_not_running" Transient "Start it: postrider up";
    /// The row is on the wire right now.
    RowInflight "row_inflight" Transient "Wait for its answer.";
    /// The row is retired already.
    RowAborted "row_aborted" Permanent "postrider daemon outbox inspect shows what took its place.";
    /// The broker has this message; another copy would double it.
    AlreadyAccepted "already_accepted" Permanent "Nothing is left to do.";
    /// It is unknown whether the request took effect: its commit or its answer was lost.
    OutcomeUnknown "outcome_unknown" Transient "Ask again with the same id. To requeue under another id, accept a possible double with --force-duplicate.";
    /// Several records match.
    IdAmbiguous "id_ambiguous" Permanent "Give more characters of the id.";
    /// The chain of automatic replies is too long.
    HopLimit "hop_limit" Permanent "A person or a fresh send breaks the chain.";
    /// Several meshes are attached and none was named.
    MeshRequired "mesh_required" Permanent "Name one with --mesh.";
    /// This home is not in that mesh.
    MeshNotAttached "mesh_not_attached" Permanent "Join it, or name one that postrider mesh list shows.";
    /// The mesh is parked: its broker refused this node.
    MeshParked "mesh_parked" Conditional "postrider status names the reason and the fix.";
    /// The name belongs to a member at another home.
    NameTaken "name_taken" Permanent "Choose another name.";
    /// The fingerprint does not match the message it came with.
    FingerprintInvalid "fingerprint_invalid" Permanent "Recompute it from the fields as they are sent.";
    /// The copy arrived after its send deadline.
    SendDeadlinePassed "send_deadline_passed" Permanent "Requeue it under a new id if it still matters.";
    /// The message's own deadline passed.
    DeliverByPassed "deliver_by_passed" Permanent "Ask again with a later deliver_by if it still matters.";
    /// A mentioned name is no member.
    MentionUnknown "mention_unknown" Permanent "Correct the mention.";
    /// The id was retired at an operator's question and can never be accepted.
    IdRetired "id_retired" Permanent "Use a new id.";
    /// The sender's budget is spent for now.
    RateLimited "rate_limited" Transient "Wait for the Retry-After.";
    /// No member has this name or key.
    MemberNotFound "member_not_found" Conditional "Check the name; postrider agent list shows members.";
    /// The topic does not exist and this mesh wants topics declared.
    TopicNotFound "topic_not_found" Conditional "postrider topic create NAME";
    /// The member was removed from the mesh.
    Revoked "revoked" Permanent "Ask the mesh's owner.";
    /// This link may not speak for that member.
    NotAtHome "not_at_home" Permanent "Send from the node that is the member's home.";
    /// A newer connection of the same node took over.
    LinkReplaced "link_replaced" Transient "The newer connection carries on.";
    /// The key of the sign-in link is unknown, used or past its time.
    SignInRefused "sign_in_refused" Permanent "Print another link: postrider signin";
    /// The invite or token is unknown.
    InvalidToken "invalid_token" Permanent "Ask for a new invite: postrider invite";
    /// The invite is past its time.
    ExpiredToken "expired_token" Permanent "Ask for a new invite: postrider invite";
    /// The invite was used by another join.
    TokenAlreadyUsed "token_already_used" Permanent "Ask for a new invite: postrider invite";
    /// The ticket is unknown or for another door.
    InvalidTicket "invalid_ticket" Transient "Exchange again for a new ticket.";
    /// The ticket is past its time.
    ExpiredTicket "expired_ticket" Transient "Exchange again for a new ticket.";
    /// The ticket was used.
    TicketAlreadyUsed "ticket_already_used" Transient "Reconnect by challenge.";
    /// The invite is for another node.
    NodeMismatch "node_mismatch" Permanent "Join from the node the invite names.";
    /// The signature does not prove the key.
    NodeProofInvalid "node_proof_invalid" Permanent "Check that the home's keypair is its own.";
    /// The nonce or challenge was seen before.
    ReplayDetected "replay_detected" Permanent "Exchange again with a fresh nonce.";
    /// The broker does not know this node.
    UnknownNode "unknown_node" Permanent "Join again by invite.";
    /// The name belongs to another node of this mesh.
    NodeNameTaken "node_name_taken" Permanent "Join with another --node name.";
    /// The cursor is not one of this log.
    InvalidCursor "invalid_cursor" Permanent "Use a cursor as it was given.";
    /// The place the cursor names is gone.
    CursorExpired "cursor_expired" Permanent "Read again from first_available.";
    /// The webhook's address is one this broker does not call.
    WebhookUrlRefused "webhook_url_refused" Permanent "Use a public address, or have the operator name the host with --webhook-allow-host.";
    /// No such conversation, or not one this caller may write to.
    ConversationNotFound "conversation_not_found" Permanent "Check the id.";
    /// The conversation is closed.
    ConversationClosed "conversation_closed" Permanent "Write to another, or ask its owner to open it.";
    /// The message had no recipient, so no higher rung can come.
    NoRecipients "no_recipients" Permanent "Subscribe somebody, or wait for accepted.";
    /// A turn of this agent is open.
    TurnOpen "turn_open" Transient "End it, or wait until its lease runs out.";
    /// The turn's lease was lost: the message waits for another turn, or has one.
    TurnLost "turn_lost" Permanent "Drop the work; a turn that is still wanted is handed out again, marked.";
    /// The message has had its turn.
    TurnOver "turn_over" Permanent "Nothing is left to do; postrider explain shows how it ended.";
    /// The message's turns were not given up: it is run by itself, is being run, or is over.
    NotGivenUp "not_given_up" Permanent "postrider explain shows how it stands.";
    /// The record is not as the caller had seen it; current_version says what is there now.
    StateConflict "state_conflict" Permanent "Read the record again, then decide whether the change still holds.";
    /// A request with this key is under way.
    IdempotencyInProgress "idempotency_in_progress" Transient "Ask again with the same key after the Retry-After.";
    /// The key was retired by a question with a fence; nothing happened under it and nothing will.
    IdempotencyKeyRetired "idempotency_key_retired" Permanent "Use a new key.";
    /// The copy is older than the time for which an earlier one is surely remembered.
    IdempotencyKeyExpired "idempotency_key_expired" Permanent "Check whether it was applied; then use a new key.";
    /// The upstream is away, and this request is of the kind that never waits.
    UpstreamUnreachable "upstream_unreachable_online_only" Transient "Ask again when the upstream is back; nothing was stored.";
    /// The upstream is away, and a request with credentials of its own is never stored.
    CredentialsNotQueueable "credentials_not_queueable" Transient "Ask without them, or run the relay with --auth-mode relay.";
    /// The upstream is away, and the answer's id cannot be made here.
    IdRequired "id_required" Transient "Ask with Prefer: respond-async if the id is not needed now.";
    /// The relay's outbox has no room; nothing was stored.
    OutboxFull "outbox_full" Transient "postrider relay outbox status shows what waits, and why.";
    /// The upstream is away, and the body is over what the relay stores.
    PayloadTooLargeToQueue "payload_too_large_to_queue" Permanent "Ask again when the upstream is back, or send less.";
    /// The upstream is away, and what looks like a secret is never stored; pointers names the places.
    SecretInPayload "secret_in_payload" Permanent "Leave the secret out, or ask again when the upstream is back.";
    /// Older writes to the same resource wait, and this one cannot wait behind them.
    PendingWrites "pending_writes" Transient "Ask again when postrider relay outbox status shows none for it.";
    /// The upstream is not the one the waiting writes are for.
    WrongInstance "wrong_instance" Permanent "Check the upstream; postrider relay outbox replay --force-upstream takes it as the right one.";
    /// No relay answers on the home's socket.
    RelayNotRunning "relay_not_running" Transient "Start it: postrider relay serve --upstream URL";
    /// Part of the product is starting or stopping.
    Unavailable "unavailable" Transient "Ask again shortly.";
    /// A fault of ours; the log has its cause.
    Internal "internal" Transient "Ask again with the same id; report it if it stays.";
}

impl ErrorCode {
    /// The row whose text is `code`.
    pub fn parse(code: &str) -> Option<ErrorCode> {
        ErrorCode::ALL.iter().copied().find(|known| known.code() == code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_text_a_meaning_and_a_remedy() {
        for (place, code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(ErrorCode::parse(code.code()), Some(*code));
            assert!(ErrorCode::ALL[..place].iter().all(|other| other.code() != code.code()), "{code} twice");
            assert!(code.meaning().ends_with('.') && !code.remedy().is_empty(), "{code}");
            assert!(code.code().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
        }
    }

    #[test]
    fn a_rate_limit_is_transient_and_an_unknown_destination_is_tried_for_a_while() {
        assert_eq!(ErrorCode::RateLimited.class(), Class::Transient);
        assert_eq!(ErrorCode::MemberNotFound.class(), Class::Conditional);
        assert_eq!(ErrorCode::TopicNotFound.class(), Class::Conditional);
        assert_eq!(ErrorCode::Revoked.class(), Class::Permanent);
        assert_eq!(ErrorCode::SendDeadlinePassed.class(), Class::Permanent);
    }
}
