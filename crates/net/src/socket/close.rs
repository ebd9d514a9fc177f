//! How a socket ends.

use model::limits::CLOSE_REASON_BYTES_MAX;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_util::sync::CancellationToken;

use super::Text;

/// A close code and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// The code; those from 4000 on are ours.
    pub code: u16,
    /// At most 123 bytes.
    pub reason: String,
}

/// Why there is nothing more to read.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The other end closed it.
    #[error("closed by the other end: {} {}", .0.code, .0.reason)]
    Closed(Close),
    /// This end closed it.
    #[error("closed by this end")]
    ClosedHere,
    /// The other end said something it must not; it was told so.
    #[error("refused: {} {}", .0.code, .0.reason)]
    Refused(Close),
    /// Not a frame for too long.
    #[error("no frame for too long")]
    Silent,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// The two stages of a close, seen from both halves: somebody wants it, and nothing will be written any more.
#[derive(Clone)]
pub(super) struct Closing {
    wanted: watch::Sender<Option<Close>>,
    pub(super) written_out: CancellationToken,
}

impl Close {
    /// All said.
    pub const NORMAL: u16 = 1000;
    /// The process stops.
    pub const GOING_AWAY: u16 = 1001;
    /// Not what the protocol allows.
    pub const PROTOCOL: u16 = 1002;
    /// A frame that is not text.
    pub const NOT_TEXT: u16 = 1003;
    /// Text that is not UTF-8, or not what was agreed on.
    pub const NOT_READABLE: u16 = 1007;
    /// A frame over its bound.
    pub const TOO_LARGE: u16 = 1009;
    /// The other end closed without a code.
    pub const NO_CODE: u16 = 1005;

    /// `reason` is cut to what a close frame holds.
    pub fn new(code: u16, reason: &str) -> Self {
        Self { code, reason: reason[..reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX)].to_owned() }
    }

    pub(super) fn frame(&self) -> CloseFrame {
        CloseFrame { code: self.code.into(), reason: Text::from(&self.reason) }
    }
}

impl From<Option<CloseFrame>> for Close {
    fn from(frame: Option<CloseFrame>) -> Self {
        match frame {
            Some(frame) => Self { code: frame.code.into(), reason: frame.reason.to_string() },
            None => Self { code: Self::NO_CODE, reason: String::new() },
        }
    }
}

impl Closing {
    pub(super) fn new() -> Self {
        Self { wanted: watch::Sender::new(None), written_out: CancellationToken::new() }
    }

    /// The first wish counts.
    pub(super) fn want(&self, close: Close) {
        self.wanted.send_if_modified(|wanted| {
            let first = wanted.is_none();
            if first {
                *wanted = Some(close);
            }
            first
        });
    }

    pub(super) async fn wanted(&self) -> Close {
        let mut wanted = self.wanted.subscribe();
        let close = wanted.wait_for(Option::is_some).await;
        let close = close.expect("the sender lives in self");
        close.clone().expect("waited for it")
    }
}

/// What a failed read means for the other end: a code to close with, or a broken connection.
pub(super) fn verdict(error: Error) -> Ended {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            Ended::Refused(Close::new(Close::TOO_LARGE, "the frame is over its bound"))
        }
        Error::Utf8(_) => Ended::Refused(Close::new(Close::NOT_READABLE, "the text is not UTF-8")),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            Ended::Broken("it ended without a close".to_owned())
        }
        Error::Protocol(error) => Ended::Refused(Close::new(Close::PROTOCOL, &error.to_string())),
        error => Ended::Broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_to_what_a_close_frame_holds_without_splitting_a_character() {
        assert_eq!(Close::new(1000, "done").reason, "done");
        assert_eq!(Close::new(1000, &"x".repeat(200)).reason.len(), 123);
        assert_eq!(Close::new(1000, &"é".repeat(100)).reason, "é".repeat(61));
    }

    #[tokio::test]
    async fn the_first_wish_to_close_counts() {
        let closing = Closing::new();
        closing.want(Close::new(4003, "replaced"));
        closing.want(Close::new(1000, ""));
        assert_eq!(closing.wanted().await.code, 4003);
    }
}
