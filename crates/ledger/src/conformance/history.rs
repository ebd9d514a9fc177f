//! Reading logs: pages, cursors, and who may read.

use model::{Cursor, MemberId, MessageId, Timestamp};

use super::Bench;
use super::town::*;
use crate::*;

async fn post(ledger: &dyn Ledger, from: &Home, count: usize) {
    for n in 0..count {
        accepted(ledger, from, text("#t", &format!("m{n}"), &n.to_string())).await;
    }
}

async fn page(ledger: &dyn Ledger, reader: MemberId, page: HistoryPage, limit: usize) -> History {
    ledger.history(&Log::Topic(topic("t")), reader, page, limit).await.unwrap().unwrap()
}

async fn refusal(ledger: &dyn Ledger, reader: MemberId, cursor: Cursor) -> HistoryError {
    ledger.history(&Log::Topic(topic("t")), reader, HistoryPage::After(cursor), 10).await.unwrap_err()
}

pub async fn pages_lead_back_to_the_start_and_keep_the_head(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    post(&*ledger, &jane, 5).await;
    let newest = page(&*ledger, carl.id(), HistoryPage::Newest, 2).await;
    assert_eq!((bodies(&newest), newest.has_more), (vec!["3".to_owned(), "4".to_owned()], true));
    assert_eq!((newest.cursor, newest.before), (newest.rows[1].cursor, newest.rows[0].cursor));
    assert_eq!(newest.place.name, ConversationName::Topic(topic("t")));
    let middle = page(&*ledger, carl.id(), HistoryPage::Before(newest.before), 2).await;
    assert_eq!((bodies(&middle), middle.has_more), (vec!["1".to_owned(), "2".to_owned()], true));
    assert_eq!(middle.cursor, newest.cursor, "paging back never moves the place to follow from");
    let oldest = page(&*ledger, carl.id(), HistoryPage::Before(middle.before), 2).await;
    assert_eq!(
        (bodies(&oldest), oldest.has_more, oldest.before),
        (vec!["0".to_owned()], false, Cursor::Start)
    );
    let whole = page(&*ledger, carl.id(), HistoryPage::Newest, 5).await;
    assert_eq!((whole.rows.len(), whole.has_more), (5, false));
    let row = &whole.rows[0];
    assert_eq!((row.sender, row.sender_name.as_str(), row.history_id), (jane.id(), "jane", 1));
}

