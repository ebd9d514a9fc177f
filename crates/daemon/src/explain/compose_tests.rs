//! One sentence for every way a message can stand.

use super::*;
use mailbox::{InboxRow, Rungs};
use model::outbox::{AbortedBy, BrokerReceipt, DeadReason};
use model::turn::TurnMark;
use model::{ConversationId, Fingerprint, MemberId, MessageId, RowId};
use wire::ask::{ExplainedHome, ExplainedRecipient, NodeRecord};
use wire::auth::MemberRef;
use wire::relay::RelayExplained;

const AT: Timestamp = Timestamp::from_micros(1_000_000);

fn message() -> MessageId {
    MessageId::from_bytes([1; 16])
}

/// A row to a topic, with nothing but its state.
fn row(state: OutboxState) -> OutboxRow {
    OutboxRow {
        seq: 1,
        row: RowId::from_bytes([2; 16]),
        sender: MemberId::from_bytes([3; 16]),
        client_message_id: "order-1".parse().unwrap(),
        fingerprint: Fingerprint::from_bytes([0; 32]),
        to_asked: "#topic".to_owned(),
        lane: "#topic".to_owned(),
        enqueued_at: AT,
        deliver_by: None,
        state,
        attempts: 0,
        first_attempt_at: None,
        next_attempt_at: None,
        last_error: None,
        rungs: Rungs::default(),
        aborted_at: None,
        late_ack_at: None,
        outcome_settled_at: None,
        scrubbed_at: None,
        held_until: None,
        late_receipt: None,
        told_message: None,
    }
}

fn done() -> OutboxState {
    let receipt = BrokerReceipt {
        broker_message_id: message(),
        conversation: ConversationId::from_bytes([4; 16]),
        history_id: 7,
        accepted_at: AT,
    };
    OutboxState::Done { receipt }
}

fn record(state: &str, rungs: &[DeliveryRung]) -> ExplainedRecord {
    let recipients = rungs.iter().enumerate().map(|(n, rung)| ExplainedRecipient {
        name: format!("r{n}").parse().unwrap(),
        home: Some("lab".to_owned()),
        rung: *rung,
        delivered_at: Some(AT),
        notified_at: None,
        engaged_at: None,
        processed_at: None,
        ended_at: None,
        ended_code: (*rung == DeliveryRung::Expired).then(|| "deliver_by_passed".to_owned()),
        read_at: None,
    });
    ExplainedRecord {
        sender: MemberRef {
            id: MemberId::from_bytes([3; 16]),
            name: "jane".parse().unwrap(),
            kind: "person".to_owned(),
        },
        client_message_id: "order-1".parse().unwrap(),
        state: state.to_owned(),
        standing: None,
        fingerprint_prefix: None,
        broker_message_id: (state == "accepted").then(message),
        conversation: None,
        conversation_name: None,
        history_id: None,
        accepted_at: (state == "accepted").then_some(AT),
        deliver_by: None,
        remembered_until: None,
        history_available: true,
        recipients: recipients.collect(),
        webhooks: Vec::new(),
    }
}

fn broker(records: Vec<ExplainedRecord>) -> Result<BrokerExplained, String> {
    Ok(BrokerExplained {
        observer: "broker".to_owned(),
        verdict: String::new(),
        records,
        homes: Vec::new(),
        now: AT,
    })
}

fn received(rung: DeliveryRung, turn: TurnMark) -> Received {
    let row = InboxRow {
        seq: 1,
        id: message(),
        sender: MemberId::from_bytes([3; 16]),
        client_message_id: "order-1".parse().unwrap(),
        recipient: MemberId::from_bytes([5; 16]),
        conversation: ConversationId::from_bytes([4; 16]),
        history_id: 7,
        envelope: None,
        deliver_by: None,
        received_at: AT,
        rung,
        notified_at: None,
        read_at: None,
        redelivered: false,
        turn,
    };
    Received { recipient: "ci".to_owned(), row, turns: Vec::new() }
}

fn parts(out: Option<OutboxRow>, broker: Result<BrokerExplained, String>) -> Parts {
    Parts {
        id: "order-1".to_owned(),
        node: "desk".to_owned(),
        link: Link::Live,
        sender: out.as_ref().map(|_| "jane".to_owned()),
        out,
        ins: Vec::new(),
        broker,
        broker_now: AT,
        relay: RelayWord::Absent,
    }
}

fn away(code: &str) -> Result<BrokerExplained, String> {
    Err(code.to_owned())
}

