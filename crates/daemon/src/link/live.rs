//! An open link, as those see it who send and ask over it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{BrokerClock, Clock, DeliveryRung, ErrorCode, MemberId, MessageId, Timestamp, limits};
use net::socket::{SendError, Writer};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::timeout;
use wire::ask::{AnswerResult, Question};
use wire::link::{Ack, Acked, Answer, Ask, Send, Sent, ToBroker, refusal_code};
use wire::{ErrorBody, Refused};

/// An open, negotiated link.
pub(crate) struct Live {
    writer: Writer,
    clock: BrokerClock,
    epoch: u64,
    waiting: Mutex<Waiting>,
    /// What was told on this link and is not confirmed yet.
    told: Mutex<HashMap<DeliveryKey, Told>>,
    /// Messages that this link still brings again, because the inbox went back.
    again_left: AtomicU64,
}

/// One recipient's copy of a message.
type DeliveryKey = (MessageId, MemberId);

/// What a link was told about a delivery.
#[derive(Clone, Copy)]
struct Told {
    rung: DeliveryRung,
    read: bool,
}

/// Who waits for which answer.
#[derive(Default)]
struct Waiting {
    last: u64,
    sends: HashMap<u64, oneshot::Sender<Sent>>,
    asks: HashMap<u64, oneshot::Sender<AnswerResult>>,
    /// The link is over: whoever comes now waits for nothing.
    over: bool,
    /// What the close said about the frame it answered.
    refused_frame: Option<ErrorCode>,
}

/// Why a frame has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The link ended.
    Lost,
    /// It did not come in time.
    Late,
    /// The frame is over the bound of any link.
    TooLarge,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AskError {
    /// No link, or none that answers.
    Unreachable,
    /// The broker said no.
    Refused { status: u16, error: ErrorBody },
    /// The broker's answer makes no sense.
    Senseless,
}

impl Live {
    /// A link that was agreed on at epoch `epoch`.
    pub(crate) fn new(writer: Writer, clock: BrokerClock, epoch: u64, again_left: u64) -> Self {
        let again_left = AtomicU64::new(again_left);
        Self { writer, clock, epoch, waiting: Mutex::default(), told: Mutex::default(), again_left }
    }

    /// Counts messages that came again; whether these were the last ones.
    pub(crate) fn came_again(&self, messages: u64) -> bool {
        let before = self
            .again_left
            .fetch_sub(messages.min(self.again_left.load(Ordering::Relaxed)), Ordering::Relaxed);
        messages > 0 && before > 0 && before <= messages
    }

    /// Broker time.
    pub(crate) fn broker_now(&self, clock: &dyn Clock) -> Timestamp {
        self.clock.now(clock)
    }

    /// This connection's epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Hands a frame over.
    pub(crate) async fn tell(&self, frame: &ToBroker) -> Result<(), SendError> {
        self.writer.send(frame.text()).await
    }

    /// Sends one lane's messages and waits for the broker's word on them.
    pub(crate) async fn submit(
        &self,
        sender: MemberId,
        messages: Vec<Box<RawValue>>,
    ) -> Result<Sent, NoAnswer> {
        let (tell, told) = oneshot::channel();
        let n = self.waiting().enter(|waiting, n| waiting.sends.insert(n, tell)).ok_or(NoAnswer::Lost)?;
        let _leave = Leave { live: self, n };
        match self.tell(&ToBroker::Send(Send { n, sender, messages })).await {
            Ok(()) => {}
            Err(SendError::TooLarge) => return Err(NoAnswer::TooLarge),
            Err(SendError::Gone) => return Err(NoAnswer::Lost),
        }
        match timeout(limits::SEND_ANSWER_TIMEOUT, told).await {
            Ok(Ok(sent)) => Ok(sent),
            Ok(Err(_)) => Err(NoAnswer::Lost),
            Err(_) => Err(NoAnswer::Late),
        }
    }

