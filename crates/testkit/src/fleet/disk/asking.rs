//! Requests at every door, what was said of them, and whether they are there.

use super::StrikePlan;
use crate::bin::{Home, Product};
use crate::fleet::FleetError;
use crate::fleet::relays::RelayCaller;
use crate::kills::door::{Answer, Door};
use crate::seeded::Seeded;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Requests of one round at one door.
const REQUESTS_PER_DOOR: u64 = 6;
/// A text that fills several pages.
const LARGE_BYTES: usize = 40_000;
const TOPIC: &str = "#general";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallerRequest {
    /// A send at the daemon's socket.
    Send { id: String },
    /// A message at the broker's HTTP door.
    Direct { id: String },
    /// A write at the relay.
    Relayed { key: String },
    /// A message of the inbox, to be marked as read.
    Seen { message: String },
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallerAnswer {
    /// It is stored.
    Stored,
    /// It is not, in these words.
    Denied(String),
    /// A refusal that leaves it open, in these words.
    Open(String),
    /// No answer.
    Nothing,
}

/// A request with what was said, and what was struck meanwhile.
pub(super) struct AskedRequest {
    pub request: CallerRequest,
    pub said: CallerAnswer,
    pub aim: StrikePlan,
}

/// The doors of the product that runs.
pub(super) struct ProductDoors {
    socket: PathBuf,
    relay_socket: PathBuf,
    broker: SocketAddr,
    relay: SocketAddr,
    token: String,
    relay_token: String,
    /// Messages that were not marked as read yet.
    unseen: Vec<String>,
}

impl ProductDoors {
    /// Of a product that starts for the first time.
    pub(super) fn open(product: &Product<'_>, home: &Home, relay: SocketAddr) -> Result<Self, FleetError> {
        product.cli(&["topic", "create", "general"])?.done();
        let token = product.cli(&["--quiet", "token", "create", "--as", "caller"])?.done();
        let folder = home.path().join("relay");
        let mut doors = Self {
            socket: product.ready().socket.clone(),
            relay_socket: folder.join("sock"),
            broker: relay,
            relay,
            token: token.stdout.trim().to_owned(),
            relay_token: std::fs::read_to_string(folder.join("token"))?.trim().to_owned(),
            unseen: Vec::new(),
        };
        doors.renew(product);
        Ok(doors)
    }

    /// Of its next life.
    pub(super) fn renew(&mut self, product: &Product<'_>) {
        let address =
            product.ready().url.split("//").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
        if let Some(address) = address.and_then(|address| address.parse().ok()) {
            self.broker = address;
        }
        self.socket.clone_from(&product.ready().socket);
        let unread = Door::new(self.socket.clone(), None).get("/v1/inbox?unread_only=true&limit=50&after=0");
        let items = unread.map(|answer| answer.body["items"].as_array().cloned().unwrap_or_default());
        let ids =
            items.unwrap_or_default().into_iter().filter_map(|item| item["id"].as_str().map(str::to_owned));
        self.unseen = ids.collect();
    }

    /// Asks at every door at once.
    pub(super) fn ask_all(
        &mut self,
        next: &mut u64,
        seeded: &mut Seeded,
        aim: StrikePlan,
    ) -> Vec<AskedRequest> {
        let first = *next;
        *next += REQUESTS_PER_DOOR;
        let large: Vec<bool> = (0..REQUESTS_PER_DOOR).map(|_| seeded.chance(25)).collect();
        let text =
            |place: usize| if large[place] { "x".repeat(LARGE_BYTES) } else { format!("text {place}") };
        let ids = |word: &'static str| (first..*next).map(move |n| format!("{word}-request-{n}")).enumerate();
        let seen = self.unseen.split_off(self.unseen.len().saturating_sub(3));
        let doors = &*self;
        let asked = std::thread::scope(|scope| {
            let sends = scope.spawn(move || {
                let mut door = Door::new(doors.socket.clone(), None);
                let sends = ids("send").map(|(place, id)| {
                    let to = if place % 2 == 0 { "@me" } else { TOPIC };
                    let body = json!({"to": to, "body": text(place), "client_message_id": id});
                    (CallerRequest::Send { id }, said(door.post("/v1/send", &body)))
                });
                sends.collect::<Vec<_>>()
            });
            let direct = scope.spawn(move || {
                let mut caller = doors.at_broker();
                let messages = ids("direct").map(|(place, id)| {
                    let body = json!({"to": TOPIC, "body": text(place), "client_message_id": id});
                    let answer = caller.ask("POST", "/v1/meshes/home/messages", "", &body);
                    (CallerRequest::Direct { id }, said(answer))
                });
                messages.collect::<Vec<_>>()
            });
            let relayed = scope.spawn(move || {
                let headers = format!("statehub-relay-token: {}\r\n", doors.relay_token);
                let mut caller = RelayCaller::new(doors.relay, headers);
                let writes = ids("relay").map(|(place, key)| {
                    let more = format!("idempotency-key: {key}\r\n");
                    let answer = caller.ask("POST", "/progress/", &more, &json!({"summary": text(place)}));
                    (CallerRequest::Relayed { key }, said(answer))
                });
                writes.collect::<Vec<_>>()
            });
            let marked = scope.spawn(move || {
                let mut door = Door::new(doors.socket.clone(), None);
                let marks = seen.into_iter().map(|message| {
                    let answer = door.post("/v1/inbox/seen", &json!({"ids": [message]}));
                    (CallerRequest::Seen { message }, said(answer))
                });
                marks.collect::<Vec<_>>()
            });
            let all = [sends, direct, relayed, marked].into_iter();
            all.flat_map(|caller| caller.join().expect("a caller ends with an answer, not with a panic"))
                .collect::<Vec<_>>()
        });
        asked.into_iter().map(|(request, said)| AskedRequest { request, said, aim }).collect()
    }

    /// Whether what was asked for is there.
    pub(super) fn holds(&mut self, request: &CallerRequest) -> Result<bool, FleetError> {
        let (question, answer) = match request {
            CallerRequest::Send { id } => {
                let path = format!("/v1/messages/{id}");
                let answer = Door::new(self.socket.clone(), None).get(&path)?;
                (path, answer)
            }
            CallerRequest::Direct { id } => {
                let path = format!("/v1/meshes/home/messages/{id}");
                let answer = self.at_broker().ask("GET", &path, "", &Value::Null)?;
                (path, answer)
            }
            CallerRequest::Relayed { key } => {
                let path = format!("/v1/relay/envelopes/{key}");
                let answer = Door::new(self.relay_socket.clone(), None).get(&path)?;
                (path, answer)
            }
            CallerRequest::Seen { message } => return self.is_seen(message),
        };
        match (answer.status, request) {
            (404, _) => Ok(false),
            (200, CallerRequest::Direct { .. }) => Ok(answer.body["state"] == "accepted"),
            (200, _) => Ok(true),
            (status, _) => {
                Err(FleetError::Unreadable { asked: question, answered: format!("{status} {}", answer.body) })
            }
        }
    }

    fn is_seen(&self, message: &str) -> Result<bool, FleetError> {
        let mut door = Door::new(self.socket.clone(), None);
        let mut after = 0;
        loop {
            let page = door.get(&format!("/v1/inbox?limit=200&after={after}"))?;
            let items = page.body["items"].as_array().cloned().unwrap_or_default();
            if let Some(item) = items.iter().find(|item| item["id"] == message) {
                return Ok(item["seen"] == true);
            }
            let Some(last) = items.last() else { return Ok(false) };
            after = last["inbox_seq"].as_u64().unwrap_or(u64::MAX);
        }
    }

    fn at_broker(&self) -> RelayCaller {
        RelayCaller::new(self.broker, format!("authorization: Bearer {}\r\n", self.token))
    }
}

/// Reads an answer as a caller does.
fn said(answer: std::io::Result<Answer>) -> CallerAnswer {
    match answer {
        Err(_) => CallerAnswer::Nothing,
        Ok(Answer { status: 200..=299, .. }) => CallerAnswer::Stored,
        Ok(answer) if answer.denies_storage() => CallerAnswer::Denied(answer.refusal()),
        Ok(answer) => CallerAnswer::Open(answer.refusal()),
    }
}
