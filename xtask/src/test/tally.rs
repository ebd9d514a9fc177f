//! How many tests ran and how they ended, read from the runners' closing lines.

use std::fmt;
use std::ops::Add;

/// Counts of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    passed: u64,
    failed: u64,
    /// The runner itself ended badly: a test that failed, or a build that did.
    stopped: bool,
}

impl Tally {
    /// Takes a line's counts, when it is one of the closing lines.
    pub(super) fn read(&mut self, line: &str) {
        if let Some((passed, failed)) = nextest(line).or_else(|| harness(line)) {
            self.passed += passed;
            self.failed += failed;
        }
    }

    /// How the runner ended.
    pub(super) fn ended(self, well: bool) -> Self {
        Self { stopped: self.stopped || !well, ..self }
    }

    /// True when something ran and nothing failed.
    pub(super) fn holds(self) -> bool {
        self.passed > 0 && self.failed == 0 && !self.stopped
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            stopped: self.stopped || other.stopped,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// `Summary [ 3.3s] 40/43 tests run: 38 passed (1 slow), 1 failed, 1 timed out, 2 skipped`: whatever was started
/// and did not pass failed, under whichever word.
fn nextest(line: &str) -> Option<(u64, u64)> {
    let (counts, ends) =
        line.trim_start().strip_prefix("Summary [")?.split_once(']')?.1.split_once("run:")?;
    let run = number_in(counts.split_whitespace().next()?.split('/').next()?)?;
    let passed = ends.split(',').find_map(|end| number_in(end.trim().split_once(" passed")?.0)).unwrap_or(0);
    Some((passed, run.saturating_sub(passed)))
}

/// `test result: FAILED. 3 passed; 1 failed; 0 ignored; …`
fn harness(line: &str) -> Option<(u64, u64)> {
    let mut counts = line.strip_prefix("test result: ")?.split_once(". ")?.1.split("; ");
    let passed = number_in(counts.next()?.strip_suffix(" passed")?)?;
    Some((passed, number_in(counts.next()?.strip_suffix(" failed")?)?))
}

fn number_in(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_both_runners_are_counted_and_other_lines_are_not() {
        let cases = [
            ("     Summary [   3.350s] 43 tests run: 43 passed, 0 skipped", Some((43, 0))),
            ("     Summary [   0.010s] 1 test run: 1 passed, 0 skipped", Some((1, 0))),
            ("     Summary [   1.052s] 29/43 tests run: 28 passed, 1 failed, 0 skipped", Some((28, 1))),
            (
                "     Summary [   9s] 5 tests run: 2 passed (1 slow), 1 failed, 2 timed out, 7 skipped",
                Some((2, 3)),
            ),
            ("     Summary [   9s] 1 test run: 0 passed, 1 failed, 7 skipped", Some((0, 1))),
            ("     Summary [   0.000s] 0 tests run: 0 passed, 43 skipped", Some((0, 0))),
            ("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out", Some((3, 0))),
            ("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured", Some((3, 2))),
            ("        PASS [   0.015s] (40/43) testkit::it wait::a_summary", None),
            ("running 3 tests", None),
        ];
        for (line, counts) in cases {
            assert_eq!(nextest(line).or_else(|| harness(line)), counts, "{line}");
        }
    }

    #[test]
    fn a_run_holds_only_when_something_ran_and_nothing_failed() {
        let run = |passed, failed, well| Tally { passed, failed, stopped: false }.ended(well).holds();
        assert!(run(1, 0, true));
        assert!(!run(0, 0, true));
        assert!(!run(5, 1, false));
        assert!(!run(5, 0, false));
    }

    #[test]
    fn the_closing_line_names_both_counts() {
        let tally =
            Tally { passed: 2, failed: 0, stopped: false } + Tally { passed: 1, failed: 4, stopped: false };
        assert_eq!(tally.to_string(), "3 passed, 4 failed");
    }
}
