//! An inbox that was rebuilt gets back from the broker's logs what it once had.
//!
//! - It is asked for once a rebuild, over the first link that answers; one that breaks off leaves it to the next.
//! - What comes back wakes nobody: it was delivered before, and says so.
//! - A log is read back as far as an inbox keeps bodies, holding places alone, then forward page by page: rows are
//!   stored in their order, and memory holds one page.

use std::collections::BTreeMap;
use std::time::Duration;

use mailbox::{Fact, Member};
use model::{MemberId, Timestamp, limits};
use sqlite::StorageError;
use wire::ask::{ConversationRow, MemberRow, Question, TopicRow};
use wire::link::MailRow;
use wire::log::{Page, PageRequest};
use wire::message::Message;

use crate::inbox::arrived;
use crate::link::{AskError, LinkEnd, Live};
use crate::mesh::Mesh;

/// How far back a log is read at most, in pages.
const PAGES_MAX: usize = 1_000;
const KEPT: Duration = Duration::from_secs(limits::INBOX_RETENTION_DAYS as u64 * 24 * 3600);

/// Why not everything came back.
enum Broken {
    /// The broker did not say; the next link asks again.
    Asked(AskError),
    /// The store could not take it.
    Stored(StorageError),
}

/// Fetches what a rebuilt inbox lacks. Nothing is done for one that was not rebuilt.
pub(crate) async fn refetch(mesh: &Mesh, live: &Live) -> Result<(), LinkEnd> {
    if !mesh.mailbox.meta().await?.inbox_rebuilt {
        return Ok(());
    }
    let mut rows = 0;
    for member in mesh.mailbox.members().await? {
        match (Refetch { mesh, live, member }).all().await {
            Ok(fetched) => rows += fetched,
            Err(Broken::Asked(error)) => {
                tracing::warn!(
                    mesh = mesh.slug,
                    ?error,
                    "the inbox is not whole yet; the next link asks again"
                );
                return Ok(());
            }
            Err(Broken::Stored(error)) => return Err(error.into()),
        }
    }
    mesh.mailbox.put_meta(vec![Fact::InboxRebuilt(false)]).await?;
    tracing::info!(mesh = mesh.slug, rows, "the inbox is whole again");
    Ok(())
}

/// One member's inbox.
struct Refetch<'a> {
    mesh: &'a Mesh,
    live: &'a Live,
    member: Member,
}

impl Refetch<'_> {
    async fn all(&self) -> Result<usize, Broken> {
        let members: Vec<MemberRow> = self.ask(Question::Members).await?;
        let senders = members.into_iter().map(|row| (row.member.name.to_string(), row.member.id)).collect();
        let topics: Vec<TopicRow> = self.ask(Question::Topics).await?;
        let subscribed = |log: &ConversationRow| {
            topics.iter().any(|row| row.subscribed && row.conversation == log.conversation)
        };
        let logs: Vec<ConversationRow> = self.ask(Question::Conversations).await?;
        let mut rows = 0;
        for log in logs.into_iter().filter(|log| log.kind == "dm" || subscribed(log)) {
            rows += self.one(&log, &senders).await?;
        }
        Ok(rows)
    }

    async fn one(
        &self,
        log: &ConversationRow,
        senders: &BTreeMap<String, MemberId>,
    ) -> Result<usize, Broken> {
        let now = self.live.broker_now(&*self.mesh.clock);
        let mut rows = 0;
        for before in self.places(log, now).await?.into_iter().rev() {
            let page = self.page(log, before).await?;
            let mail = page.messages.into_iter().filter(|message| now.since(message.created_at) <= KEPT);
            let mail = mail.filter_map(|message| self.mail(log, message, senders));
            let arrived: Vec<_> = mail.map(arrived).collect();
            rows += arrived.len();
            self.mesh.mailbox.record(arrived, self.mesh.clock.now(), now).await?;
        }
        Ok(rows)
    }

    /// Where the log's pages end, newest first.
    async fn places(&self, log: &ConversationRow, now: Timestamp) -> Result<Vec<Option<String>>, Broken> {
        let (mut places, mut before) = (Vec::new(), None);
        loop {
            let page = self.page(log, before.clone()).await?;
            places.push(before);
            let oldest = page.messages.first().map(|message| message.created_at);
            let further = oldest.is_some_and(|oldest| now.since(oldest) <= KEPT);
            if !page.has_more || !further || places.len() == PAGES_MAX {
                return Ok(places);
            }
            before = Some(page.before);
        }
    }

    async fn page(&self, log: &ConversationRow, before: Option<String>) -> Result<Page, Broken> {
        let page = PageRequest { before, limit: None };
        self.ask(Question::Conversation { conversation: log.conversation, page }).await
    }

    /// The member's own copy of a message; none when it never had one.
    fn mail(
        &self,
        log: &ConversationRow,
        mut message: Message,
        senders: &BTreeMap<String, MemberId>,
    ) -> Option<MailRow> {
        let name = self.member.name.as_str();
        let with_itself = log.conversation_name.strip_prefix('@') == Some(name);
        if message.sender.as_str() == name && !with_itself {
            return None;
        }
        message.redelivered = true;
        Some(MailRow {
            recipient: self.member.id,
            sender_id: *senders.get(message.sender.as_str())?,
            deliver_by: message.fields.deliver_by,
            read_at: None,
            again: None,
            message,
        })
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, question: Question) -> Result<T, Broken> {
        Ok(self.live.ask(self.member.id, question, limits::ASK_TIMEOUT).await?)
    }
}

impl From<AskError> for Broken {
    fn from(error: AskError) -> Self {
        Broken::Asked(error)
    }
}

impl From<StorageError> for Broken {
    fn from(error: StorageError) -> Self {
        Broken::Stored(error)
    }
}
