//! A daemon and a broker at full rate beside another process that reads their files, and beside programs that only
//! take processor time.
//!
//! Rates are compared within one run. What is refused meanwhile must say so by name.

mod load;

use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::fleet::caller::Caller;
use crate::fleet::servers::{Broker, Node};
use crate::kills::door::{Answer, Door};
use crate::process::{Orphaned, Process};
use crate::wait::wait_for;
use load::Load;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Callers of each load.
const CALLERS: usize = 32;
/// Each second's answers are added up to spans of five.
const SPAN: usize = 5;
/// A body of the messages that fill a log to its hard bound.
const LARGE_BYTES: usize = 60_000;
/// A log of 4 GiB is filled, and copied, within this.
const FILLED: Duration = Duration::from_secs(300);
/// Budgets that no caller of the run reaches.
const BUDGET: &str = "1000000";

/// The run.
#[derive(Clone, Debug)]
pub struct PressurePlan {
    /// The product with faults.
    pub binary: Binary,
    /// A command that keeps a read transaction open on the file it is given until its input ends.
    pub reader: Vec<String>,
    /// How long each condition lasts.
    pub span: Duration,
    /// Armed in the product, for controls.
    pub faults: Vec<String>,
}

/// Answers a second of one store under a foreign read transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReaderRates {
    /// Without a foreign reader.
    pub alone: f64,
    /// Beside its transaction.
    pub beside: f64,
    /// The last half of the time after it.
    pub after: f64,
}

/// Answers of the best and the worst five seconds beside busy programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusySpans {
    /// The best.
    pub best: u64,
    /// The worst.
    pub worst: u64,
    /// How many programs were busy.
    pub programs: usize,
}

/// A log filled to its hard bound.
#[derive(Clone, Debug, Default)]
pub struct FullLog {
    /// What the refused send was told: status, code and message.
    pub refusal: String,
    /// Whether it names the process that reads.
    pub names_reader: bool,
    /// How long after the reader's end a send was taken again.
    pub taken_after: Duration,
}

/// The sends of the mailbox beside a foreign read transaction, and whether the doctor names its process.
pub fn mailbox_reader(plan: &PressurePlan) -> Result<(ReaderRates, bool), FleetError> {
    let node = lonely_node(plan)?;
    let load = sends(&node);
    let alone = rate(&load, plan.span);
    let mut reader = Reader::start(plan, &node.mailbox())?;
    let beside = rate(&load, plan.span);
    let named = node.problems()?.iter().any(|problem| problem.contains(&reader.named()));
    reader.end();
    rate(&load, plan.span / 2);
    let after = rate(&load, plan.span / 2);
    load.end()?;
    Ok((ReaderRates { alone, beside, after }, named))
}

/// The accepts of the ledger beside a foreign read transaction.
pub fn ledger_reader(plan: &PressurePlan) -> Result<ReaderRates, FleetError> {
    let site = BrokerSite::open(plan)?;
    let load = site.accepts();
    let alone = rate(&load, plan.span);
    let mut reader = Reader::start(plan, &site.ledger)?;
    let beside = rate(&load, plan.span);
    reader.end();
    rate(&load, plan.span / 2);
    let after = rate(&load, plan.span / 2);
    load.end()?;
    Ok(ReaderRates { alone, beside, after })
}

/// Sends beside twice as many busy programs as the machine has processors. `freeze` stops the daemon for a span, as the
/// control.
pub fn busy_programs(plan: &PressurePlan, freeze: bool) -> Result<BusySpans, FleetError> {
    let mut node = lonely_node(plan)?;
    let programs = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let _busy = (0..programs).map(|_| busy_program()).collect::<Result<Vec<_>, _>>()?;
    let load = sends(&node);
    // The first second still starts connections.
    crate::wait::let_pass(Duration::from_secs(1));
    let mut seconds = Vec::new();
    for second in 0..plan.span.as_secs() {
        if freeze && second == SPAN as u64 {
            node.freeze();
        }
        if freeze && second == 3 * SPAN as u64 {
            node.thaw();
        }
        seconds.push(load.answers_within(Duration::from_secs(1)));
    }
    load.end()?;
    let spans = seconds.chunks_exact(SPAN).map(|five| five.iter().sum::<u64>());
    let spans: Vec<u64> = spans.collect();
    let (best, worst) = (spans.iter().max(), spans.iter().min());
    Ok(BusySpans { best: best.copied().unwrap_or(0), worst: worst.copied().unwrap_or(0), programs })
}

