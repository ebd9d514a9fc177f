//! A benchmark's table: measured values, ratios with their bars, and what was not run and why.

use crate::facts::Facts;
use std::fmt::Write;

/// The rows, in the order they are printed.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// A value of this run.
    Measured {
        /// What.
        what: String,
        /// How much.
        value: f64,
        /// Of what: `/s`, `ms`, `MiB`.
        unit: &'static str,
    },
    /// Two values of this run, divided.
    Ratio {
        /// What over what.
        what: String,
        /// The quotient.
        ratio: f64,
        /// The limit it is held to.
        bar: Bar,
    },
    /// Something that would have been measured.
    NotRun {
        /// What.
        what: String,
        /// Why not.
        why: String,
    },
}

/// What a ratio is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// The ratio must reach it.
    AtLeast(f64),
    /// The ratio must not exceed it.
    AtMost(f64),
    /// The ratio is only told.
    Told,
}

impl Row {
    /// A measured value.
    pub fn measured(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self::Measured { what: what.into(), value, unit }
    }

    /// A ratio and its bar.
    pub fn ratio(what: impl Into<String>, ratio: f64, bar: Bar) -> Self {
        Self::Ratio { what: what.into(), ratio, bar }
    }

    /// What was not run.
    pub fn not_run(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::NotRun { what: what.into(), why: why.into() }
    }
}

impl Bar {
    /// True when the ratio keeps within it.
    pub fn is_met_by(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
            Self::Told => true,
        }
    }

    /// The limit, in words; empty for none.
    pub fn limit(self) -> String {
        match self {
            Self::AtLeast(least) => format!("at least {least}"),
            Self::AtMost(most) => format!("at most {most}"),
            Self::Told => String::new(),
        }
    }

    /// Whether the ratio keeps within it, in words; empty without a limit.
    pub fn verdict(self, ratio: f64) -> &'static str {
        match self {
            Self::Told => "",
            _ if self.is_met_by(ratio) => "met",
            _ => "**missed**",
        }
    }

    fn words(self, ratio: f64) -> String {
        match self.verdict(ratio) {
            "" => String::new(),
            verdict => format!("{}: {verdict}", self.limit()),
        }
    }
}

impl Table {
    /// Adds a line.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// True when no ratio missed its bar.
    pub fn bars_met(&self) -> bool {
        self.rows.iter().all(|row| match row {
            Row::Ratio { ratio, bar, .. } => bar.is_met_by(*ratio),
            Row::Measured { .. } | Row::NotRun { .. } => true,
        })
    }

    /// The page, which is also what is printed.
    pub fn page(&self, name: &str, about: &str, facts: &Facts) -> String {
        let mut page = format!("# Benchmark: {name}\n\n{about}\n\n");
        let place = format!("commit {}, {}, {}", facts.version(), facts.date, facts.machine);
        let _infallible = writeln!(page, "Measured by `cargo xtask bench {name}`: {place}.\n");
        page.push_str("| what | value | bar |\n|---|---|---|\n");
        for row in &self.rows {
            let (what, value, bar) = match row {
                Row::Measured { what, value, unit } => {
                    (what, format!("{} {unit}", figure(*value)), String::new())
                }
                Row::Ratio { what, ratio, bar } => (what, format!("{ratio:.2} ×"), bar.words(*ratio)),
                Row::NotRun { what, why } => (what, format!("not run: {why}"), String::new()),
            };
            let _infallible = writeln!(page, "| {what} | {value} | {bar} |");
        }
        page
    }
}

/// Three digits are what a benchmark on a shared machine can mean.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ratio: f64, bar: Bar) -> Table {
        let mut table = Table::default();
        table.push(Row::measured("commits, 64 callers", 84_000.4, "/s"));
        table.push(Row::ratio("64 callers / loop", ratio, bar));
        table.push(Row::not_run("NATS always", "nats-server is not installed"));
        table
    }

    #[test]
    fn a_bar_is_met_up_to_its_own_value_and_missed_beyond() {
        let cases = [
            (6.0, Bar::AtLeast(6.0), true),
            (5.9, Bar::AtLeast(6.0), false),
            (1.05, Bar::AtMost(1.05), true),
            (1.06, Bar::AtMost(1.05), false),
            (0.0, Bar::Told, true),
            (f64::NAN, Bar::AtLeast(1.0), false),
        ];
        for (ratio, bar, met) in cases {
            assert_eq!(table(ratio, bar).bars_met(), met, "{ratio} {bar:?}");
        }
    }

    #[test]
    fn the_page_names_what_was_not_run_and_which_bar_was_missed() {
        let facts = Facts {
            commit: "abc".into(),
            dirty: false,
            date: "2026-11-15".into(),
            machine: "2 cores".into(),
        };
        let page = table(5.0, Bar::AtLeast(6.0)).page("engine", "Commits.", &facts);
        let rows = "| commits, 64 callers | 84000 /s |  |\n| 64 callers / loop | 5.00 × | at least 6: **missed** |\n\
            | NATS always | not run: nats-server is not installed |  |\n";
        assert!(page.ends_with(rows), "{page}");
        assert!(page.contains("commit abc, 2026-11-15, 2 cores."), "{page}");
    }

    #[test]
    fn figures_keep_three_digits() {
        for (value, text) in [(0.123, "0.12"), (3.34159, "3.34"), (42.06, "42.1"), (1234.6, "1235")] {
            assert_eq!(figure(value), text);
        }
    }
}
