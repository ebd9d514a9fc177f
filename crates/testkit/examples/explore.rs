//! Makes every search of the small-state explorer, two at a time, and prints a line of JSON for each: its place in the
//! list and what came of it. A second argument names one world. For `cargo xtask prove model`, which has it built optimised whatever it is itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::explore::{Run, Scope, all, delivery, envelope, outbox};

/// Memory is for two of the largest worlds.
const THREADS: usize = 2;

/// All searches, or those of one world.
fn chosen(scope: Scope, world: Option<&str>) -> Result<Vec<Run>, String> {
    let both = |mut runs: Vec<Run>, plants| {
        runs.extend::<Vec<Run>>(plants);
        Ok(runs)
    };
    match world {
        None => Ok(all(scope)),
        Some("outbox") => both(outbox::runs(scope), outbox::plants(scope)),
        Some("delivery") => both(delivery::runs(scope), delivery::plants(scope)),
        Some("envelope") => both(envelope::runs(scope), envelope::plants(scope)),
        Some(other) => Err(format!("no world is called {other}")),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let days = std::env::args().nth(1).ok_or("how many days?")?.parse()?;
    let runs = chosen(Scope::Full { days }, std::env::args().nth(2).as_deref())?;
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
