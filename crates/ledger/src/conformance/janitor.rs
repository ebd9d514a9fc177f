//! Expiry, pruning, the audit, and explaining what is left.

use std::time::Duration;

use model::admission::KnownState;
use model::{DeliveryRung, MessageId, Timestamp, limits};

use super::Bench;
use super::town::*;
use crate::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn later(ledger: &dyn Ledger) -> Timestamp {
    ledger.now().await.unwrap() + Duration::from_secs(1)
}

pub async fn an_expired_id_answers_until_it_is_swept_and_is_new_afterwards(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for n in 0..3 {
        accepted(&*ledger, &jane, text("#t", &format!("m{n}"), "hi")).await;
    }
    assert_eq!(forgotten(&*ledger).await, 0);
    bench.advance(PAST_WINDOW);
    let again = send(&*ledger, &jane, vec![text("#t", "m0", "hi")]).await.remove(0);
    assert!(matches!(again, Outcome::Admitted { admission: Admission::Duplicate { .. }, .. }), "{again:?}");
    let step = ledger.expire_dedupe(IdPlace::default(), 2).await.unwrap();
    assert_eq!(step.ids, 2, "a step is bounded");
    let step = ledger.expire_dedupe(step.next.expect("there is more"), 2).await.unwrap();
    assert_eq!((step.ids, step.next), (1, None));
    let receipt = accepted(&*ledger, &jane, text("#t", "m0", "hi")).await;
    assert_eq!(receipt.history_id, 4);
    assert_eq!(ledger.orphans(later(&*ledger).await, 10).await.unwrap(), [], "expired ids are no orphans");
}

pub async fn pruning_removes_a_message_whole_and_says_so(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let old = accepted(&*ledger, &jane, mentioning(text("#t", "old", "old"), &["carl"])).await;
    bench.advance(DAY);
    let cut = ledger.now().await.unwrap();
    accepted(&*ledger, &jane, mentioning(text("#t", "new", "new"), &["carl"])).await;
    accepted(&*ledger, &jane, text("@carl", "dm", "dm")).await;
    assert_eq!(ledger.prune_messages(cut, 100).await.unwrap(), Pruned { messages: 1, more: false });
    assert_eq!(bench.count("message").await, 2);
    assert_eq!((bench.count("delivery").await, bench.count("mention_index").await), (2, 1));
    let outcome = send(&*ledger, &jane, vec![text("#t", "old", "old")]).await.remove(0);
    let admission = Admission::Duplicate { history_available: false };
    assert_eq!(outcome, Outcome::Admitted { receipt: old, admission });
    let got: Vec<_> = mail(&*ledger, &carl).await.into_iter().map(|row| row.envelope).collect();
    assert_eq!(got, [b"new".to_vec(), b"dm".to_vec()]);
    assert_eq!(ledger.orphans(later(&*ledger).await, 10).await.unwrap(), []);
    let facts = ledger.explain(&Wanted::Message(old.broker_message_id)).await.unwrap().remove(0);
    assert_eq!((facts.client_message_id.as_str(), facts.accepted), ("old", None));
    let KnownState::Accepted { receipt, history_available } = facts.dedupe.unwrap().known.state else {
        panic!("it was accepted");
    };
    assert_eq!((receipt, history_available), (old, false));
}

pub async fn pruning_goes_in_bounded_rounds_from_the_oldest(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for n in 0..5 {
        accepted(&*ledger, &jane, text("#t", &format!("m{n}"), &n.to_string())).await;
    }
    let cut = later(&*ledger).await;
    assert_eq!(ledger.prune_messages(cut, 2).await.unwrap(), Pruned { messages: 2, more: true });
    assert_eq!(bodies(&newest(&*ledger, "t", jane.id()).await), ["2", "3", "4"]);
    assert_eq!(ledger.prune_messages(cut, 100).await.unwrap(), Pruned { messages: 3, more: false });
    assert_eq!(ledger.prune_messages(cut, 100).await.unwrap(), Pruned::default());
}

