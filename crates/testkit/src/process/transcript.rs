//! What a child printed, line by line, and waiting for one of the lines.

use crate::stopwatch::Stopwatch;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lines kept per child; the oldest go first. A soak prints for hours, a test reads the end of it.
const LINES_MAX: usize = 50_000;

/// One of the two streams of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The awaited line did not come.
#[derive(Debug, thiserror::Error)]
pub enum LineNeverCame {
    /// The child closed its output first, which ending does.
    #[error("it ended before {what}; it had printed:\n{printed}")]
    Ended {
        /// What was awaited.
        what: String,
        /// Both streams.
        printed: String,
    },
    /// The bound passed.
    #[error("waited {bound:?} for {what}, in vain; it had printed:\n{printed}")]
    TooLong {
        /// What was awaited.
        what: String,
        /// How long.
        bound: Duration,
        /// Both streams.
        printed: String,
    },
}

#[derive(Debug, Default)]
pub(super) struct Transcript {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<(Channel, String)>,
    dropped: usize,
    open: usize,
}

impl Transcript {
    /// Starts draining both pipes of `child`.
    pub(super) fn of(child: &mut Child) -> Arc<Self> {
        let transcript = Arc::new(Self::default());
        if let Some(stdout) = child.stdout.take() {
            transcript.drain(Channel::Stdout, stdout);
        }
        if let Some(stderr) = child.stderr.take() {
            transcript.drain(Channel::Stderr, stderr);
        }
        transcript
    }

    pub(super) fn line(
        &self,
        channel: Channel,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String, LineNeverCame> {
        let watch = Stopwatch::start();
        let mut looked = 0;
        let mut state = self.state();
        loop {
            let from = looked.max(state.dropped);
            let fresh = state.lines.iter().skip(from - state.dropped);
            for (_, line) in fresh.filter(|(of, _)| *of == channel) {
                if wanted(line) {
                    return Ok(line.clone());
                }
            }
            looked = state.dropped + state.lines.len();
            let what = what.to_owned();
            if state.open == 0 {
                return Err(LineNeverCame::Ended { what, printed: state.text(None) });
            }
            let Some(left) = bound.checked_sub(watch.elapsed()) else {
                return Err(LineNeverCame::TooLong { what, bound, printed: state.text(None) });
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn text(&self, channel: Channel) -> String {
        self.state().text(Some(channel))
    }

    /// Waits until both pipes are closed, at most `bound`.
    pub(super) fn settle(&self, bound: Duration) {
        let state = self.state();
        drop(self.changed.wait_timeout_while(state, bound, |state| state.open > 0));
    }

    fn drain(self: &Arc<Self>, channel: Channel, pipe: impl Read + Send + 'static) {
        self.state().open += 1;
        let transcript = Arc::clone(self);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                transcript.push(channel, String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned());
                line.clear();
            }
            transcript.state().open -= 1;
            transcript.changed.notify_all();
        });
    }

    fn push(&self, channel: Channel, line: String) {
        let mut state = self.state();
        if state.lines.len() == LINES_MAX {
            state.lines.pop_front();
            state.dropped += 1;
        }
        state.lines.push_back((channel, line));
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A caller's `wanted` may panic under the lock; the lines stay whole, so later looks may go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn text(&self, only: Option<Channel>) -> String {
        let mut text = String::new();
        for (channel, line) in &self.lines {
            if only.is_none_or(|only| only == *channel) {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}
