//! Door ②: every answer, and what each leaves behind.

use std::time::Duration;

use model::{DeliveryRung, ErrorCode, MemberKind, NodeKey};

use super::Bench;
use super::town::*;
use crate::*;

pub async fn a_retry_is_answered_with_the_first_receipt(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("#alerts", "a", "hi")).await;
    bench.advance(Duration::from_secs(1));
    for _ in 0..2 {
        let again = send(&*ledger, &jane, vec![text("#alerts", "a", "hi")]).await.remove(0);
        let admission = Admission::Duplicate { history_available: true };
        assert_eq!(again, Outcome::Admitted { receipt, admission });
    }
    assert_eq!(newest(&*ledger, "alerts", jane.id()).await.rows.len(), 1);
    let known = ledger.known(jane.id(), &"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(known.fingerprint, text("#alerts", "a", "hi").fingerprint);
}

pub async fn an_id_used_for_another_text_is_refused_with_what_it_holds(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let first = text("#alerts", "a", "hi");
    let held = first.fingerprint;
    accepted(&*ledger, &jane, first).await;
    let refusal = refused(&*ledger, &jane, text("#alerts", "a", "other")).await;
    assert_eq!((refusal.code, refusal.held), (ErrorCode::IdempotencyKeyReused, Some(held)));
    assert_eq!(bodies(&newest(&*ledger, "alerts", jane.id()).await), ["hi"]);
}

pub async fn two_senders_one_id_one_text_are_two_messages(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let first = accepted(&*ledger, &jane, text("#alerts", "1", "hi")).await;
    let second = accepted(&*ledger, &carl, text("#alerts", "1", "hi")).await;
    assert_ne!(first.broker_message_id, second.broker_message_id);
    assert_eq!((first.history_id, second.history_id), (1, 2));
    assert_eq!(newest(&*ledger, "alerts", jane.id()).await.rows.len(), 2);
}

pub async fn no_refusal_leaves_a_row_in_any_table(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let closed = accepted(&*ledger, &jane, text("#closed", "c", "hi")).await.conversation;
    ledger.set_conversation_state(closed, ConversationState::Closed).await.unwrap();
    ledger.host_member(&member_name("gone"), MemberKind::Service).await.unwrap();
    ledger.remove_member(&member_name("gone")).await.unwrap();
    let now = ledger.now().await.unwrap();
    let past = |mut message: Submission, deadline: fn(&mut Submission) -> &mut Option<model::Timestamp>| {
        *deadline(&mut message) = Some(now);
        message
    };
    let nobody = NodeKey::from_bytes([9; 32]).to_string();
    let cases = [
        (text("@nobody", "x", "hi"), ErrorCode::MemberNotFound),
        (text("@gone", "x", "hi"), ErrorCode::MemberNotFound),
        (text(&nobody, "x", "hi"), ErrorCode::MemberNotFound),
        (mentioning(text("#fresh", "x", "hi"), &["carl", "nobody"]), ErrorCode::MentionUnknown),
        (mentioning(text("@carl", "x", "hi"), &["gone"]), ErrorCode::MentionUnknown),
        (past(text("#fresh", "x", "hi"), |m| &mut m.send_deadline), ErrorCode::SendDeadlinePassed),
        (past(text("@carl", "x", "hi"), |m| &mut m.deliver_by), ErrorCode::DeliverByPassed),
        (text("#closed", "x", "hi"), ErrorCode::ConversationClosed),
    ];
    let before = row_counts(&bench).await;
    for (message, code) in cases {
        assert_eq!(refused(&*ledger, &jane, message).await.code, code);
        assert_eq!(row_counts(&bench).await, before, "{code}");
    }
    // A sender that is not the link's, and one that was removed.
    let foreign = LaneSubmission {
        via: jane.via(),
        sender: carl.id(),
        messages: vec![text("#fresh", "x", "hi"), text("#fresh", "y", "hi")],
    };
    let refusal = Outcome::Refused(Refusal::plain(ErrorCode::NotAtHome));
    assert_eq!(ledger.accept(foreign).await.unwrap(), [refusal.clone(), refusal]);
    assert_eq!(row_counts(&bench).await, before);
}

