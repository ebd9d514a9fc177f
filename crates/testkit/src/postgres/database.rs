//! A database per test, on the run's one server or, outside a run, on a server of the test's own.

use super::{Binaries, Private, StartError};

/// Names the run's server; `cargo xtask test` sets it.
pub const URL_VARIABLE: &str = "POSTRIDER_TEST_POSTGRES";

/// An empty database nobody else uses; dropped, it is gone.
#[derive(Debug)]
pub struct Database {
    name: String,
    server: Server,
}

#[derive(Debug)]
enum Server {
    /// The run's server, by the URL of its database `postgres`.
    Shared { url: String, binaries: Binaries },
    /// Started for this database alone.
    Own(Box<Private>),
}

impl Database {
    /// Creates one; starts a server first when the run has none, so a single test works from any shell.
    pub fn create() -> Result<Self, StartError> {
        let server = match std::env::var(URL_VARIABLE) {
            Ok(url) => {
                let binaries = Binaries::find().ok_or(StartError::NotInstalled)?;
                Server::Shared { url, binaries }
            }
            Err(_) => Server::Own(Box::new(Private::start()?)),
        };
        let database = Self { name: random_name(), server };
        database.as_superuser(&format!("CREATE DATABASE {}", database.name))?;
        Ok(database)
    }

    /// The way into it.
    pub fn url(&self) -> String {
        match &self.server {
            Server::Shared { url, .. } => match url.rsplit_once('/') {
                Some((server, _)) => format!("{server}/{}", self.name),
                None => unreachable!("{URL_VARIABLE} is a URL, and a URL has slashes"),
            },
            Server::Own(own) => own.url_of(&self.name),
        }
    }

    /// Runs a script in it, all of it or none.
    pub fn load(&self, script: &str) -> Result<(), StartError> {
        self.binaries()?.psql_script(&self.url(), script)
    }

    /// The script that makes its tables and rows again.
    pub fn dump(&self) -> Result<String, StartError> {
        self.binaries()?.pg_dump(&self.url())
    }

    fn binaries(&self) -> Result<Binaries, StartError> {
        match &self.server {
            Server::Shared { binaries, .. } => Ok(binaries.clone()),
            Server::Own(_) => Binaries::find().ok_or(StartError::NotInstalled),
        }
    }

    fn as_superuser(&self, sql: &str) -> Result<(), StartError> {
        match &self.server {
            Server::Shared { url, binaries } => binaries.psql(url, sql),
            Server::Own(own) => own.execute("postgres", sql),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        match &self.server {
            // The run ends with its whole cluster; a database that could not be dropped only costs space until then.
            Server::Shared { .. } => {
                drop(self.as_superuser(&format!("DROP DATABASE {} WITH (FORCE)", self.name)))
            }
            Server::Own(_) => {}
        }
    }
}

fn random_name() -> String {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).expect("the kernel has random bytes");
    format!("t_{:016x}", u64::from_ne_bytes(bytes))
}
