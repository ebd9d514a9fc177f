//! The product, a second node, and the driver's calls, which outlive every death.

use super::Plan;
use super::acts::Fate;
use crate::bin::{Home, Options, Product};
use crate::kills::door::{Answer, Door, read_answer};
use crate::kills::{AT_RANDOM, KillsError};
use crate::port;
use crate::process::{Channel, Process};
use crate::refusals::{Refusals, Refused};
use crate::seeded::Seeded;
use crate::wait::wait_for;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// A start that recovers, and whatever must happen by itself, on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
/// A message arrives within this, on a machine that stalls.
const PATIENCE: Duration = Duration::from_secs(120);
/// A planted bug does not go away by waiting.
const PATIENCE_OF_A_CONTROL: Duration = Duration::from_secs(10);
const PATIENCE_FOR_REFUSED: Duration = Duration::from_secs(1);
/// Commits at which the product dies.
const JOBS: [&str; 8] = [
    "mailbox.accept",
    "mailbox.claim",
    "mailbox.settle",
    "mailbox.record",
    "mailbox.turn_begin",
    "mailbox.turn_end",
    "mailbox.turn_interrupt",
    "ledger.accept",
];
/// Of a hundred acts, so many come after a SIGKILL.
const KILL_PERCENT: u64 = 6;
/// Of a hundred histories, so many arm a crash point.
const ARM_PERCENT: u64 = 40;
/// Of a hundred histories, so many find the other node in the other state.
const LAB_PERCENT: u64 = 10;
/// The relay's upstream: nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1";

pub(super) struct Stage<'home> {
    home: &'home Home,
    lab: &'home Home,
    faults: Vec<String>,
    socket: PathBuf,
    listen: String,
    relay_at: SocketAddr,
    product: Option<Process>,
    laboratory: Option<Process>,
    armed: Option<String>,
    deaths: BTreeMap<String, u64>,
    seeded: Seeded,
    run: u64,
    /// Ids that were sent.
    asked: BTreeSet<String>,
    refusals: Refusals,
    /// Requests that were taken and should not have been.
    pub wrong: Vec<String>,
    /// How long explain may disagree with the log: what is on its way arrives meanwhile.
    patience: Duration,
}

