//! `bench chat`: how soon a message reaches those who follow its conversation, how many of them can be served, and what
//! a long conversation costs to open.
//!
//! Every side is a process or a runtime of its own behind a socket. Sides are measured in turn, round by round, and a
//! ratio is the median of the rounds' own ratios: what slows the machine for some seconds slows both sides.

mod crowd;
mod floor;
mod frames;
mod latency;
mod long;
mod stalled;

use super::broker::{make_durable, same_disk};
use super::peer::bare::BareServer;
use super::peer::nats::Server as Nats;
use super::{Bar, Request, Row, Table, measuring, median};
use latency::{Pace, Round};
use testkit::bin::Binary;
use testkit::fleet::chat::Venue;
use testkit::fleet::races::Store;

const PACES: [Pace; 2] = [Pace { per_second: 200, publishers: 1 }, Pace { per_second: 2_000, publishers: 8 }];

/// How much is measured.
struct Scale {
    /// Odd, so that a median is a measured value.
    rounds: usize,
    /// Seconds of a paced round.
    paced_seconds: u64,
    /// Followers of one conversation, and messages of a round.
    crowds: [(usize, u64); 2],
    stalled: stalled::Scale,
    long_messages: u64,
}

const FULL: Scale = Scale {
    rounds: 5,
    paced_seconds: 2,
    crowds: [(100, 20_000), (1_000, 4_000)],
    // A p99 is what the slowest hundredth does: of a thousand messages that are ten, which a busy disk decides.
    stalled: stalled::Scale { rounds: 15, followers: 100, messages: 200 },
    long_messages: 100_000,
};

/// Every step once.
const QUICK: Scale = Scale {
    rounds: 1,
    paced_seconds: 1,
    crowds: [(10, 200), (100, 20)],
    stalled: stalled::Scale { rounds: 1, followers: 10, messages: 10 },
    long_messages: 2_000,
};

pub fn run(request: &Request<'_>) -> anyhow::Result<Table> {
    same_disk(request.folder()?.path())?;
    let (binary, mut table) = (request.binary()?, Table::default());
    let scale = if request.quick { &QUICK } else { &FULL };
    latencies(request, &binary, scale, &mut table)?;
    for crowd in scale.crowds {
        crowds(&binary, crowd, scale.rounds, &mut table)?;
    }
    stalled::measure(&binary, &scale.stalled, &mut table)?;
    long::measure(&binary, scale.long_messages, &mut table)?;
    Ok(table)
}

/// E1: one follower.
fn latencies(request: &Request<'_>, binary: &Binary, scale: &Scale, table: &mut Table) -> anyhow::Result<()> {
    let venue = Venue::open(binary, Store::Sqlite, &[])?;
    let redis = testkit::redis::Private::start()?;
    make_durable(&redis)?;
    let nats = Nats::start(request);
    let folder = request.folder()?;
    let floor = floor::Server::start(folder.path())?;
    for pace in PACES {
        let messages = usize::try_from(pace.per_second * scale.paced_seconds)?;
        let [mut ours, mut xread, mut push, mut least] = [const { Vec::new() }; 4];
        for number in 0..scale.rounds {
            measuring(format_args!("one follower, {}/s, round {}", pace.per_second, number + 1));
            let round = Round { pace, messages, number };
            ours.push(latency::product(&venue, &round)?);
            xread.push(latency::redis(&redis, &round)?);
            least.push(floor.round(&round)?);
            if let Ok(nats) = &nats {
                push.push(latency::nats(nats, &round)?);
            }
        }
        let at = |what: &str| format!("{what}, {}/s, p50", pace.per_second);
        table.push(Row::measured(at("publish to WebSocket follower"), median(&mut ours.clone()), "µs"));
        let redis = ("Redis XREAD, appendfsync always", Bar::AtMost(1.0));
        compare(&at, &ours, redis, &xread, table);
        let jetstream = ("JetStream push, sync_interval always", Bar::AtMost(0.8));
        match &nats {
            Ok(_) => compare(&at, &ours, jetstream, &push, table),
            Err(error) => table.push(Row::not_run(at(jetstream.0), error.to_string())),
        }
        let (name, told) = ("the least: an accept's bytes synced, nothing parsed", Bar::Told);
        compare(&at, &ours, (name, told), &least, table);
        table.push(Row::ratio(at("E1: the least / Redis"), ratio_of(&least, &xread), told));
    }
    Ok(())
}

/// A peer's figure, and ours beside it.
fn compare(
    at: &impl Fn(&str) -> String,
    ours: &[f64],
    (peer, bar): (&str, Bar),
    theirs: &[f64],
    table: &mut Table,
) {
    table.push(Row::measured(at(peer), median(&mut theirs.to_vec()), "µs"));
    table.push(Row::ratio(at(&format!("E1: follower / {peer}")), ratio_of(ours, theirs), bar));
}

/// The median of the rounds' own ratios.
fn ratio_of(these: &[f64], those: &[f64]) -> f64 {
    median(&mut these.iter().zip(those).map(|(this, that)| this / that).collect::<Vec<_>>())
}

/// E2: deliveries a second, against a server that does nothing but fan out what the same callers give it.
fn crowds(
    binary: &Binary,
    (followers, messages): (usize, u64),
    rounds: usize,
    table: &mut Table,
) -> anyhow::Result<()> {
    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..rounds {
        measuring(format_args!("{followers} followers, round {} of {rounds}", number + 1));
        // A conversation of its own for each round: nobody has anything to catch up with.
        let venue = Venue::open(binary, Store::Sqlite, &[])?;
        let one = crowd::product(&venue, followers, messages)?;
        drop(venue);
        let server = BareServer::start(one.frame_bytes)?;
        let other = crowd::bare(&server, followers, messages)?;
        ratios.push(one.per_second / other);
        ours.push(one.per_second);
        bare.push(other);
    }
    let named = |what: &str| format!("{what}, {followers} followers");
    let deliveries = named("deliveries, messages accepted and synced meanwhile");
    table.push(Row::measured(deliveries, median(&mut ours), "/s"));
    table.push(Row::measured(
        named("deliveries of a bare coalescing server, the same callers"),
        median(&mut bare),
        "/s",
    ));
    table.push(Row::ratio(named("E2: deliveries / bare server"), median(&mut ratios), Bar::AtLeast(0.7)));
    Ok(())
}
