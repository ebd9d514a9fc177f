//! Frames of one lane run one after the other, frames of different lanes side by side.

use std::collections::HashMap;
use std::hash::Hash;

use tokio::sync::oneshot;

/// The last frame of every lane that is under way.
#[derive(Debug)]
pub(crate) struct Lanes<L> {
    tails: HashMap<L, oneshot::Receiver<()>>,
}

/// One frame's place in its lane; the frame behind it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl<L: Eq + Hash> Lanes<L> {
    pub(crate) fn new() -> Self {
        Self { tails: HashMap::new() }
    }

    /// Queues behind the lane's last frame. Called in the order in which frames arrive.
    pub(crate) fn enter(&mut self, lane: L) -> Turn {
        // Lanes whose last frame is answered need no memory; callers bound how many are under way.
        self.tails.retain(|_, tail| matches!(tail.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        let (done, tail) = oneshot::channel();
        Turn { before: self.tails.insert(lane, tail), _done: done }
    }
}

impl Turn {
    /// Waits until every earlier frame of the lane is answered.
    pub(crate) async fn come(&mut self) {
        if let Some(before) = self.before.take() {
            // The sender is only ever dropped, and that is the signal.
            let _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn is_ready(turn: &mut Turn) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        // A turn polled too early keeps its receiver only while the future lives, so look without taking.
        match turn.before.as_mut() {
            None => true,
            Some(before) => matches!(pin!(before).poll(&mut context), Poll::Ready(_)),
        }
    }

    #[test]
    fn a_frame_waits_for_those_before_it_in_its_lane_and_for_no_other_lane() {
        let mut lanes = Lanes::new();
        let mut first = lanes.enter("a");
        let mut second = lanes.enter("a");
        let mut third = lanes.enter("a");
        let mut other = lanes.enter("b");
        assert!(is_ready(&mut first) && is_ready(&mut other));
        assert!(!is_ready(&mut second) && !is_ready(&mut third));
        drop(first);
        assert!(is_ready(&mut second) && !is_ready(&mut third));
        drop(second);
        assert!(is_ready(&mut third));
    }

    #[test]
    fn an_answered_lane_is_forgotten() {
        let mut lanes = Lanes::new();
        drop(lanes.enter("a"));
        let _busy = lanes.enter("b");
        let _again = lanes.enter("c");
        assert_eq!(lanes.tails.len(), 2);
    }
}
