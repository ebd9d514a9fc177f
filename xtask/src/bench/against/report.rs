//! The table of a comparison.

use crate::bench::Bar;
use crate::bench::table::figure;
use crate::facts::Facts;
use crate::revision::Revision;
use std::fmt::Write;

/// What a comparison found.
pub struct Comparison {
    /// In the order of the rows.
    pub lines: Vec<Line>,
    /// How long it took.
    pub seconds: u64,
}

/// One figure of one row.
pub struct Line {
    /// The row of the bars.
    pub row: &'static str,
    /// Task and figure.
    pub what: String,
    /// Of the figures.
    pub unit: &'static str,
    /// The median of this checkout's rounds.
    pub this: f64,
    /// The median of the other commit's.
    pub other: f64,
    /// This over other, of each round.
    pub ratios: Vec<f64>,
    /// Beside the peers.
    pub bars: Vec<PeerRatio>,
}

/// Both builds over a peer.
pub struct PeerRatio {
    /// The peer.
    pub name: String,
    /// This checkout over it, the median of the rounds' ratios.
    pub this: f64,
    /// The other commit over it.
    pub other: f64,
    /// What the ratio is held to.
    pub bar: Bar,
}

impl Comparison {
    /// What is printed.
    pub fn page(&self, name: &str, other: &Revision, facts: &Facts) -> String {
        let mut page = format!("# Benchmark: {name}, against {}\n\n", other.asked);
        let rounds = self.lines.first().map_or(0, |line| line.ratios.len());
        let _infallible = writeln!(
            page,
            "A: this checkout, commit {}. B: commit {}. {rounds} rounds of each in turn, {} s; {}, {}.\n\
             A / B is the median of the rounds' own ratios, beside the least and the greatest of them.\n",
            facts.version(),
            other.short(),
            self.seconds,
            facts.date,
            facts.machine,
        );
        page.push_str("| row | what | A | B | A / B | least to greatest |\n|---|---|---|---|---|---|\n");
        self.lines.iter().for_each(|line| line.print(&mut page));
        page.push_str("\n| row | beside its peer | A | B | bar |\n|---|---|---|---|---|\n");
        self.lines.iter().for_each(|line| line.print_bars(&mut page));
        page
    }
}

impl Line {
    fn print(&self, page: &mut String) {
        let mut ratios = self.ratios.clone();
        let middle = crate::bench::median(&mut ratios);
        let (least, greatest) = (ratios.first().copied(), ratios.last().copied());
        let (this, other) = (figure(self.this), figure(self.other));
        let _infallible = writeln!(
            page,
            "| {} | {} | {this} {unit} | {other} {unit} | {middle:.3} × | {:.3} to {:.3} |",
            self.row,
            self.what,
            least.unwrap_or(f64::NAN),
            greatest.unwrap_or(f64::NAN),
            unit = self.unit,
        );
    }

    fn print_bars(&self, page: &mut String) {
        for PeerRatio { name, this, other, bar } in &self.bars {
            let told = |ratio: f64| match bar.verdict(ratio) {
                "" => format!("{ratio:.2} ×"),
                verdict => format!("{ratio:.2} ×, {verdict}"),
            };
            let (this, other, limit) = (told(*this), told(*other), bar.limit());
            let _infallible =
                writeln!(page, "| {} | {} / {name} | {this} | {other} | {limit} |", self.row, self.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_both_builds_the_ratio_with_its_spread_and_who_misses_the_bar() {
        let line = Line {
            row: "D1",
            what: "sends, rate".into(),
            unit: "/s",
            this: 80_000.0,
            other: 100_000.0,
            ratios: vec![0.9, 0.7, 0.8],
            bars: vec![PeerRatio { name: "Redis".into(), this: 1.4, other: 1.75, bar: Bar::AtLeast(1.5) }],
        };
        let facts =
            Facts { commit: "abc".into(), dirty: true, date: "2026-11-19".into(), machine: "2 cores".into() };
        let other = Revision { asked: "main".into(), commit: "0123456789abcdef".into() };
        let page = Comparison { lines: vec![line], seconds: 60 }.page("daemon", &other, &facts);
        let told =
            "A: this checkout, commit abc with changes. B: commit 0123456789ab. 3 rounds of each in turn";
        assert!(page.contains(told), "{page}");
        assert!(
            page.contains("| D1 | sends, rate | 80000 /s | 100000 /s | 0.800 × | 0.700 to 0.900 |"),
            "{page}"
        );
        let bar = "| D1 | sends, rate / Redis | 1.40 ×, **missed** | 1.75 ×, met | at least 1.5 |";
        assert!(page.contains(bar), "{page}");
    }
}
