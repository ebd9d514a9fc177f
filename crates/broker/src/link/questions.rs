//! The broker's own questions to a node: what it holds about a message.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use wire::ask::AnswerResult;
use wire::link::{Answer, NodeAsk, ToNode};

use super::registry::ToAsk;
use super::session::Ctx;

/// Who waits for which answer of one node.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    by_number: HashMap<u64, oneshot::Sender<AnswerResult>>,
}

/// Puts every question to the node, for as long as the link lives.
pub(crate) async fn put_all(ctx: &Ctx, asked: Option<mpsc::Receiver<ToAsk>>) {
    let Some(mut asked) = asked else { return std::future::pending().await };
    while let Some(ToAsk { question, tell }) = asked.recv().await {
        let n = ctx.questions.enter(tell);
        ctx.say(ToNode::Ask(NodeAsk { n, question })).await;
    }
    std::future::pending().await
}

impl Questions {
    fn enter(&self, tell: oneshot::Sender<AnswerResult>) -> u64 {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Those who stopped waiting are forgotten here, so a silent node costs no memory.
        waiting.by_number.retain(|_, tell| !tell.is_closed());
        waiting.last += 1;
        let n = waiting.last;
        waiting.by_number.insert(n, tell);
        n
    }

    /// Hands an answer to whoever waits for it.
    pub(crate) fn answered(&self, answer: Answer) {
        let waits = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&answer.n);
        if let Some(tell) = waits {
            // The asker may have gone.
            let _ = tell.send(answer.result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn an_answer_reaches_its_asker_and_those_who_left_are_forgotten() {
        let questions = Questions::default();
        let answer = |n| Answer { n, result: AnswerResult::Ok(RawValue::from_string("[]".into()).unwrap()) };
        let (tell, mut told) = oneshot::channel();
        let n = questions.enter(tell);
        questions.answered(answer(n + 1));
        assert!(told.try_recv().is_err());
        questions.answered(answer(n));
        assert!(matches!(told.try_recv(), Ok(AnswerResult::Ok(_))));
        let (tell, told) = oneshot::channel();
        questions.enter(tell);
        drop(told);
        let (tell, _told) = oneshot::channel();
        questions.enter(tell);
        assert_eq!(questions.waiting.lock().unwrap().by_number.len(), 1);
    }
}
