//! An endpoint that writes down every call and answers as it is told.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// One call as it arrived.
#[derive(Clone, Debug)]
pub struct Arrived {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

/// How a call is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This text, then the end.
    Text(String),
    /// Nothing, with an open connection.
    Silence,
    /// This text again and again after a first one, for as long as anybody reads.
    Endless { first: String, then: String },
    /// This text, then nothing, with an open connection.
    Held(String),
}

/// See the module. It ends with its handle.
pub struct Receiver {
    pub address: SocketAddr,
    calls: Arc<Mutex<Vec<Arrived>>>,
    written: Arc<AtomicU64>,
    _serving: JoinSet<()>,
}

/// An answer with a status and perhaps further header lines.
pub fn status(code: u16, headers: &[&str]) -> Reply {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    Reply::Text(format!("HTTP/1.1 {code} Whatever\r\n{headers}content-length: 2\r\n\r\nok"))
}

/// The connections of an endpoint: plain, or wrapped by `secure`.
pub trait Accept: Clone + Send + 'static {
    type Line: AsyncRead + AsyncWrite + Send + Unpin;
    fn accept(&self, stream: tokio::net::TcpStream) -> impl Future<Output = Option<Self::Line>> + Send;
}

/// Without TLS.
#[derive(Clone)]
pub struct Plain;

impl Accept for Plain {
    type Line = tokio::net::TcpStream;
    async fn accept(&self, stream: tokio::net::TcpStream) -> Option<Self::Line> {
        Some(stream)
    }
}

impl Receiver {
    /// Gives one reply a call, the last one for ever.
    pub async fn start(replies: Vec<Reply>) -> Self {
        Self::start_with(replies, Plain).await
    }

    pub async fn start_with(replies: Vec<Reply>, accept: impl Accept) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (calls, written) = (Arc::<Mutex<Vec<Arrived>>>::default(), Arc::<AtomicU64>::default());
        let mut serving = JoinSet::new();
        let (log, count) = (calls.clone(), written.clone());
        serving.spawn(async move {
            let mut visits = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (accept, replies, log, count) =
                    (accept.clone(), replies.clone(), log.clone(), count.clone());
                visits.spawn(async move {
                    if let Some(line) = accept.accept(stream).await {
                        visit(line, &replies, &log, &count).await;
                    }
                });
            }
        });
        Self { address, calls, written, _serving: serving }
    }

    /// Its address as a webhook's.
    pub fn url(&self) -> String {
        format!("http://{}/hook?k=v", self.address)
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Arrived> {
        self.calls.lock().unwrap().clone()
    }

    /// Bytes of endless answers somebody took.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

impl Arrived {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }
}

async fn visit(
    mut line: impl AsyncRead + AsyncWrite + Unpin,
    replies: &[Reply],
    log: &Mutex<Vec<Arrived>>,
    written: &AtomicU64,
) {
    let Some(call) = read(&mut line).await else { return };
    let place = {
        let mut calls = log.lock().unwrap();
        calls.push(call);
        calls.len() - 1
    };
    match replies.get(place).or(replies.last()).expect("a receiver has a reply") {
        Reply::Text(text) => {
            let _gone = line.write_all(text.as_bytes()).await;
            let _gone = line.shutdown().await;
        }
        Reply::Silence => until_it_goes(&mut line).await,
        Reply::Held(text) => {
            let _gone = line.write_all(text.as_bytes()).await;
            until_it_goes(&mut line).await;
        }
        Reply::Endless { first, then } => {
            let mut next = line.write_all(first.as_bytes()).await;
            while next.is_ok() {
                next = line.write_all(then.as_bytes()).await;
                written.fetch_add(then.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

async fn until_it_goes(line: &mut (impl AsyncRead + Unpin)) {
    let mut byte = [0];
    let _gone = line.read(&mut byte).await;
}

async fn read(line: &mut (impl AsyncRead + Unpin)) -> Option<Arrived> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        more(line, &mut bytes).await?;
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap().to_owned();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    while bytes.len() < head + 4 + length {
        more(line, &mut bytes).await?;
    }
    let body = String::from_utf8(bytes[head + 4..].to_vec()).unwrap();
    Some(Arrived { line: first, headers, body })
}

async fn more(line: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Option<()> {
    let read = line.read_buf(bytes).await.ok()?;
    (read > 0).then_some(())
}
