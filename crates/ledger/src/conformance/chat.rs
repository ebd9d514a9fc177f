//! Following logs, what waits for an answer, what was read, and browsers that sign in.

use std::time::Duration;

use model::limits::{ESCALATION_KEPT, SESSION_TTL, SIGN_IN_TTL, TICKET_TTL};
use model::{ConversationId, Cursor, Timestamp};

use super::Bench;
use super::town::*;
use crate::*;

async fn post(ledger: &dyn Ledger, from: &Home, count: usize) -> ConversationId {
    let mut log = None;
    for n in 0..count {
        log = Some(accepted(ledger, from, text("#t", &format!("m{n}"), &n.to_string())).await.conversation);
    }
    log.unwrap()
}

async fn follow(ledger: &dyn Ledger, log: ConversationId, reader: &Home, after: Cursor) -> Followed {
    ledger.follow(log, Follower::Member(reader.id()), after, 100).await.unwrap().unwrap()
}

fn question(to: &str, id: &str) -> Submission {
    let mut message = text(to, id, "may I?");
    message.expects_input = true;
    message
}

async fn edges(ledger: &dyn Ledger) -> Vec<(u64, Option<u64>)> {
    let edges = ledger.escalation_edges(Timestamp::from_micros(0), 100).await.unwrap();
    edges.iter().map(|edge| (edge.rev, edge.question.as_ref().map(|question| question.history_id))).collect()
}

pub async fn a9_1_and_7_from_the_start_come_all_rows_and_a_cursor_that_is_read_back(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 3).await;
    let rows = follow(&*ledger, log, &carl, Cursor::Start).await.rows;
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let text = row.cursor.to_string();
        assert!(!text.is_empty());
        assert_eq!(text.parse(), Ok(row.cursor));
    }
}

pub async fn a9_2_at_the_end_nothing_comes_and_the_cursor_stays(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 3).await;
    let end = follow(&*ledger, log, &carl, Cursor::Start).await.rows[2].cursor;
    let page = HistoryPage::After(end);
    let history = ledger.history(&Log::Conversation(log), carl.id(), page, 10).await.unwrap().unwrap();
    assert_eq!((history.rows.len(), history.cursor), (0, end));
}

pub async fn a9_3_and_5_between_two_cursors_lies_only_the_gap(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 5).await;
    let rows = follow(&*ledger, log, &carl, Cursor::Start).await.rows;
    for (place, row) in rows.iter().enumerate() {
        let after = follow(&*ledger, log, &carl, row.cursor).await.rows;
        assert_eq!(after, rows[place + 1..], "strictly after, and all of it");
    }
}

/// The store's clock does not move while these are written.
pub async fn a9_4_rows_of_one_instant_keep_an_order_and_are_resumed_amid(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let messages = (0..5).map(|n| text("#t", &format!("m{n}"), &n.to_string())).collect();
    send(&*ledger, &jane, messages).await;
    let log = ledger.conversations(jane.id(), 1).await.unwrap()[0].place.conversation;
    let rows = follow(&*ledger, log, &carl, Cursor::Start).await.rows;
    let texts = |rows: &[HistoryRow]| -> Vec<String> {
        rows.iter().map(|row| String::from_utf8(row.envelope.clone()).unwrap()).collect()
    };
    assert_eq!(texts(&rows), ["0", "1", "2", "3", "4"]);
    let rest = follow(&*ledger, log, &carl, rows[2].cursor).await.rows;
    assert_eq!(texts(&rest), ["3", "4"]);
}

pub async fn a9_6_a_malformed_cursor_is_told_as_one(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 1).await;
    for text in ["x", "1:2", "1.5:x:0", "::", "1.000000000:"] {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
    let Cursor::After { at, id, epoch } = follow(&*ledger, log, &carl, Cursor::Start).await.rows[0].cursor
    else {
        panic!("a row has a place");
    };
    let forged = Cursor::After { at: Timestamp::from_micros(at.as_micros() - 1), id, epoch };
    let refused = ledger.follow(log, Follower::Member(carl.id()), forged, 10).await.unwrap_err();
    assert!(matches!(refused, HistoryError::InvalidCursor), "{refused}");
    assert_eq!(refused.code().code(), "invalid_cursor");
}

