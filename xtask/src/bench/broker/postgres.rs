//! What people write over PostgreSQL: one statement a batch, one statement a message, a statement a step.
//!
//! The peers keep the same three facts, in plain tables with the indexes they need, and none of the rules: no
//! order within a conversation, no policies, no links.

use super::callers::{self, Caller, id};
use super::{FAN_OUT, Measured};
use anyhow::{Context, ensure};
use model::ClientMessageId;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::{Client, NoTls, Statement};

const TABLES: &str = "
CREATE TABLE dedupe (sender bigint NOT NULL, client_message_id text NOT NULL, fingerprint bytea NOT NULL,
    message uuid NOT NULL, PRIMARY KEY (sender, client_message_id));
CREATE TABLE message (number bigserial PRIMARY KEY, id uuid NOT NULL UNIQUE, sender bigint NOT NULL,
    client_message_id text NOT NULL, body bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE history (number bigserial PRIMARY KEY, message uuid NOT NULL UNIQUE);
CREATE TABLE delivery (message uuid NOT NULL, recipient bigint NOT NULL, acked_at timestamptz,
    PRIMARY KEY (message, recipient));
CREATE TABLE subscription (topic text NOT NULL, member bigint NOT NULL, PRIMARY KEY (topic, member));
";
/// Ids that are new are claimed; what follows is written for those alone.
const CTE: &str = "WITH asked AS (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[]) AS a (sender, id, fingerprint, body)),
  claimed AS (INSERT INTO dedupe SELECT sender, id, fingerprint, gen_random_uuid() FROM asked
    ON CONFLICT DO NOTHING RETURNING sender, client_message_id, message),
  stored AS (INSERT INTO message (id, sender, client_message_id, body)
    SELECT c.message, c.sender, c.client_message_id, a.body FROM claimed c
    JOIN asked a ON a.sender = c.sender AND a.id = c.client_message_id RETURNING id)
INSERT INTO delivery (message, recipient)
SELECT stored.id, s.member FROM stored CROSS JOIN subscription s WHERE s.topic = 'busy'";
const WRITERS: usize = 2;
/// A caller of a batch waits for one answer, so no batch is longer.
const BATCH_MAX: usize = 64;
const BODY: [u8; 256] = [b'x'; 256];
const FINGERPRINT: [u8; 32] = [7; 32];

/// A database of the peers' own.
pub struct Peer {
    url: String,
}

/// How a message is written by its caller's own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statements {
    /// By one.
    One,
    /// By the sequence of the contract, a round trip each.
    Literal,
}

impl Peer {
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    /// Makes the tables.
    pub async fn prepare(&self) -> anyhow::Result<()> {
        let client = self.connect().await?;
        client.batch_execute(TABLES).await?;
        let readers = "INSERT INTO subscription SELECT 'busy', generate_series(1, $1::bigint)";
        client.execute(readers, &[&i64::try_from(FAN_OUT)?]).await?;
        Ok(())
    }

    /// A connection for each caller.
    pub async fn round(&self, how: Statements, callers: usize) -> anyhow::Result<Measured> {
        let mut senders = Vec::with_capacity(callers);
        for number in 0..callers {
            let client = self.connect().await?;
            let statements = Prepared::on(&client).await?;
            senders.push(Sender { client, statements, how, number });
        }
        callers::round(senders).await
    }

    /// Callers hand over to two writers, each with a connection, and whatever waits is one statement.
    pub async fn batched(&self, callers: usize) -> anyhow::Result<Measured> {
        let (jobs, waiting) = mpsc::channel(callers);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..WRITERS {
            let client = self.connect().await?;
            let statement = client.prepare(CTE).await?;
            tokio::spawn(write_batches(client, statement, waiting.clone()));
        }
        let caller = |number| Handing { jobs: jobs.clone(), number };
        callers::round((0..callers).map(caller).collect()).await
    }

    async fn connect(&self) -> anyhow::Result<Client> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        // Ends with its client.
        tokio::spawn(connection);
        Ok(client)
    }
}

struct Job {
    sender: i64,
    id: ClientMessageId,
    done: oneshot::Sender<()>,
}

struct Handing {
    jobs: mpsc::Sender<Job>,
    number: usize,
}