pub async fn a_removed_sender_is_refused(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let bot = ledger.register_member(&jane.link, &member_name("bot"), MemberKind::Agent).await.unwrap();
    let lane = |id| LaneSubmission {
        via: jane.via(),
        sender: bot.member().id,
        messages: vec![text("#alerts", id, "hi")],
    };
    assert!(matches!(ledger.accept(lane("a")).await.unwrap()[0], Outcome::Admitted { .. }));
    ledger.remove_member(&member_name("bot")).await.unwrap();
    let refusal = Outcome::Refused(Refusal::plain(ErrorCode::Revoked));
    assert_eq!(ledger.accept(lane("b")).await.unwrap(), std::slice::from_ref(&refusal));
    let direct = LaneSubmission { via: Via::Broker, ..lane("b") };
    assert_eq!(ledger.accept(direct).await.unwrap(), [refusal]);
}

pub async fn an_unknown_topic_is_made_in_an_open_mesh_and_refused_in_a_declared_one(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("#open", "a", "hi")).await;
    accepted(&*ledger, &carl, text("#open", "a", "hi")).await;
    let topics = ledger.topics(jane.id(), None, 10).await.unwrap();
    assert_eq!((topics.len(), topics[0].subscribers, topics[0].subscribed), (1, 1, true));
    let carls = ledger.topics(carl.id(), None, 10).await.unwrap();
    assert!(!carls[0].subscribed, "a post subscribes its sender only when it makes the topic");
    ledger.set_policies(Policies { topics: TopicPolicy::Declared, ..POLICIES }).await.unwrap();
    let before = row_counts(&bench).await;
    let refusal = refused(&*ledger, &jane, text("#fresh", "b", "hi")).await;
    assert_eq!((refusal.code, refusal.detail.as_deref()), (ErrorCode::TopicNotFound, Some("fresh")));
    assert_eq!(row_counts(&bench).await, before);
    ledger.create_topic(jane.id(), &topic("fresh")).await.unwrap();
    accepted(&*ledger, &carl, text("#fresh", "b", "hi")).await;
}

pub async fn a_committed_id_keeps_its_answer_after_its_deadlines(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let now = ledger.now().await.unwrap();
    let mut message = text("#alerts", "a", "hi");
    message.send_deadline = Some(now + Duration::from_secs(60));
    message.deliver_by = Some(now + Duration::from_secs(60));
    let receipt = accepted(&*ledger, &jane, message.clone()).await;
    bench.advance(Duration::from_secs(61));
    let admission = Admission::Duplicate { history_available: true };
    assert_eq!(
        send(&*ledger, &jane, vec![message.clone()]).await,
        [Outcome::Admitted { receipt, admission }]
    );
    message.client_message_id = "b".parse().unwrap();
    assert_eq!(refused(&*ledger, &jane, message).await.code, ErrorCode::SendDeadlinePassed);
}

