//! What a broker must offer before anything is sent to it.

use std::time::Duration;

use model::limits;
use model::outbox::{DedupeWindow, max_age};
use serde_json::Value;
use wire::link::{
    CLOSE_FEATURE_BELOW_FLOOR, CLOSE_FEATURE_PARAM_INVALID, CLOSE_FEATURE_UNAVAILABLE, FEATURE_CONNECTIONS,
    FEATURE_DEDUPE, FEATURE_PAYLOAD, Feature, NegotiationResponse,
};

const DEDUPE_VERSION: u64 = 2;
const CONNECTIONS_VERSION: u64 = 1;
const PAYLOAD_VERSION: u64 = 1;
/// A smaller bound than this is a mistake, not a policy.
const INLINE_BYTES_MIN: u64 = 1_024;

/// What was agreed, and holds while offline too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// How long the broker remembers ids.
    pub(crate) dedupe: DedupeWindow,
    /// The largest body it takes.
    pub(crate) inline_bytes: usize,
}

/// A broker this daemon must not send to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TermsRefused {
    #[error("the broker lacks {feature}")]
    Unavailable { feature: String },
    #[error("the broker's {feature} makes no sense: {detail}")]
    ParamInvalid { feature: &'static str, detail: &'static str },
    #[error("the broker's {feature} is below what safety needs: {detail}")]
    BelowFloor { feature: &'static str, detail: String },
}

impl Default for Terms {
    /// Before any negotiation: rows are not attempted then, so only the body's bound is used.
    fn default() -> Self {
        Self { dedupe: DedupeWindow::Days(limits::DEDUPE_DAYS_MIN), inline_bytes: limits::BODY_BYTES_MAX }
    }
}

impl Terms {
    /// Reads an answer; the first thing missing refuses it.
    pub(crate) fn of(response: &NegotiationResponse) -> Result<Self, TermsRefused> {
        if let Some(feature) = response.missing_required.first() {
            return Err(TermsRefused::Unavailable { feature: feature.clone() });
        }
        let dedupe = dedupe(required(response, FEATURE_DEDUPE, DEDUPE_VERSION)?)?;
        required(response, FEATURE_CONNECTIONS, CONNECTIONS_VERSION)?;
        Ok(Self { dedupe, inline_bytes: inline_bytes(response) })
    }

    /// The same with the shorter of two windows: a row first attempted under one of them is forgotten by it.
    pub(crate) fn under(self, cached: Option<DedupeWindow>) -> Self {
        let dedupe = match cached {
            Some(cached) if max_age(cached) < max_age(self.dedupe) => cached,
            Some(_) | None => self.dedupe,
        };
        Self { dedupe, ..self }
    }

    /// The oldest an attempted row may get.
    pub(crate) fn max_age(&self) -> Duration {
        max_age(self.dedupe)
    }
}

impl TermsRefused {
    /// What the link is closed with.
    pub(crate) const fn close_code(&self) -> u16 {
        match self {
            TermsRefused::Unavailable { .. } => CLOSE_FEATURE_UNAVAILABLE,
            TermsRefused::ParamInvalid { .. } => CLOSE_FEATURE_PARAM_INVALID,
            TermsRefused::BelowFloor { .. } => CLOSE_FEATURE_BELOW_FLOOR,
        }
    }
}

/// A feature of the version we speak; another version is another feature.
fn required<'a>(
    response: &'a NegotiationResponse,
    name: &str,
    version: u64,
) -> Result<&'a Feature, TermsRefused> {
    let spoken = |feature: &&Feature| feature.params.get("version").and_then(Value::as_u64) == Some(version);
    let feature = response.supported.get(name).filter(spoken);
    feature.ok_or_else(|| TermsRefused::Unavailable { feature: name.to_owned() })
}

fn dedupe(feature: &Feature) -> Result<DedupeWindow, TermsRefused> {
    let invalid = |detail| TermsRefused::ParamInvalid { feature: FEATURE_DEDUPE, detail };
    if feature.params.get("request_fingerprint") != Some(&Value::Bool(true)) {
        return Err(invalid("request_fingerprint must be true"));
    }
    match feature.params.get("mode").and_then(Value::as_str) {
        Some("permanent") => Ok(DedupeWindow::Permanent),
        Some("retention_scoped") => {
            let days = feature.params.get("dedupe_retention_days").and_then(Value::as_u64);
            let days = days.and_then(|days| u32::try_from(days).ok());
            let days = days.ok_or_else(|| invalid("dedupe_retention_days must be a number of days"))?;
            if days < limits::DEDUPE_DAYS_MIN {
                let detail = format!("it remembers ids for {days} days, not {}", limits::DEDUPE_DAYS_MIN);
                return Err(TermsRefused::BelowFloor { feature: FEATURE_DEDUPE, detail });
            }
            Ok(DedupeWindow::Days(days))
        }
        Some(_) | None => Err(invalid("mode must be retention_scoped or permanent")),
    }
}

