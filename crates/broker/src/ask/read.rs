//! Questions that change nothing.

use ledger::{Fence, History, HistoryError, HistoryPage, Log, StatusQuestion, Via};
use model::admission;
use model::{ConversationId, ErrorCode, Fingerprint, MemberId, MessageId, TopicName, limits};
use wire::Refused;
use wire::ask::{ConversationRow, MemberRow, Policies, RecipientRung, StatusAnswer, TopicRow};
use wire::link::AcceptedRow;
use wire::log::{Page, PageRequest};
use wire::message::Message;

use super::{Asker, member_ref, storage};
use crate::broker::Shared;
use crate::message;

/// A page's messages together: an answer is one frame, and envelopes around them need room too.
const PAGE_BYTES_MAX: usize = limits::FRAME_BYTES_MAX * 3 / 4;

/// A page of a log that `reader` may read; nothing when it may not, or when there is no such log.
pub(crate) async fn page(
    shared: &Shared,
    log: &Log,
    reader: MemberId,
    asked: PageRequest,
) -> Result<Option<Page>, Refused> {
    let limit = asked.limit.unwrap_or(limits::PAGE_ROWS_DEFAULT).clamp(1, limits::PAGE_ROWS_MAX);
    let place = match asked.before.as_deref() {
        None | Some("") => HistoryPage::Newest,
        Some(cursor) => {
            let cursor = cursor.parse().map_err(|_| Refused::plain(ErrorCode::InvalidCursor))?;
            HistoryPage::Before(cursor)
        }
    };
    match shared.ledger.history(log, reader, place, limit).await {
        Ok(Some(history)) => to_page(&history).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(unread(error)),
    }
}

/// A conversation as a reader's list shows it.
pub(crate) fn conversation_row(row: &ledger::ConversationRow) -> ConversationRow {
    ConversationRow {
        conversation: row.place.conversation,
        conversation_name: row.place.name.to_string(),
        kind: row.kind.word().to_owned(),
        state: row.state.word().to_owned(),
        head: row.head,
        last_at: row.last_at,
        awaiting: row.awaiting.map(|awaiting| awaiting.history_id),
        awaiting_rev: row.awaiting_rev,
        read: row.read,
        unread: row.unread,
    }
}

/// The rule's word on an id, as it is told.
pub(crate) fn status_answer(answer: admission::StatusAnswer, fingerprint: Fingerprint) -> StatusAnswer {
    match answer {
        admission::StatusAnswer::Accepted(receipt) => StatusAnswer::Accepted(AcceptedRow {
            status: 200,
            request_fingerprint: fingerprint,
            broker_message_id: receipt.broker_message_id,
            conversation: receipt.conversation,
            history_id: receipt.history_id,
            created_at: receipt.accepted_at,
            duplicate: true,
            history_available: true,
        }),
        admission::StatusAnswer::AcceptedOtherFingerprint => StatusAnswer::AcceptedOtherFingerprint,
        admission::StatusAnswer::Retired => StatusAnswer::Retired,
        admission::StatusAnswer::Absent => StatusAnswer::Absent,
        admission::StatusAnswer::Unknown => StatusAnswer::Unknown,
    }
}

impl Asker<'_> {
    pub(super) async fn topic_history(&self, topic: TopicName, asked: PageRequest) -> Result<Page, Refused> {
        let found = page(self.shared, &Log::Topic(topic.clone()), self.member.id, asked).await?;
        found.ok_or_else(|| Refused::plain(ErrorCode::TopicNotFound).with("detail", format!("#{topic}")))
    }

    pub(super) async fn conversation(&self, id: ConversationId, asked: PageRequest) -> Result<Page, Refused> {
        let found = page(self.shared, &Log::Conversation(id), self.member.id, asked).await?;
        found.ok_or_else(|| Refused::plain(ErrorCode::ConversationNotFound))
    }

    pub(super) async fn conversations(&self) -> Result<Vec<ConversationRow>, Refused> {
        let rows =
            self.shared.ledger.conversations(self.member.id, limits::PAGE_ROWS_MAX).await.map_err(storage)?;
        Ok(rows.iter().map(conversation_row).collect())
    }

    pub(super) async fn members(&self) -> Result<Vec<MemberRow>, Refused> {
        let rows = self.shared.ledger.members(None, limits::PAGE_ROWS_MAX).await.map_err(storage)?;
        Ok(rows.iter().filter(|member| member.removed_at.is_none()).map(member_row).collect())
    }

    pub(super) async fn topics(&self) -> Result<Vec<TopicRow>, Refused> {
        let rows =
            self.shared.ledger.topics(self.member.id, None, limits::PAGE_ROWS_MAX).await.map_err(storage)?;
        Ok(rows.into_iter().map(topic_row).collect())
    }

    /// Only of a message this member sent.
    pub(super) async fn rungs(&self, id: MessageId) -> Result<Vec<RecipientRung>, Refused> {
        let wanted = ledger::Wanted::Message(id);
        let found = self.shared.ledger.explain(&wanted).await.map_err(storage)?;
        if !found.iter().any(|explained| explained.sender.id == self.member.id) {
            return Err(Refused::plain(ErrorCode::NotFound));
        }
        let rungs = self.shared.ledger.rungs(id).await.map_err(storage)?;
        Ok(rungs.into_iter().map(|(recipient, rung)| RecipientRung { recipient, rung }).collect())
    }

    /// The ledger answers only for members at home on this node.
    pub(super) async fn message_status(
        &self,
        asked: StatusQuestion,
        fence: bool,
    ) -> Result<StatusAnswer, Refused> {
        let (via, fingerprint) = (Via::Link(self.link.clone()), asked.fingerprint);
        let fence = if fence { Fence::Retire } else { Fence::None };
        let answered = self.shared.ledger.message_status(&via, vec![asked], fence).await;
        let mut answers = answered.map_err(|error| match error {
            ledger::LinkError::Refused(refused) => Refused::plain(refused.code()),
            ledger::LinkError::Storage(error) => storage(error),
        })?;
        let answer = answers.pop().expect("one answer for one question");
        Ok(status_answer(answer, fingerprint))
    }

    pub(super) async fn policies(&self) -> Result<Policies, Refused> {
        let mesh = self.shared.ledger.mesh().await.map_err(storage)?;
        Ok(super::manage::policies_row(&mesh.policies))
    }
}

