//! Door 2: where a message becomes accepted.
//!
//! - The caller has proven that it may speak for the sender before any id is looked up.
//! - Shape, size and fingerprint → request rate → known id (B0) → budget → the ledger's transaction (claim, B2, B3).
//! - One lane's messages are answered in order. A permanent refusal lets the lane go on; any other ends it, and
//!   what follows was not tried.
//! - An answer is given after the commit it speaks of, never before.

mod item;
mod word;

use futures_util::future::join_all;
use ledger::{Admission, HistoryRow, LaneSubmission, Ledger, LinkError, Outcome, StorageError, Via};
use model::admission::{Known, look_up};
use model::{Class, Cursor, MemberId, MemberName, MeshId};
use tokio::task::yield_now;

use crate::chat::Rooms;
use crate::limiter::{Ask, Limiter, RequestLimiter, Verdict};
use crate::metrics::Metrics;

pub(crate) use item::{Item, Times};
pub(crate) use word::Word;

/// What an accept needs of its broker.
#[derive(Clone, Copy)]
pub(crate) struct Accept<'a> {
    pub(crate) ledger: &'a dyn Ledger,
    pub(crate) requests: &'a RequestLimiter,
    pub(crate) limiter: &'a dyn Limiter,
    pub(crate) metrics: &'a Metrics,
    pub(crate) rooms: &'a Rooms,
    pub(crate) mesh: MeshId,
}

/// Whose messages a lane holds.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) id: MemberId,
    pub(crate) name: &'a MemberName,
}

