//! State that a binary left behind, kept as files: the homes in an archive, the books of PostgreSQL as SQL, and what
//! callers were told.
//!
//! A stored team lives at the time it was left: its processes get a clock that lags by its age (binaries with faults),
//! and so does its database. Else bounds of age would speak in a test that is run a year later.

use super::team::{ANN, BOB, Relay, Team, broker_args};
use super::{Damage, Outcome, Told, history, judge};
use crate::bin::{Binary, Home};
use crate::fleet::FleetError;
use crate::fleet::races::Store;
use crate::fleet::servers::{Broker, Node};
use crate::postgres::Database;
use crate::stopwatch::Stopwatch;
use model::Timestamp;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const HOMES: &str = "homes.tar.gz";
const TOLD: &str = "told.json";
const BOOKS: &str = "ledger.sql";
/// Messages of each kind; every one of them costs bytes in the repository.
const MESSAGES: u64 = 3;
/// Files of a running process, and the mark of the machine that it ran on.
const LEFT_OUT: &[&str] = &["*-shm", "*-lock", "lock", "pid", "*.sock", "http.port", "host.json", "*.log"];
/// A stored team goes on so much later than it was left.
const LATER_US: i64 = 60_000_000;
/// A busy machine takes no longer from the start to the last post.
const CLOCK_MAX_US: u64 = 3_600_000_000;

/// Lets `binary` make a history and leave some of it waiting, and keeps all of it in `folder`.
pub fn store_team(binary: &Binary, commit: &str, store: Store, folder: &Path) -> Result<Told, FleetError> {
    let mut team = Team::open(binary, store)?;
    let mut told = history::make(&mut team, MESSAGES)?;
    history::leave_waiting(&mut team, MESSAGES, &mut told)?;
    team.stop();
    told.commit = commit.to_owned();
    fs::create_dir_all(folder)?;
    let staged = TempDir::new()?;
    for (name, home) in homes(&team) {
        fs::rename(home.path(), staged.path().join(name))?;
    }
    let archive = folder.join(HOMES);
    let out = ["-C", &staged.path().to_string_lossy(), "-czf", &archive.to_string_lossy()].map(str::to_owned);
    let left_out = LEFT_OUT.iter().map(|pattern| format!("--exclude={pattern}"));
    let plain = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"].map(str::to_owned);
    tar(left_out.chain(plain).chain(out).chain([".".to_owned()]))?;
    if let Some(database) = &team.database {
        fs::write(folder.join(BOOKS), database.dump()?)?;
    }
    let text = serde_json::to_string_pretty(&told).map_err(std::io::Error::other)?;
    fs::write(folder.join(TOLD), text + "\n")?;
    Ok(told)
}

/// A team as it was stored.
#[derive(Debug)]
pub struct StoredTeam {
    folder: PathBuf,
    /// What its callers were told.
    pub told: Told,
    store: Store,
}

impl StoredTeam {
    /// The one in `folder`.
    pub fn read(folder: &Path) -> Result<Self, FleetError> {
        let text = fs::read_to_string(folder.join(TOLD))?;
        let told = serde_json::from_str(&text).map_err(std::io::Error::other)?;
        let store = if folder.join(BOOKS).exists() { Store::Postgres } else { Store::Sqlite };
        Ok(Self { folder: folder.to_owned(), told, store })
    }

    /// Opens copies under `binary`, which has faults, and judges how they go on.
    pub fn go_on(&self, binary: &Binary, damage: Option<Damage>) -> Result<Outcome, FleetError> {
        let watch = Stopwatch::start();
        let files = TempDir::new()?;
        let lag_us = self.told.left_at_us + LATER_US - history::now_us();
        let clock = files.path().join("clock");
        fs::write(&clock, lag_us.to_string())?;
        let faults = [format!("clock:{}", clock.display())];
        let mut told = self.told.clone();
        let mut team = self.unpack(binary, lag_us, files.path(), &mut told)?;
        if let Some(damage) = damage {
            self::damage(&team, damage)?;
        }
        team.start(binary, &faults)?;
        let mut broken = judge::judge(&mut team, &mut told, super::patience(damage))?;
        broken.extend(self.lives_elsewhen(&told));
        Ok(Outcome { acked: told.acked(), changes: 4, broken, elapsed: watch.elapsed() })
    }