impl<'home> Stage<'home> {
    pub(super) fn open(home: &'home Home, lab: &'home Home, plan: &Plan) -> Result<Self, KillsError> {
        let product = Product::up(home, &Options::default())?;
        product.cli(&["agent", "add", "ci"])?.done();
        product.cli(&["topic", "create", "news"])?.done();
        product.cli(&["topic", "subscribe", "news", "--as", "ci"])?.done();
        let invite = product.cli(&["--quiet", "invite", "lab"])?.done().stdout;
        let url = product.ready().url.clone();
        let other = Product::up(lab, &Options::default())?;
        let join = ["join", invite.trim(), "--node", "lab", "--person", "tom", "--mesh-as", "far"];
        other.cli(&join)?.done();
        let socket = product.ready().socket.clone();
        other.kill9();
        product.kill9();
        let listen = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let mut stage = Self {
            home,
            lab,
            faults: plan.faults.clone(),
            socket,
            listen,
            relay_at: SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?)),
            product: None,
            laboratory: None,
            armed: None,
            deaths: BTreeMap::new(),
            seeded: Seeded::new(plan.seed ^ 0x5EED),
            run: plan.seed,
            asked: BTreeSet::new(),
            refusals: Refusals::default(),
            wrong: Vec::new(),
            patience: if plan.faults.is_empty() { PATIENCE } else { PATIENCE_OF_A_CONTROL },
        };
        stage.start()?;
        stage.start_lab()?;
        Ok(stage)
    }

    pub(super) fn fresh_id(&self, id: &str) -> String {
        format!("r{}-{id}", self.run)
    }

    pub(super) fn deaths(&self) -> BTreeMap<String, u64> {
        self.deaths.clone()
    }

    pub(super) fn lab_is_up(&self) -> bool {
        self.laboratory.is_some()
    }

    fn start(&mut self) -> Result<(), KillsError> {
        let armed = self.armed.iter().map(|point| format!("crash:{point}"));
        let faults = self.faults.iter().cloned().chain(armed).collect();
        let args = vec![format!("--relay={NOBODY}"), format!("--relay-listen={}", self.relay_at)];
        let options = Options { faults, args, listen: Some(self.listen.clone()), ..Options::default() };
        let mut process = Product::spawn(self.home, &options)?;
        let mut door = Door::new(self.socket.clone(), None);
        wait_for("the product to listen", BOUND, || {
            (door.connect().is_ok() || process.ended().is_some()).then_some(())
        })?;
        self.product = Some(process);
        Ok(())
    }

    fn start_lab(&mut self) -> Result<(), KillsError> {
        self.laboratory = Some(Product::spawn(self.lab, &Options::default())?);
        Ok(())
    }

    /// Some histories arm a crash point for their first life, some send the other node away or back.
    pub(super) fn begin_history(&mut self, seeded: &mut Seeded) -> Result<(), KillsError> {
        if seeded.chance(LAB_PERCENT) {
            match self.laboratory.take() {
                Some(mut lab) => drop(lab.kill9()),
                None => self.start_lab()?,
            }
        }
        if seeded.chance(ARM_PERCENT) {
            let moment = if seeded.chance(50) { "before_commit" } else { "after_commit" };
            let job = JOBS[seeded.index(JOBS.len())];
            self.armed = Some(format!("{job}.{moment}:{}", 1 + seeded.below(4)));
            self.die()?;
        }
        Ok(())
    }

    pub(super) fn maybe_die(&mut self, seeded: &mut Seeded) -> Result<(), KillsError> {
        if seeded.chance(KILL_PERCENT) {
            *self.deaths.entry(AT_RANDOM.to_owned()).or_default() += 1;
            self.die()?;
        }
        Ok(())
    }

    /// By SIGKILL, and up again.
    fn die(&mut self) -> Result<(), KillsError> {
        if let Some(mut product) = self.product.take() {
            product.kill9();
        }
        self.start()
    }

    /// A life without an armed point, its link open.
    pub(super) fn heal(&mut self) -> Result<(), KillsError> {
        if self.armed.take().is_some() {
            self.die()?;
        }
        self.get_until("the link to open", "/v1/health", |body| body["meshes"][0]["link"] == "live")?;
        Ok(())
    }

    /// Starts it again when it died at its point; a point armed for one life is not armed for the next.
    fn revive(&mut self) -> Result<(), KillsError> {
        let Some(product) = &mut self.product else { return self.start() };
        let Ok(status) = product.wait_exit(Duration::from_millis(200)) else { return Ok(()) };
        let said = product.text(Channel::Stderr);
        let point = self
            .armed
            .take()
            .map(|armed| armed.rsplit_once(':').map_or(armed.clone(), |(point, _)| point.to_owned()));
        match point.filter(|point| said.contains(&format!("crash at {point}"))) {
            Some(point) => *self.deaths.entry(format!("product at {point}")).or_default() += 1,
            None => return Err(KillsError::EndedByItself { how: status.to_string(), printed: said }),
        }
        self.start()
    }

    /// Asks until there is an answer, whatever dies meanwhile.
    fn ask(
        &mut self,
        acting_as: Option<&str>,
        ask: impl Fn(&mut Door) -> std::io::Result<Answer>,
    ) -> Result<Answer, KillsError> {
        loop {
            let mut door = Door::new(self.socket.clone(), acting_as.map(str::to_owned));
            match ask(&mut door) {
                Ok(Answer { status: 429 | 503 | 507, .. }) => {}
                Ok(answer) => return Ok(answer),
                Err(_) => self.revive()?,
            }
        }
    }

    /// Posts until an answer comes, which must be one of these.
    pub(super) fn must(
        &mut self,
        acting_as: Option<&str>,
        path: &str,
        body: &Value,
        statuses: &[u16],
    ) -> Result<Value, KillsError> {
        let answer = self.ask(acting_as, |door| door.post(path, body))?;
        if statuses.contains(&answer.status) {
            return Ok(answer.body);
        }
        let answered = format!("{} {}", answer.status, answer.body);
        Err(KillsError::Unreadable { asked: format!("{path} {body}"), answered })
    }

    /// Sends until there is an answer; false when the message was refused in words that deny its storage and no earlier
    /// call may have stored it: then it is given up.
    pub(super) fn send(&mut self, id: &str, request: &Value) -> Result<bool, KillsError> {
        let mut may_be_there = self.asked.contains(id);
        loop {
            match Door::new(self.socket.clone(), None).post("/v1/send", request) {
                Ok(Answer { status: 200 | 202, .. }) => {
                    self.asked.insert(id.to_owned());
                    return Ok(true);
                }
                Ok(answer @ Answer { status: 429 | 503 | 507, .. }) => {
                    may_be_there |= !answer.denies_storage();
                    if !may_be_there {
                        self.refusals.give_up(id.to_owned(), &answer);
                        return Ok(false);
                    }
                }
                Ok(answer) => {
                    let asked = format!("sending {request}");
                    return Err(KillsError::Unreadable { asked, answered: answer.refusal() });
                }
                Err(_) => {
                    may_be_there = true;
                    self.revive()?;
                }
            }
        }
    }

    pub(super) fn ask_refused(&mut self, name: &str) {
        let mut door = Door::new(self.socket.clone(), None);
        let wrong = self.refusals.ask_refused(name, "@me", |request| door.post("/v1/send", request));
        self.wrong.extend(wrong);
    }

    /// Dies, comes back, and asks what is said of every id that was refused.
    pub(super) fn judge_refused(&mut self) -> Result<Refused, KillsError> {
        self.die()?;
        self.heal()?;
        let refusals = std::mem::take(&mut self.refusals);
        let is_control = !self.faults.is_empty();
        if is_control {
            // Nothing has to arrive first.
            self.patience = PATIENCE_FOR_REFUSED;
        }
        let mut is_done = false;
        refusals.judge(|id| {
            let is_there = !is_done && self.await_said(&Fate::never(id, "refused"))?.is_err();
            // A control has done its work with the first.
            is_done |= is_control && is_there;
            Ok(is_there)
        })
    }

    /// An operator's act: put off while the row is on the wire, and done when it was done before a death.
    pub(super) fn operate(&mut self, path: &str, body: &Value) -> Result<(), KillsError> {
        loop {
            let answer = self.ask(None, |door| door.post(path, body))?;
            match (answer.status, answer.body["error"].as_str()) {
                (200, _) | (409, Some("row_aborted")) => return Ok(()),
                (409, Some("row_inflight")) => {}
                (status, _) => {
                    let answered = format!("{status} {}", answer.body);
                    return Err(KillsError::Unreadable { asked: format!("{path} {body}"), answered });
                }
            }
        }
    }

    /// A write under `key` through the relay, asked until it is stored; answers the envelope's id.
    pub(super) fn relay(&mut self, key: &str) -> Result<String, KillsError> {
        loop {
            match self.write(key) {
                Ok(Answer { status: 202, body }) => {
                    return Ok(body["envelope_id"].as_str().unwrap_or_default().to_owned());
                }
                Ok(Answer { status, body }) => {
                    let answered = format!("{status} {body}");
                    return Err(KillsError::Unreadable { asked: format!("a write under {key}"), answered });
                }
                Err(_) => self.revive()?,
            }
        }
    }

    fn write(&self, key: &str) -> std::io::Result<Answer> {
        let body = json!({"note": format!("words of {key}")}).to_string();
        let mut stream = TcpStream::connect(self.relay_at)?;
        stream.set_read_timeout(Some(BOUND))?;
        let length = body.len();
        let request = format!(
            "POST /progress/ HTTP/1.1\r\nhost: relay\r\ncontent-type: application/json\r\n\
             idempotency-key: {key}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        read_answer(&mut BufReader::new(stream))
    }

    /// A person withdraws it; done when it was done before a death.
    pub(super) fn withdraw(&mut self, envelope: &str) -> Result<(), KillsError> {
        wait_for("the write to be withdrawn", BOUND, || {
            let ended = self.home.cli(&["relay", "outbox", "cancel", envelope]).ok()?;
            (ended.code() == Some(0) || ended.stderr.contains("row_aborted")).then_some(())
        })?;
        Ok(())
    }

    pub(super) fn row_of(&mut self, id: &str) -> Result<Value, KillsError> {
        let answer = self.ask(None, |door| door.get(&format!("/v1/messages/{id}")))?;
        Ok(answer.body["id"].clone())
    }

    /// Until the message is in its recipient's inbox; answers the broker's id.
    pub(super) fn await_delivered(&mut self, id: &str) -> Result<Value, KillsError> {
        let far = ["delivered", "notified", "engaged", "processed"];
        let path = format!("/v1/messages/{id}");
        let life = self.get_until("the message to arrive", &path, |life| {
            far.iter().any(|rung| life["receipt"]["rung"] == *rung)
        })?;
        Ok(life["broker_message_id"].clone())
    }

    fn get_until(
        &mut self,
        what: &'static str,
        path: &str,
        enough: impl Fn(&Value) -> bool,
    ) -> Result<Value, KillsError> {
        let mut failed = None;
        let found = wait_for(what, BOUND, || match self.ask(None, |door| door.get(path)) {
            Ok(answer) => enough(&answer.body).then_some(answer.body),
            Err(error) => {
                failed = Some(error);
                Some(Value::Null)
            }
        })?;
        failed.map_or(Ok(found), Err)
    }

    /// What explain says, once it agrees or its time is over.
    pub(super) fn await_said(&mut self, fate: &Fate) -> Result<Result<(), String>, KillsError> {
        let path = format!("/v1/explain/{}", fate.id);
        let mut last = String::new();
        let agreed = wait_for("explain to agree", self.patience, || {
            // An agent's reply is the agent's message; the home's owner may ask about it.
            let said = self.ask(None, |door| door.get(&path)).ok()?.body;
            last = json!([said["verdict"], said["code"], said["sentence"], said["unasked"]]).to_string();
            let code_fits = fate.code.is_none_or(|code| said["code"] == code);
            (said["verdict"] == fate.verdict && code_fits).then_some(())
        });
        Ok(agreed.map_err(|_| last))
    }

    pub(super) fn turn_id(&mut self) -> String {
        let mut bytes = [0; 16];
        self.seeded.fill(&mut bytes);
        model::TurnId::from_bytes(bytes).to_string()
    }
}