#[test]
fn what_nobody_holds_is_never_seen_and_unknown_while_the_broker_is_away() {
    let told = compose(parts(None, broker(Vec::new())));
    assert_eq!((told.verdict.as_str(), told.broker.as_str()), ("never_seen", "never_committed"));
    assert_eq!((told.asked.len(), told.unasked.len(), told.receipt.is_none()), (2, 0, true));
    let told = compose(parts(None, away("broker_unreachable")));
    assert_eq!((told.verdict.as_str(), told.broker.as_str()), ("unknown", "unreachable"));
    assert_eq!(told.unasked, ["broker: broker_unreachable"]);
    let unreachable = ExplainedHome { node: "lab".parse().unwrap(), records: Vec::new(), unreachable: true };
    let asked = BrokerExplained { homes: vec![unreachable], ..broker(Vec::new()).unwrap() };
    let told = compose(parts(None, Ok(asked)));
    assert_eq!(
        (told.verdict.as_str(), told.unasked.as_slice()),
        ("never_seen", &["lab: unreachable".to_owned()][..])
    );
    assert!(told.next.starts_with("Unless lab"), "{}", told.next);
}

#[test]
fn a_row_of_this_host_is_told_by_its_state() {
    let dead = |reason, outcome| OutboxState::Dead { reason, outcome, last_error: None };
    let aborted =
        |successor| OutboxState::Aborted { by: AbortedBy::Operator, outcome: Outcome::NotSent, successor };
    for (state, verdict, code, needs_person) in [
        (OutboxState::Pending, "queued", None, false),
        (dead(DeadReason::TooLarge, Outcome::NotAccepted), "rejected", Some("too_large"), true),
        (dead(DeadReason::FpConflict, Outcome::NotAccepted), "conflict", Some("fp_conflict"), true),
        (dead(DeadReason::DeliverBy, Outcome::NotSent), "expired", Some("deliver_by"), false),
        (dead(DeadReason::MaxAge, Outcome::Unknown), "expired", Some("max_age"), false),
        (dead(DeadReason::DestinationGone, Outcome::NotAccepted), "dead", Some("destination_gone"), true),
        (aborted(None), "aborted", None, false),
        (aborted(Some(RowId::from_bytes([9; 16]))), "aborted", None, false),
        (done(), "accepted", None, false),
    ] {
        let told = compose(parts(Some(row(state.clone())), broker(Vec::new())));
        assert_eq!((told.verdict.as_str(), told.code.as_deref()), (verdict, code), "{state:?}");
        assert_eq!((told.needs_person, told.rungs[0].rung.as_str()), (needs_person, "queued"), "{state:?}");
        assert!(!told.sentence.is_empty() && !told.next.is_empty(), "{state:?}");
    }
}

#[test]
fn a_queued_row_says_why_it_still_is() {
    let refused =
        OutboxRow { last_error: Some("404 member_not_found".to_owned()), ..row(OutboxState::Pending) };
    let told = compose(parts(Some(refused), broker(Vec::new())));
    assert_eq!((told.code.as_deref(), told.fix.len()), (Some("member_not_found"), 1));
    let parked = Parts {
        link: Link::Parked { reason: "revoked".to_owned() },
        ..parts(Some(row(OutboxState::Pending)), away("mesh_parked"))
    };
    let told = compose(parked);
    assert_eq!((told.code.as_deref(), told.needs_person), (Some("mesh_parked"), true));
    let late = OutboxRow { deliver_by: Some(AT), ..row(OutboxState::Pending) };
    let late = Parts { link: Link::Away { reason: None }, ..parts(Some(late), away("broker_unreachable")) };
    assert!(compose(late).sentence.contains("past its deliver-by"));
    let lost_answer = parts(
        Some(row(OutboxState::Inflight { lease: model::LeaseToken::from_bytes([1; 16]) })),
        broker(vec![record("accepted", &[DeliveryRung::Delivered])]),
    );
    assert_eq!(compose(lost_answer).verdict, "delivered", "the broker's word counts before its answer came");
}

#[test]
fn the_highest_word_about_a_copy_counts_and_the_lowest_copy_is_the_message() {
    use DeliveryRung::{Accepted, Delivered, Expired, Processed};
    for (rungs, verdict) in [
        (&[][..], "accepted"),
        (&[Accepted], "accepted"),
        (&[Delivered, Accepted], "accepted"),
        (&[Delivered, Expired], "delivered"),
        (&[Expired], "expired"),
        (&[Processed], "processed"),
    ] {
        let told = compose(parts(Some(row(done())), broker(vec![record("accepted", rungs)])));
        assert_eq!(told.verdict, verdict, "{rungs:?}");
    }
    let told_here = Rungs { delivered_at: Some(AT), engaged_at: Some(AT), ..Rungs::default() };
    let ahead = OutboxRow { rungs: told_here, to_asked: "@r0".to_owned(), ..row(done()) };
    let told = compose(parts(Some(ahead), broker(vec![record("accepted", &[Delivered])])));
    assert_eq!(told.verdict, "engaged", "a receipt the broker told before counts");
    let retired = compose(parts(None, broker(vec![record("retired", &[])])));
    assert_eq!((retired.verdict.as_str(), retired.code.as_deref()), ("rejected", Some("id_retired")));
}

