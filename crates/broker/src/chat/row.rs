//! Rows of a log as the frames their readers get.

use std::sync::{Arc, OnceLock};

use ledger::HistoryRow;
use model::{ConversationId, Epoch, MemberId, limits};
use net::socket::{Frames, Text};
use wire::message::{Message, MessageFields};

use super::room::Place;

/// Rows handed to a follower at once: more would wait for its socket in memory.
pub(super) const HANDED_ROWS_MAX: usize = limits::SUBSCRIBER_FRAMES_MAX;

/// A row as text, but for what differs between its readers.
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(super) sender: MemberId,
    head: String,
}

/// Rows that follow one another, at least one, for readers whose frames end alike.
pub(crate) struct Span {
    rows: Vec<Arc<Row>>,
    ending: Arc<str>,
    /// Made by the first who hands them out, for all.
    frames: OnceLock<Frames>,
}

impl Row {
    pub(super) fn new(conversation: ConversationId, epoch: Epoch, row: &HistoryRow) -> Self {
        let place = Place { epoch, seq: row.history_id, cursor: row.cursor };
        Self { place, sender: row.sender, head: head(conversation, row) }
    }

    pub(super) fn bytes(&self) -> usize {
        self.head.len()
    }

    /// The frame for readers whose frames end with `ending`.
    fn frame(&self, ending: &str) -> Text {
        Text::from(format!("{}{ending}", self.head))
    }
}

impl Span {
    /// The first of `rows`, as many as may be handed out at once; nothing when there is none.
    pub(super) fn first_of(rows: impl Iterator<Item = Arc<Row>>, ending: &Arc<str>) -> Option<Self> {
        let mut bytes = 0;
        let fitting = rows.take(HANDED_ROWS_MAX).enumerate().take_while(|(before, row)| {
            bytes += row.bytes();
            *before == 0 || bytes <= limits::HANDED_BYTES_MAX
        });
        let rows: Vec<_> = fitting.map(|(_, row)| row).collect();
        let frames = OnceLock::new();
        (!rows.is_empty()).then(|| Self { rows, ending: ending.clone(), frames })
    }

    pub(super) fn rows(&self) -> &[Arc<Row>] {
        &self.rows
    }

    /// The number of the first row.
    pub(super) fn begin(&self) -> u64 {
        self.rows.first().map_or(0, |row| row.place.seq)
    }

    /// The last row's place.
    pub(super) fn end(&self) -> Place {
        self.rows.last().expect("a span has a row").place
    }

    pub(super) fn is_for(&self, ending: &Arc<str>) -> bool {
        self.ending == *ending
    }

    /// The frames, one for each row.
    pub(super) fn frames(&self) -> &Frames {
        self.frames.get_or_init(|| self.texts().collect())
    }

    /// The same as texts.
    pub(super) fn texts(&self) -> impl Iterator<Item = Text> {
        self.rows.iter().map(|row| row.frame(&self.ending))
    }
}

/// What every frame of a reader ends with: what that reader calls the log, and its tag.
pub(super) fn ending(name: &str, sub: Option<&str>) -> Arc<str> {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let sub = sub.map_or_else(String::new, |sub| format!(",\"sub\":{}", text(sub)));
    format!(",\"conversation_name\":{}{sub}}}", text(name)).into()
}

/// The frame without its end.
fn head(conversation: ConversationId, row: &HistoryRow) -> String {
    let fields: MessageFields = match serde_json::from_slice(&row.envelope) {
        Ok(fields) => fields,
        Err(error) => {
            // A place in the log must not vanish: its reader would wait for it for ever.
            tracing::error!(%error, id = %row.id, "a stored envelope cannot be read");
            unreadable(row)
        }
    };
    let message = Message {
        id: row.id,
        conversation,
        conversation_name: None,
        history_id: row.history_id,
        sender: row.sender_name.clone(),
        created_at: row.created_at,
        cursor: row.cursor.to_string(),
        redelivered: false,
        fields,
    };
    let text = serde_json::to_string(&message).expect("messages are made of maps with text keys");
    let fields = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    format!("{{\"type\":\"message\",{}", fields.expect("a message is an object"))
}

fn unreadable(row: &HistoryRow) -> MessageFields {
    let body = "(this message cannot be read)";
    serde_json::from_value(serde_json::json!({
        "client_message_id": row.client_message_id.as_str(), "to": "@me", "body": body
    }))
    .expect("these are the fields a message must have")
}

#[cfg(test)]
mod tests {
    use super::super::room::test_row;
    use super::*;

    fn row(seq: u64) -> Arc<Row> {
        Arc::new(Row::new(ConversationId::from_bytes([9; 16]), 0, &test_row(seq)))
    }

    #[test]
    fn a_frame_is_a_message_with_the_readers_name_for_the_log_and_its_tag() {
        let frame = row(3).frame(&ending("@ca\"rl", Some("s1")));
        let value: serde_json::Value = serde_json::from_str(&frame).unwrap();
        assert_eq!((&value["type"], &value["sub"]), (&"message".into(), &"s1".into()));
        assert_eq!((&value["conversation_name"], &value["body"]), (&"@ca\"rl".into(), &"hi".into()));
        assert_eq!((&value["history_id"], &value["client_message_id"]), (&3.into(), &"a".into()));
        let parsed: wire::chat::ToSubscriber = serde_json::from_str(&frame).unwrap();
        assert!(matches!(parsed, wire::chat::ToSubscriber::Message(_)));
        let plain: serde_json::Value = serde_json::from_str(&row(3).frame(&ending("#t", None))).unwrap();
        assert!(plain.get("sub").is_none());
    }

    #[test]
    fn a_span_is_bounded_in_rows_and_in_bytes_and_has_at_least_one() {
        let ending = ending("#t", None);
        let span = |rows: usize, bytes: usize| {
            let Row { place, sender, .. } = *row(1);
            let rows = (0..rows).map(|_| Arc::new(Row { place, sender, head: "x".repeat(bytes) }));
            Span::first_of(rows, &ending).map(|span| span.rows().len())
        };
        assert_eq!(span(0, 1), None);
        assert_eq!(span(1_000, 1), Some(HANDED_ROWS_MAX));
        assert_eq!(span(3, limits::HANDED_BYTES_MAX / 2), Some(2));
        assert_eq!(span(2, limits::HANDED_BYTES_MAX + 1), Some(1));
    }
}