pub async fn a_follower_gets_the_rows_after_its_place_and_the_places_number(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 5).await;
    let all = follow(&*ledger, log, &carl, Cursor::Start).await;
    assert_eq!((all.from, all.rows.len(), all.has_more, all.epoch), (0, 5, false, 0));
    assert_eq!(all.name, Some(ConversationName::Topic(topic("t"))));
    let some = ledger.follow(log, Follower::Member(carl.id()), all.rows[1].cursor, 2).await.unwrap().unwrap();
    assert_eq!((some.from, some.has_more), (2, true));
    assert_eq!(some.rows.iter().map(|row| row.history_id).collect::<Vec<_>>(), [3, 4]);
    let tail = follow(&*ledger, log, &carl, all.rows[4].cursor).await;
    assert_eq!((tail.from, tail.rows.len(), tail.has_more), (5, 0, false));
}

pub async fn a_log_is_followed_by_who_may_read_it_and_by_a_broker(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let dora = join(&*ledger, "dora", Role::Member).await;
    let log = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await.conversation;
    let follow = async |follower| ledger.follow(log, follower, Cursor::Start, 10).await.unwrap();
    let name = follow(Follower::Member(carl.id())).await.unwrap().name;
    assert_eq!(name, Some(ConversationName::Dm(member_name("jane"))));
    assert_eq!(follow(Follower::Member(dora.id())).await, None);
    let broker = follow(Follower::Broker).await.unwrap();
    assert_eq!((broker.name, broker.rows.len()), (None, 1));
    ledger.remove_member(&member_name("carl")).await.unwrap();
    assert_eq!(follow(Follower::Member(carl.id())).await, None);
    let nowhere = ConversationId::from_bytes([9; 16]);
    assert_eq!(ledger.follow(nowhere, Follower::Broker, Cursor::Start, 10).await.unwrap(), None);
}

pub async fn seq_order_is_the_order_of_time_and_id(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 30).await;
    let rows = follow(&*ledger, log, &carl, Cursor::Start).await.rows;
    let mut by_time = rows.clone();
    by_time.sort_by_key(|row| (row.created_at, row.id));
    assert_eq!(by_time, rows);
    assert!(rows.windows(2).all(|pair| pair[0].created_at < pair[1].created_at), "no instant twice");
}

pub async fn the_clock_set_back_leaves_the_order_of_commits(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 2).await;
    let seen = follow(&*ledger, log, &carl, Cursor::Start).await.rows;
    bench.set_back(Duration::from_secs(3600));
    accepted(&*ledger, &jane, text("#t", "later", "later")).await;
    let next = follow(&*ledger, log, &carl, seen[1].cursor).await.rows;
    assert_eq!(next.len(), 1, "a reader at the end sees what was committed after it");
    assert!(next[0].created_at > seen[1].created_at);
}

pub async fn a_clock_set_back_by_more_than_a_second_is_told(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let regressed = ledger.clock_regressed();
    post(&*ledger, &jane, 2).await;
    assert_eq!(*regressed.borrow(), Regressed::default());
    bench.set_back(Duration::from_secs(3600));
    accepted(&*ledger, &jane, text("#t", "later", "later")).await;
    let seen = *regressed.borrow();
    assert_eq!(seen.messages, 1);
    assert!(seen.by > Duration::from_secs(3590) && seen.by <= Duration::from_secs(3601), "{seen:?}");
    accepted(&*ledger, &jane, text("#new", "first", "a log without a past")).await;
    accepted(&*ledger, &jane, text("#t", "last", "last")).await;
    assert_eq!(regressed.borrow().messages, 2);
}

