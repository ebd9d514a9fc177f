//! A ledger with an owner, and a hand to make and push webhooks.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ledger::conformance::town::{self, Home};
use ledger::{Ledger, MeshSetup, Push, Role, SqliteLedger};
use model::outbox::BrokerReceipt;
use model::webhook::Host;
use model::{DeliveryRung, Timestamp};
use tempfile::TempDir;
use testkit::{ManualClock, SeededEntropy};
use wire::Refused;

use super::receiver::Receiver;
use crate::metrics::Metrics;
use crate::webhook::Webhooks;
use crate::webhook::gate::Resolve;

/// See the module.
pub struct Scene {
    pub ledger: Arc<SqliteLedger>,
    pub clock: Arc<ManualClock>,
    pub entropy: SeededEntropy,
    pub metrics: Metrics,
    pub webhooks: Webhooks,
    pub jane: Home,
    folder: TempDir,
}

/// Answers as it is told, the last answer for ever; writes down what it was asked.
pub struct Scripted {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub asked: Mutex<Vec<String>>,
}

impl Scripted {
    pub fn new(answers: &[&[&str]]) -> Arc<Self> {
        let answers = answers.iter().map(|one| one.iter().map(|text| text.parse().unwrap()).collect());
        Arc::new(Self { answers: Mutex::new(answers.collect()), asked: Mutex::default() })
    }
}

#[async_trait]
impl Resolve for Scripted {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 { Ok(answers.pop_front().unwrap()) } else { Ok(answers[0].clone()) }
    }
}

impl Scene {
    /// With calls allowed to this machine's own address.
    pub async fn open() -> Self {
        Self::with(&["127.0.0.1"], Scripted::new(&[&[]])).await
    }

    pub async fn with(allowed: &[&str], resolver: Arc<dyn Resolve>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_800_000_000_000_000)));
        let ledger = Self::ledger_in(&folder, &clock, 1);
        let setup = MeshSetup { slug: "home".into(), policies: town::POLICIES };
        ledger.setup(setup).await.unwrap();
        let jane = town::join(&*ledger, "jane", Role::Owner).await;
        let allowed: Vec<Host> = allowed.iter().map(|host| host.parse().unwrap()).collect();
        let webhooks = Webhooks::with(allowed, resolver, "test");
        let (entropy, metrics) = (SeededEntropy::new(3), Metrics::default());
        Self { ledger, clock, entropy, metrics, webhooks, jane, folder }
    }

    fn ledger_in(folder: &TempDir, clock: &Arc<ManualClock>, seed: u64) -> Arc<SqliteLedger> {
        let path = folder.path().join("ledger.db");
        Arc::new(SqliteLedger::open(&path, clock.clone(), Arc::new(SeededEntropy::new(seed))).unwrap())
    }

    /// Another process opens the file after this one ended.
    pub async fn restarted(self) -> Self {
        let Scene { ledger, clock, folder, .. } = self;
        ledger.db().clone().close().await;
        drop(ledger);
        Scene { ledger: Self::ledger_in(&folder, &clock, 2), clock, folder, ..self }
    }

    /// The webhook `hook`; its secret.
    pub async fn hook(&self, url: &str) -> String {
        self.try_hook(url).await.unwrap()
    }

    pub async fn try_hook(&self, url: &str) -> Result<String, Refused> {
        let name = "hook".parse().unwrap();
        let made = self.webhooks.create(&*self.ledger, &self.entropy, name, url, Vec::new()).await?;
        Ok(made.secret)
    }

    /// A message of jane's.
    pub async fn send(&self, to: &str, id: &str, body: &str) -> BrokerReceipt {
        let mut message = town::text(to, id, body);
        let fields = serde_json::json!({"client_message_id": id, "to": to, "body": body});
        message.envelope = serde_json::to_vec(&fields).unwrap();
        town::accepted(&*self.ledger, &self.jane, message).await
    }

    pub async fn claim(&self) -> Vec<Push> {
        self.ledger.claim_pushes(64).await.unwrap()
    }

    /// Makes every call that is due now; how many.
    pub async fn push_due(&self) -> usize {
        let pushes = self.claim().await;
        let count = pushes.len();
        for push in pushes {
            self.webhooks.push(&*self.ledger, &self.entropy, &self.metrics, push).await;
        }
        count
    }

    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The rung of a message with one recipient.
    pub async fn rung(&self, receipt: &BrokerReceipt) -> DeliveryRung {
        self.ledger.rungs(receipt.broker_message_id).await.unwrap()[0].1
    }

    /// What the endpoint last answered about a message that waits.
    pub async fn last_answer(&self, receipt: &BrokerReceipt) -> Option<String> {
        self.ledger.pushes(receipt.broker_message_id).await.unwrap().remove(0).last_answer
    }

    /// One call to `receiver`, with a short deadline; what the ledger holds of it.
    pub async fn one_call(
        &mut self,
        receiver: &Receiver,
        deadline: Duration,
    ) -> (DeliveryRung, Option<String>) {
        self.webhooks.timeout = deadline;
        self.hook(&receiver.url()).await;
        let receipt = self.send("@hook", "m", "hi").await;
        assert_eq!(self.push_due().await, 1);
        (self.rung(&receipt).await, self.last_answer(&receipt).await)
    }
}