impl Accept<'_> {
    /// Answers every message of one lane, in order; those that did not parse come as their refusal.
    pub(crate) async fn lane(
        self,
        via: Via,
        sender: Sender<'_>,
        items: Vec<Result<Item, wire::Refused>>,
    ) -> Result<Vec<Word>, LinkError> {
        let requests = u32::try_from(items.len()).unwrap_or(u32::MAX);
        if let Err(too_soon) = self.requests.admit(self.mesh, sender.id, requests) {
            let word = Word::rate_limited(too_soon.retry_after);
            return Ok(self.counted(&items, refused_for_now(word, items.len())));
        }
        let known = match self.look_up_all(sender.id, &items).await {
            Ok(known) => known,
            Err(error) => {
                return Ok(self.counted(&items, refused_for_now(Word::storage(&error), items.len())));
            }
        };
        // Side by side: a unit taken for a message behind a refusal is not taken again when it comes back.
        let looked = items.iter().zip(&known);
        let words =
            join_all(looked.map(|(item, known)| self.before_transaction(sender.id, item, known.as_ref())))
                .await;
        let words = up_to_first_end(words);
        let words = self.transact(via, sender, &items, words).await?;
        Ok(self.counted(&items, words))
    }

    async fn look_up_all(
        self,
        sender: MemberId,
        items: &[Result<Item, wire::Refused>],
    ) -> Result<Vec<Option<Known>>, StorageError> {
        let ids: Vec<_> = items.iter().flatten().map(|item| item.draft.client_message_id.clone()).collect();
        let mut known = self.ledger.known_all(sender, &ids).await?.into_iter();
        Ok(items.iter().map(|item| item.as_ref().ok().and_then(|_| known.next().flatten())).collect())
    }

    /// The word that needs no transaction, if there is one.
    async fn before_transaction(
        self,
        sender: MemberId,
        item: &Result<Item, wire::Refused>,
        known: Option<&Known>,
    ) -> Option<Word> {
        let item = match item {
            Ok(item) => item,
            Err(refused) => return Some(Word::Refused(refused.clone())),
        };
        if let Some(word) = Word::of_look_up(item, look_up(known, &item.fingerprint)) {
            return Some(word);
        }
        let ask = Ask {
            mesh: self.mesh,
            member: sender,
            client_message_id: item.draft.client_message_id.clone(),
            fingerprint_prefix: item.fingerprint_prefix(),
            cost: 1,
        };
        match self.limiter.consume(&ask).await {
            Verdict::Granted | Verdict::AlreadyGranted => None,
            Verdict::Denied { retry_after } => Some(Word::rate_limited(retry_after)),
        }
    }

    /// Hands the messages without a word to the ledger and puts its words in their places.
    async fn transact(
        self,
        via: Via,
        sender: Sender<'_>,
        items: &[Result<Item, wire::Refused>],
        words: Vec<Option<Word>>,
    ) -> Result<Vec<Word>, LinkError> {
        let open = items.iter().zip(&words).filter_map(|(item, word)| match (item, word) {
            (Ok(item), None) => Some(item.submission()),
            (Ok(_) | Err(_), _) => None,
        });
        let messages: Vec<_> = open.collect();
        let mut outcomes = if messages.is_empty() {
            Vec::new().into_iter()
        } else {
            match self.ledger.accept(LaneSubmission { via, sender: sender.id, messages }).await {
                Ok(outcomes) => outcomes.into_iter(),
                Err(LinkError::Storage(error)) => return Ok(refused_from_open(&error, words, items.len())),
                Err(refused @ LinkError::Refused(_)) => return Err(refused),
            }
        };
        let (mut answers, mut few_follow) = (Vec::with_capacity(items.len()), false);
        for (item, word) in items.iter().zip(words) {
            let answer = match (item, word) {
                (_, Some(word)) => word,
                (Ok(item), None) => {
                    let outcome = outcomes.next().unwrap_or(Outcome::NotTried);
                    self.count_consumed(&outcome);
                    few_follow |= self.tell(sender, item, &outcome);
                    Word::of_outcome(item, outcome)
                }
                (Err(refused), None) => Word::Refused(refused.clone()),
            };
            let stops = answer.ends_lane();
            answers.push(answer);
            if stops {
                break;
            }
        }
        answers.resize(items.len(), Word::NotTried);
        if few_follow {
            // Those who follow on this thread need not wait until the answer is written: first whoever follows is asked,
            // then whoever writes to its socket.
            yield_now().await;
            yield_now().await;
        }
        Ok(answers)
    }

    /// Those who follow the log are told at once; whether they are few.
    fn tell(self, sender: Sender<'_>, item: &Item, outcome: &Outcome) -> bool {
        let Outcome::Admitted { receipt, admission: Admission::New { generation } } = outcome else {
            return false;
        };
        let Some(epoch) = *generation else { return self.rooms.ring(receipt.conversation) };
        let row = || HistoryRow {
            id: receipt.broker_message_id,
            history_id: receipt.history_id,
            cursor: Cursor::After { at: receipt.accepted_at, id: receipt.broker_message_id, epoch },
            sender: sender.id,
            sender_name: sender.name.clone(),
            client_message_id: item.draft.client_message_id.clone(),
            created_at: receipt.accepted_at,
            envelope: item.envelope().to_vec(),
        };
        self.rooms.committed(receipt.conversation, (epoch, receipt.history_id), row)
    }

    /// No refund: a unit taken for a message that the transaction refuses for good is spent, and counted.
    fn count_consumed(self, outcome: &Outcome) {
        match outcome {
            Outcome::Refused(refusal) if refusal.code.class() != Class::Transient => {
                self.metrics.rate_limit_consumed_then_b2_rejected.add_one();
            }
            Outcome::Refused(_) | Outcome::Admitted { .. } | Outcome::NotTried => {}
        }
    }

    fn counted(self, items: &[Result<Item, wire::Refused>], words: Vec<Word>) -> Vec<Word> {
        for (item, word) in items.iter().zip(&words) {
            word.count(item.as_ref().ok(), self.metrics);
        }
        words
    }
}

/// Cut after the first word that ends the lane.
fn up_to_first_end(mut words: Vec<Option<Word>>) -> Vec<Option<Word>> {
    let end = words.iter().position(|word| word.as_ref().is_some_and(Word::ends_lane));
    words.truncate(end.map_or(words.len(), |end| end + 1));
    words
}

/// The lane ends at its first message.
fn refused_for_now(word: Word, count: usize) -> Vec<Word> {
    let mut words = vec![word];
    words.resize(count, Word::NotTried);
    words
}

/// The store did not take the messages: the lane ends at the first that was handed to it.
fn refused_from_open(error: &StorageError, words: Vec<Option<Word>>, count: usize) -> Vec<Word> {
    let mut answers: Vec<Word> = words.into_iter().map_while(|word| word).collect();
    if answers.len() < count {
        answers.push(Word::storage(error));
    }
    answers.resize(count, Word::NotTried);
    answers
}