/// Optional, so a senseless value is passed over.
fn inline_bytes(response: &NegotiationResponse) -> usize {
    let told = required(response, FEATURE_PAYLOAD, PAYLOAD_VERSION)
        .ok()
        .and_then(|feature| feature.params.get("inline_bytes"))
        .map(|value| value.as_u64().filter(|bytes| *bytes >= INLINE_BYTES_MIN));
    if told == Some(None) {
        tracing::warn!(feature = FEATURE_PAYLOAD, "feature_optional_param_invalid");
    }
    let told = told.flatten().and_then(|bytes| usize::try_from(bytes).ok());
    told.unwrap_or(limits::BODY_BYTES_MAX).min(limits::BODY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(supported: &str, missing: &str) -> NegotiationResponse {
        serde_json::from_str(&format!(
            r#"{{"supported":{supported},"missing_required":{missing},"now":"2027-01-01T00:00:00Z","link_epoch":1,
                "mesh":{{"id":"01890a5d-ac96-774b-bcce-b302099a8057","slug":"home"}}}}"#
        ))
        .unwrap()
    }

    fn dedupe_with(params: &str) -> Result<Terms, TermsRefused> {
        Terms::of(&answer(
            &format!(
                r#"{{"client_message_id_dedupe":{{"params":{params}}},
                    "concurrent_connection_policy":{{"params":{{"version":1}}}}}}"#
            ),
            "[]",
        ))
    }

    #[test]
    fn every_required_parameter_decides() {
        let good =
            r#"{"version":2,"mode":"retention_scoped","dedupe_retention_days":7,"request_fingerprint":true}"#;
        assert_eq!(dedupe_with(good).unwrap().dedupe, DedupeWindow::Days(7));
        let permanent = r#"{"version":2,"mode":"permanent","request_fingerprint":true}"#;
        assert_eq!(dedupe_with(permanent).unwrap().dedupe, DedupeWindow::Permanent);
        for (params, code) in [
            (good.replace("\"version\":2", "\"version\":1"), 4010),
            (good.replace("\"version\":2,", ""), 4010),
            (good.replace("retention_scoped", "sometimes"), 4011),
            (good.replace(":true", ":false"), 4011),
            (good.replace("days\":7", "days\":\"7\""), 4011),
            (good.replace("days\":7", "days\":6"), 4012),
        ] {
            assert_eq!(dedupe_with(&params).unwrap_err().close_code(), code, "{params}");
        }
    }

    #[test]
    fn a_missing_feature_is_named() {
        let unavailable = |feature: &str| Err(TermsRefused::Unavailable { feature: feature.to_owned() });
        assert_eq!(Terms::of(&answer("{}", "[]")), unavailable(FEATURE_DEDUPE));
        assert_eq!(Terms::of(&answer("{}", r#"["novel"]"#)), unavailable("novel"));
        let alone = r#"{"client_message_id_dedupe":{"params":{"version":2,"mode":"permanent","request_fingerprint":true}}}"#;
        assert_eq!(Terms::of(&answer(alone, "[]")), unavailable(FEATURE_CONNECTIONS));
    }

    #[test]
    fn a_body_bound_is_taken_when_it_makes_sense_and_never_raises_ours() {
        for (told, expected) in
            [("2048", 2_048), ("1023", 65_536), ("\"x\"", 65_536), ("1000000", 65_536), ("65536", 65_536)]
        {
            let payload = format!(r#"{{"max_payload":{{"params":{{"version":1,"inline_bytes":{told}}}}}}}"#);
            assert_eq!(inline_bytes(&answer(&payload, "[]")), expected, "{told}");
        }
        assert_eq!(inline_bytes(&answer("{}", "[]")), 65_536);
    }

    #[test]
    fn the_shorter_of_two_windows_stays_in_force() {
        let terms = |dedupe| Terms { dedupe, inline_bytes: 65_536 };
        let (short, long) = (DedupeWindow::Days(7), DedupeWindow::Days(365));
        assert_eq!(terms(long).under(Some(short)).dedupe, short);
        assert_eq!(terms(short).under(Some(long)).dedupe, short);
        assert_eq!(terms(long).under(None).dedupe, long);
        assert_eq!(terms(long).under(Some(DedupeWindow::Permanent)).dedupe, DedupeWindow::Permanent);
    }
}