pub(crate) fn member_row(member: &ledger::Member) -> MemberRow {
    MemberRow {
        member: member_ref(member),
        home: member.home.as_ref().map(ToString::to_string),
        role: member.role.word().to_owned(),
    }
}

pub(super) fn topic_row(row: ledger::TopicRow) -> TopicRow {
    TopicRow { topic: row.topic, conversation: row.conversation, head: row.head, subscribed: row.subscribed }
}

/// The newest of the page's messages that fit an answer; the rest is a page further back.
fn to_page(history: &History) -> Result<Page, Refused> {
    let mut bytes = 0;
    let fitting = history.rows.iter().rev().take_while(|row| {
        bytes += row.envelope.len();
        bytes <= PAGE_BYTES_MAX
    });
    // One row alone always fits: a body is 64 KiB.
    let kept = fitting.count().max(1).min(history.rows.len());
    let rows = &history.rows[history.rows.len() - kept..];
    let cut = kept < history.rows.len();
    let before = if cut { rows[0].cursor } else { history.before };
    let messages: Result<Vec<Message>, _> =
        rows.iter().map(|row| message::of_history(row, &history.place)).collect();
    let messages = messages.map_err(|error| {
        tracing::error!(%error, "a stored envelope cannot be read");
        Refused::plain(ErrorCode::Internal)
    })?;
    Ok(Page {
        messages,
        cursor: history.cursor.to_string(),
        before: before.to_string(),
        has_more: cut || history.has_more,
    })
}

fn unread(error: HistoryError) -> Refused {
    match error {
        HistoryError::InvalidCursor => Refused::plain(ErrorCode::InvalidCursor),
        HistoryError::CursorExpired { first_available } => {
            Refused::plain(ErrorCode::CursorExpired).with("first_available", first_available.to_string())
        }
        HistoryError::Storage(error) => storage(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{ConversationName, HistoryRow, Place};
    use model::{Cursor, Timestamp};

    fn history(bodies: &[usize]) -> History {
        let place = Place {
            conversation: ConversationId::from_bytes([9; 16]),
            name: ConversationName::Topic("alerts".parse().unwrap()),
        };
        let rows = bodies.iter().enumerate().map(|(n, size)| {
            let seq = n as u64 + 1;
            let id = MessageId::from_bytes([n as u8; 16]);
            let at = Timestamp::from_micros(seq as i64);
            HistoryRow {
                id,
                history_id: seq,
                cursor: Cursor::After { at, id, epoch: 0 },
                sender: MemberId::from_bytes([1; 16]),
                sender_name: "jane".parse().unwrap(),
                client_message_id: "a".parse().unwrap(),
                created_at: at,
                envelope: format!(
                    r##"{{"client_message_id":"a","to":"#alerts","body":"{}"}}"##,
                    "x".repeat(*size)
                )
                .into_bytes(),
            }
        });
        let rows: Vec<_> = rows.collect();
        let cursor = rows.last().unwrap().cursor;
        History { place, rows, cursor, before: Cursor::Start, has_more: false, epoch: 0 }
    }

    #[test]
    fn a_page_too_large_for_one_answer_keeps_its_newest_rows_and_says_where_the_others_are() {
        let history = history(&[60_000; 20]);
        let page = to_page(&history).unwrap();
        assert_eq!(page.messages.last().unwrap().history_id, 20);
        let first = page.messages.first().unwrap();
        assert!(page.has_more && (2..20).contains(&page.messages.len()), "{}", page.messages.len());
        assert_eq!(page.before, first.cursor);
        assert_eq!(page.cursor, history.cursor.to_string(), "paging never moves the join point");
        assert!(serde_json::to_string(&page).unwrap().len() < limits::FRAME_BYTES_MAX);
    }

    #[test]
    fn a_page_that_fits_is_whole() {
        let page = to_page(&history(&[1, 2, 3])).unwrap();
        assert_eq!((page.messages.len(), page.has_more, page.before.as_str()), (3, false, ""));
        assert_eq!(page.messages[0].conversation_name.as_deref(), Some("#alerts"));
    }
}
