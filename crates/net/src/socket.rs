//! A WebSocket with bounds, the same on both ends.
//!
//! - Text frames only, at most [`Bounds::frame_bytes_max`]; anything else ends the socket with the code the
//!   protocol has for it.
//! - What waits to be written is bounded in frames and in bytes. `send` waits for room, `try_send` says
//!   `Stalled`; a reader that takes no byte for the stall timeout is cut, whatever waits.
//! - Frames that wait together leave in one write. A server may hand over [`Frames`], made once for many sockets.
//! - Both ends ping. A socket without any frame for [`Bounds::silence_max`] is dead.
//! - Dropping the reader or the last writer closes the socket.

mod close;
mod frames;
mod reader;
mod upgrade;
mod writer;

use std::future::Future;
use std::time::Duration;

use frames::Spliced;
use futures_util::StreamExt;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use model::limits;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

pub use close::{Close, Ended};
pub use frames::Frames;
pub use reader::Reader;
/// A text frame: dereferences to `str`, made from a `String` without copying.
pub use tokio_tungstenite::tungstenite::Utf8Bytes as Text;
pub use upgrade::Upgrade;
use writer::Way;
pub use writer::{SendError, TrySendError, Writer};

/// Each connection has its own; frames larger than this are read in several steps.
const READ_BUFFER_BYTES: usize = 8 * 1024;
/// Frames that wait together are gathered up to this before they are written.
const WRITE_BUFFER_BYTES: usize = 64 * 1024;

/// The bounds of one socket; the defaults are `model::limits`.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A frame in either direction.
    pub frame_bytes_max: usize,
    /// Frames waiting to be written.
    pub waiting_frames_max: usize,
    /// Bytes waiting to be written; at least a frame, or a legal frame would wait for ever.
    pub waiting_bytes_max: usize,
    /// Between two pings.
    pub ping_every: Duration,
    /// Without any frame from the other end.
    pub silence_max: Duration,
}

/// An open WebSocket.
pub struct Socket {
    reader: Reader,
    writer: Writer,
}

type Stream = WebSocketStream<Spliced<TokioIo<Upgraded>>>;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            frame_bytes_max: limits::FRAME_BYTES_MAX,
            waiting_frames_max: limits::SOCKET_FRAMES_MAX,
            waiting_bytes_max: limits::FRAME_BYTES_MAX,
            ping_every: limits::PING_EVERY,
            silence_max: limits::LINK_SILENCE_MAX,
        }
    }
}

impl Socket {
    /// The two halves. The writer may be cloned.
    pub fn split(self) -> (Reader, Writer) {
        (self.reader, self.writer)
    }

    /// The socket on an upgraded connection, and the work that writes to it until it is closed.
    pub(crate) async fn over(
        upgraded: Upgraded,
        role: Role,
        bounds: Bounds,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            // What the writer hands over, and once more for answers to pings: whoever floods us with those and
            // reads none gets no more than that.
            .max_write_buffer_size(2 * bounds.waiting_bytes_max + WRITE_BUFFER_BYTES)
            .max_message_size(Some(bounds.frame_bytes_max))
            .max_frame_size(Some(bounds.frame_bytes_max));
        let (upgraded, beside) = Spliced::new(TokioIo::new(upgraded));
        let (sink, stream) = Stream::from_raw_socket(upgraded, role, Some(config)).await.split();
        let way = match role {
            Role::Server => Way::Beside(beside),
            // Its frames are masked, each with its own mask: the library does that.
            Role::Client => Way::Library,
        };
        let (writer, closing, work) = writer::open(sink, way, bounds);
        let reader = Reader::new(stream, closing, bounds.silence_max);
        (Self { reader, writer }, work)
    }
}
