//! The first frames of a link: what the node needs, what the broker offers, and broker time.

use std::collections::BTreeMap;

use ledger::{LinkMember, LinkOpened, LinkOpening, Mesh, Witness};
use model::outbox::DedupeWindow;
use model::{MemberKind, limits};
use net::socket::Reader;
use serde_json::{Value, json};
use tokio::time::timeout;
use wire::link::{
    FEATURE_CONNECTIONS, FEATURE_DEDUPE, FEATURE_PAYLOAD, Feature, InboxWentBack, LedgerWentBack,
    NegotiationRequest, NegotiationResponse, ToBroker,
};

use super::end::End;
use super::session::Ctx;
use crate::ask::member_ref;

/// An inbox epoch is random text of the node's own.
const INBOX_EPOCH_BYTES_MAX: usize = 128;

/// Negotiates, or says how the link ends.
pub(crate) async fn negotiate(ctx: &Ctx, reader: &mut Reader) -> Result<LinkOpened, End> {
    let first = timeout(limits::NEGOTIATION_TIMEOUT, reader.next()).await;
    let Ok(Ok(frame)) = first else { return Err(End::NotNegotiated) };
    let request = match ToBroker::parse(&frame) {
        Ok(ToBroker::FeatureNegotiationRequest(request)) => request,
        Ok(_) => return Err(End::NotNegotiated),
        Err(error) => return Err(End::Unreadable { detail: error.to_string() }),
    };
    if !(1..=INBOX_EPOCH_BYTES_MAX).contains(&request.inbox_epoch.len()) {
        return Err(End::FeatureParamInvalid { feature: "inbox_epoch".to_owned() });
    }
    let required = request.require.clone();
    let opened =
        ctx.shared.ledger.open_link(opening(ctx, request)).await.map_err(|error| ctx.link_end(&error))?;
    let supported = features(&opened.mesh);
    let missing = missing(&required, &supported);
    if is_below_floor(&opened.mesh) {
        ctx.shared.metrics.dedupe_misconfig.add_one();
    }
    let unavailable = missing.first().cloned();
    let response = ToNodeResponse { ctx, opened: &opened, supported, missing };
    ctx.say(wire::link::ToNode::FeatureNegotiationResponse(response.build())).await;
    match unavailable {
        Some(feature) => Err(End::FeatureUnavailable { feature }),
        None => Ok(opened),
    }
}

struct ToNodeResponse<'a> {
    ctx: &'a Ctx,
    opened: &'a LinkOpened,
    supported: BTreeMap<String, Feature>,
    missing: Vec<String>,
}

impl ToNodeResponse<'_> {
    fn build(self) -> NegotiationResponse {
        NegotiationResponse {
            supported: self.supported,
            missing_required: self.missing,
            now: self.opened.now,
            link_epoch: self.ctx.link.epoch,
            mesh: self.ctx.shared.mesh.clone(),
            restored: self.opened.restored,
            members: self.opened.members.iter().map(member_ref).collect(),
            version: self.ctx.shared.config.version.clone(),
            inbox_went_back: self.opened.inbox_went_back.map(|it| InboxWentBack {
                noticed_at: it.noticed_at,
                from: it.from,
                to: it.to,
                left: it.left,
            }),
            ledger_went_back: self.opened.ledger_went_back.clone().map(|it| LedgerWentBack {
                noticed_at: it.noticed_at,
                ends_at: it.ends_at,
                upto: it.upto,
                noticed_by: it.noticed_by,
            }),
        }
    }
}

fn opening(ctx: &Ctx, request: NegotiationRequest) -> LinkOpening {
    let members = request.members.into_iter().filter_map(|member| {
        // A kind from the future is no member this broker could restore.
        let kind: MemberKind = member.kind.parse().ok()?;
        Some(LinkMember { id: member.id, name: member.name, kind })
    });
    let done = request.done.into_iter().take(limits::RESTORE_WITNESSES_MAX).map(|row| Witness {
        sender: row.sender,
        client_message_id: row.client_message_id,
        broker_message_id: row.broker_message_id,
        accepted_at: row.accepted_at,
    });
    LinkOpening {
        link: ctx.link.clone(),
        inbox_epoch: request.inbox_epoch,
        inbox_epoch_before: request.inbox_epoch_before,
        members: members.collect(),
        done: done.collect(),
        received: request.received,
    }
}