pub async fn undelivered_rows_end_at_their_deadline_or_after_the_bound(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let mut hurried = text("@carl", "a", "soon");
    hurried.deliver_by = Some(ledger.now().await.unwrap() + Duration::from_secs(60));
    let hurried = accepted(&*ledger, &jane, hurried).await.broker_message_id;
    let mut delivered = text("@carl", "b", "in time");
    delivered.deliver_by = Some(ledger.now().await.unwrap() + Duration::from_secs(60));
    let delivered = accepted(&*ledger, &jane, delivered).await.broker_message_id;
    let patient = accepted(&*ledger, &jane, text("@carl", "c", "whenever")).await.broker_message_id;
    let row = mail(&*ledger, &carl).await.remove(1);
    ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap();
    assert_eq!(ledger.expire_undelivered(100).await.unwrap(), 0);
    bench.advance(Duration::from_secs(60));
    assert_eq!(ledger.expire_undelivered(100).await.unwrap(), 1);
    assert_eq!(ledger.expire_undelivered(100).await.unwrap(), 0);
    let rung = async |id| rungs(&*ledger, id).await.remove(0).1;
    assert_eq!(rung(hurried).await, DeliveryRung::Expired);
    assert_eq!(rung(delivered).await, DeliveryRung::Delivered);
    assert_eq!(rung(patient).await, DeliveryRung::Accepted);
    let told: Vec<_> =
        receipts(&*ledger, &jane).await.into_iter().map(|row| (row.id, row.ended_code)).collect();
    assert_eq!(told, [(hurried, Some("deliver_by_passed".to_owned())), (delivered, None)]);
    bench.advance(DAY * limits::UNDELIVERED_DAYS_MAX);
    assert_eq!(ledger.expire_undelivered(100).await.unwrap(), 1);
    assert_eq!(rung(patient).await, DeliveryRung::Expired);
    assert_eq!(mail(&*ledger, &carl).await, []);
}

pub async fn the_audit_finds_each_kind_of_contradiction(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let body = accepted(&*ledger, &jane, text("#t", "body", "hi")).await.broker_message_id;
    let kept = accepted(&*ledger, &jane, text("@carl", "kept", "hi")).await.broker_message_id;
    assert_eq!(ledger.orphans(later(&*ledger).await, 10).await.unwrap(), []);
    bench.run("DELETE FROM message WHERE client_message_id = 'body'").await;
    bench.run("DELETE FROM dedupe WHERE client_message_id = 'kept'").await;
    let found = ledger.orphans(later(&*ledger).await, 10).await.unwrap();
    let expected =
        [Orphan::BodyMissing(body), Orphan::MessageWithoutDedupe(kept), Orphan::DeliveryWithoutDedupe(kept)];
    assert_eq!(found, expected);
    let first = ledger.orphans(later(&*ledger).await, 1).await.unwrap();
    assert_eq!(first, [Orphan::BodyMissing(body)]);
    let long_ago = Timestamp::from_micros(1);
    assert_eq!(ledger.orphans(long_ago, 10).await.unwrap(), [], "what is young may be half seen");
    bench.run("DELETE FROM message WHERE client_message_id = 'kept'").await;
    let found = ledger.orphans(later(&*ledger).await, 10).await.unwrap();
    assert!(
        matches!(found[..], [Orphan::BodyMissing(_), Orphan::DeliveryWithoutMessage { .. }]),
        "{found:?}"
    );
}

pub async fn the_audit_finds_a_wrong_place_a_missing_delivery_and_a_mention_of_nothing(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let direct = accepted(&*ledger, &jane, text("@carl", "direct", "hi")).await.broker_message_id;
    accepted(&*ledger, &jane, text("@jane", "self", "hi")).await;
    let moved = accepted(&*ledger, &jane, text("@carl", "moved", "hi")).await.broker_message_id;
    accepted(&*ledger, &jane, mentioning(text("#t", "topic", "hi"), &["carl"])).await;
    let lost = accepted(&*ledger, &jane, text("#other", "lost", "hi")).await.broker_message_id;
    assert_eq!(audited(&*ledger).await, []);
    bench.run("UPDATE dedupe SET history_id = 77 WHERE client_message_id = 'moved'").await;
    assert_eq!(audited(&*ledger).await, [Orphan::PlaceMismatch(moved)]);
    bench.run("UPDATE dedupe SET conversation = 77 WHERE client_message_id = 'lost'").await;
    assert_eq!(audited(&*ledger).await, [Orphan::PlaceMismatch(lost), Orphan::PlaceMismatch(moved)]);
    bench
        .run("DELETE FROM delivery WHERE message IN (SELECT number FROM message WHERE client_message_id = 'direct')")
        .await;
    let found = audited(&*ledger).await;
    assert_eq!(found[2..], [Orphan::DirectWithoutDelivery(direct)]);
    bench.run("INSERT INTO mention_index (member, message) SELECT max(number), 999999 FROM member").await;
    assert_eq!(audited(&*ledger).await[3..], [Orphan::MentionWithoutMessage { message: 999_999 }]);
    let first = ledger.orphans(later(&*ledger).await, 1).await.unwrap();
    assert_eq!(first, [Orphan::PlaceMismatch(lost)], "as many as asked for");
}

