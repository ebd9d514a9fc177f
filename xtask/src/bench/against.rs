//! `bench NAME --against REV`: this checkout and another commit, round by round in one run, by the rows of the bars.
//!
//! Both builds stand ready all the time and are measured in turn, A B, B A, and so on: what slows the machine for some
//! seconds, and what one side leaves to be done behind its round, falls on both alike. The worth of what differs is the
//! ratio of the two. Peers of the bars are measured in the same rounds, so that a bar can be judged for each build.

mod report;

use super::{Bar, Measured, Request, cpu, measuring, median};
use crate::revision::Revision;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fmt::Debug;
use testkit::stopwatch::Stopwatch;

pub use report::Comparison;

/// What was asked for.
pub struct Against<'run> {
    /// Where it runs.
    pub request: &'run Request<'run>,
    /// The other commit.
    pub other: Revision,
    /// Only these rows of the bars; empty for all.
    pub rows: Vec<String>,
    /// How often each build is measured.
    pub rounds: u64,
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// This checkout.
    This,
    /// The other commit.
    Other,
}

impl Build {
    /// Each goes first as often as the other.
    fn in_turn(round: u64) -> [Self; 2] {
        if round.is_multiple_of(2) { [Self::This, Self::Other] } else { [Self::Other, Self::This] }
    }
}

/// A figure of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Calls a second.
    Rate,
    /// The wait of the middle call.
    P50,
    /// The wait that one call in a hundred exceeds.
    P99,
    /// Processor time of a call, at all processes involved.
    Cpu,
}

impl Figure {
    fn of(self, measured: &Measured) -> f64 {
        match self {
            Self::Rate => measured.per_second,
            Self::P50 => measured.p50_us,
            Self::P99 => measured.p99_us,
            Self::Cpu => measured.cpu_us.unwrap_or(f64::NAN),
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Rate => ("rate", "/s"),
            Self::P50 => ("p50", "µs"),
            Self::P99 => ("p99", "µs"),
            Self::Cpu => ("processor time of a call", "µs"),
        }
    }
}

/// One figure of one row: what both builds are asked to do, and which peers the row's bars name.
pub struct Wanted<Side: 'static> {
    /// The row of the bars, such as `D1`.
    pub row: &'static str,
    /// Measured for both builds.
    pub side: Side,
    /// Which of its figures.
    pub figure: Figure,
    /// Measured beside them, with the bar of the ratio.
    pub peers: &'static [(Side, Bar)],
}

/// Both builds and the peers, ready to be measured.
pub trait Field {
    /// Names a build's or a peer's task.
    type Side: Copy + Ord + Debug + 'static;

    /// Its words in the table.
    fn name(side: Self::Side) -> String;
    /// One round of a build.
    fn build(&mut self, build: Build, side: Self::Side, round: u64) -> anyhow::Result<Measured>;
    /// One round of a peer.
    fn peer(&mut self, side: Self::Side, round: u64) -> anyhow::Result<Measured>;
}

type Rounds<Side> = BTreeMap<Side, Vec<Measured>>;

/// The wanted figures of the rows that were asked for.
pub fn chosen<Side>(all: Vec<Wanted<Side>>, rows: &[String]) -> anyhow::Result<Vec<Wanted<Side>>> {
    if let Some(unknown) = rows.iter().find(|row| !all.iter().any(|wanted| wanted.row == row.as_str())) {
        let mut names: Vec<&str> = all.iter().map(|wanted| wanted.row).collect();
        names.dedup();
        bail!("there is no row `{unknown}` to compare; there are {}", names.join(", "));
    }
    Ok(all.into_iter().filter(|wanted| rows.is_empty() || rows.iter().any(|row| row == wanted.row)).collect())
}

/// Measures and compares.
pub fn compare<F: Field>(
    field: &mut F,
    wanted: &[Wanted<F::Side>],
    rounds: u64,
) -> anyhow::Result<Comparison> {
    let watch = Stopwatch::start();
    let (mut this, mut other, mut peers) = (Rounds::new(), Rounds::new(), Rounds::new());
    for round in 0..rounds {
        measuring(format_args!("round {} of {rounds}, {:.0} s", round + 1, watch.elapsed().as_secs_f64()));
        for side in distinct(wanted.iter().map(|wanted| wanted.side)) {
            for build in Build::in_turn(round) {
                cpu::settle();
                let measured = field.build(build, side, round);
                let measured = measured.with_context(|| format!("{build:?}, {side:?}"))?;
                let rounds = if build == Build::This { &mut this } else { &mut other };
                rounds.entry(side).or_default().push(measured);
            }
        }
        for side in distinct(wanted.iter().flat_map(|wanted| wanted.peers).map(|(side, _)| *side)) {
            cpu::settle();
            let measured = field.peer(side, round).with_context(|| format!("{side:?}"))?;
            peers.entry(side).or_default().push(measured);
        }
    }
    let lines = wanted.iter().map(|wanted| line::<F>(wanted, &this, &other, &peers)).collect();
    Ok(Comparison { lines, seconds: watch.elapsed().as_secs() })
}