pub async fn a_permanent_refusal_lets_the_lane_go_on_and_a_conditional_one_ends_it(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let bad_mention = || mentioning(text("@carl", "m", "hi"), &["nobody"]);
    let frame = vec![text("@carl", "a", "one"), bad_mention(), text("@carl", "b", "two")];
    let outcomes = send(&*ledger, &jane, frame).await;
    assert!(matches!(outcomes[0], Outcome::Admitted { .. }));
    assert!(matches!(&outcomes[1], Outcome::Refused(refusal) if refusal.code == ErrorCode::MentionUnknown));
    assert!(matches!(outcomes[2], Outcome::Admitted { .. }));
    let frame = vec![text("@carl", "c", "three"), text("@nobody", "d", "?"), text("@carl", "e", "four")];
    let outcomes = send(&*ledger, &jane, frame).await;
    assert!(matches!(outcomes[0], Outcome::Admitted { .. }));
    assert!(matches!(&outcomes[1], Outcome::Refused(refusal) if refusal.code == ErrorCode::MemberNotFound));
    assert_eq!(outcomes[2], Outcome::NotTried);
    let got: Vec<_> = mail(&*ledger, &carl).await.into_iter().map(|row| row.envelope).collect();
    assert_eq!(got, [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
}

pub async fn an_id_twice_in_one_frame_is_one_message(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let frame =
        vec![text("#t", "a", "hi"), text("#t", "a", "hi"), text("#t", "a", "ho"), text("#t", "b", "hu")];
    let outcomes = send(&*ledger, &jane, frame).await;
    let Outcome::Admitted { receipt, admission: Admission::New { .. } } = outcomes[0] else {
        panic!("the first copy is accepted, not {:?}", outcomes[0]);
    };
    let admission = Admission::Duplicate { history_available: true };
    assert_eq!(outcomes[1], Outcome::Admitted { receipt, admission });
    assert!(
        matches!(&outcomes[2], Outcome::Refused(refusal) if refusal.code == ErrorCode::IdempotencyKeyReused)
    );
    assert!(matches!(outcomes[3], Outcome::Admitted { receipt, .. } if receipt.history_id == 2));
    assert_eq!(bodies(&newest(&*ledger, "t", jane.id()).await), ["hi", "hu"]);
}

pub async fn an_id_refused_and_repeated_in_one_frame_gets_its_own_turn(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let bad = mentioning(text("#t", "a", "hi"), &["nobody"]);
    let outcomes = send(&*ledger, &jane, vec![bad, text("#t", "a", "hi")]).await;
    assert!(matches!(&outcomes[0], Outcome::Refused(refusal) if refusal.code == ErrorCode::MentionUnknown));
    assert!(matches!(outcomes[1], Outcome::Admitted { admission: Admission::New { .. }, .. }));
}

pub async fn topic_recipients_are_subscribers_and_mentioned_without_the_sender(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let names = ["sub", "both", "named", "idle"];
    for name in names {
        ledger.register_member(&carl.link, &member_name(name), MemberKind::Agent).await.unwrap();
    }
    accepted(&*ledger, &jane, text("#t", "first", "hi")).await;
    for name in ["sub", "both"] {
        let member = ledger.member_named(&member_name(name)).await.unwrap().unwrap();
        ledger.subscribe(member.id, &topic("t")).await.unwrap();
    }
    let message = mentioning(text("#t", "second", "hi"), &["both", "named", "jane", "named"]);
    let receipt = accepted(&*ledger, &jane, message).await;
    let rung = DeliveryRung::Accepted;
    let expected = [("both".to_owned(), rung), ("named".to_owned(), rung), ("sub".to_owned(), rung)];
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await, expected);
    assert_eq!(bench.count("mention_index").await, 3);
}

pub async fn a_direct_message_reaches_its_one_member_by_name_by_key_and_oneself(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let by_name = accepted(&*ledger, &jane, text("@carl", "a", "one")).await;
    let by_key = accepted(&*ledger, &jane, text(&carl.key.to_string(), "b", "two")).await;
    let back = accepted(&*ledger, &carl, text("@jane", "a", "three")).await;
    assert_eq!(by_name.conversation, by_key.conversation, "one conversation per pair, however it is spelt");
    assert_eq!(by_name.conversation, back.conversation, "and in both directions");
    assert_eq!([by_name.history_id, by_key.history_id, back.history_id], [1, 2, 3]);
    let own = accepted(&*ledger, &jane, text("@me", "c", "note")).await;
    let spelt = accepted(&*ledger, &jane, text("@jane", "d", "note")).await;
    assert_eq!(own.conversation, spelt.conversation);
    assert_eq!(rungs(&*ledger, own.broker_message_id).await, [("jane".to_owned(), DeliveryRung::Accepted)]);
    let third = mentioning(text("@carl", "e", "about bot"), &["jane", "carl"]);
    let named = accepted(&*ledger, &jane, third).await;
    let expected = [("carl".to_owned(), DeliveryRung::Accepted)];
    assert_eq!(rungs(&*ledger, named.broker_message_id).await, expected);
}

pub async fn a_third_member_named_in_a_direct_message_gets_nothing(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let dora = join(&*ledger, "dora", Role::Member).await;
    let receipt = accepted(&*ledger, &jane, mentioning(text("@carl", "a", "hi"), &["dora"])).await;
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await.len(), 1);
    assert_eq!(mail(&*ledger, &dora).await, []);
    assert_eq!(bench.count("mention_index").await, 0);
}

