//! A ledger's row as the message a reader gets.

use ledger::{HistoryRow, MailRow, Place};
use wire::message::Message;

/// The mail row as its recipient gets it.
pub(crate) fn of_mail(row: &MailRow) -> Result<Message, serde_json::Error> {
    Ok(Message {
        id: row.id,
        conversation: row.place.conversation,
        conversation_name: Some(row.place.name.to_string()),
        history_id: row.history_id,
        sender: row.sender_name.clone(),
        created_at: row.created_at,
        cursor: row.cursor.to_string(),
        redelivered: row.redelivered,
        fields: serde_json::from_slice(&row.envelope)?,
    })
}

/// The log row as a reader of `place` gets it.
pub(crate) fn of_history(row: &HistoryRow, place: &Place) -> Result<Message, serde_json::Error> {
    Ok(Message {
        id: row.id,
        conversation: place.conversation,
        conversation_name: Some(place.name.to_string()),
        history_id: row.history_id,
        sender: row.sender_name.clone(),
        created_at: row.created_at,
        cursor: row.cursor.to_string(),
        redelivered: false,
        fields: serde_json::from_slice(&row.envelope)?,
    })
}
