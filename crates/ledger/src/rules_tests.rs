use model::admission::KnownState;
use model::ageing::ForgottenUpto;
use model::outbox::{BrokerReceipt, DedupeWindow};
use model::{ConversationId, To};

use super::*;
use crate::types::mesh::ConnectionPolicy;

const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

fn member(number: i64, home: Option<i64>) -> MemberFacts {
    MemberFacts { number, home, removed: false }
}

fn log(closed: bool) -> LogFacts {
    LogFacts {
        number: 7,
        id: ConversationId::from_bytes([7; 16]),
        head_seq: 3,
        head_ts: Timestamp::from_micros(10),
        closed,
        awaiting: None,
        awaiting_rev: 0,
        generation: 0,
    }
}

fn message(to: &str) -> Submission {
    Submission {
        client_message_id: "a".parse().unwrap(),
        fingerprint: Fingerprint::from_bytes([1; 32]),
        to: to.parse().unwrap(),
        mentions: Vec::new(),
        expects_input: false,
        send_deadline: None,
        deliver_by: None,
        envelope: Vec::new(),
    }
}

fn facts(destination: Destination) -> Facts {
    let policies = Policies {
        topics: TopicPolicy::Open,
        dedupe: DedupeWindow::Days(7),
        connections: ConnectionPolicy::PreferNewest,
    };
    Facts {
        now: NOW,
        forgotten: ForgottenUpto::at(NOW),
        policies,
        speaker: Speaker::Node(5),
        sender: Some(member(1, Some(5))),
        destination,
        mentions: Vec::new(),
    }
}

fn code(message: &Submission, facts: &Facts) -> Option<ErrorCode> {
    judge(message, facts).err().map(|refusal| refusal.code)
}

#[test]
fn a_known_id_has_its_answer_in_every_cell() {
    let (one, two) = (Fingerprint::from_bytes([1; 32]), Fingerprint::from_bytes([2; 32]));
    let receipt = BrokerReceipt {
        broker_message_id: MessageId::from_bytes([3; 16]),
        conversation: ConversationId::from_bytes([4; 16]),
        history_id: 9,
        accepted_at: NOW,
    };
    let accepted =
        Known { fingerprint: one, state: KnownState::Accepted { receipt, history_available: false } };
    let retired = Known { fingerprint: one, state: KnownState::Retired };
    let duplicate =
        Outcome::Admitted { receipt, admission: Admission::Duplicate { history_available: false } };
    let reused =
        Outcome::Refused(Refusal { code: ErrorCode::IdempotencyKeyReused, held: Some(one), detail: None });
    let gone = Outcome::Refused(Refusal::plain(ErrorCode::IdRetired));
    for (known, incoming, expected) in [
        (None, one, None),
        (Some(&accepted), one, Some(duplicate)),
        (Some(&accepted), two, Some(reused)),
        (Some(&retired), one, Some(gone.clone())),
        (Some(&retired), two, Some(gone)),
    ] {
        assert_eq!(settled(known, &incoming), expected);
    }
}

#[test]
fn a_node_speaks_for_its_own_members_and_the_broker_for_all_that_were_not_removed() {
    let here = member(1, Some(5));
    let removed = MemberFacts { removed: true, ..here };
    for (sender, speaker, expected) in [
        (Some(here), Speaker::Node(5), None),
        (Some(here), Speaker::Node(6), Some(ErrorCode::NotAtHome)),
        (Some(member(1, None)), Speaker::Node(5), Some(ErrorCode::NotAtHome)),
        (Some(removed), Speaker::Node(5), Some(ErrorCode::Revoked)),
        (Some(removed), Speaker::Node(6), Some(ErrorCode::NotAtHome)),
        (None, Speaker::Node(5), Some(ErrorCode::NotAtHome)),
        (Some(here), Speaker::Broker, None),
        (Some(removed), Speaker::Broker, Some(ErrorCode::Revoked)),
        (None, Speaker::Broker, Some(ErrorCode::Revoked)),
    ] {
        let facts = Facts { sender, speaker, ..facts(Destination::Topic(Some(log(false)))) };
        assert_eq!(code(&message("#a"), &facts), expected, "{sender:?} {speaker:?}");
    }
}

