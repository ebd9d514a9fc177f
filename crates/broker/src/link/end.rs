//! How a link ends: a code, a JSON reason of at most 123 bytes, and before it an `error` frame with the whole.

use model::ErrorCode;
use net::socket::Close;
use serde_json::json;
use wire::link::{
    CLOSE_ALREADY_CONNECTED, CLOSE_FEATURE_PARAM_INVALID, CLOSE_FEATURE_UNAVAILABLE, CLOSE_REPLACED,
    CLOSE_REVOKED, CLOSE_STALLED, ToNode,
};
use wire::{ErrorBody, Refused};

/// The names of features and details in a reason are cut to this, so that the reason stays whole JSON.
const DETAIL_BYTES_MAX: usize = 48;

/// Why a link ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A newer connection of the node took over.
    Replaced,
    /// Another connection of the node stays.
    AlreadyConnected,
    /// The node was removed from the mesh.
    Revoked,
    /// A required feature is missing.
    FeatureUnavailable { feature: String },
    /// What the node said at negotiation makes no sense.
    FeatureParamInvalid { feature: String },
    /// No negotiation, or not first.
    NotNegotiated,
    /// A frame nobody can read.
    Unreadable { detail: String },
    /// A full window without an ack.
    Stalled,
    /// The ledger does not answer; the node comes back later.
    Unavailable,
    /// The process stops.
    Stopping,
}

impl End {
    pub(crate) fn close(&self) -> Close {
        let (code, reason) = match self {
            End::Replaced => (CLOSE_REPLACED, json!({"kind": "replaced_by_newer_connection"})),
            End::AlreadyConnected => (CLOSE_ALREADY_CONNECTED, json!({"kind": "member_already_connected"})),
            End::Revoked => (CLOSE_REVOKED, json!({"kind": "revoked"})),
            End::FeatureUnavailable { feature } => {
                (CLOSE_FEATURE_UNAVAILABLE, json!({"kind": "feature_unavailable", "feature": cut(feature)}))
            }
            End::FeatureParamInvalid { feature } => (
                CLOSE_FEATURE_PARAM_INVALID,
                json!({"kind": "feature_param_invalid", "feature": cut(feature)}),
            ),
            End::NotNegotiated => (Close::PROTOCOL, json!({"kind": "not_negotiated"})),
            End::Unreadable { detail } => {
                (Close::NOT_READABLE, json!({"kind": "unreadable", "detail": cut(detail)}))
            }
            End::Stalled => (CLOSE_STALLED, json!({"kind": "stalled"})),
            End::Unavailable => (CLOSE_TRY_AGAIN, json!({"kind": "unavailable"})),
            End::Stopping => (Close::GOING_AWAY, json!({"kind": "stopping"})),
        };
        Close::new(code, &reason.to_string())
    }

    /// The frame that says it whole.
    pub(crate) fn error_frame(&self) -> ToNode {
        let refused = match self {
            End::Replaced | End::AlreadyConnected => Refused::plain(ErrorCode::LinkReplaced),
            End::Revoked => Refused::plain(ErrorCode::Revoked),
            End::FeatureUnavailable { feature } => {
                invalid("a required feature is missing").with("feature", &**feature)
            }
            End::FeatureParamInvalid { feature } => {
                invalid("a parameter makes no sense").with("feature", &**feature)
            }
            End::NotNegotiated => invalid("negotiation comes first, within five seconds"),
            End::Unreadable { detail } => invalid(detail),
            End::Stalled => {
                Refused::new(ErrorCode::RequestTimeout, "a full window was not acknowledged in time")
            }
            End::Unavailable | End::Stopping => Refused::plain(ErrorCode::Unavailable),
        };
        ToNode::Error(ErrorBody::from(refused))
    }
}

/// 1013: what the protocol has for "try again later".
const CLOSE_TRY_AGAIN: u16 = 1013;

fn invalid(message: &str) -> Refused {
    Refused::new(ErrorCode::InvalidRequest, message)
}

/// Cut, and without what JSON would have to spell longer than it is.
fn cut(detail: &str) -> String {
    let plain = |c: &char| c.is_ascii_graphic() && !matches!(c, '"' | '\\') || *c == ' ';
    detail.chars().filter(plain).take(DETAIL_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_json_that_fits_a_close_frame() {
        let long = "\"feature\\ü".repeat(100);
        for (end, code, kind) in [
            (End::Replaced, 4003, "replaced_by_newer_connection"),
            (End::AlreadyConnected, 4004, "member_already_connected"),
            (End::Revoked, 4002, "revoked"),
            (End::FeatureUnavailable { feature: long.clone() }, 4010, "feature_unavailable"),
            (End::FeatureParamInvalid { feature: long.clone() }, 4011, "feature_param_invalid"),
            (End::NotNegotiated, 1002, "not_negotiated"),
            (End::Unreadable { detail: long }, 1007, "unreadable"),
            (End::Stalled, 4408, "stalled"),
            (End::Unavailable, 1013, "unavailable"),
            (End::Stopping, 1001, "stopping"),
        ] {
            let close = end.close();
            assert_eq!(close.code, code);
            let reason: serde_json::Value = serde_json::from_str(&close.reason).unwrap();
            assert_eq!(reason["kind"], kind);
            assert!(end.error_frame().text().contains("\"error\""));
        }
    }
}
