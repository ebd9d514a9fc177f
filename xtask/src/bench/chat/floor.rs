//! The floor under E1: a server that does of a publish only what cannot be left out. One thread takes a request, looks at
//! nothing in it, overwrites as many bytes of a file as an accept writes to its log, syncs them, and writes to the follower
//! before it answers.

use super::latency::Round;
use crate::bench::peer::bare::length_in;
use anyhow::Context;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader as Lines, Write};
use std::net::{SocketAddr, TcpStream as Follower};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use testkit::fleet::chat::Poster;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

/// Five pages with their heads: a topic's message, its two indexes, its id and the end of its log.
const ACCEPT_BYTES: usize = 5 * (4096 + 24);
/// As long as a log becomes before it starts over.
const ROOM_BYTES: u64 = 32 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);
/// What a follower says; everybody else publishes.
const FOLLOW: &[u8] = b"FOLLOW\r\n";
const TAKEN: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// On a thread of its own, which ends with the process.
pub(super) struct Server {
    address: SocketAddr,
}

/// What the thread's connections share.
struct Floor {
    file: File,
    at: u64,
    follower: Option<TcpStream>,
}

impl Server {
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        let file = File::options().create(true).truncate(true).write(true).open(folder.join("floor"))?;
        for at in (0..ROOM_BYTES).step_by(1 << 20) {
            file.write_all_at(&[0; 1 << 20], at)?;
        }
        file.sync_all()?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            let floor = Rc::new(RefCell::new(Floor { file, at: 0, follower: None }));
            LocalSet::new().block_on(&runtime, accept(listener, floor));
        });
        Ok(Self { address })
    }

    /// The middle wait of one round, in microseconds.
    pub(super) fn round(&self, round: &Round) -> anyhow::Result<f64> {
        let follower = Follower::connect(self.address).context("the floor's server")?;
        follower.set_read_timeout(Some(PATIENCE))?;
        (&follower).write_all(FOLLOW)?;
        let mut lines = Lines::new(follower);
        // The server has it once it says so.
        lines.read_line(&mut String::new())?;
        let publishers = (0..round.pace.publishers).map(|_| {
            let mut poster = Poster::at(self.address, "nobody");
            move |_: usize, body: &str| -> anyhow::Result<()> {
                poster.post("#floor", "floor", body)?;
                Ok(())
            }
        });
        round.run(publishers.collect(), move || {
            let mut line = String::new();
            lines.read_line(&mut line)?;
            Ok(line)
        })
    }
}

async fn accept(listener: std::net::TcpListener, floor: Rc<RefCell<Floor>>) {
    let listener = TcpListener::from_std(listener).expect("on a runtime");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::task::spawn_local(serve(stream, floor.clone()));
    }
}

async fn serve(stream: TcpStream, floor: Rc<RefCell<Floor>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let (mut stream, mut head) = (BufReader::new(stream), Vec::new());
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_until(b'\n', &mut head).await.ok().filter(|read| *read > 0)?;
            if head == FOLLOW {
                let mut stream = stream.into_inner();
                stream.write_all(b"yes\n").await.ok()?;
                floor.borrow_mut().follower = Some(stream);
                return Some(());
            }
        }
        let mut body = vec![0; length_in(&head)?];
        stream.read_exact(&mut body).await.ok()?;
        body.push(b'\n');
        floor.borrow_mut().take(&body).ok()?;
        stream.get_mut().write_all(TAKEN).await.ok()?;
    }
}

impl Floor {
    fn take(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(&[7; ACCEPT_BYTES], self.at)?;
        self.file.sync_data()?;
        self.at = (self.at + ACCEPT_BYTES as u64) % (ROOM_BYTES - ACCEPT_BYTES as u64);
        match &self.follower {
            // A line fits into an empty socket.
            Some(follower) => follower.try_write(line).map(drop),
            None => Ok(()),
        }
    }
}