/// What this broker offers in `mesh`.
fn features(mesh: &Mesh) -> BTreeMap<String, Feature> {
    let mut dedupe = vec![("version", json!(2)), ("request_fingerprint", json!(true))];
    match mesh.policies.dedupe {
        DedupeWindow::Days(days) => {
            dedupe.push(("mode", json!("retention_scoped")));
            dedupe.push(("dedupe_retention_days", json!(days)));
        }
        DedupeWindow::Permanent => dedupe.push(("mode", json!("permanent"))),
    }
    let connections =
        vec![("version", json!(1)), ("default_policy", json!(mesh.policies.connections.word()))];
    let payload = vec![("version", json!(1)), ("inline_bytes", json!(limits::BODY_BYTES_MAX))];
    [(FEATURE_DEDUPE, dedupe), (FEATURE_CONNECTIONS, connections), (FEATURE_PAYLOAD, payload)]
        .into_iter()
        .map(|(name, params)| (name.to_owned(), feature(params)))
        .collect()
}

fn feature(params: Vec<(&str, Value)>) -> Feature {
    Feature { params: params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
}

fn missing(required: &[String], supported: &BTreeMap<String, Feature>) -> Vec<String> {
    required.iter().filter(|name| !supported.contains_key(*name)).cloned().collect()
}

fn is_below_floor(mesh: &Mesh) -> bool {
    match mesh.policies.dedupe {
        DedupeWindow::Days(days) => days < limits::DEDUPE_DAYS_MIN,
        DedupeWindow::Permanent => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{ConnectionPolicy, Policies, TopicPolicy};

    fn mesh(dedupe: DedupeWindow) -> Mesh {
        let policies =
            Policies { topics: TopicPolicy::Open, dedupe, connections: ConnectionPolicy::PreferNewest };
        Mesh { id: model::MeshId::from_bytes([1; 16]), slug: "home".into(), policies }
    }

    #[test]
    fn both_modes_of_dedupe_are_told_with_what_a_node_must_know() {
        let scoped = serde_json::to_value(features(&mesh(DedupeWindow::Days(30)))).unwrap();
        let expected = json!({"params": {"version": 2, "request_fingerprint": true, "mode": "retention_scoped",
            "dedupe_retention_days": 30}});
        assert_eq!(scoped[FEATURE_DEDUPE], expected);
        assert_eq!(scoped[FEATURE_PAYLOAD]["params"]["inline_bytes"], 65536);
        assert_eq!(scoped[FEATURE_CONNECTIONS]["params"]["default_policy"], "prefer_newest");
        let permanent = serde_json::to_value(features(&mesh(DedupeWindow::Permanent))).unwrap();
        let expected = json!({"params": {"version": 2, "request_fingerprint": true, "mode": "permanent"}});
        assert_eq!(permanent[FEATURE_DEDUPE], expected);
    }

    #[test]
    fn what_is_required_and_not_offered_is_missing() {
        let offered = features(&mesh(DedupeWindow::Permanent));
        let required = [FEATURE_DEDUPE.to_owned(), "key_epoch".to_owned()];
        assert_eq!(missing(&required, &offered), ["key_epoch"]);
        assert!(missing(&required[..1], &offered).is_empty());
    }

    #[test]
    fn only_a_window_under_seven_days_is_below_the_floor() {
        assert!(is_below_floor(&mesh(DedupeWindow::Days(6))));
        assert!(!is_below_floor(&mesh(DedupeWindow::Days(7))));
        assert!(!is_below_floor(&mesh(DedupeWindow::Permanent)));
    }
}
