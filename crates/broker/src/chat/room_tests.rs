use super::super::row::ending;
use super::*;
use model::{MemberId, MessageId, Timestamp};

pub(in super::super) fn row(seq: u64) -> HistoryRow {
    let id = MessageId::from_bytes([u8::try_from(seq % 251).unwrap(); 16]);
    let at = Timestamp::from_micros(i64::try_from(seq).unwrap());
    HistoryRow {
        id,
        history_id: seq,
        cursor: Cursor::After { at, id, epoch: 0 },
        sender: MemberId::from_bytes([1; 16]),
        sender_name: "jane".parse().unwrap(),
        client_message_id: "a".parse().unwrap(),
        created_at: at,
        envelope: br##"{"client_message_id":"a","to":"#t","body":"hi"}"##.to_vec(),
    }
}

fn room_at(seq: u64) -> Room {
    let end = Place { epoch: 0, seq, cursor: Cursor::Start };
    Room {
        conversation: ConversationId::from_bytes([9; 16]),
        tail: Mutex::new(Tail::at(end)),
        changed: watch::Sender::new(()),
        bell: Arc::new(Notify::new()),
        rooms: Rooms::default(),
        reading: Mutex::new(None),
        handed: Mutex::default(),
    }
}

fn at(seq: u64) -> Place {
    Place { epoch: 0, seq, cursor: Cursor::Start }
}

fn numbers(next: Next) -> Option<Vec<u64>> {
    match next {
        Next::Rows(span) => Some(span.rows().iter().map(|row| row.place.seq).collect()),
        Next::Nothing => Some(Vec::new()),
        Next::Elsewhere => None,
    }
}

#[test]
fn a_room_has_what_follows_from_where_it_began_and_sends_others_to_the_ledger() {
    let room = room_at(5);
    assert_eq!(numbers(room.after(&at(5), &ending("#t", None))), Some(Vec::new()));
    assert_eq!(numbers(room.after(&at(4), &ending("#t", None))), None);
    room.push(0, &[row(6), row(7), row(8)]);
    assert_eq!(numbers(room.after(&at(5), &ending("#t", None))), Some(vec![6, 7, 8]));
    assert_eq!(numbers(room.after(&at(7), &ending("#t", None))), Some(vec![8]));
    assert_eq!(numbers(room.after(&at(8), &ending("#t", None))), Some(Vec::new()));
    assert_eq!(
        numbers(room.after(&at(9), &ending("#t", None))),
        Some(Vec::new()),
        "a follower may be ahead of the room"
    );
    assert!(room.has(0, 8) && !room.has(0, 9) && !room.has(1, 8));
}

#[test]
fn another_generation_and_a_closed_room_say_nothing_about_what_follows() {
    let room = room_at(5);
    room.push(0, &[row(6)]);
    assert_eq!(numbers(room.after(&Place { epoch: 1, ..at(5) }, &ending("#t", None))), None);
    room.close();
    assert_eq!(numbers(room.after(&at(5), &ending("#t", None))), None);
}

#[test]
fn a_room_keeps_a_bounded_end_and_hands_out_a_bounded_part() {
    let room = room_at(0);
    for chunk in 0..20 {
        let rows: Vec<_> = (1..=100).map(|n| row(chunk * 100 + n)).collect();
        room.push(0, &rows);
    }
    let kept = lock(&room.tail).rows.len();
    assert_eq!(kept, limits::TAIL_ROWS_MAX);
    assert_eq!(numbers(room.after(&at(2_000 - kept as u64 - 1), &ending("#t", None))), None);
    let handed = numbers(room.after(&at(2_000 - kept as u64), &ending("#t", None))).unwrap();
    assert_eq!(handed.len(), limits::SUBSCRIBER_FRAMES_MAX);
}

#[test]
fn rows_that_do_not_follow_each_other_are_never_handed_out_as_if_they_did() {
    let room = room_at(0);
    room.push(0, &[row(1), row(2)]);
    room.push(0, &[row(9), row(10)]);
    assert_eq!(numbers(room.after(&at(2), &ending("#t", None))), None);
    assert_eq!(numbers(room.after(&at(8), &ending("#t", None))), Some(vec![9, 10]));
}

#[test]
fn a_committed_row_is_taken_behind_the_one_before_it_and_no_other_is() {
    let room = room_at(5);
    let take = |epoch, seq| room.take(epoch, seq, || row(seq));
    assert!(take(0, 6) && take(0, 7));
    assert!(take(0, 6), "it has that one");
    assert!(!take(0, 9), "one is missing");
    assert!(!take(1, 8), "the log begins anew");
    assert_eq!(numbers(room.after(&at(5), &ending("#t", None))), Some(vec![6, 7]));
    room.push(0, &[row(6), row(7), row(8), row(9)]);
    assert_eq!(
        numbers(room.after(&at(5), &ending("#t", None))),
        Some(vec![6, 7, 8, 9]),
        "a read that began before the rows were handed over"
    );
    room.push(0, &[row(8), row(9)]);
    assert!(take(0, 10));
    assert_eq!(numbers(room.after(&at(7), &ending("#t", None))), Some(vec![8, 9, 10]));
    room.close();
    assert!(!take(0, 11), "a closed room takes nothing");
}

#[test]
fn readers_at_one_place_who_call_a_log_alike_share_the_frames() {
    let room = room_at(5);
    room.push(0, &[row(6), row(7)]);
    let span = |seq, name| match room.after(&at(seq), &ending(name, None)) {
        Next::Rows(span) => span,
        Next::Nothing | Next::Elsewhere => panic!("rows follow"),
    };
    let one = span(5, "#t");
    assert!(Arc::ptr_eq(&one, &span(5, "#t")));
    assert!(!Arc::ptr_eq(&one, &span(6, "#t")));
    assert!(!Arc::ptr_eq(&one, &span(5, "@jane")));
    for n in 8..=20 {
        room.push(0, &[row(n)]);
        assert_eq!(span(n - 2, "#t").end().seq, n, "what came since is handed out too");
    }
    assert!(lock(&room.tail).spans.len() <= SPANS_MAX);
}

#[test]
fn only_a_crowd_is_given_time_and_never_much_of_it() {
    for (followers, micros) in
        [(0, 0), (1, 0), (16, 0), (17, 1_020), (100, 6_000), (1_000, 20_000), (10_000, 20_000)]
    {
        assert_eq!(pause_after(followers), Duration::from_micros(micros), "{followers}");
    }
}