pub async fn an_emptied_log_has_a_new_epoch_and_old_places_are_gone(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 3).await;
    let rows = follow(&*ledger, log, &carl, Cursor::Start).await.rows;
    let emptied = ledger.empty_conversation(log).await.unwrap();
    assert_eq!(emptied, Some(Emptied { epoch: 1, removed: 3 }));
    for row in &rows {
        let gone = ledger.follow(log, Follower::Member(carl.id()), row.cursor, 10).await.unwrap_err();
        assert!(matches!(gone, HistoryError::CursorExpired { .. }), "{gone}");
    }
    let page =
        ledger.history(&Log::Conversation(log), carl.id(), HistoryPage::Newest, 10).await.unwrap().unwrap();
    assert_eq!((page.rows.len(), page.epoch), (0, 1));
    let again = send(&*ledger, &jane, vec![text("#t", "m0", "0")]).await.remove(0);
    let Outcome::Admitted { admission: Admission::Duplicate { history_available }, .. } = again else {
        panic!("an id stays used: its retry is answered, not written again; not {again:?}");
    };
    assert!(!history_available);
    accepted(&*ledger, &jane, text("#t", "new", "new")).await;
    let next = follow(&*ledger, log, &carl, page.cursor).await;
    assert_eq!(next.rows.iter().map(|row| row.history_id).collect::<Vec<_>>(), [4], "numbers go on");
    assert_eq!(ledger.empty_conversation(ConversationId::from_bytes([9; 16])).await.unwrap(), None);
}

pub async fn emptying_goes_on_over_many_rounds(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let rows = model::limits::SWEEP_ROWS_MAX + 3;
    let messages = |from: usize| {
        let upto = (from + 64).min(rows);
        (from..upto).map(|n| text("#t", &format!("m{n}"), "x")).collect::<Vec<_>>()
    };
    for from in (0..rows).step_by(64) {
        let lane = LaneSubmission { via: jane.via(), sender: jane.id(), messages: messages(from) };
        ledger.accept(lane).await.unwrap();
    }
    let log = ledger.conversations(jane.id(), 1).await.unwrap()[0].place.conversation;
    let emptied = ledger.empty_conversation(log).await.unwrap().unwrap();
    assert_eq!(emptied, Emptied { epoch: 1, removed: rows as u64 });
    assert_eq!(follow(&*ledger, log, &carl, Cursor::Start).await.rows, []);
    assert_eq!(bench.count("delivery").await, 0);
}

pub async fn heads_are_told_of_the_logs_that_exist(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 3).await;
    let other = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await.conversation;
    let nowhere = ConversationId::from_bytes([9; 16]);
    let mut heads = ledger.heads(&[log, nowhere, other]).await.unwrap();
    heads.sort_by_key(|head| head.head);
    let head = |conversation, head| LogHead { conversation, epoch: 0, head };
    assert_eq!(heads, [head(other, 1), head(log, 3)]);
}

pub async fn reading_marks_deliveries_and_never_goes_back(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.create_topic(carl.id(), &topic("t")).await.unwrap();
    let log = post(&*ledger, &jane, 3).await;
    accepted(&*ledger, &carl, text("#t", "own", "own")).await;
    let rows = follow(&*ledger, log, &carl, Cursor::Start).await.rows;
    let row = async || ledger.conversation(log, carl.id()).await.unwrap().unwrap();
    assert_eq!((row().await.read, row().await.unread), (0, 3), "one's own words are not unread");
    let state = ledger.mark_read(carl.id(), log, rows[1].cursor).await.unwrap();
    assert_eq!(state, Some(ReadState { read: 2, unread: 1 }));
    assert_eq!((row().await.read, row().await.unread), (2, 1));
    for (row, read) in [(1, true), (2, false)] {
        let facts = ledger.explain(&Wanted::Message(rows[row].id)).await.unwrap();
        let deliveries = &facts[0].accepted.as_ref().unwrap().deliveries;
        assert_eq!(deliveries[0].read_at.is_some(), read, "{row}");
    }
    let back = ledger.mark_read(carl.id(), log, rows[0].cursor).await.unwrap();
    assert_eq!(back, Some(ReadState { read: 2, unread: 1 }));
    let forged = Cursor::After { at: Timestamp::from_micros(1), id: rows[0].id, epoch: 0 };
    let refused = ledger.mark_read(carl.id(), log, forged).await.unwrap_err();
    assert!(matches!(refused, HistoryError::InvalidCursor), "{refused}");
    let dora = join(&*ledger, "dora", Role::Member).await;
    let direct = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await.conversation;
    assert_eq!(ledger.mark_read(dora.id(), direct, Cursor::Start).await.unwrap(), None);
}

