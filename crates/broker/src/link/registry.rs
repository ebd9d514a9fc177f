//! The live links of this process: a replaced one leaves at once instead of at its next transaction, and nodes can be
//! asked. Which link may write is the ledger's word, by epoch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ledger::Link;
use model::{NodeName, limits};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wire::ask::{AnswerResult, NodeQuestion};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Links {
    live: Arc<Mutex<HashMap<NodeName, Live>>>,
}

#[derive(Debug)]
struct Live {
    epoch: u64,
    replaced: CancellationToken,
    questions: mpsc::Sender<ToAsk>,
}

/// A question for a node, and who waits for its answer.
#[derive(Debug)]
pub(crate) struct ToAsk {
    pub(crate) question: NodeQuestion,
    pub(crate) tell: oneshot::Sender<AnswerResult>,
}

/// A link's entry, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Seat {
    link: Link,
    replaced: CancellationToken,
    questions: Option<mpsc::Receiver<ToAsk>>,
    live: Arc<Mutex<HashMap<NodeName, Live>>>,
}

impl Links {
    /// Enters `link`; of two links of one node the later epoch stays, whichever entered first.
    pub(crate) fn enter(&self, link: Link) -> Seat {
        let replaced = CancellationToken::new();
        let (questions, asked) = mpsc::channel(limits::NODE_QUESTIONS_MAX);
        let mut live = lock(&self.live);
        match live.get(&link.node) {
            Some(held) if held.epoch > link.epoch => replaced.cancel(),
            Some(_) | None => {
                let entry = Live { epoch: link.epoch, replaced: replaced.clone(), questions };
                if let Some(older) = live.insert(link.node.clone(), entry) {
                    older.replaced.cancel();
                }
            }
        }
        drop(live);
        Seat { link, replaced, questions: Some(asked), live: self.live.clone() }
    }

    /// Asks `node` and waits for its answer, not long. Nothing: it has no link here, or does not answer.
    pub(crate) async fn ask(&self, node: &NodeName, question: NodeQuestion) -> Option<AnswerResult> {
        let (tell, told) = oneshot::channel();
        let questions = lock(&self.live).get(node).map(|live| live.questions.clone())?;
        questions.try_send(ToAsk { question, tell }).ok()?;
        timeout(limits::NODE_ANSWER_TIMEOUT, told).await.ok()?.ok()
    }

    /// The nodes that have a link here.
    pub(crate) fn nodes(&self) -> Vec<NodeName> {
        lock(&self.live).keys().cloned().collect()
    }

    /// Whether `node` has a link here.
    pub(crate) fn is_live(&self, node: &NodeName) -> bool {
        lock(&self.live).contains_key(node)
    }
}

impl Seat {
    /// The link.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// The questions for its node; whoever serves the link takes them once.
    pub(crate) fn take_questions(&mut self) -> Option<mpsc::Receiver<ToAsk>> {
        self.questions.take()
    }

    /// Cancelled when a newer link of the node came.
    pub(crate) fn replaced(&self) -> &CancellationToken {
        &self.replaced
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut live = lock(&self.live);
        if live.get(&self.link.node).is_some_and(|held| held.epoch == self.link.epoch) {
            live.remove(&self.link.node);
        }
    }
}

fn lock(live: &Mutex<HashMap<NodeName, Live>>) -> MutexGuard<'_, HashMap<NodeName, Live>> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(node: &str, epoch: u64) -> Link {
        Link { node: node.parse().unwrap(), epoch }
    }

    #[test]
    fn the_later_epoch_stays_whichever_entered_first() {
        let links = Links::default();
        let older = links.enter(link("lab", 1));
        let newer = links.enter(link("lab", 3));
        let late = links.enter(link("lab", 2));
        let other = links.enter(link("vps", 1));
        assert!(older.replaced().is_cancelled() && late.replaced().is_cancelled());
        assert!(!newer.replaced().is_cancelled() && !other.replaced().is_cancelled());
        drop((older, late));
        assert!(
            links.is_live(&"lab".parse().unwrap()),
            "a replaced link does not take its successor with it"
        );
        drop(newer);
        assert!(!links.is_live(&"lab".parse().unwrap()));
    }
}
