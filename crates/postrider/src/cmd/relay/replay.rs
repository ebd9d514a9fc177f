//! `postrider relay outbox replay`: sends what waits and looks on.

use std::io::Write;
use std::time::Duration;

use net::client::Target;
use wire::relay::{EnvelopePage, RelayStatus, ReplayRequest};

use super::door::RelayDoor;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output, short_id};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Marks of the bar.
const BAR: u64 = 20;

pub async fn run(
    door: &RelayDoor,
    upstream_url: Option<String>,
    force_upstream: bool,
    timeout: Duration,
    output: &Output,
) -> Result<Exit, Failure> {
    let first: RelayStatus = door.post("/replay", &ReplayRequest { force_upstream }).await?;
    if let Some(url) = upstream_url {
        let asked = Target::of_url(&url).map_err(|error| Failure::usage(error.to_string()))?;
        if asked.to_string() != first.upstream {
            return Err(Failure::usage(format!("this relay's upstream is {}", first.upstream))
                .line("Nothing was sent there by this command.")
                .fix(format!("postrider relay serve --upstream {url}")));
        }
    }
    let mut progress = Progress { total: first.queued - first.blocked.min(first.queued), shown: 0, output };
    let looking = async {
        loop {
            let status: RelayStatus = door.get("/status").await?;
            let waits = status.queued - status.blocked.min(status.queued);
            progress.show(waits);
            if waits == 0 || !status.reachable || status.paused.is_some() {
                return Ok::<_, Failure>(status);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let status = match tokio::time::timeout(timeout, looking).await {
        Ok(status) => status?,
        Err(_) => door.get("/status").await?,
    };
    report(door, &status, output).await?;
    Ok(ending(&status))
}

/// The codes of this command: 0 nothing waits, 2 a person must decide, 3 some still waits.
fn ending(status: &RelayStatus) -> Exit {
    if status.queued > status.blocked {
        Exit::Unreachable
    } else if status.conflict + status.rejected > 0 {
        Exit::Usage
    } else {
        Exit::Done
    }
}

struct Progress<'a> {
    total: u64,
    shown: u64,
    output: &'a Output,
}

impl Progress<'_> {
    /// Redraws one line on a terminal; elsewhere one line for each tenth.
    fn show(&mut self, waits: u64) {
        self.total = self.total.max(waits);
        if self.output.form() != Form::Text || self.total == 0 {
            return;
        }
        let done = self.total - waits;
        let tenth = done * 10 / self.total;
        let full = done * BAR / self.total;
        let bar: String = (0..BAR).map(|mark| if mark < full { '#' } else { '.' }).collect();
        let line = format!("done      {bar}  {done} of {}", self.total);
        if self.output.on_terminal() {
            let end = if waits == 0 { "\n" } else { "" };
            let mut stdout = std::io::stdout().lock();
            // A reader that went away needs no bar.
            let _ = write!(stdout, "\r{line}{end}").and_then(|()| stdout.flush());
        } else if tenth > self.shown || waits == 0 {
            self.output.text(&line);
        }
        self.shown = tenth;
    }
}

async fn report(door: &RelayDoor, status: &RelayStatus, output: &Output) -> Result<(), Failure> {
    match output.form() {
        Form::Json => output.json(status),
        Form::Quiet => output.text(&status.queued.to_string()),
        Form::Text => {
            super::outbox::print_status(status, output);
            if status.conflict > 0 {
                let page: EnvelopePage = door.get("/envelopes?status=conflict&limit=20").await?;
                for row in &page.envelopes {
                    let id = short_id(&row.envelope_id);
                    output.fact("conflict", &format!("{id}  {} {}", row.method, row.path));
                }
                output.fact("", "Nothing was overwritten.");
                output.fact("fix", "postrider relay outbox inspect ID");
            }
        }
    }
    Ok(())
}