#[test]
fn turns_at_this_host_are_told_with_what_they_wait_for() {
    for (mark, code, needs_person) in [
        (TurnMark::Open, None, false),
        (TurnMark::Interrupted, Some("interrupted"), false),
        (TurnMark::GivenUp, Some("given_up"), true),
    ] {
        let mut parts = parts(None, away("broker_unreachable"));
        parts.ins = vec![received(DeliveryRung::Engaged, mark)];
        let told = compose(parts);
        assert_eq!((told.verdict.as_str(), told.code.as_deref()), ("engaged", code), "{mark}");
        assert_eq!(told.needs_person, needs_person, "{mark}");
    }
}

#[test]
fn a_turn_that_was_given_up_at_another_home_is_told_to_the_sender() {
    let record_there = NodeRecord::Inbox {
        recipient: "ci".parse().unwrap(),
        received_at: AT,
        rung: DeliveryRung::Engaged,
        turn: Some("given_up".to_owned()),
    };
    let lab = ExplainedHome { node: "lab".parse().unwrap(), records: vec![record_there], unreachable: false };
    let told = BrokerExplained {
        homes: vec![lab],
        ..broker(vec![record("accepted", &[DeliveryRung::Engaged])]).unwrap()
    };
    let told = compose(parts(Some(row(done())), Ok(told)));
    assert_eq!(
        (told.verdict.as_str(), told.code.as_deref(), told.needs_person),
        ("engaged", Some("given_up"), true)
    );
}

fn found(verdict: &str) -> RelayFound {
    RelayFound {
        verdict: verdict.to_owned(),
        sentence: format!("{verdict} at the relay"),
        code: Some("state_conflict".to_owned()),
        needs_person: true,
        steps: Vec::new(),
        next: "next".to_owned(),
        fix: vec!["fix".to_owned()],
        envelope: None,
    }
}

fn relayed(verdict: Option<&str>) -> RelayWord {
    let told = RelayExplained { upstream: "http://hub".to_owned(), found: verdict.map(found) };
    RelayWord::Told(Box::new(told))
}

#[test]
fn what_is_never_seen_says_whether_a_relay_was_asked() {
    let not_running = RelayWord::Unasked("relay_not_running".to_owned());
    for (relay, words, asked, next) in [
        (RelayWord::Absent, "no relay runs here", 2, "Nobody stored it."),
        (relayed(None), "broker or relay record", 3, "Nobody stored it."),
        (not_running, "or broker record", 2, "Unless relay: relay_not_running holds it"),
    ] {
        let told = compose(Parts { relay: relay.clone(), ..parts(None, broker(Vec::new())) });
        assert_eq!((told.verdict.as_str(), told.asked.len()), ("never_seen", asked), "{relay:?}");
        assert!(told.sentence.contains(words), "{relay:?}: {}", told.sentence);
        assert!(told.next.starts_with(next), "{relay:?}: {}", told.next);
    }
}

#[test]
fn a_write_that_only_the_relay_knows_is_told_in_its_words_with_or_without_the_broker() {
    for broker in [broker(Vec::new()), away("broker_unreachable")] {
        let told = compose(Parts { relay: relayed(Some("conflict")), ..parts(None, broker) });
        assert_eq!((told.verdict.as_str(), told.code.as_deref()), ("conflict", Some("state_conflict")));
        assert_eq!((told.sentence.as_str(), told.needs_person), ("conflict at the relay", true));
        assert_eq!((told.fix.as_slice(), told.next.as_str()), (&["fix".to_owned()][..], "next"));
    }
}

#[test]
fn a_message_that_went_through_the_relay_keeps_its_own_verdict_beside_the_relays() {
    let records = broker(vec![record("accepted", &[DeliveryRung::Delivered])]);
    let told = compose(Parts { relay: relayed(Some("done")), ..parts(None, records) });
    assert_eq!((told.verdict.as_str(), told.needs_person), ("delivered", false));
    assert_eq!(told.relay.unwrap().verdict, "done");
}