async fn audited(ledger: &dyn Ledger) -> Vec<Orphan> {
    ledger.orphans(later(ledger).await, 10).await.unwrap()
}

pub async fn explain_gives_every_fact_by_either_id(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "1", "hi")).await;
    accepted(&*ledger, &carl, text("#t", "1", "hi")).await;
    let row = mail(&*ledger, &carl).await.remove(0);
    ledger.ack(&carl.via(), vec![ack(&row, DeliveryRung::Delivered)]).await.unwrap();
    let by_message = ledger.explain(&Wanted::Message(receipt.broker_message_id)).await.unwrap();
    assert_eq!(by_message.len(), 1);
    let facts = &by_message[0];
    assert_eq!((&facts.sender, facts.client_message_id.as_str()), (&jane.person, "1"));
    let dedupe = facts.dedupe.unwrap();
    assert_eq!(dedupe.first_seen_at, receipt.accepted_at);
    assert_eq!(dedupe.expires_at, Some(receipt.accepted_at + DAY * limits::DEDUPE_DAYS_MIN));
    let accepted = facts.accepted.as_ref().unwrap();
    assert_eq!((accepted.id, accepted.history_id), (receipt.broker_message_id, receipt.history_id));
    assert_eq!(accepted.place.name, ConversationName::Dm(member_name("carl")));
    let delivery = &accepted.deliveries[0];
    assert_eq!((&delivery.recipient, delivery.rung), (&carl.person, DeliveryRung::Delivered));
    assert_eq!(delivery.rung_told, Some(DeliveryRung::Accepted));
    assert_eq!(delivery.delivered_at, Some(row.created_at));
    let by_client = ledger.explain(&Wanted::Client("1".parse().unwrap())).await.unwrap();
    let senders: Vec<_> = by_client.iter().map(|facts| facts.sender.name.as_str()).collect();
    assert_eq!(senders, ["jane", "carl"]);
    assert_eq!(&by_client[0], facts);
    assert_eq!(by_client[1].accepted.as_ref().unwrap().deliveries, []);
    let never = Wanted::Message(MessageId::from_bytes([9; 16]));
    assert_eq!(ledger.explain(&never).await.unwrap(), []);
    assert_eq!(ledger.explain(&Wanted::Client("never".parse().unwrap())).await.unwrap(), []);
}

pub async fn a_kept_message_is_explained_by_its_id_after_the_id_was_forgotten(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let old = accepted(&*ledger, &jane, text("@carl", "1", "old")).await;
    accepted(&*ledger, &carl, text("#t", "1", "another's")).await;
    let fenced = text("@carl", "2", "fenced off");
    let question = StatusQuestion {
        sender: jane.id(),
        client_message_id: fenced.client_message_id,
        fingerprint: fenced.fingerprint,
        first_attempt_at: ledger.now().await.unwrap(),
    };
    ledger.message_status(&jane.via(), vec![question], Fence::Retire).await.unwrap();
    bench.advance(PAST_WINDOW);
    assert_eq!(forgotten(&*ledger).await, 3);
    assert_eq!(bench.count("outlived").await, 2, "a fenced id has no message");
    let explained = async |id: &str| ledger.explain(&Wanted::Client(id.parse().unwrap())).await.unwrap();
    let ids = |found: &[Explained]| -> Vec<_> {
        found
            .iter()
            .map(|facts| (facts.dedupe.is_some(), facts.accepted.as_ref().map(|facts| facts.id)))
            .collect()
    };
    let found = explained("1").await;
    assert_eq!((&found[0].sender, &found[1].sender), (&jane.person, &carl.person));
    assert_eq!(ids(&found[..1]), [(false, Some(old.broker_message_id))]);
    assert_eq!(explained("2").await, []);
    let new = accepted(&*ledger, &jane, text("@carl", "1", "new")).await;
    let found = explained("1").await;
    let expected = [(true, Some(new.broker_message_id)), (false, Some(old.broker_message_id))];
    assert_eq!(ids(&found[..2]), expected, "what the id means now comes first");
    let by_message = ledger.explain(&Wanted::Message(old.broker_message_id)).await.unwrap();
    assert_eq!(by_message, found[1..2], "the newer message's row says nothing of the older");
    let cut = Timestamp::from_micros(new.accepted_at.as_micros());
    assert_eq!(ledger.prune_messages(cut, 100).await.unwrap().messages, 2);
    assert_eq!(bench.count("outlived").await, 0, "the way goes with its message");
    assert_eq!(ids(&explained("1").await), [(true, Some(new.broker_message_id))]);
}