pub async fn a_question_and_its_answer_are_edges_in_order(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let asked = accepted(&*ledger, &jane, question("@carl", "q1")).await;
    accepted(&*ledger, &jane, text("@carl", "more", "more")).await;
    assert_eq!(edges(&*ledger).await, [(1, Some(1))], "the asker's own words answer nothing");
    accepted(&*ledger, &jane, question("@carl", "q2")).await;
    accepted(&*ledger, &carl, text("@jane", "a", "yes")).await;
    accepted(&*ledger, &carl, text("@jane", "b", "really")).await;
    assert_eq!(edges(&*ledger).await, [(1, Some(1)), (2, Some(3)), (3, None)]);
    let edge = &ledger.escalation_edges(Timestamp::from_micros(0), 1).await.unwrap()[0];
    let asking = edge.question.as_ref().unwrap();
    assert_eq!((edge.conversation, asking.by.as_str()), (asked.conversation, "jane"));
    assert_eq!(asking.message.as_ref().unwrap().0, asked.broker_message_id);
    let later = Timestamp::from_micros(edge.at.as_micros() + 1);
    assert_eq!(ledger.escalation_edges(later, 100).await.unwrap().len(), 2);
}

pub async fn a_question_asked_and_answered_in_one_frame_is_two_edges(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let ask = async |home: &Home, messages| {
        let lane = LaneSubmission { via: home.via(), sender: home.id(), messages };
        ledger.accept(lane).await.unwrap();
    };
    // One commit may hold both: what was on and off again is still told.
    let (jane_asks, carl_answers) =
        (vec![question("#t", "q"), question("#t", "q2")], vec![text("#t", "a", "yes")]);
    tokio::join!(ask(&jane, jane_asks), async {
        while edges(&*ledger).await.is_empty() {}
        ask(&carl, carl_answers).await;
    });
    let edges = edges(&*ledger).await;
    assert_eq!(edges.last().unwrap().1, None);
    assert_eq!(edges.iter().map(|edge| edge.0).collect::<Vec<_>>(), [1, 2, 3]);
}

pub async fn what_waits_is_told_to_those_who_may_read_it(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let dora = join(&*ledger, "dora", Role::Member).await;
    accepted(&*ledger, &jane, question("@carl", "q")).await;
    accepted(&*ledger, &jane, question("#t", "q2")).await;
    let names = async |home: &Home| -> Vec<String> {
        let waiting = ledger.escalations(home.id(), 10).await.unwrap();
        waiting.iter().map(|one| one.audience.name_to(home.id()).unwrap().to_string()).collect()
    };
    assert_eq!(names(&carl).await, ["@jane", "#t"]);
    assert_eq!(names(&jane).await, ["@carl", "#t"]);
    assert_eq!(names(&dora).await, ["#t"]);
    accepted(&*ledger, &dora, text("#t", "a", "yes")).await;
    assert_eq!(names(&dora).await, Vec::<String>::new());
    let two = &ledger.escalations(carl.id(), 10).await.unwrap()[0].audience;
    assert_eq!(two.name_to(dora.id()), None);
}

pub async fn a_paused_conversation_takes_messages_and_a_closed_one_none(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let log = post(&*ledger, &jane, 1).await;
    let state = async || ledger.conversation(log, jane.id()).await.unwrap().unwrap().state;
    for (set, taken) in [
        (ConversationState::Paused, true),
        (ConversationState::Closed, false),
        (ConversationState::Active, true),
    ] {
        ledger.set_conversation_state(log, set).await.unwrap();
        assert_eq!(state().await, set);
        let outcome = send(&*ledger, &jane, vec![text("#t", &format!("in-{set}"), "x")]).await.remove(0);
        assert_eq!(matches!(outcome, Outcome::Admitted { .. }), taken, "{set}: {outcome:?}");
    }
}

pub async fn nodes_are_listed_with_what_is_held_for_them(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    accepted(&*ledger, &jane, text("@carl", "b", "hi")).await;
    let nodes = ledger.nodes(10).await.unwrap();
    let shown: Vec<_> = nodes.iter().map(|node| (node.name.as_str(), node.held)).collect();
    assert_eq!(shown, [("carl-host", 2), ("jane-host", 0)]);
    assert!(nodes[0].last_seen_at <= ledger.now().await.unwrap());
}

