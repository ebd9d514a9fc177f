use super::*;
use model::{MemberId, MessageId, Timestamp};

fn row(seq: u64) -> HistoryRow {
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
        tail: Mutex::new(Tail { end, rows: VecDeque::new(), bytes: 0, over: false }),
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
        Next::Rows(rows) => Some(rows.iter().map(|row| row.place.seq).collect()),
        Next::Nothing => Some(Vec::new()),
        Next::Elsewhere => None,
    }
}

#[test]
fn a_room_has_what_follows_from_where_it_began_and_sends_others_to_the_ledger() {
    let room = room_at(5);
    assert_eq!(numbers(room.after(&at(5))), Some(Vec::new()));
    assert_eq!(numbers(room.after(&at(4))), None);
    room.push(0, &[row(6), row(7), row(8)]);
    assert_eq!(numbers(room.after(&at(5))), Some(vec![6, 7, 8]));
    assert_eq!(numbers(room.after(&at(7))), Some(vec![8]));
    assert_eq!(numbers(room.after(&at(8))), Some(Vec::new()));
    assert_eq!(numbers(room.after(&at(9))), Some(Vec::new()), "a follower may be ahead of the room");
    assert!(room.has(0, 8) && !room.has(0, 9) && !room.has(1, 8));
}

#[test]
fn another_generation_and_a_closed_room_say_nothing_about_what_follows() {
    let room = room_at(5);
    room.push(0, &[row(6)]);
    assert_eq!(numbers(room.after(&Place { epoch: 1, ..at(5) })), None);
    room.close();
    assert_eq!(numbers(room.after(&at(5))), None);
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
    assert_eq!(numbers(room.after(&at(2_000 - kept as u64 - 1))), None);
    let handed = numbers(room.after(&at(2_000 - kept as u64))).unwrap();
    assert_eq!(handed.len(), limits::SUBSCRIBER_FRAMES_MAX);
}

#[test]
fn rows_that_do_not_follow_each_other_are_never_handed_out_as_if_they_did() {
    let room = room_at(0);
    room.push(0, &[row(1), row(2)]);
    room.push(0, &[row(9), row(10)]);
    assert_eq!(numbers(room.after(&at(2))), None);
    assert_eq!(numbers(room.after(&at(8))), Some(vec![9, 10]));
}

#[test]
fn a_frame_is_a_message_with_the_readers_name_for_the_log_and_its_tag() {
    let row = Row::new(ConversationId::from_bytes([9; 16]), 0, &row(3));
    let frame = row.frame(&ending("@ca\"rl", Some("s1")));
    let value: serde_json::Value = serde_json::from_str(&frame).unwrap();
    assert_eq!((&value["type"], &value["sub"]), (&"message".into(), &"s1".into()));
    assert_eq!((&value["conversation_name"], &value["body"]), (&"@ca\"rl".into(), &"hi".into()));
    assert_eq!((&value["history_id"], &value["client_message_id"]), (&3.into(), &"a".into()));
    let parsed: wire::chat::ToSubscriber = serde_json::from_str(&frame).unwrap();
    assert!(matches!(parsed, wire::chat::ToSubscriber::Message(_)));
    let plain: serde_json::Value = serde_json::from_str(&row.frame(&ending("#t", None))).unwrap();
    assert!(plain.get("sub").is_none());
}

#[test]
fn readers_who_call_a_log_alike_share_the_text() {
    let row = Row::new(ConversationId::from_bytes([9; 16]), 0, &row(3));
    let (one, same) = (row.frame(&ending("#t", None)), row.frame(&ending("#t", None)));
    assert_eq!(one.as_str().as_ptr(), same.as_str().as_ptr());
    assert_ne!(one.as_str().as_ptr(), row.frame(&ending("#t", Some("s"))).as_str().as_ptr());
}