#[test]
fn a_destination_is_judged_in_every_cell() {
    let peer = member(2, None);
    let removed = MemberFacts { removed: true, ..peer };
    let dm = |peer, log| Destination::Dm { peer, log };
    for (to, destination, topics, expected) in [
        ("#a", Destination::Topic(Some(log(false))), TopicPolicy::Declared, None),
        ("#a", Destination::Topic(Some(log(true))), TopicPolicy::Open, Some(ErrorCode::ConversationClosed)),
        ("#a", Destination::Topic(None), TopicPolicy::Open, None),
        ("#a", Destination::Topic(None), TopicPolicy::Declared, Some(ErrorCode::TopicNotFound)),
        ("@b", dm(Some(peer), None), TopicPolicy::Declared, None),
        ("@b", dm(Some(peer), Some(log(false))), TopicPolicy::Open, None),
        ("@b", dm(Some(peer), Some(log(true))), TopicPolicy::Open, Some(ErrorCode::ConversationClosed)),
        ("@b", dm(Some(removed), Some(log(false))), TopicPolicy::Open, Some(ErrorCode::MemberNotFound)),
        ("@b", dm(None, None), TopicPolicy::Open, Some(ErrorCode::MemberNotFound)),
    ] {
        let mut facts = facts(destination.clone());
        facts.policies.topics = topics;
        assert_eq!(code(&message(to), &facts), expected, "{destination:?} {topics:?}");
    }
}

#[test]
fn a_topic_is_made_only_where_topics_are_open() {
    let plan = judge(&message("#a"), &facts(Destination::Topic(None))).unwrap();
    assert_eq!(plan.target, Target::NewTopic("a".parse().unwrap()));
    assert!(matches!(message("#a").to, To::Topic(_)));
}

#[test]
fn an_unknown_or_removed_mention_refuses_and_a_repeated_one_counts_once() {
    let names: Vec<MemberName> = ["b", "c", "b"].iter().map(|name| name.parse().unwrap()).collect();
    let (b, c) = (member(2, None), member(3, None));
    let mut message = message("#a");
    message.mentions = names;
    let with = |mentions| Facts { mentions, ..facts(Destination::Topic(None)) };
    let plan = judge(&message, &with(vec![Some(b), Some(c), Some(b)])).unwrap();
    assert_eq!(plan.mentioned, [b, c]);
    for bad in [None, Some(MemberFacts { removed: true, ..c })] {
        let refusal = judge(&message, &with(vec![Some(b), bad, Some(b)])).unwrap_err();
        assert_eq!(refusal, Refusal::about(ErrorCode::MentionUnknown, "c"));
    }
}

#[test]
fn time_is_judged_before_the_destination_and_after_the_sender() {
    let mut late = message("@b");
    late.send_deadline = Some(NOW);
    let nowhere = facts(Destination::Dm { peer: None, log: None });
    assert_eq!(code(&late, &nowhere), Some(ErrorCode::SendDeadlinePassed));
    let stranger = Facts { sender: None, ..nowhere };
    assert_eq!(code(&late, &stranger), Some(ErrorCode::NotAtHome));
}

#[test]
fn a_place_is_the_next_number_and_a_later_instant_also_when_the_clock_went_back() {
    let ahead = LogFacts { head_ts: Timestamp::from_micros(NOW.as_micros() + 50), ..log(false) };
    assert_eq!(next_place(NOW, &log(false)), (4, NOW));
    assert_eq!(next_place(NOW, &ahead), (4, Timestamp::from_micros(NOW.as_micros() + 51)));
}

#[test]
fn a_clock_regressed_when_it_stands_more_than_a_second_behind_a_place() {
    for (placed_us, by_us) in [(-5, None), (0, None), (1_000_000, None), (1_000_001, Some(1_000_001))] {
        let placed = Timestamp::from_micros(NOW.as_micros() + placed_us);
        assert_eq!(regressed_by(NOW, placed), by_us.map(Duration::from_micros), "{placed_us}");
    }
}