impl Caller for Handing {
    async fn call(&mut self, _: u64) -> anyhow::Result<()> {
        let (done, committed) = oneshot::channel();
        let job = Job { sender: self.number as i64, id: id(), done };
        self.jobs.send(job).await.ok().context("the writers are gone")?;
        committed.await.context("a batch was not written")
    }
}

async fn write_batches(client: Client, statement: Statement, waiting: Arc<Mutex<mpsc::Receiver<Job>>>) {
    let mut jobs = Vec::with_capacity(BATCH_MAX);
    loop {
        if waiting.lock().await.recv_many(&mut jobs, BATCH_MAX).await == 0 {
            return;
        }
        let (senders, ids): (Vec<i64>, Vec<&str>) =
            jobs.iter().map(|job| (job.sender, job.id.as_str())).unzip();
        let (prints, bodies) = (vec![&FINGERPRINT[..]; jobs.len()], vec![&BODY[..]; jobs.len()]);
        let written = client.execute(&statement, &[&senders, &ids, &prints, &bodies]).await;
        // A caller whose batch was not written sees its answer dropped.
        let new = jobs.len() * FAN_OUT;
        for job in jobs.drain(..) {
            if written.as_ref().is_ok_and(|rows| *rows == new as u64) {
                // A caller that went away does not want to know.
                let _gone = job.done.send(());
            }
        }
    }
}

struct Sender {
    client: Client,
    statements: Prepared,
    how: Statements,
    number: usize,
}

struct Prepared {
    one: Statement,
    look_up: Statement,
    claim: Statement,
    destination: Statement,
    message: Statement,
    history: Statement,
    delivery: Statement,
}

impl Prepared {
    async fn on(client: &Client) -> anyhow::Result<Self> {
        Ok(Self {
            one: client.prepare(CTE).await?,
            look_up: client.prepare("SELECT message, fingerprint FROM dedupe WHERE sender = $1 AND client_message_id = $2").await?,
            claim: client.prepare("INSERT INTO dedupe VALUES ($1, $2, $3, gen_random_uuid()) ON CONFLICT DO NOTHING").await?,
            destination: client.prepare("SELECT 1 FROM subscription WHERE topic = 'busy' LIMIT 1").await?,
            message: client.prepare("INSERT INTO message (id, sender, client_message_id, body)
                SELECT message, sender, client_message_id, $3 FROM dedupe WHERE sender = $1 AND client_message_id = $2").await?,
            history: client.prepare("INSERT INTO history (message) SELECT message FROM dedupe WHERE sender = $1 AND client_message_id = $2").await?,
            delivery: client.prepare("INSERT INTO delivery (message, recipient) SELECT d.message, s.member
                FROM dedupe d CROSS JOIN subscription s WHERE d.sender = $1 AND d.client_message_id = $2 AND s.topic = 'busy'").await?,
        })
    }
}

impl Caller for Sender {
    async fn call(&mut self, _: u64) -> anyhow::Result<()> {
        let (sender, id) = (self.number as i64, id());
        let written = match self.how {
            Statements::One => self.one(sender, id.as_str()).await?,
            Statements::Literal => self.literal(sender, id.as_str()).await?,
        };
        ensure!(written == FAN_OUT as u64, "every message of a round is new");
        Ok(())
    }
}

impl Sender {
    async fn one(&self, sender: i64, id: &str) -> anyhow::Result<u64> {
        let (prints, bodies) = (vec![&FINGERPRINT[..]], vec![&BODY[..]]);
        Ok(self.client.execute(&self.statements.one, &[&vec![sender], &vec![id], &prints, &bodies]).await?)
    }

    /// B0, then the transaction of the contract, one statement after the other.
    async fn literal(&self, sender: i64, id: &str) -> anyhow::Result<u64> {
        let Self { client, statements, .. } = self;
        client.query_opt(&statements.look_up, &[&sender, &id]).await?;
        client.batch_execute("BEGIN").await?;
        client.execute(&statements.claim, &[&sender, &id, &&FINGERPRINT[..]]).await?;
        client.query_one(&statements.look_up, &[&sender, &id]).await?;
        client.query_one(&statements.destination, &[]).await?;
        client.execute(&statements.message, &[&sender, &id, &&BODY[..]]).await?;
        client.execute(&statements.history, &[&sender, &id]).await?;
        let written = client.execute(&statements.delivery, &[&sender, &id]).await?;
        client.batch_execute("COMMIT").await?;
        Ok(written)
    }
}
