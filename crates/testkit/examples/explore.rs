//! Makes every search of the small-state explorer, two at a time, and prints a line of JSON for each: its place in the
//! list and what came of it. For `cargo xtask prove model`, which has it built optimised whatever it is itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::explore::{Run, Scope, all};

/// Memory is for two of the largest worlds.
const THREADS: usize = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let days = std::env::args().nth(1).ok_or("how many days?")?.parse()?;
    // A second word chooses one world, such as `turn`: the larger ones take minutes.
    let world = std::env::args().nth(2);
    let runs: Vec<Run> = all(Scope::Full { days })
        .into_iter()
        .filter(|run| world.as_deref().is_none_or(|world| run.name.starts_with(world)))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(place) else { return };
                    let line = serde_json::to_string(&(place, run.make()));
                    println!("{}", line.expect("names and numbers are JSON"));
                }
            });
        }
    });
    Ok(())
}
