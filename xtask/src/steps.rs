//! Progress lines with times, so that whoever waits knows for what.

use testkit::stopwatch::Stopwatch;

/// Runs one step between two lines that name it.
pub(crate) fn step<T>(what: &str, run: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    eprintln!("== {what}");
    let watch = Stopwatch::start();
    let result = run();
    let end = if result.is_ok() { "ended" } else { "stopped" };
    eprintln!("== {what}: {end} after {:.1} s", watch.elapsed().as_secs_f64());
    result
}
