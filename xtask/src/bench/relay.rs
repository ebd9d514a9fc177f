//! `bench relay`: what a relay costs while its upstream answers, beside nginx; and how fast it stores while the
//! upstream is away, beside sends at a daemon's door.
//!
//! Every side is a process of its own behind a TCP socket of the loopback, asked by the same callers, in turn, round by
//! round. A ratio is the median of the rounds' own ratios: what slows the machine for some seconds slows both sides.
//! The API behind relay and proxy is the same nginx, which answers from memory.

mod caller;
mod place;

use super::broker::same_disk;
use super::callers::{round, runtime};
use super::peer::nginx::Server as Nginx;
use super::{Bar, Measured, Request, Row, Table, measuring, median};
use anyhow::Context;
use caller::{Asked, Asker};
use place::{Daemon, Relay};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tokio::runtime::Runtime;

/// Odd, so that a median is a measured value.
const ROUNDS: u64 = 5;
const QUICK_ROUNDS: u64 = 1;
const CALLERS: [usize; 3] = [1, 16, 64];

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Direct,
    Nginx,
    Relay,
    RelayWrites,
    Stored,
    StoredApart,
    Sends,
}

impl Side {
    const ALL: [Side; 7] = [
        Side::Direct,
        Side::Nginx,
        Side::Relay,
        Side::RelayWrites,
        Side::Stored,
        Side::StoredApart,
        Side::Sends,
    ];

    fn name(self) -> &'static str {
        match self {
            Side::Direct => "reads, straight to the API",
            Side::Nginx => "reads through nginx",
            Side::Relay => "reads through the relay",
            Side::RelayWrites => "writes through the relay, each stored and synced first",
            Side::Stored => "receipts of the relay, upstream away, all of one session",
            Side::StoredApart => "receipts of the relay, upstream away, a session each",
            Side::Sends => "POST /v1/send over TCP, broker away",
        }
    }

    /// Writes of one session wait for each other while the upstream answers, which is not what is measured. Nothing
    /// waits while it is away: receipts are then of one session as sends are of one lane, and of many beside that.
    fn is_of_one_session(self) -> bool {
        self == Side::Stored
    }
}

type Rounds = BTreeMap<(Side, usize), Vec<Measured>>;

pub fn run(request: &Request<'_>) -> anyhow::Result<Table> {
    let runtime = runtime()?;
    same_disk(request.folder()?.path())?;
    let rounds = Places::open(request)?.measure(&runtime, request.quick)?;
    let mut table = Table::default();
    for callers in CALLERS {
        for side in Side::ALL {
            figures(&mut table, side, callers, &rounds);
        }
    }
    ratios(&mut table, &rounds);
    Ok(table)
}

/// Everything that is asked.
struct Places {
    api: Nginx,
    proxy: Nginx,
    live: Relay,
    away: Relay,
    away_apart: Relay,
    daemon: Daemon,
}

impl Places {
    fn open(request: &Request<'_>) -> anyhow::Result<Self> {
        let binary = request.binary()?;
        let api = Nginx::api(request)?;
        let proxy = Nginx::proxy(request, api.address())?;
        let live = Relay::start(&binary, api.address())?;
        let nobody = SocketAddr::from(([127, 0, 0, 1], testkit::port::free()?));
        let (away, away_apart) = (Relay::start(&binary, nobody)?, Relay::start(&binary, nobody)?);
        let daemon = Daemon::start(&binary)?;
        Ok(Self { api, proxy, live, away, away_apart, daemon })
    }

    /// Every side at every number of callers, in turn.
    fn measure(&self, runtime: &Runtime, quick: bool) -> anyhow::Result<Rounds> {
        let mut rounds = Rounds::new();
        let times = if quick { QUICK_ROUNDS } else { ROUNDS };
        for number in 0..times {
            for callers in CALLERS {
                measuring(format_args!("round {} of {times}: {callers} callers", number + 1));
                for side in Side::ALL {
                    let measured = runtime.block_on(self.round(side, callers));
                    let measured = measured.with_context(|| format!("{}, {callers} callers", side.name()))?;
                    rounds.entry((side, callers)).or_default().push(measured);
                }
            }
        }
        Ok(rounds)
    }

    async fn round(&self, side: Side, callers: usize) -> anyhow::Result<Measured> {
        let read = Asked { line: "GET /tasks/1", headers: String::new(), body: None, status: 200 };
        let write = |status| Asked {
            line: "POST /progress/",
            headers: String::new(),
            body: Some([r#"{"summary":""#, r#""}"#]),
            status,
        };
        let send = Asked {
            line: "POST /v1/send",
            headers: format!("authorization: Bearer {}\r\n", self.daemon.token),
            body: Some([r##"{"to":"#lane","body":""##, r#""}"#]),
            status: 202,
        };
        let (address, asked) = match side {
            Side::Direct => (self.api.address(), read),
            Side::Nginx => (self.proxy.address(), read),
            Side::Relay => (self.live.address(), read),
            Side::RelayWrites => (self.live.address(), write(200)),
            Side::Stored => (self.away.address(), write(202)),
            Side::StoredApart => (self.away_apart.address(), write(202)),
            Side::Sends => (self.daemon.address, send),
        };
        let mut askers = Vec::with_capacity(callers);
        for number in 0..callers {
            let session = if side.is_of_one_session() { 0 } else { number };
            askers.push(Asker::connect(address, &asked, session).await?);
        }
        round(askers).await
    }
}

fn figures(table: &mut Table, side: Side, callers: usize, rounds: &Rounds) {
    let middle = Measured::median(&mut rounds[&(side, callers)].clone());
    let named = |what: &str| format!("{}, {callers} callers{what}", side.name());
    table.push(Row::measured(named(""), middle.per_second, "/s"));
    table.push(Row::measured(named(", p50"), middle.p50_us, "µs"));
    table.push(Row::measured(named(", p99"), middle.p99_us, "µs"));
    if let Some(cpu_us) = middle.cpu_us {
        table.push(Row::measured(named(", processor time of all sides"), cpu_us, "µs"));
    }
}

/// R1 and R2.
fn ratios(table: &mut Table, rounds: &Rounds) {
    for callers in CALLERS {
        let of = |side| &rounds[&(side, callers)];
        let rate = Measured::ratio(of(Side::Relay), of(Side::Nginx));
        table.push(Row::ratio(format!("R1 relay / nginx, {callers} callers"), rate, Bar::AtLeast(0.8)));
        let added = |side| of(side).iter().zip(of(Side::Direct)).map(|(it, bare)| it.p50_us - bare.p50_us);
        let mut ratios: Vec<f64> =
            added(Side::Relay).zip(added(Side::Nginx)).map(|(ours, theirs)| ours / theirs).collect();
        let what = format!("R1 added p50, relay / nginx, {callers} callers");
        table.push(Row::ratio(what, median(&mut ratios), Bar::AtMost(1.3)));
    }
    for callers in CALLERS {
        let ratio = Measured::ratio(&rounds[&(Side::Stored, callers)], &rounds[&(Side::Sends, callers)]);
        // The bar is D1's: 64 callers.
        let bar = if callers == 64 { Bar::AtLeast(0.8) } else { Bar::Told };
        table.push(Row::ratio(format!("R2 receipts / sends, {callers} callers"), ratio, bar));
        let apart = Measured::ratio(&rounds[&(Side::StoredApart, callers)], &rounds[&(Side::Sends, callers)]);
        let what = format!("R2 receipts of a session each / sends, {callers} callers");
        table.push(Row::ratio(what, apart, Bar::Told));
    }
}