    /// Homes of their own at a free port, and nothing running.
    fn unpack(
        &self,
        binary: &Binary,
        lag_us: i64,
        files: &Path,
        told: &mut Told,
    ) -> Result<Team, FleetError> {
        let archive = self.folder.join(HOMES);
        let words = ["-C", &files.to_string_lossy(), "-xzf", &archive.to_string_lossy()].map(str::to_owned);
        tar(words.into_iter())?;
        let database = match self.store {
            Store::Sqlite => None,
            Store::Postgres => Some(self.load(lag_us)?),
        };
        let home = |name: &str| -> Result<Home, FleetError> {
            let home = Home::new(binary.clone())?;
            fs::rename(files.join(name), home.path())?;
            Ok(home)
        };
        let broker = Broker::stored(home("broker")?, broker_args(database.as_ref()))?;
        let (ann, bob) = (home(ANN)?, home(BOB)?);
        for home in [&ann, &bob] {
            // As a person does whose broker moved.
            let config = home.path().join("config.toml");
            let text = fs::read_to_string(&config)?;
            fs::write(config, text.replace(&told.broker.to_string(), &broker.address.to_string()))?;
        }
        told.broker = broker.address;
        let relay = Relay::new(home("relay")?, broker.address, &told.hub_token)?;
        Ok(Team {
            broker,
            ann: Node::stored(ann)?,
            bob: Node::stored(bob)?,
            relay,
            direct_token: told.direct_token.clone(),
            hub_token: told.hub_token.clone(),
            database,
        })
    }

    /// What is wrong with the broker's clock: its newest post is from about when the state was left.
    fn lives_elsewhen(&self, told: &Told) -> Option<String> {
        let newest = &told.posted.last()?.created_at;
        let at_us = newest.parse::<Timestamp>().map_or(i64::MAX, Timestamp::as_micros);
        let away_us = at_us.saturating_sub(self.told.left_at_us + LATER_US);
        let sentence = || format!("a post was accepted at {newest}, which is not when the state was left");
        (away_us.unsigned_abs() > CLOCK_MAX_US).then(sentence)
    }

    /// The books in a database whose clock lags.
    fn load(&self, lag_us: i64) -> Result<Database, FleetError> {
        let database = Database::create()?;
        database.load(&fs::read_to_string(self.folder.join(BOOKS))?)?;
        let clock = format!(
            "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
             $$ SELECT pg_catalog.clock_timestamp() + interval '{lag_us} microseconds' $$;\n\
             DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', \
             current_database()); END $$;"
        );
        database.load(&clock)?;
        Ok(database)
    }
}

/// Takes something out of what a stopped team left.
pub(super) fn damage(team: &Team, damage: Damage) -> Result<(), FleetError> {
    let (home, file, sql) = match damage {
        Damage::WaitingRow => (
            team.ann.home(),
            "daemon/home/mailbox.db",
            "DELETE FROM outbox WHERE client_message_id = 'waiting.to-bob.1'",
        ),
        Damage::KnownId => (
            team.broker.home(),
            "broker/ledger.db",
            "DELETE FROM dedupe WHERE client_message_id = 'before.post.1'",
        ),
        Damage::WaitingWrite => (
            &team.relay.home,
            "relay/outbox.db",
            "DELETE FROM envelope WHERE idempotency_key = 'waiting.write.1'",
        ),
    };
    let sqlite = |error: rusqlite::Error| std::io::Error::other(format!("{file}: {error}"));
    let conn = Connection::open(home.path().join(file)).map_err(sqlite)?;
    let rows = conn.execute(sql, []).map_err(sqlite)?;
    let why = || FleetError::Unreadable { asked: sql.to_owned(), answered: format!("{rows} rows") };
    if rows == 1 { Ok(()) } else { Err(why()) }
}

fn homes(team: &Team) -> [(&'static str, &Home); 4] {
    [
        ("broker", team.broker.home()),
        (ANN, team.ann.home()),
        (BOB, team.bob.home()),
        ("relay", &team.relay.home),
    ]
}

fn tar(words: impl Iterator<Item = String>) -> Result<(), FleetError> {
    let output = Command::new("tar").args(words).output()?;
    if output.status.success() {
        return Ok(());
    }
    let answered = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(FleetError::Unreadable { asked: "tar".to_owned(), answered })
}
