//! The HTTP status of every error code, and the code that stands for a status nobody named.

use model::ErrorCode;

/// The status a code travels with.
pub const fn http_status(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::InvalidRequest
        | ErrorCode::TokenInUrl
        | ErrorCode::MeshRequired
        | ErrorCode::FingerprintInvalid
        | ErrorCode::InvalidCursor => 400,
        ErrorCode::Unauthorized
        | ErrorCode::InvalidToken
        | ErrorCode::SignInRefused
        | ErrorCode::ExpiredToken
        | ErrorCode::InvalidTicket
        | ErrorCode::ExpiredTicket
        | ErrorCode::NodeProofInvalid
        | ErrorCode::UnknownNode => 401,
        ErrorCode::Forbidden
        | ErrorCode::HostRefused
        | ErrorCode::OriginRefused
        | ErrorCode::Revoked
        | ErrorCode::NotAtHome
        | ErrorCode::NodeMismatch => 403,
        ErrorCode::NotFound
        | ErrorCode::MeshNotAttached
        | ErrorCode::MemberNotFound
        | ErrorCode::TopicNotFound
        | ErrorCode::ConversationNotFound => 404,
        ErrorCode::MethodNotAllowed => 405,
        ErrorCode::RequestTimeout => 408,
        ErrorCode::IdempotencyKeyReused
        | ErrorCode::RowInflight
        | ErrorCode::RowAborted
        | ErrorCode::AlreadyAccepted
        | ErrorCode::IdAmbiguous
        | ErrorCode::NameTaken
        | ErrorCode::NodeNameTaken
        | ErrorCode::IdRetired
        | ErrorCode::LinkReplaced
        | ErrorCode::TokenAlreadyUsed
        | ErrorCode::TicketAlreadyUsed
        | ErrorCode::ReplayDetected
        | ErrorCode::ConversationClosed
        | ErrorCode::NoRecipients
        | ErrorCode::TurnOpen
        | ErrorCode::TurnLost
        | ErrorCode::TurnOver
        | ErrorCode::NotGivenUp
        | ErrorCode::StateConflict
        | ErrorCode::IdempotencyInProgress
        | ErrorCode::IdempotencyKeyRetired
        | ErrorCode::WrongInstance => 409,
        ErrorCode::CursorExpired => 410,
        ErrorCode::TooLarge | ErrorCode::PayloadTooLargeToQueue => 413,
        ErrorCode::UnsupportedMediaType => 415,
        ErrorCode::HopLimit
        | ErrorCode::SendDeadlinePassed
        | ErrorCode::DeliverByPassed
        | ErrorCode::MentionUnknown
        | ErrorCode::WebhookUrlRefused
        | ErrorCode::IdempotencyKeyExpired
        | ErrorCode::SecretInPayload => 422,
        ErrorCode::HeadTooLarge => 431,
        ErrorCode::DaemonBusy | ErrorCode::TooManyStreams | ErrorCode::RateLimited => 429,
        ErrorCode::Internal => 500,
        ErrorCode::StorageBusy
        | ErrorCode::StorageStopped
        | ErrorCode::LogFull
        | ErrorCode::OutcomeUnknown
        | ErrorCode::BrokerUnreachable
        | ErrorCode::DaemonNotRunning
        | ErrorCode::MeshParked
        | ErrorCode::UpstreamUnreachable
        | ErrorCode::CredentialsNotQueueable
        | ErrorCode::IdRequired
        | ErrorCode::OutboxFull
        | ErrorCode::PendingWrites
        | ErrorCode::RelayNotRunning
        | ErrorCode::Unavailable => 503,
        ErrorCode::InsufficientStorage => 507,
    }
}

/// The status of `outcome_unknown` for an operator's act on a row: a conflict with the row's state, where the same code
/// for a send is an error of the store.
pub const UNKNOWN_TO_OPERATOR: u16 = 409;

/// The code a peer's answer means: its own when we know it, else the one its status stands for.
/// A newer peer may use codes we do not know; their class must still be right.
pub fn code_of(status: u16, named: Option<&str>) -> ErrorCode {
    if let Some(code) = named.and_then(ErrorCode::parse) {
        return code;
    }
    match status {
        401 => ErrorCode::Unauthorized,
        403 => ErrorCode::Forbidden,
        404 | 410 => ErrorCode::MemberNotFound,
        408 | 425 => ErrorCode::RequestTimeout,
        409 => ErrorCode::IdempotencyKeyReused,
        413 => ErrorCode::TooLarge,
        415 => ErrorCode::UnsupportedMediaType,
        429 => ErrorCode::RateLimited,
        431 => ErrorCode::HeadTooLarge,
        500..=599 => ErrorCode::Internal,
        _ => ErrorCode::InvalidRequest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Class;

    #[test]
    fn each_class_keeps_to_its_statuses() {
        for code in ErrorCode::ALL {
            let status = http_status(*code);
            match code.class() {
                Class::Transient => assert!(
                    matches!(status, 401 | 408 | 409 | 429 | 500..=599),
                    "{code} is transient but answers {status}"
                ),
                Class::Permanent => assert!((400..500).contains(&status) && status != 429, "{code} {status}"),
                Class::Conditional => assert!(matches!(status, 401 | 404 | 503), "{code} {status}"),
            }
        }
    }

    #[test]
    fn an_unknown_code_takes_the_class_of_its_status() {
        for (status, class) in [
            (400, Class::Permanent),
            (401, Class::Conditional),
            (403, Class::Permanent),
            (404, Class::Conditional),
            (408, Class::Transient),
            (409, Class::Permanent),
            (410, Class::Conditional),
            (413, Class::Permanent),
            (415, Class::Permanent),
            (422, Class::Permanent),
            (425, Class::Transient),
            (429, Class::Transient),
            (500, Class::Transient),
            (503, Class::Transient),
            (599, Class::Transient),
        ] {
            assert_eq!(code_of(status, Some("from_the_future")).class(), class, "{status}");
            assert_eq!(code_of(status, None).class(), class, "{status}");
        }
        assert_eq!(code_of(500, Some("rate_limited")), ErrorCode::RateLimited);
    }
}
