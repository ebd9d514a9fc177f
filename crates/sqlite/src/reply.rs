//! Answers on their way to the callers.
//!
//! A wake from another thread is a system call where the caller's runtime is one thread, even if that thread has been
//! woken already. So all answers for such a runtime go there together, and its own thread wakes its tasks.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// Where a caller waits.
pub(crate) struct Reply<T> {
    to: oneshot::Sender<T>,
    /// The runtime the caller waits on, if that is one thread.
    at: Option<Handle>,
}

impl<T: Send + 'static> Reply<T> {
    /// For who asks here, and the place where the answer will appear.
    pub(crate) fn here() -> (Self, oneshot::Receiver<T>) {
        let (to, answer) = oneshot::channel();
        let one_thread = |runtime: &Handle| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
        (Self { to, at: Handle::try_current().ok().filter(one_thread) }, answer)
    }

    fn send(self, answer: T) {
        // A caller that went away does not want to know; what was committed stays committed.
        drop(self.to.send(answer));
    }
}

/// Answers for one thread.
struct Together<T> {
    runtime: Handle,
    answers: Vec<(Reply<T>, T)>,
}

impl<T: Send + 'static> Together<T> {
    fn send(mut self) {
        let Some((reply, answer)) = self.answers.pop() else { return };
        if self.answers.is_empty() {
            return reply.send(answer);
        }
        self.answers.push((reply, answer));
        drop(self.runtime.spawn(async move {
            self.answers.into_iter().for_each(|(reply, answer)| reply.send(answer));
        }));
    }
}

/// Answers everybody; one wake for all on the same thread.
pub(crate) fn answer_all<T: Send + 'static>(answers: impl Iterator<Item = (Reply<T>, T)>) {
    let mut threads: Vec<Together<T>> = Vec::new();
    for (mut reply, answer) in answers {
        let Some(runtime) = reply.at.take() else {
            reply.send(answer);
            continue;
        };
        match threads.iter_mut().find(|thread| thread.runtime.id() == runtime.id()) {
            Some(thread) => thread.answers.push((reply, answer)),
            None => threads.push(Together { runtime, answers: vec![(reply, answer)] }),
        }
    }
    threads.into_iter().for_each(Together::send);
}