    /// Asks as `asker`, who is at home here, and waits for the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        asker: MemberId,
        question: Question,
        within: Duration,
    ) -> Result<T, AskError> {
        let (tell, told) = oneshot::channel();
        let entered = self.waiting().enter(|waiting, n| waiting.asks.insert(n, tell));
        let n = entered.ok_or(AskError::Unreachable)?;
        let _leave = Leave { live: self, n };
        let asked = async {
            self.tell(&ToBroker::Ask(Ask { n, asker, question })).await.map_err(|_| AskError::Unreachable)?;
            told.await.map_err(|_| AskError::Unreachable)
        };
        match timeout(within, asked).await.unwrap_or(Err(AskError::Unreachable))? {
            AnswerResult::Ok(value) => serde_json::from_str(value.get()).map_err(|error| {
                tracing::warn!(%error, "the broker's answer cannot be read");
                AskError::Senseless
            }),
            AnswerResult::Refused { status, error } => Err(AskError::Refused { status, error }),
        }
    }

    /// Hands `sent` to whoever waits for it; a late one finds nobody and its rows are asked about again.
    pub(super) fn sent(&self, sent: Sent) {
        let waits = self.waiting().sends.remove(&sent.n);
        if let Some(waits) = waits {
            // Whoever stopped waiting has settled its rows already.
            let _ = waits.send(sent);
        }
    }

    /// Hands `answer` to whoever asked.
    pub(super) fn answered(&self, answer: Answer) {
        let waits = self.waiting().asks.remove(&answer.n);
        if let Some(waits) = waits {
            // The asker may have gone.
            let _ = waits.send(answer.result);
        }
    }

    /// The link is over: nobody waits any longer. `refused_frame` is what its close said about a frame.
    pub(crate) fn abandon(&self, refused_frame: Option<ErrorCode>) {
        let mut waiting = self.waiting();
        waiting.over = true;
        waiting.refused_frame = waiting.refused_frame.or(refused_frame);
        waiting.sends.clear();
        waiting.asks.clear();
    }

    /// What the close of this link said about the frame it answered.
    pub(crate) fn refused_frame(&self) -> Option<ErrorCode> {
        self.waiting().refused_frame
    }

    /// Whether the ack says more than this link was told yet.
    pub(crate) fn is_news(&self, ack: &Ack) -> bool {
        let read = ack.read_at.is_some();
        let told = self.told_rungs().get(&(ack.row.id, ack.row.recipient)).copied();
        told.is_none_or(|told| told.rung < ack.row.rung || (read && !told.read))
    }

    /// Notes what is being told.
    pub(crate) fn told(&self, acks: &[Ack]) {
        let mut told = self.told_rungs();
        for Ack { row, read_at, .. } in acks {
            told.insert((row.id, row.recipient), Told { rung: row.rung, read: read_at.is_some() });
        }
    }

    /// Forgets what the broker has confirmed.
    pub(crate) fn heard(&self, confirmed: &[Acked]) {
        let mut told = self.told_rungs();
        for Acked { row, read } in confirmed {
            let delivery = (row.id, row.recipient);
            if told.get(&delivery).is_some_and(|told| told.rung <= row.rung && told.read <= *read) {
                told.remove(&delivery);
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told_rungs(&self) -> MutexGuard<'_, HashMap<DeliveryKey, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn enter<T>(&mut self, place: impl FnOnce(&mut Self, u64) -> T) -> Option<u64> {
        if self.over {
            return None;
        }
        self.last += 1;
        let n = self.last;
        place(self, n);
        Some(n)
    }
}

/// Takes a waiter's place back, however its wait ended.
struct Leave<'a> {
    live: &'a Live,
    n: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut waiting = self.live.waiting();
        waiting.sends.remove(&self.n);
        waiting.asks.remove(&self.n);
    }
}

impl AskError {
    /// As the local door says it: the broker's own code where it gave one.
    pub(crate) fn refused(self) -> Refused {
        match self {
            AskError::Unreachable => Refused::plain(ErrorCode::BrokerUnreachable),
            AskError::Refused { status, error } => {
                Refused { code: refusal_code(status, &error), message: error.message, more: error.more }
            }
            AskError::Senseless => {
                Refused::new(ErrorCode::BrokerUnreachable, "The broker's answer cannot be read.")
            }
        }
    }
}