pub async fn a_member_the_broker_hosts_has_its_message_at_once(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    ledger.host_member(&member_name("ci"), MemberKind::Service).await.unwrap();
    let receipt = accepted(&*ledger, &jane, text("@ci", "a", "hi")).await;
    let expected = [("ci".to_owned(), DeliveryRung::Delivered)];
    assert_eq!(rungs(&*ledger, receipt.broker_message_id).await, expected);
    let told = receipts(&*ledger, &jane).await;
    assert_eq!((told.len(), told[0].rung, told[0].at), (1, DeliveryRung::Delivered, receipt.accepted_at));
}

pub async fn a_topic_without_readers_is_accepted_history(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("#alone", "a", "hi")).await;
    assert_eq!(ledger.rungs(receipt.broker_message_id).await.unwrap(), []);
    assert_eq!(bodies(&newest(&*ledger, "alone", jane.id()).await), ["hi"]);
}

pub async fn places_are_gapless_and_instants_rise_when_the_clock_goes_back(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let mut receipts = Vec::new();
    for id in ["a", "b", "c"] {
        receipts.push(accepted(&*ledger, &jane, text("#t", id, id)).await);
        bench.set_back(Duration::from_secs(3600));
    }
    let places: Vec<_> = receipts.iter().map(|receipt| receipt.history_id).collect();
    assert_eq!(places, [1, 2, 3]);
    assert!(receipts.windows(2).all(|pair| pair[0].accepted_at < pair[1].accepted_at), "{receipts:?}");
    assert_eq!(bodies(&newest(&*ledger, "t", jane.id()).await), ["a", "b", "c"]);
}

pub async fn a_fenced_link_writes_nothing(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let newer = come_back(&*ledger, "jane", "1").await;
    assert_eq!(newer.link.epoch, jane.link.epoch + 1);
    let before = row_counts(&bench).await;
    let lane = LaneSubmission { via: jane.via(), sender: jane.id(), messages: vec![text("#t", "a", "hi")] };
    let refusal = ledger.accept(lane).await.unwrap_err();
    assert!(matches!(refusal, LinkError::Refused(LinkRefused::Replaced)), "{refusal}");
    assert_eq!(refusal.code(), ErrorCode::LinkReplaced);
    assert_eq!(row_counts(&bench).await, before);
    let newer = Home { link: newer.link, ..jane };
    accepted(&*ledger, &newer, text("#t", "a", "hi")).await;
}

pub async fn a_question_waits_until_another_member_speaks(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let mut question = text("@carl", "q", "ready?");
    question.expects_input = true;
    let asked = accepted(&*ledger, &jane, question).await;
    let look = || async {
        let row = ledger.conversation(asked.conversation, carl.id()).await.unwrap().unwrap();
        (row.awaiting, row.awaiting_rev)
    };
    let waiting = Some(Awaiting { history_id: 1, by: jane.id() });
    assert_eq!(look().await, (waiting, 1));
    accepted(&*ledger, &jane, text("@carl", "r", "hello?")).await;
    assert_eq!(look().await, (waiting, 1), "the asker's own words do not answer");
    accepted(&*ledger, &carl, text("@jane", "s", "yes")).await;
    assert_eq!(look().await, (None, 2));
}

pub async fn what_was_answered_is_there_after_a_restart(mut bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    drop(ledger);
    bench.reopen().await;
    let ledger = bench.ledger();
    let again = send(&*ledger, &jane, vec![text("@carl", "a", "hi")]).await.remove(0);
    assert_eq!(
        again,
        Outcome::Admitted { receipt, admission: Admission::Duplicate { history_available: true } }
    );
    assert_eq!(mail(&*ledger, &carl).await.len(), 1);
    assert_eq!(ledger.mesh().await.unwrap().slug, "home");
}

pub async fn a_commit_wakes_whoever_waits(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let mut committed = ledger.committed();
    committed.mark_unchanged();
    accepted(&*ledger, &jane, text("#t", "a", "hi")).await;
    committed.changed().await.unwrap();
}
