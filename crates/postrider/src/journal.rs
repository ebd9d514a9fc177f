//! Where a running process writes what happened: stderr, one line an event.

use tracing_subscriber::EnvFilter;

/// Starts the journal. `POSTRIDER_LOG` chooses what is told; without it, what a person should know.
pub fn start() {
    let filter = EnvFilter::try_from_env("POSTRIDER_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second start in one process (tests) keeps the first journal.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
