//! `bench chat`: how soon a message reaches those who follow its conversation, how many of them can be served, and what
//! a long conversation costs to open.
//!
//! Every side is a process or a runtime of its own behind a socket. Sides are measured in turn, round by round, and a
//! ratio is the median of the rounds' own ratios: what slows the machine for some seconds slows both sides.

mod crowd;
mod latency;
mod long;

use super::peer::bare::BareServer;
use super::peer::nats::Server as Nats;
use super::{Bar, Request, Row, Table, median};
use crate::build;
use anyhow::Context;
use testkit::bin::Binary;
use testkit::fleet::chat::Venue;
use testkit::fleet::races::Store;

/// Odd, so that a median is a measured value.
const ROUNDS: usize = 3;
/// Followers of one conversation, and messages of a round.
const CROWDS: [(usize, u64); 2] = [(100, 4_000), (1_000, 500)];

pub fn run(request: &Request<'_>) -> anyhow::Result<Table> {
    // One that is built already may be named, so that a run costs no build.
    let binary = match Binary::shipped() {
        Ok(named) => named,
        Err(_) => Binary::at(build::dist(request.workspace)?),
    };
    let mut table = Table::default();
    latencies(request, &binary, &mut table)?;
    crowds(&binary, &mut table)?;
    stalled(&binary, &mut table)?;
    long::measure(&binary, &mut table)?;
    Ok(table)
}

/// E1: one publisher, one follower.
fn latencies(request: &Request<'_>, binary: &Binary, table: &mut Table) -> anyhow::Result<()> {
    let venue = Venue::open(binary, Store::Sqlite, &[])?;
    let redis = testkit::redis::Private::start()?;
    let nats = Nats::start(request);
    let (mut ours, mut xread, mut push) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        ours.push(latency::product(&venue, round)?);
        xread.push(latency::redis(&redis, round)?);
        if let Ok(nats) = &nats {
            push.push(latency::nats(nats, round)?);
        }
    }
    let ratio = |ours: &[f64], theirs: &[f64]| {
        median(&mut ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
    };
    table.push(Row::measured("publish to WebSocket follower, 200/s, p50", median(&mut ours.clone()), "µs"));
    table.push(Row::measured(
        "Redis XADD to XREAD, appendfsync always, p50",
        median(&mut xread.clone()),
        "µs",
    ));
    table.push(Row::ratio("E1: follower / Redis XREAD, p50", ratio(&ours, &xread), Bar::AtMost(1.0)));
    match nats {
        Ok(_) => {
            let p50 = median(&mut push.clone());
            table.push(Row::measured("JetStream push, sync_interval always, p50", p50, "µs"));
            table.push(Row::ratio(
                "E1: follower / JetStream push, p50",
                ratio(&ours, &push),
                Bar::AtMost(0.8),
            ));
        }
        Err(error) => table.push(Row::not_run("JetStream push, sync_interval always", error.to_string())),
    }
    Ok(())
}

/// E2: deliveries a second, against a server that does nothing but fan out.
fn crowds(binary: &Binary, table: &mut Table) -> anyhow::Result<()> {
    for (followers, messages) in CROWDS {
        let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            // A conversation of its own for each round: nobody has anything to catch up with.
            let venue = Venue::open(binary, Store::Sqlite, &[])?;
            let one = crowd::product(&venue, followers, messages)?;
            let server = BareServer::start()?;
            let other = crowd::bare(&server, followers, messages)?;
            ratios.push(one / other);
            ours.push(one);
            bare.push(other);
        }
        let named = |what: &str| format!("{what}, {followers} followers");
        table.push(Row::measured(
            named("deliveries, messages accepted and synced meanwhile"),
            median(&mut ours),
            "/s",
        ));
        table.push(Row::measured(named("deliveries of a bare coalescing server"), median(&mut bare), "/s"));
        table.push(Row::ratio(named("E2: deliveries / bare server"), median(&mut ratios), Bar::AtLeast(0.7)));
    }
    Ok(())
}

/// E2: what one follower that takes nothing does to the others.
fn stalled(binary: &Binary, table: &mut Table) -> anyhow::Result<()> {
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let venue = Venue::open(binary, Store::Sqlite, &[])?;
        let before = crowd::p99_us(&venue, 100, crowd::Stalled::None).context("without a stalled reader")?;
        let beside = crowd::p99_us(&venue, 100, crowd::Stalled::One).context("beside a stalled reader")?;
        ratios.push(beside / before);
        without.push(before);
        with.push(beside);
    }
    table.push(Row::measured("100 followers at 50/s, p99", median(&mut without), "µs"));
    table.push(Row::measured("the same beside one that takes nothing, p99", median(&mut with), "µs"));
    let ratio = median(&mut ratios);
    table.push(Row::ratio("E2: p99 beside a stalled reader / without", ratio, Bar::AtMost(1.1)));
    Ok(())
}
