//! A door on a free port, its router, and a plain TCP line to it.

use std::net::SocketAddr;

use axum::Router;
use net::client::{Client, Target};
use net::guard::{self, Hosts, Origins, Policy, Scheme};
use net::serve::{Bounds, Door, Ended, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A served door; stopped when it is dropped.
pub struct Scene {
    pub address: SocketAddr,
    pub stop: CancellationToken,
    served: JoinHandle<Ended>,
}

impl Scene {
    /// Guarded as a fabric door is.
    pub async fn guarded(router: Router, bounds: Bounds) -> Self {
        Self::guarded_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), router, bounds)
    }

    /// The same, on a listener of the test's own.
    pub fn guarded_on(listener: TcpListener, router: Router, bounds: Bounds) -> Self {
        let hosts = Hosts::listed(listener.local_addr().unwrap(), Scheme::Http, []);
        let policy = Policy::new(hosts, Origins::Own);
        Self::serve(listener, guard::protect(guard::with_fallbacks(router), policy), bounds)
    }

    /// Without any guard.
    pub async fn open(router: Router, bounds: Bounds) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), router, bounds)
    }

    fn serve(listener: TcpListener, router: Router, bounds: Bounds) -> Self {
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let served = tokio::spawn(serve(Door::tcp(listener).with_bounds(bounds), router, stop.clone()));
        Self { address, stop, served }
    }

    pub fn client(&self) -> Client {
        Client::new(Target::of_url(&format!("http://{}", self.address)).unwrap())
    }

    pub async fn line(&self) -> Line {
        Line(TcpStream::connect(self.address).await.unwrap())
    }

    /// One request written as it stands, one answer read to the end of the connection.
    pub async fn exchange(&self, request: &str) -> String {
        let mut line = self.line().await;
        line.say(request).await;
        line.rest().await
    }

    /// A request's head with the right Host, closing, and more lines.
    pub fn head(&self, first: &str, more: &[&str]) -> String {
        let mut head = format!("{first} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        more.iter().for_each(|line| {
            head.push_str(line);
            head.push_str("\r\n");
        });
        head + "\r\n"
    }

    pub async fn stopped(mut self) -> Ended {
        self.stop.cancel();
        (&mut self.served).await.unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A plain connection.
pub struct Line(pub TcpStream);

impl Line {
    pub async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Everything until the other side closes, by whatever means.
    pub async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Ends the connection at once and tells the other side so, whatever it still wanted to say.
    pub fn reset(self) {
        self.0.set_zero_linger().unwrap();
    }

    /// Up to and with `end`.
    pub async fn until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            bytes.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(bytes).unwrap()
    }
}

/// The JSON of a raw answer, after its status.
pub fn parsed(answer: &str) -> (u16, serde_json::Value) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(serde_json::Value::Null))
}
