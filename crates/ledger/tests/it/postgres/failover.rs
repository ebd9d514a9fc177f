//! A standby takes the place of a server that died under load.
//!
//! Callers here do what nodes do: they keep what they were answered, name their newest accepted rows to a broker they
//! come back to, and send again what it does not know.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ledger::conformance::town::{self, Home, text};
use ledger::{
    Admission, LaneSubmission, Ledger, LinkOpening, MeshSetup, Outcome, PostgresLedger, Role, Witness,
};
use model::outbox::BrokerReceipt;
use model::{OsEntropy, limits};
use testkit::postgres::Private;
use tokio::task::JoinSet;

/// Callers at once, and what each has been answered when the server dies.
const CALLERS: u64 = 8;
const ANSWERED_EACH: u64 = 25;

/// What a caller was answered: its id, and where the broker says that its message stands.
type Answered = HashMap<String, BrokerReceipt>;

async fn open(server: &Private) -> Arc<PostgresLedger> {
    Arc::new(PostgresLedger::open(&server.url(), Arc::new(OsEntropy)).await.unwrap())
}

async fn jane(ledger: &dyn Ledger) -> Home {
    ledger.setup(MeshSetup { slug: "home".into(), policies: town::POLICIES }).await.unwrap();
    town::join(ledger, "jane", Role::Owner).await
}

fn lane(home: &Home, id: &str) -> LaneSubmission {
    let messages = vec![text(&format!("#{}", id.split('-').next().unwrap()), id, "hi")];
    LaneSubmission { via: home.via(), sender: home.id(), messages }
}

/// Sends from many callers until `die` has ended the server; what was answered before that, and every id that was tried.
async fn load(ledger: &Arc<PostgresLedger>, home: &Home, die: impl FnOnce()) -> (Answered, Vec<String>) {
    let (over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (ledger, home) = (Arc::clone(ledger), home.clone());
        let (over, count) = (Arc::clone(&over), Arc::clone(&count));
        callers.spawn(async move {
            let (mut answered, mut tried) = (Answered::new(), Vec::new());
            for n in 0_u64.. {
                let id = format!("topic{caller}-{n}");
                tried.push(id.clone());
                match ledger.accept(lane(&home, &id)).await {
                    Ok(outcomes) => match &outcomes[0] {
                        Outcome::Admitted { receipt, .. } => drop(answered.insert(id, *receipt)),
                        other => panic!("{id}: {other:?}"),
                    },
                    Err(_) if over.load(Ordering::SeqCst) => break,
                    Err(error) => panic!("{id} before the server died: {error}"),
                }
                count.fetch_add(1, Ordering::SeqCst);
            }
            (answered, tried)
        });
    }
    while count.load(Ordering::SeqCst) < CALLERS * ANSWERED_EACH {
        tokio::task::yield_now().await;
    }
    over.store(true, Ordering::SeqCst);
    tokio::task::block_in_place(die);
    let (mut answered, mut tried) = (Answered::new(), Vec::new());
    while let Some(ended) = callers.join_next().await {
        let (more, ids) = ended.unwrap();
        answered.extend(more);
        tried.extend(ids);
    }
    (answered, tried)
}

async fn promoted(standby: &Private) -> Arc<PostgresLedger> {
    standby.promote().unwrap();
    open(standby).await
}

/// Sends every id again; how many the ledger knew, and how many of the answered ones it did not know or tells otherwise.
async fn sent_again(
    ledger: &PostgresLedger,
    home: &Home,
    answered: &Answered,
    tried: &[String],
) -> (usize, Vec<String>) {
    let (mut known, mut lost) = (0, Vec::new());
    for id in tried {
        let outcome = ledger.accept(lane(home, id)).await.unwrap().remove(0);
        let Outcome::Admitted { receipt, admission } = outcome else { panic!("{id}: {outcome:?}") };
        known += usize::from(matches!(admission, Admission::Duplicate { .. }));
        if answered.get(id).is_some_and(|told| *told != receipt) {
            lost.push(id.clone());
        }
    }
    (known, lost)
}

async fn messages(server: &Private) -> (i64, i64) {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let count = "SELECT count(*), count(DISTINCT client_message_id) FROM message";
    let row = client.query_one(count, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

fn witnesses(home: &Home, answered: &Answered) -> Vec<Witness> {
    let mut newest: Vec<_> = answered.iter().collect();
    newest.sort_by_key(|(_, receipt)| std::cmp::Reverse(receipt.accepted_at));
    newest.truncate(limits::RESTORE_WITNESSES_MAX);
    let witness = |(id, receipt): (&String, &BrokerReceipt)| Witness {
        sender: home.id(),
        client_message_id: id.parse().unwrap(),
        broker_message_id: receipt.broker_message_id,
        accepted_at: Some(receipt.accepted_at),
    };
    newest.into_iter().map(witness).collect()
}

async fn restored(ledger: &PostgresLedger, home: &Home, answered: &Answered) -> bool {
    let opening = LinkOpening { done: witnesses(home, answered), ..town::opening(&home.link, "e") };
    ledger.open_link(opening).await.unwrap().restored
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_synchronous_standby_that_is_promoted_under_load_has_all_that_was_answered_once() {
    let mut server = Private::start().unwrap();
    let ledger = open(&server).await;
    let jane = jane(&*ledger).await;
    let standby = server.standby("sync1").unwrap();
    let before = ledger.durability().await.unwrap();
    assert_eq!(before[0].setting, "synchronous_standby_names", "nothing waits for it yet: {before:?}");
    server.wait_for_standby("sync1").unwrap();
    assert_eq!(ledger.durability().await.unwrap(), []);
    let (answered, tried) = load(&ledger, &jane, || server.kill9()).await;
    drop(ledger);
    let ledger = promoted(&standby).await;
    assert!(!restored(&ledger, &jane, &answered).await, "the node misses nothing");
    let (known, lost) = sent_again(&ledger, &jane, &answered, &tried).await;
    assert_eq!(lost, Vec::<String>::new(), "of {} answered", answered.len());
    assert!(known >= answered.len(), "{known} known, {} answered", answered.len());
    let all = i64::try_from(tried.len()).unwrap();
    assert_eq!(messages(&standby).await, (all, all), "each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lagging_standby_is_named_before_and_after_its_promotion_nodes_send_again_what_is_missing() {
    let mut server = Private::start().unwrap();
    let ledger = open(&server).await;
    let jane = jane(&*ledger).await;
    let standby = server.standby("late1").unwrap();
    let named = ledger.durability().await.unwrap();
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!(named[0].setting, "synchronous_standby_names");
    assert!(named[0].message.contains("late1"), "{named:?}");
    town::accepted(&*ledger, &jane, text("#kept", "kept-0", "hi")).await;
    standby.stop_streaming().unwrap();
    let (answered, tried) = load(&ledger, &jane, || server.kill9()).await;
    drop(ledger);
    let ledger = promoted(&standby).await;
    assert!(restored(&ledger, &jane, &answered).await, "the node hears that the broker lost rows");
    let (known, lost) = sent_again(&ledger, &jane, &answered, &tried).await;
    assert!(lost.len() >= answered.len() - known, "{known} known, {} lost", lost.len());
    assert!(!lost.is_empty(), "the standby lagged, so answered rows were gone");
    let all = i64::try_from(tried.len() + 1).unwrap();
    assert_eq!(messages(&standby).await, (all, all), "each once, and the one from before");
}