pub async fn following_from_any_place_gives_each_row_once(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    post(&*ledger, &jane, 5).await;
    let mut cursor = Cursor::Start;
    let mut seen = Vec::new();
    loop {
        let next = page(&*ledger, carl.id(), HistoryPage::After(cursor), 2).await;
        assert_eq!(next.has_more, seen.len() + next.rows.len() < 5);
        if next.rows.is_empty() {
            assert_eq!(next.cursor, cursor, "an empty read returns its place unchanged");
            break;
        }
        seen.extend(bodies(&next));
        // As a client keeps it: printed and parsed.
        cursor = next.cursor.to_string().parse().unwrap();
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4"]);
    let joined = page(&*ledger, carl.id(), HistoryPage::Newest, 2).await;
    accepted(&*ledger, &jane, text("#t", "live", "live")).await;
    let live = page(&*ledger, carl.id(), HistoryPage::After(joined.cursor), 10).await;
    assert_eq!(bodies(&live), ["live"], "what follows a page joins it without gap or repeat");
}

pub async fn an_empty_log_is_followed_from_its_start(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    ledger.create_topic(jane.id(), &topic("t")).await.unwrap();
    let empty = page(&*ledger, jane.id(), HistoryPage::Newest, 10).await;
    assert_eq!((empty.rows.len(), empty.cursor, empty.has_more), (0, Cursor::Start, false));
    post(&*ledger, &jane, 1).await;
    assert_eq!(bodies(&page(&*ledger, jane.id(), HistoryPage::After(empty.cursor), 10).await), ["0"]);
}

pub async fn a_direct_conversation_is_read_by_its_two_and_unknown_to_others(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let dora = join(&*ledger, "dora", Role::Member).await;
    let receipt = accepted(&*ledger, &jane, text("@carl", "a", "hi")).await;
    let log = Log::Conversation(receipt.conversation);
    let read = async |reader| ledger.history(&log, reader, HistoryPage::Newest, 10).await.unwrap();
    for (reader, other) in [(&jane, "carl"), (&carl, "jane")] {
        let history = read(reader.id()).await.unwrap();
        assert_eq!(history.place.name, ConversationName::Dm(member_name(other)));
        assert_eq!(bodies(&history), ["hi"]);
        let listed = ledger.conversations(reader.id(), 10).await.unwrap();
        assert_eq!((listed.len(), &listed[0].place), (1, &history.place));
    }
    assert_eq!(read(dora.id()).await, None);
    assert_eq!(ledger.conversation(receipt.conversation, dora.id()).await.unwrap(), None);
    assert_eq!(ledger.conversations(dora.id(), 10).await.unwrap(), []);
    let unknown = Log::Conversation(model::ConversationId::from_bytes([9; 16]));
    assert_eq!(ledger.history(&unknown, jane.id(), HistoryPage::Newest, 10).await.unwrap(), None);
    let nowhere = Log::Topic(topic("nowhere"));
    assert_eq!(ledger.history(&nowhere, jane.id(), HistoryPage::Newest, 10).await.unwrap(), None);
    let own = accepted(&*ledger, &jane, text("@me", "b", "note")).await;
    let place = ledger.conversation(own.conversation, jane.id()).await.unwrap().unwrap().place;
    assert_eq!(place.name, ConversationName::Dm(member_name("jane")));
}

pub async fn a_removed_member_reads_nothing(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    post(&*ledger, &jane, 1).await;
    ledger.remove_member(&member_name("carl")).await.unwrap();
    let log = Log::Topic(topic("t"));
    assert_eq!(ledger.history(&log, carl.id(), HistoryPage::Newest, 10).await.unwrap(), None);
    assert_eq!(ledger.conversations(carl.id(), 10).await.unwrap(), []);
}

pub async fn a_cursor_of_another_log_or_a_forged_one_is_invalid(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    post(&*ledger, &jane, 1).await;
    let other = accepted(&*ledger, &jane, text("#other", "x", "hi")).await;
    let elsewhere = Cursor::After { at: other.accepted_at, id: other.broker_message_id, epoch: 0 };
    assert!(matches!(refusal(&*ledger, jane.id(), elsewhere).await, HistoryError::InvalidCursor));
    let Cursor::After { at, id, epoch } = page(&*ledger, jane.id(), HistoryPage::Newest, 1).await.cursor
    else {
        panic!("the log has a row");
    };
    let moved = Cursor::After { at: Timestamp::from_micros(at.as_micros() + 1), id, epoch };
    assert!(matches!(refusal(&*ledger, jane.id(), moved).await, HistoryError::InvalidCursor));
    let lost = Cursor::After { at, id: MessageId::from_bytes([9; 16]), epoch };
    let gone = refusal(&*ledger, jane.id(), lost).await;
    assert!(matches!(gone, HistoryError::CursorExpired { first_available: Cursor::Start }), "{gone}");
    let reset = Cursor::After { at, id, epoch: epoch + 1 };
    assert!(matches!(refusal(&*ledger, jane.id(), reset).await, HistoryError::CursorExpired { .. }));
}

/// A client away while rows it had not read were pruned.
pub async fn ce9_a_cursor_below_the_floor_is_told_and_never_skipped_over(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    post(&*ledger, &jane, 4).await;
    let rows = page(&*ledger, jane.id(), HistoryPage::Newest, 10).await.rows;
    let before = Timestamp::from_micros(rows[1].created_at.as_micros() + 1);
    assert_eq!(ledger.prune_messages(before, 100).await.unwrap(), Pruned { messages: 2, more: false });
    let floor = rows[1].cursor;
    let gone = refusal(&*ledger, jane.id(), rows[0].cursor).await;
    assert!(
        matches!(gone, HistoryError::CursorExpired { first_available } if first_available == floor),
        "{gone}"
    );
    let after_floor = page(&*ledger, jane.id(), HistoryPage::After(floor), 10).await;
    assert_eq!(bodies(&after_floor), ["2", "3"], "whoever has read the last pruned row has missed nothing");
    assert_eq!(bodies(&page(&*ledger, jane.id(), HistoryPage::After(Cursor::Start), 10).await), ["2", "3"]);
}

/// Restored by file copy: another row stands where the client's lost row stood.
pub async fn ce11_a_floor_with_another_id_is_no_place(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    post(&*ledger, &jane, 2).await;
    let rows = page(&*ledger, jane.id(), HistoryPage::Newest, 10).await.rows;
    let before = Timestamp::from_micros(rows[1].created_at.as_micros() + 1);
    assert_eq!(ledger.prune_messages(before, 100).await.unwrap().messages, 2);
    let emptied = page(&*ledger, jane.id(), HistoryPage::Newest, 10).await;
    assert_eq!((emptied.rows.len(), emptied.cursor), (0, rows[1].cursor), "the head stays a place");
    let lost = Cursor::After { at: rows[1].created_at, id: MessageId::from_bytes([9; 16]), epoch: 0 };
    assert!(matches!(refusal(&*ledger, jane.id(), lost).await, HistoryError::CursorExpired { .. }));
    let next = accepted(&*ledger, &jane, text("#t", "next", "next")).await;
    assert_eq!(next.history_id, 3);
    assert_eq!(bodies(&page(&*ledger, jane.id(), HistoryPage::After(emptied.cursor), 10).await), ["next"]);
}

pub async fn conversations_are_listed_last_active_first(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    ledger.create_topic(carl.id(), &topic("quiet")).await.unwrap();
    accepted(&*ledger, &jane, text("#t", "a", "hi")).await;
    let dm = accepted(&*ledger, &jane, text("@carl", "b", "hi")).await;
    let names = async |limit| -> Vec<String> {
        let rows = ledger.conversations(jane.id(), limit).await.unwrap();
        rows.iter().map(|row| row.place.name.to_string()).collect()
    };
    assert_eq!(names(10).await, ["@carl", "#t", "#quiet"]);
    assert_eq!(names(1).await, ["@carl"]);
    let row = ledger.conversation(dm.conversation, jane.id()).await.unwrap().unwrap();
    let kind = (row.kind, row.state, row.head, row.last_at);
    assert_eq!(kind, (ConversationKind::Dm, ConversationState::Active, 1, Some(dm.accepted_at)));
}