#[test]
fn a_question_waits_until_somebody_else_speaks() {
    let asked = Question { seq: 3, by: 1 };
    let waiting = LogFacts { awaiting: Some(asked), awaiting_rev: 8, ..log(false) };
    for (log, sender, expects, expected) in [
        (&log(false), 1, false, (None, 0)),
        (&log(false), 1, true, (Some(Question { seq: 4, by: 1 }), 1)),
        (&waiting, 1, false, (Some(asked), 8)),
        (&waiting, 2, false, (None, 9)),
        (&waiting, 1, true, (Some(Question { seq: 4, by: 1 }), 9)),
        (&waiting, 2, true, (Some(Question { seq: 4, by: 2 }), 9)),
    ] {
        assert_eq!(awaiting_after(log, 4, sender, expects), expected, "{sender} {expects}");
    }
}

#[test]
fn only_a_permanent_refusal_lets_the_lane_go_on() {
    for (code, goes_on) in [
        (ErrorCode::MentionUnknown, true),
        (ErrorCode::IdRetired, true),
        (ErrorCode::MemberNotFound, false),
        (ErrorCode::TopicNotFound, false),
        (ErrorCode::StorageBusy, false),
    ] {
        assert_eq!(lane_goes_on(&Outcome::Refused(Refusal::plain(code))), goes_on, "{code}");
    }
    assert!(!lane_goes_on(&Outcome::NotTried));
}

#[test]
fn a_cursor_leads_to_its_row_to_the_floor_or_to_a_refusal_in_every_cell() {
    let id = |byte| MessageId::from_bytes([byte; 16]);
    let at = Timestamp::from_micros;
    let floor = Mark { conversation: 7, seq: 2, at: at(20), id: id(2) };
    let bare = Marks { conversation: 7, epoch: 1, floor: None };
    let pruned = Marks { floor: Some(floor), ..bare };
    let row = Mark { conversation: 7, seq: 5, at: at(50), id: id(5) };
    let cursor = |micros, byte, epoch| Cursor::After { at: at(micros), id: id(byte), epoch };
    let gone = Misplaced::Expired { first_available: Cursor::Start };
    let gone_after_floor = Misplaced::Expired { first_available: cursor(20, 2, 1) };
    let elsewhere = Mark { conversation: 8, ..row };
    for (cursor, marks, named, expected) in [
        (Cursor::Start, &bare, None, Ok(0)),
        (Cursor::Start, &pruned, None, Ok(2)),
        (cursor(50, 5, 1), &bare, Some(row), Ok(5)),
        (cursor(50, 5, 1), &bare, Some(elsewhere), Err(Misplaced::Invalid)),
        (cursor(51, 5, 1), &bare, Some(row), Err(Misplaced::Invalid)),
        (cursor(50, 5, 0), &bare, Some(row), Err(gone)),
        (cursor(20, 2, 1), &pruned, None, Ok(2)),
        (cursor(20, 2, 0), &pruned, None, Err(gone_after_floor)),
        (cursor(20, 9, 1), &pruned, None, Err(gone_after_floor)),
        (cursor(10, 1, 1), &pruned, None, Err(gone_after_floor)),
        (cursor(60, 6, 1), &bare, None, Err(gone)),
    ] {
        assert_eq!(place(cursor, marks, named), expected, "{cursor} {named:?}");
    }
}