/// Sends large messages beside a foreign read transaction until one is refused; then the reader ends.
pub fn full_log(plan: &PressurePlan) -> Result<FullLog, FleetError> {
    let node = lonely_node(plan)?;
    let mut reader = Reader::start(plan, &node.mailbox())?;
    let load = Load::start((0..CALLERS).map(|number| (node.door(), number)), |(door, number), _| {
        send(door, *number, LARGE_BYTES)
    });
    let refused = wait_for("a refusal of a full log", FILLED, || load.first_refusal());
    let refusal = refused?;
    drop(load);
    let names_reader = refusal.contains(&reader.named());
    reader.end();
    let watch = crate::stopwatch::Stopwatch::start();
    let mut door = node.door();
    wait_for("a send that is taken again", FILLED, || {
        let answer = send(&mut door, 0, 10).ok()?;
        (answer.status == 202).then_some(())
    })?;
    Ok(FullLog { refusal, names_reader, taken_after: watch.elapsed() })
}

/// A daemon whose broker is gone: what is sent stays in its mailbox.
fn lonely_node(plan: &PressurePlan) -> Result<Node, FleetError> {
    let mut broker = Broker::start(&plan.binary, &[], &[])?;
    let mut node = Node::join(&plan.binary, "sender", broker.owner_invite.as_deref().unwrap_or_default())?;
    broker.kill9();
    node.restart(&plan.faults)?;
    Ok(node)
}

fn sends(node: &Node) -> Load {
    let doors = (0..CALLERS).map(|number| (node.door(), number));
    Load::start(doors, |(door, number), _| send(door, *number, 256))
}

fn send(door: &mut Door, number: usize, bytes: usize) -> std::io::Result<Answer> {
    door.post("/v1/send", &json!({ "to": format!("#lane-{number}"), "body": "x".repeat(bytes) }))
}

/// Answers a second over `span`.
fn rate(load: &Load, span: Duration) -> f64 {
    load.answers_within(span) as f64 / span.as_secs_f64()
}

/// A broker on a file, and a member with a token.
struct BrokerSite {
    broker: Broker,
    token: String,
    ledger: PathBuf,
    _node: Node,
    _folder: tempfile::TempDir,
}

impl BrokerSite {
    fn open(plan: &PressurePlan) -> Result<Self, FleetError> {
        let folder = tempfile::TempDir::new()?;
        let ledger = folder.path().join("ledger.db");
        let store = format!("sqlite:{}", ledger.display());
        let args = ["--store", &store, "--limit-member", BUDGET, "--limit-mesh", BUDGET];
        let broker = Broker::start(&plan.binary, &args.map(str::to_owned), &plan.faults)?;
        let node = Node::join(&plan.binary, "owner", broker.owner_invite.as_deref().unwrap_or_default())?;
        node.quiet(&["topic", "create", "pressure"])?;
        let token = node.quiet(&["token", "create", "--as", "writer"])?;
        Ok(Self { broker, token, ledger, _node: node, _folder: folder })
    }

    fn accepts(&self) -> Load {
        let caller = |number| (Caller::new(vec![self.broker.address], 0, &self.token), number);
        let run = self.broker.pid();
        Load::start((0..CALLERS).map(caller), move |(caller, number), n| {
            let id = format!("{run}-{number}-{n}");
            caller.ask(&json!({ "to": "#pressure", "body": "x".repeat(256), "client_message_id": id }))?;
            caller.answer(crate::fleet::caller::ANSWER_BOUND)
        })
    }
}

/// Another process with a read transaction on a file.
struct Reader {
    process: Process,
}

impl Reader {
    fn start(plan: &PressurePlan, file: &Path) -> Result<Self, FleetError> {
        let mut command = Command::new(&plan.reader[0]);
        command.args(&plan.reader[1..]).arg(file);
        let process = Process::spawn(command, b"", &Orphaned::EndsByItself)?;
        let begun = |line: &str| line == "reading";
        process.line(crate::process::Channel::Stdout, "that it reads", Duration::from_secs(60), begun)?;
        Ok(Self { process })
    }

    /// How findings name it.
    fn named(&self) -> String {
        format!("(process {})", self.process.id())
    }

    fn end(&mut self) {
        self.process.kill9();
    }
}

/// A program that only takes processor time.
fn busy_program() -> std::io::Result<Process> {
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do :; done"]);
    Process::spawn(command, b"", &Orphaned::EndsByItself)
}
