//! The size of things: figures of taste, measured on production code.

use super::source::{Source, indent};
use std::fmt;

/// One figure, today, and what the project likes.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name in the ratchet file.
    pub name: &'static str,
    /// Measured now.
    pub today: f64,
    /// The taste.
    pub taste: Taste,
}

/// Which side of a number is good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Taste {
    /// Up to it.
    AtMost(f64),
    /// From it on.
    AtLeast(f64),
}

/// Test equipment and commands have sizes like all code, but are neither production nor its tests.
const TOOLS: &[&str] = &["testkit", "ledger-rounds", "xtask"];

/// All figures of `sources`.
pub(super) fn measure(sources: &[Source]) -> Vec<Figure> {
    let files = sorted(sources.iter().map(|source| source.production.len()).filter(|lines| *lines > 0));
    let functions = sorted(sources.iter().flat_map(|source| functions(&source.production)));
    let rooms = || sources.iter().filter(|source| !TOOLS.contains(&source.room.as_str()));
    let code: usize = rooms().map(|source| full(&source.production)).sum();
    let docs: usize =
        rooms().map(|source| source.production.iter().filter(|(_, line)| is_doc(line)).count()).sum();
    let tests: usize = rooms().map(|source| full(&source.tests)).sum();
    let per = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    vec![
        Figure { name: "file_lines_median", today: at(&files, 50), taste: Taste::AtMost(200.0) },
        Figure { name: "file_lines_p95", today: at(&files, 95), taste: Taste::AtMost(500.0) },
        Figure { name: "file_lines_max", today: at(&files, 100), taste: Taste::AtMost(600.0) },
        Figure { name: "function_lines_p95", today: at(&functions, 95), taste: Taste::AtMost(40.0) },
        Figure { name: "function_lines_max", today: at(&functions, 100), taste: Taste::AtMost(80.0) },
        Figure { name: "doc_lines_per_100", today: 100.0 * per(docs, code), taste: Taste::AtLeast(6.0) },
        Figure { name: "tests_per_production", today: per(tests, code), taste: Taste::AtLeast(0.8) },
    ]
}

impl Figure {
    /// True when the taste is met, or `limit` allows what is beyond it.
    pub(super) fn is_within(&self, limit: Option<f64>) -> bool {
        match self.taste {
            Taste::AtMost(most) => self.today <= most.max(limit.unwrap_or(most)),
            Taste::AtLeast(least) => self.today >= least.min(limit.unwrap_or(least)),
        }
    }

    /// The limit for tomorrow: today's value when it is beyond the taste, and never looser than `limit`. Two
    /// decimals, rounded to the side on which today still passes.
    pub(super) fn tightened(&self, limit: Option<f64>) -> Option<f64> {
        match self.taste {
            Taste::AtMost(most) => {
                let rounded = (self.today * 100.0).ceil() / 100.0;
                (self.today > most).then(|| limit.map_or(rounded, |limit| limit.min(rounded)))
            }
            Taste::AtLeast(least) => {
                let rounded = (self.today * 100.0).floor() / 100.0;
                (self.today < least).then(|| limit.map_or(rounded, |limit| limit.max(rounded)))
            }
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, today) = (self.name, self.today);
        match self.taste {
            Taste::AtMost(most) => write!(out, "{name:<22} {today:>8.2}   liked: at most {most}"),
            Taste::AtLeast(least) => write!(out, "{name:<22} {today:>8.2}   liked: at least {least}"),
        }
    }
}

/// Lengths of the functions with a body, header and closing brace included.
fn functions(lines: &[(usize, String)]) -> Vec<usize> {
    let mut lengths = Vec::new();
    for (start, (_, line)) in lines.iter().enumerate().filter(|(_, (_, line))| is_function(line)) {
        let last = format!("{}}}", indent(line));
        let rest = || lines[start..].iter().enumerate().map(|(length, (_, line))| (length + 1, line));
        let end = rest().find(|(length, line)| **line == last || (*length == 1 && line.ends_with('}')));
        let declared = rest().find(|(_, line)| line.ends_with(';') && indent(line).len() < last.len());
        match (end, declared) {
            (Some((end, _)), Some((declared, _))) if declared < end => {}
            (Some((end, _)), _) => lengths.push(end),
            (None, _) => {}
        }
    }
    lengths
}

fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace().peekable();
    let before = |word: &str| {
        matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"" | "pub") || word.starts_with("pub(")
    };
    while words.next_if(|word| before(word)).is_some() {}
    words.next() == Some("fn")
}

fn is_doc(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("///") || line.starts_with("//!")
}

fn full(lines: &[(usize, String)]) -> usize {
    lines.iter().filter(|(_, line)| !line.trim().is_empty()).count()
}

fn sorted(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values
}

/// The smallest value that `percent` of the values do not exceed.
fn at(sorted: &[usize], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0.0, |value| *value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn lines(text: &str) -> Vec<(usize, String)> {
        Source::parse("model", Path::new("a.rs"), text, false).production
    }

    #[test]
    fn a_function_is_as_long_as_from_its_header_to_its_brace() {
        let text = "fn a() {}\n\npub(crate) async fn b(\n    x: u8,\n) -> u8 {\n    if x > 1 {\n        2;\n    }\n    x\n}\n\
            trait T {\n    fn declared(&self);\n    fn wide(\n        &self,\n    ) -> u8;\n    fn given(&self) {\n        1;\n    }\n}\n\
            let f = fn_pointer;\n";
        assert_eq!(functions(&lines(text)), [1, 8, 3]);
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let twenty: Vec<usize> = (1..=20).collect();
        assert_eq!([at(&twenty, 50), at(&twenty, 95), at(&twenty, 100)], [10.0, 19.0, 20.0]);
        assert_eq!([at(&[7], 50), at(&[7], 95), at(&[], 95)], [7.0, 7.0, 0.0]);
    }

    #[test]
    fn tools_are_left_out_of_the_ratio_and_not_of_the_sizes() {
        let source = |room, text, is_test| Source::parse(room, Path::new("a.rs"), text, is_test);
        let figures = measure(&[
            source("model", "//! Doc.\n\nfn a() {}\nfn b() {}\nfn c() {}\n", false),
            source("model", "fn t() {}\n\n", true),
            source("testkit", "fn x() {\n}\n", false),
        ]);
        let today = |name| figures.iter().find(|figure| figure.name == name).map(|figure| figure.today);
        assert_eq!(today("tests_per_production"), Some(0.25));
        assert_eq!(today("doc_lines_per_100"), Some(25.0));
        assert_eq!(today("file_lines_max"), Some(5.0));
        assert_eq!(today("function_lines_max"), Some(2.0));
    }

    #[test]
    fn what_is_beyond_taste_may_shrink_and_not_grow() {
        let most = |today| Figure { name: "a", today, taste: Taste::AtMost(40.0) };
        let least = |today| Figure { name: "b", today, taste: Taste::AtLeast(0.8) };
        for (figure, limit, within, tightened) in [
            (most(39.0), None, true, None),
            (most(41.0), None, false, Some(41.0)),
            (most(50.0), Some(50.0), true, Some(50.0)),
            (most(51.0), Some(50.0), false, Some(50.0)),
            (most(45.0), Some(50.0), true, Some(45.0)),
            (most(39.0), Some(50.0), true, None),
            (least(0.5), None, false, Some(0.5)),
            (least(0.5), Some(0.5), true, Some(0.5)),
            (least(0.4), Some(0.5), false, Some(0.5)),
            (least(0.9), Some(0.5), true, None),
            (least(0.509), None, false, Some(0.5)),
            (most(41.001), None, false, Some(41.01)),
        ] {
            assert_eq!(
                (figure.is_within(limit), figure.tightened(limit)),
                (within, tightened),
                "{figure:?} {limit:?}"
            );
        }
    }
}