#[test]
fn a_person_is_named_after_the_account_then_the_node_then_a_number() {
    let names = |account: Option<&str>, node: &str| -> Vec<String> {
        let account = account.map(|name| name.parse().unwrap());
        person_names(account.as_ref(), &node.parse().unwrap()).take(4).map(|name| name.to_string()).collect()
    };
    assert_eq!(names(Some("jane"), "mbp"), ["jane", "jane-mbp", "jane-mbp-2", "jane-mbp-3"]);
    assert_eq!(names(None, "mbp"), ["person", "person-mbp", "person-mbp-2", "person-mbp-3"]);
    let long = "x".repeat(limits::NAME_BYTES_MAX);
    let cut = names(Some(&long), &long);
    assert!(cut.iter().all(|name| name.len() <= limits::NAME_BYTES_MAX));
    assert_eq!(cut.iter().collect::<BTreeSet<_>>().len(), 4, "{cut:?}");
}

#[test]
fn an_ack_changes_a_delivery_row_in_every_cell() {
    for held in DeliveryRung::ALL {
        for told in DeliveryRung::ALL {
            let rung = (*held).max(*told);
            let ends = matches!(told, DeliveryRung::Expired | DeliveryRung::DeadLetter);
            let expected = match told {
                DeliveryRung::Accepted => None,
                _ if ends => (told > held).then_some(Climb { rung, reached: None, ends: true }),
                _ => Some(Climb { rung, reached: Some(*told), ends: false }),
            };
            assert_eq!(climb(*held, *told), expected, "{held} hears {told}");
        }
    }
}

#[test]
fn who_acks_for_whom() {
    for (speaker, home, expected) in [
        (Speaker::Node(5), Some(Some(5)), true),
        (Speaker::Node(5), Some(Some(6)), false),
        (Speaker::Node(5), Some(None), false),
        (Speaker::Node(5), None, true),
        (Speaker::Broker, Some(None), true),
        (Speaker::Broker, Some(Some(5)), false),
        (Speaker::Broker, None, true),
    ] {
        assert_eq!(acks_for(speaker, home), expected, "{speaker:?} {home:?}");
    }
}

#[test]
fn a_nodes_own_words_are_cut_and_carry_no_nul() {
    assert_eq!(plain("too\0_large"), "too_large");
    assert_eq!(plain(&"x".repeat(1000)).len(), limits::REFERENCE_BYTES_MAX);
}

#[test]
fn what_is_known_of_an_id_is_about_its_own_message() {
    let message = |byte| MessageId::from_bytes([byte; 16]);
    let receipt = BrokerReceipt {
        broker_message_id: message(1),
        conversation: ConversationId::from_bytes([7; 16]),
        history_id: 1,
        accepted_at: NOW,
    };
    let accepted = KnownState::Accepted { receipt, history_available: true };
    for (state, asked, expected) in [
        (accepted, None, true),
        (accepted, Some(message(1)), true),
        (accepted, Some(message(2)), false),
        (KnownState::Retired, None, true),
        (KnownState::Retired, Some(message(1)), false),
    ] {
        let known = Known { fingerprint: Fingerprint::from_bytes([1; 32]), state };
        assert_eq!(speaks_of(&known, asked), expected, "{state:?} {asked:?}");
    }
}

#[test]
fn an_inbox_that_tells_less_than_before_went_back() {
    for (before, told, expected) in [
        (0, None, InboxMark::Kept { upto: 0 }),
        (5, None, InboxMark::Kept { upto: 5 }),
        (0, Some(0), InboxMark::Kept { upto: 0 }),
        (5, Some(5), InboxMark::Kept { upto: 5 }),
        (5, Some(9), InboxMark::Kept { upto: 9 }),
        (5, Some(4), InboxMark::WentBack { from: 5, to: 4 }),
        (5, Some(0), InboxMark::WentBack { from: 5, to: 0 }),
    ] {
        assert_eq!(inbox_mark(before, told, InboxFile::Same), expected, "{before} {told:?}");
    }
    for (before, told, expected) in [
        (0, Some(0), InboxMark::Kept { upto: 0 }),
        (5, None, InboxMark::Kept { upto: 5 }),
        (50, Some(80), InboxMark::WentBack { from: 80, to: 0 }),
        (50, Some(0), InboxMark::WentBack { from: 50, to: 0 }),
        (0, Some(80), InboxMark::WentBack { from: 80, to: 0 }),
    ] {
        assert_eq!(inbox_mark(before, told, InboxFile::Another), expected, "another file: {before} {told:?}");
    }
    for (before, told, expected) in [
        (0, Some(0), InboxMark::WentBack { from: 0, to: 0 }),
        (5, None, InboxMark::Kept { upto: 5 }),
        (5, Some(5), InboxMark::WentBack { from: 5, to: 5 }),
        (5, Some(4), InboxMark::WentBack { from: 5, to: 4 }),
        (4, Some(5), InboxMark::WentBack { from: 5, to: 5 }),
    ] {
        assert_eq!(inbox_mark(before, told, InboxFile::Restored), expected, "restored: {before} {told:?}");
    }
}