/// Each once, in the order of their first mention.
fn distinct<Side: PartialEq>(sides: impl Iterator<Item = Side>) -> Vec<Side> {
    let mut found = Vec::new();
    for side in sides {
        if !found.contains(&side) {
            found.push(side);
        }
    }
    found
}

fn line<F: Field>(
    wanted: &Wanted<F::Side>,
    this: &Rounds<F::Side>,
    other: &Rounds<F::Side>,
    peers: &Rounds<F::Side>,
) -> report::Line {
    let figures = |rounds: &Rounds<F::Side>, side: F::Side| -> Vec<f64> {
        rounds.get(&side).into_iter().flatten().map(|measured| wanted.figure.of(measured)).collect()
    };
    let (this, other) = (figures(this, wanted.side), figures(other, wanted.side));
    let (figure, unit) = wanted.figure.words();
    let bars = wanted.peers.iter().map(|(side, bar)| {
        let peer = figures(peers, *side);
        report::PeerRatio {
            name: F::name(*side),
            this: middle_ratio(&this, &peer),
            other: middle_ratio(&other, &peer),
            bar: *bar,
        }
    });
    let bars = bars.collect();
    report::Line {
        row: wanted.row,
        what: format!("{}, {figure}", F::name(wanted.side)),
        unit,
        ratios: ratios(&this, &other),
        this: median(&mut this.clone()),
        other: median(&mut other.clone()),
        bars,
    }
}

/// Of each round.
fn ratios(these: &[f64], those: &[f64]) -> Vec<f64> {
    these.iter().zip(those).map(|(this, that)| this / that).collect()
}

fn middle_ratio(these: &[f64], those: &[f64]) -> f64 {
    median(&mut ratios(these, those))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Calls twice as fast at this checkout as at the other commit; notes who was asked.
    struct Told(Vec<(Option<Build>, u8)>);

    impl Field for Told {
        type Side = u8;

        fn name(side: u8) -> String {
            format!("side {side}")
        }

        fn build(&mut self, build: Build, side: u8, _: u64) -> anyhow::Result<Measured> {
            self.0.push((Some(build), side));
            let calls = if build == Build::This { 200 } else { 100 };
            Ok(Measured::of(vec![5; calls], Duration::from_secs(1)))
        }

        fn peer(&mut self, side: u8, _: u64) -> anyhow::Result<Measured> {
            self.0.push((None, side));
            Ok(Measured::of(vec![5; 50], Duration::from_secs(1)))
        }
    }

    fn wanted() -> Vec<Wanted<u8>> {
        let rate = |row, side, peers| Wanted { row, side, figure: Figure::Rate, peers };
        vec![rate("D1", 1, &[(9, Bar::AtLeast(3.0))]), rate("D1", 1, &[]), rate("D2", 2, &[])]
    }

    #[test]
    fn builds_take_turns_and_each_side_is_measured_once_a_round() {
        let mut told = Told(Vec::new());
        compare(&mut told, &wanted(), 2).unwrap();
        let (this, other) = (Some(Build::This), Some(Build::Other));
        let first = [(this, 1), (other, 1), (this, 2), (other, 2), (None, 9)];
        let second = [(other, 1), (this, 1), (other, 2), (this, 2), (None, 9)];
        assert_eq!(told.0, [first, second].concat());
    }

    #[test]
    fn a_line_has_both_figures_their_ratio_and_each_builds_ratio_to_the_peer() {
        let comparison = compare(&mut Told(Vec::new()), &wanted(), 3).unwrap();
        let line = &comparison.lines[0];
        assert_eq!((line.this, line.other, &line.ratios[..]), (200.0, 100.0, &[2.0, 2.0, 2.0][..]));
        assert_eq!((line.bars[0].this, line.bars[0].other), (4.0, 2.0));
    }

    #[test]
    fn rows_that_were_asked_for_are_kept_and_an_unknown_one_names_those_there_are() {
        let rows = |asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|row| (*row).to_owned()).collect();
            chosen(wanted(), &asked).map(|kept| kept.iter().map(|wanted| wanted.row).collect::<Vec<_>>())
        };
        assert_eq!(rows(&[]).unwrap(), ["D1", "D1", "D2"]);
        assert_eq!(rows(&["D2"]).unwrap(), ["D2"]);
        let refusal = rows(&["D2", "B1"]).unwrap_err().to_string();
        assert_eq!(refusal, "there is no row `B1` to compare; there are D1, D2");
    }
}
