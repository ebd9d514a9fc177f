//! What a restart syncs after a kill between a commit's write and its sync, as `strace` sees it.

use super::asking::ProductDoors;
use super::steering::{HomeFile, StrikeError, StrikePlan, SystemCall, SystemCallShim};
use super::{relay_arguments, start};
use crate::bin::{Binary, Home, Options};
use crate::fleet::FleetError;
use crate::port;
use crate::process::Channel;
use crate::seeded::Seeded;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A start under `strace`, on a busy machine.
const READY_BOUND: Duration = Duration::from_secs(120);

/// A killed process takes its threads down first.
const END_BOUND: Duration = Duration::from_secs(20);

/// A store's file of the restarted product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartedStore {
    /// Its name.
    pub file: String,
    /// Syncs of the file before the first answer.
    pub file_syncs: u64,
    /// Syncs of its log before the first answer.
    pub log_syncs: u64,
}

/// What the trace showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedRestart {
    /// Mailbox, ledger and the relay's file.
    pub stores: Vec<RestartedStore>,
    /// Answers seen on sockets; the ready line is one.
    pub answers: u64,
}

impl TracedRestart {
    /// Whether each store was synced, file and log, before anything was answered.
    pub fn holds(&self) -> bool {
        let synced = |store: &RestartedStore| store.file_syncs > 0 && store.log_syncs > 0;
        self.stores.len() == STORES.len() && self.stores.iter().all(synced) && self.answers > 0
    }
}

/// The files, and the answer that rests on each: the broker's to a caller, the handshake behind which arrivals are acked
/// and sends are answered, the relay's.
const STORES: [(&str, &str); 3] =
    [("ledger.db", "HTTP/1.1 2"), ("mailbox.db", "HTTP/1.1 101"), ("outbox.db", "\"event\":\"ready\"")];

/// Kills the product between a write and a sync of a log, starts it again under `strace`, and counts.
///
/// # Errors
/// When it cannot be started, killed or traced.
pub fn syncs_before_first_answer(binary: &Binary) -> Result<TracedRestart, FleetError> {
    let home = Home::new(binary.clone())?;
    let shim = SystemCallShim::compile()?;
    let relay = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
    let args = relay_arguments(relay, &home)?;
    let options = Options { args: args.clone(), env: shim.environment(&home.path()), ..Options::default() };
    let product = start(&home, &options)?;
    let mut doors = ProductDoors::open(&product, &home, relay)?;
    let aim =
        StrikePlan { call: SystemCall::Sync, file: HomeFile::Log, nth: 6, strike: StrikeError::KillBefore };
    shim.arm(aim)?;
    doors.ask_all(&mut 0, &mut Seeded::new(1), aim);
    if shim.hits()? == 0 {
        return Err(FleetError::Unreadable {
            asked: "a kill before a sync of a log".to_owned(),
            answered: "fewer syncs than that".to_owned(),
        });
    }
    // Callers see their sockets closed before the killed process can be waited for.
    product.wait_exit(END_BOUND)?;
    let trace = home.path().with_file_name("trace");
    let traced = home.spawn_with_syncs_traced(&trace, &args)?;
    traced
        .line(Channel::Stdout, "its ready line", READY_BOUND, |line| line.contains("\"ready\""))
        .map_err(FleetError::from)?;
    drop(traced);
    Ok(read(&std::fs::read_to_string(trace)?))
}

/// Starts the product again and again, each time with another of the first so many reads of a database failing once, and
/// names the relay's files that were set aside as damaged. None of them is.
///
/// # Errors
/// When it does not start on a disk that works.
pub fn outboxes_set_aside_by_failing_reads(binary: &Binary, reads: u64) -> Result<Vec<String>, FleetError> {
    let home = Home::new(binary.clone())?;
    let shim = SystemCallShim::compile()?;
    let relay = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
    let args = relay_arguments(relay, &home)?;
    let options = Options { args, env: shim.environment(&home.path()), ..Options::default() };
    start(&home, &options)?.kill9();
    for nth in 1..=reads {
        shim.arm(StrikePlan {
            call: SystemCall::Read,
            file: HomeFile::Data,
            nth,
            strike: StrikeError::Error,
        })?;
        // Started or refused: either is right.
        drop(start(&home, &options));
    }
    shim.disarm()?;
    let mut aside = Vec::new();
    for entry in std::fs::read_dir(home.path().join("relay"))? {
        aside.push(entry?.file_name().to_string_lossy().into_owned());
    }
    aside.retain(|name| name.contains(".damaged-"));
    Ok(aside)
}

/// Reads the lines of `strace -f -y`: syncs name their file in angle brackets.
fn read(trace: &str) -> TracedRestart {
    let is_answer = |line: &str| {
        line.contains("HTTP/1.1 2")
            || line.contains("HTTP/1.1 101")
            || line.contains("\\\"event\\\":\\\"ready\\\"")
    };
    let answers = trace.lines().filter(|line| is_answer(line)).count() as u64;
    let stores = STORES.iter().map(|(file, answer)| {
        let answer = answer.replace('"', "\\\"");
        let before = trace.lines().take_while(|line| !line.contains(&answer));
        let syncs = before.filter(|line| line.contains("sync(") && !line.contains("= -1"));
        let of =
            |end: &str| syncs.clone().filter(|line| line.contains(&format!("/{file}{end}>"))).count() as u64;
        RestartedStore { file: (*file).to_owned(), file_syncs: of(""), log_syncs: of("-wal") }
    });
    TracedRestart { stores: stores.collect(), answers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_counts_for_its_own_file_and_only_before_the_answer() {
        let lines = [
            "7 fdatasync(9</h/ledger.db-wal>) = 0",
            "7 fdatasync(9</h/ledger.db>) = -1 EIO (Input/output error)",
            "8 fdatasync(11</h/mailbox.db>) = 0",
            "8 sendto(4<TCP:[1]>, \"HTTP/1.1 200 OK\", 15, 0, NULL, 0) = 15",
            "8 fsync(9</h/ledger.db>) = 0",
            "8 fdatasync(11</h/mailbox.db-wal>) = 0",
        ];
        let restart = read(&lines.join("\n"));
        let counts: Vec<_> = restart
            .stores
            .iter()
            .map(|store| (store.file.as_str(), store.file_syncs, store.log_syncs))
            .collect();
        assert_eq!(counts, [("ledger.db", 0, 1), ("mailbox.db", 1, 1), ("outbox.db", 0, 0)]);
        assert_eq!(restart.answers, 1);
        assert!(!restart.holds());
    }
}