#[test]
fn an_inbox_is_told_from_its_backups_and_from_other_files_by_its_epochs() {
    for (known, epoch, before, expected) in [
        (None, "a", None, InboxFile::Same),
        (None, "b", Some("a"), InboxFile::Restored),
        (Some("a"), "a", None, InboxFile::Same),
        (Some("b"), "b", Some("a"), InboxFile::Same),
        (Some("a"), "b", Some("a"), InboxFile::Restored),
        (Some("a"), "b", None, InboxFile::Another),
        (Some("a"), "c", Some("b"), InboxFile::Another),
    ] {
        assert_eq!(InboxFile::of(known, epoch, before), expected, "{known:?} {epoch} {before:?}");
    }
}

#[test]
fn an_inbox_has_it_again_with_the_rung_that_is_known_or_when_it_tells_no_places() {
    use DeliveryRung::{DeadLetter, Delivered, Engaged, Processed};
    for (held, told, place, expected) in [
        (Delivered, Delivered, Some(1), true),
        (Processed, Delivered, Some(1), false),
        (Processed, Engaged, Some(1), false),
        (Processed, Processed, Some(1), true),
        (Processed, Delivered, None, true),
        (Delivered, DeadLetter, None, true),
    ] {
        assert_eq!(has_it_again(held, told, place), expected, "{held:?} {told:?} {place:?}");
    }
}

#[test]
fn witnesses_tell_of_a_new_loss_only_behind_the_last_one() {
    let at = Timestamp::from_micros;
    let witness = |accepted_at: Option<i64>| Witness {
        sender: model::MemberId::from_bytes([1; 16]),
        client_message_id: "a".parse().unwrap(),
        broker_message_id: MessageId::from_bytes([2; 16]),
        accepted_at: accepted_at.map(at),
    };
    let heard = |told: &[(Option<i64>, bool)]| {
        told.iter()
            .fold(Testimony::default(), |sum, (accepted_at, held)| sum.heard(&witness(*accepted_at), *held))
    };
    let both = heard(&[(Some(9), false), (Some(7), false), (None, false), (Some(5), true), (Some(3), true)]);
    assert_eq!((both.held_upto, both.missing_from, both.is_missing), (Some(at(5)), Some(at(7)), true));
    for (told, upto, expected) in [
        (vec![], None, false),
        (vec![(Some(5), true)], None, false),
        (vec![(Some(5), false)], None, true),
        (vec![(None, false)], None, true),
        (vec![(None, false)], Some(4), false),
        (vec![(Some(5), false)], Some(5), false),
        (vec![(Some(5), false)], Some(4), true),
    ] {
        assert_eq!(heard(&told).is_news(upto.map(at)), expected, "{told:?} {upto:?}");
    }
}

#[test]
fn a_mark_from_before_the_last_note_of_the_same_books_tells_of_the_same_loss() {
    let at = Timestamp::from_micros;
    let last = LedgerWentBack { noticed_at: at(9), ends_at: at(5), upto: at(8), noticed_by: String::new() };
    for (marked_at, books_end, expected) in
        [(7, 5, true), (9, 5, true), (10, 5, false), (7, 4, false), (7, 6, false)]
    {
        assert_eq!(is_noted(&last, at(marked_at), at(books_end)), expected, "{marked_at} {books_end}");
    }
}