pub async fn a_sign_in_key_opens_one_session_in_its_time(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let now = ledger.now().await.unwrap();
    let until = ledger.create_sign_in(secret("key"), jane.id()).await.unwrap();
    assert!(until >= now + SIGN_IN_TTL);
    let session = ledger.open_session(secret("key"), secret("s1")).await.unwrap().unwrap();
    assert_eq!(session.member.id, jane.id());
    assert_eq!(ledger.session(secret("s1")).await.unwrap(), Some(session));
    assert_eq!(ledger.open_session(secret("key"), secret("s2")).await.unwrap(), None);
    assert_eq!(ledger.session(secret("s2")).await.unwrap(), None);
    assert_eq!(ledger.open_session(secret("unknown"), secret("s3")).await.unwrap(), None);
    ledger.create_sign_in(secret("late"), jane.id()).await.unwrap();
    bench.advance(SIGN_IN_TTL);
    assert_eq!(ledger.open_session(secret("late"), secret("s4")).await.unwrap(), None);
}

pub async fn many_uses_of_one_sign_in_key_open_one_session(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    ledger.create_sign_in(secret("key"), jane.id()).await.unwrap();
    let tries = (0..8).map(|n| {
        let ledger = ledger.clone();
        tokio::spawn(async move { ledger.open_session(secret("key"), secret(&format!("s{n}"))).await })
    });
    let mut opened = 0;
    for one in tries.collect::<Vec<_>>() {
        opened += usize::from(one.await.unwrap().unwrap().is_some());
    }
    assert_eq!((opened, bench.count("session").await), (1, 1));
}

pub async fn a_session_ends_with_its_time_its_end_and_its_member(bench: impl Bench) {
    let (ledger, _, carl) = two_homes(&bench).await;
    let open = async |name: &str| {
        ledger.create_sign_in(secret(&format!("key-{name}")), carl.id()).await.unwrap();
        ledger.open_session(secret(&format!("key-{name}")), secret(name)).await.unwrap().unwrap();
    };
    let live = async |name: &str| ledger.session(secret(name)).await.unwrap().is_some();
    open("ended").await;
    assert!(ledger.end_session(secret("ended")).await.unwrap());
    assert!(!live("ended").await && !ledger.end_session(secret("ended")).await.unwrap());
    open("late").await;
    bench.advance(SESSION_TTL);
    assert!(!live("late").await);
    open("removed").await;
    assert!(live("removed").await);
    ledger.remove_member(&member_name("carl")).await.unwrap();
    assert!(!live("removed").await);
    let gone = ledger.create_sign_in(secret("more"), carl.id()).await.unwrap_err();
    assert!(matches!(gone, ManageError::MemberNotFound(_)), "{gone}");
}

pub async fn a_socket_ticket_is_used_once_in_its_time(bench: impl Bench) {
    let (ledger, _, _) = two_homes(&bench).await;
    ledger.create_socket_ticket(secret("t1"), secret("credential")).await.unwrap();
    assert_eq!(ledger.use_socket_ticket(secret("t1")).await.unwrap(), Some(secret("credential")));
    assert_eq!(ledger.use_socket_ticket(secret("t1")).await.unwrap(), None);
    assert_eq!(ledger.use_socket_ticket(secret("unknown")).await.unwrap(), None);
    ledger.create_socket_ticket(secret("t2"), secret("credential")).await.unwrap();
    bench.advance(TICKET_TTL);
    assert_eq!(ledger.use_socket_ticket(secret("t2")).await.unwrap(), None);
}

pub async fn what_is_over_is_swept(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    ledger.create_sign_in(secret("k1"), jane.id()).await.unwrap();
    ledger.open_session(secret("k1"), secret("s1")).await.unwrap();
    ledger.create_socket_ticket(secret("t1"), secret("s1")).await.unwrap();
    accepted(&*ledger, &jane, question("#t", "q")).await;
    ledger.sweep_way_in().await.unwrap();
    for table in ["sign_in", "session", "socket_ticket", "escalation"] {
        assert_eq!(bench.count(table).await, 1, "{table} is not over yet");
    }
    bench.advance(SESSION_TTL.max(ESCALATION_KEPT) + Duration::from_secs(1));
    ledger.sweep_way_in().await.unwrap();
    for table in ["sign_in", "session", "socket_ticket", "escalation"] {
        assert_eq!(bench.count(table).await, 0, "{table}");
    }
    assert_eq!(ledger.escalations(jane.id(), 10).await.unwrap().len(), 1, "the level stays");
}
