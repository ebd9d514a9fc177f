//! A balancer of TCP connections: each goes to the next broker that listens.

use std::io::copy;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Listens until the process ends; its connections end with either side of them.
pub(super) struct Balancer {
    address: SocketAddr,
    behind: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Balancer {
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let behind = Arc::new(Mutex::new(Vec::new()));
        let brokers = Arc::clone(&behind);
        std::thread::spawn(move || {
            for (turn, client) in listener.incoming().flatten().enumerate() {
                let mut order = brokers.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let len = order.len().max(1);
                order.rotate_left(turn % len);
                // Nobody listens: the client is dropped and will come again.
                if let Some(server) = order.into_iter().find_map(|broker| TcpStream::connect(broker).ok()) {
                    carry(client, server);
                }
            }
        });
        Ok(Self { address, behind })
    }

    pub(super) fn add(&self, broker: SocketAddr) {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).push(broker);
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Carries bytes both ways until either side ends.
fn carry(client: TcpStream, server: TcpStream) {
    let twins = client.try_clone().and_then(|twin| Ok((twin, server.try_clone()?)));
    let Ok((client_twin, server_twin)) = twins else { return };
    for (mut from, mut to) in [(client, server), (server_twin, client_twin)] {
        std::thread::spawn(move || {
            let _broken_off = copy(&mut from, &mut to);
            let _ended = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
        });
    }
}
