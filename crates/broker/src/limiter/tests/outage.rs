//! The shared limiter on a real Redis that is flushed, frozen, killed and restarted.

use redis::AsyncTypedCommands;
use testkit::redis::Private;

use super::*;
use crate::limiter::script::keys;
use model::limits::LIMITER_RETRY_EVERY;

/// One broker process's limiter.
struct Process {
    clock: Arc<ManualClock>,
    counters: Arc<Counters>,
    limiter: Arc<dyn Limiter>,
}

/// Longer than a loaded machine pauses: a healthy Redis must not look away.
const PATIENT: Duration = Duration::from_secs(20);
/// For a Redis that stands still: short enough to wait for twice.
const BRISK: Duration = Duration::from_secs(1);

async fn process(url: &str, budgets: Budgets, answer_timeout: Duration) -> Process {
    let (clock, counters) = (clock(), Arc::<Counters>::default());
    let client = redis::Client::open(url).expect("the test's server has an address");
    let limiter =
        RedisLimiter::open_with(client, budgets, clock.clone(), counters.clone(), answer_timeout).await;
    Process { clock, counters, limiter: Arc::new(limiter) }
}

impl Process {
    async fn consume(&self, ask: &Ask) -> Verdict {
        self.limiter.consume(ask).await
    }

    /// Lets the time pass after which Redis is tried again.
    fn next_try(&self) {
        self.clock.advance(LIMITER_RETRY_EVERY);
    }
}

async fn redis_has_marked(url: &str, ask: &Ask) -> bool {
    let client = redis::Client::open(url).expect("the test's server has an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let [mark, ..] = keys(ask);
    connection.exists(mark).await.expect("an answer")
}

async fn flush(url: &str) {
    let client = redis::Client::open(url).expect("the test's server has an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    connection.flushall().await.expect("an answer");
}

/// A budget for `messages`, and so slow that none is earned back while a test runs on the server's clock.
fn slow(messages: u32) -> Budgets {
    budgets(&format!("1:{}", messages * COST), "1:86400")
}

/// Ten minutes of [`slow`].
const COST: u32 = 600;

fn ask(mesh: MeshId, member_number: u8, id: &str) -> Ask {
    Ask { cost: COST, ..super::ask(mesh, member_number, id) }
}

#[tokio::test]
async fn two_processes_share_one_budget_and_one_memory_of_what_was_charged() {
    let redis = Private::start().expect("a redis-server");
    let (one, two) =
        (process(&redis.url(), slow(3), PATIENT).await, process(&redis.url(), slow(3), PATIENT).await);
    let mesh = mesh();
    assert_eq!(one.consume(&ask(mesh, 1, "a")).await, Verdict::Granted);
    assert_eq!(two.consume(&ask(mesh, 1, "a")).await, Verdict::AlreadyGranted);
    assert_eq!(two.consume(&ask(mesh, 1, "b")).await, Verdict::Granted);
    assert_eq!(one.consume(&ask(mesh, 1, "c")).await, Verdict::Granted);
    assert!(matches!(two.consume(&ask(mesh, 1, "d")).await, Verdict::Denied { .. }));
    assert_eq!(two.consume(&ask(mesh, 2, "d")).await, Verdict::Granted);
    assert_eq!((one.counters.local_grants(), two.counters.local_grants()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_equal_asks_at_once_redis_charges_one() {
    let redis = Private::start().expect("a redis-server");
    let process = process(&redis.url(), slow(50), PATIENT).await;
    let mesh = mesh();
    for _ in 0..50 {
        let verdicts = race(&process.limiter, &ask(mesh, 1, &random_id())).await;
        assert_eq!(charges(&verdicts), 1, "{verdicts:?}");
    }
    // Fifty messages were charged fifty times: the budget for fifty is spent.
    assert!(matches!(process.consume(&ask(mesh, 1, "one-more")).await, Verdict::Denied { .. }));
    assert_eq!((process.counters.local_grants(), process.counters.outages()), (0, 0));
}

#[tokio::test]
async fn ce5_after_a_flush_a_message_costs_at_most_one_unit_per_process() {
    let redis = Private::start().expect("a redis-server");
    let processes =
        [process(&redis.url(), slow(9), PATIENT).await, process(&redis.url(), slow(9), PATIENT).await];
    let ask = ask(mesh(), 1, "a");
    let mut verdicts = vec![processes[0].consume(&ask).await];
    for _ in 0..3 {
        flush(&redis.url()).await;
        for process in &processes {
            verdicts.push(process.consume(&ask).await);
        }
    }
    assert_eq!(charges(&verdicts), processes.len(), "{verdicts:?}");
    assert!(verdicts.iter().all(|verdict| !matches!(verdict, Verdict::Denied { .. })));
}

#[tokio::test]
async fn a_flush_gives_at_most_one_burst_and_no_outage() {
    let redis = Private::start().expect("a redis-server");
    let process = process(&redis.url(), slow(5), PATIENT).await;
    let mesh = mesh();
    let mut verdicts = Vec::new();
    for round in 0..2 {
        for number in 0..20 {
            verdicts.push(process.consume(&ask(mesh, 1, &format!("r{round}-{number}"))).await);
        }
        flush(&redis.url()).await;
    }
    assert_eq!(charges(&verdicts), 10, "a burst before the flush and one after it");
    assert_eq!(process.counters.outages(), 0);
}

#[tokio::test]
async fn a_frozen_redis_delays_one_ask_and_then_the_process_decides_until_it_thaws() {
    let mut redis = Private::start().expect("a redis-server");
    let process = process(&redis.url(), slow(4), BRISK).await;
    let mesh = mesh();
    assert_eq!(process.consume(&ask(mesh, 1, "a")).await, Verdict::Granted);
    redis.freeze();
    let watch = testkit::stopwatch::Stopwatch::start();
    for id in ["b", "c", "d"] {
        assert_eq!(process.consume(&ask(mesh, 1, id)).await, Verdict::Granted, "{id}");
    }
    // Neither open nor shut: the unit that Redis granted before counts, so the fourth message was the last.
    assert!(matches!(process.consume(&ask(mesh, 1, "e")).await, Verdict::Denied { .. }));
    assert_eq!(process.consume(&ask(mesh, 1, "a")).await, Verdict::AlreadyGranted);
    assert!(watch.elapsed() >= BRISK);
    assert_eq!((process.counters.local_grants(), process.counters.outages()), (3, 1));
    assert!(process.counters.local_mode());

    process.next_try();
    assert_eq!(process.consume(&ask(mesh, 2, "a")).await, Verdict::Granted);
    assert_eq!((process.counters.local_grants(), process.counters.local_mode()), (4, true));

    redis.thaw();
    process.next_try();
    let after = ask(mesh, 3, "a");
    assert_eq!(process.consume(&after).await, Verdict::Granted);
    assert!(!process.counters.local_mode());
    assert!(redis_has_marked(&redis.url(), &after).await);
    assert_eq!((process.counters.local_grants(), process.counters.outages()), (4, 1));
    // What the process granted alone stays free here, although Redis never charged all of it.
    for id in ["a", "b", "c", "d"] {
        assert_eq!(process.consume(&ask(mesh, 1, id)).await, Verdict::AlreadyGranted, "{id}");
    }
}

#[tokio::test]
async fn a_killed_redis_costs_no_answer_and_is_used_again_after_its_restart() {
    let mut redis = Private::start().expect("a redis-server");
    let process = process(&redis.url(), slow(100), PATIENT).await;
    let mesh = mesh();
    for round in 0..3 {
        let before = ask(mesh, 1, &format!("before-{round}"));
        assert_eq!(process.consume(&before).await, Verdict::Granted);
        assert!(redis_has_marked(&redis.url(), &before).await);
        redis.kill9();
        let during = ask(mesh, 1, &format!("during-{round}"));
        assert_eq!(process.consume(&during).await, Verdict::Granted);
        assert_eq!(process.consume(&before).await, Verdict::AlreadyGranted);
        assert!(process.counters.local_mode());
        process.next_try();
        assert_eq!(process.consume(&ask(mesh, 1, &format!("still-{round}"))).await, Verdict::Granted);
        // Restarted empty, without the script: it is loaded again.
        redis.restart().expect("a redis-server");
        process.next_try();
        let after = ask(mesh, 1, &format!("after-{round}"));
        assert_eq!(process.consume(&after).await, Verdict::Granted);
        assert!(redis_has_marked(&redis.url(), &after).await);
        assert!(!process.counters.local_mode());
    }
    assert_eq!((process.counters.local_grants(), process.counters.outages()), (6, 3));
}

#[tokio::test]
async fn a_process_started_without_redis_decides_alone_and_joins_when_it_appears() {
    let mut redis = Private::start().expect("a redis-server");
    redis.kill9();
    let (clock, counters) = (clock(), Arc::<Counters>::default());
    let backend = redis.url().parse().expect("the test's server has an address");
    let limiter = open(backend, slow(2), clock.clone(), counters.clone()).await;
    let process = Process { clock, counters, limiter };
    let mesh = mesh();
    assert!(process.counters.local_mode());
    for id in ["a", "b"] {
        assert_eq!(process.consume(&ask(mesh, 1, id)).await, Verdict::Granted);
    }
    assert!(matches!(process.consume(&ask(mesh, 1, "c")).await, Verdict::Denied { .. }));
    redis.restart().expect("a redis-server");
    process.next_try();
    assert_eq!(process.consume(&ask(mesh, 2, "a")).await, Verdict::Granted);
    assert!(redis_has_marked(&redis.url(), &ask(mesh, 2, "a")).await);
    assert_eq!((process.counters.local_grants(), process.counters.outages()), (2, 1));
}

#[tokio::test]
async fn a_redis_that_answers_nonsense_counts_as_away() {
    let redis = Private::start().expect("a redis-server");
    let process = process(&redis.url(), slow(5), PATIENT).await;
    let ask = ask(mesh(), 1, "a");
    let client = redis::Client::open(redis.url()).expect("the test's server has an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let [_, budget, _] = keys(&ask);
    connection.lpush(budget, "not a budget").await.expect("an answer");
    assert_eq!(process.consume(&ask).await, Verdict::Granted);
    assert_eq!((process.counters.local_grants(), process.counters.local_mode()), (1, true));
}

#[tokio::test]
async fn an_abandoned_ask_leaves_the_limiter_whole() {
    let mut redis = Private::start().expect("a redis-server");
    let process = process(&redis.url(), slow(50), PATIENT).await;
    let mesh = mesh();
    redis.freeze();
    for number in 0..10 {
        let abandoned = ask(mesh, 1, &format!("gone-{number}"));
        // Polled once, then dropped, as when a client hangs up.
        let hung_up = tokio::time::timeout(Duration::ZERO, process.consume(&abandoned)).await;
        assert!(hung_up.is_err());
    }
    redis.thaw();
    assert_eq!(process.consume(&ask(mesh, 1, "stays")).await, Verdict::Granted);
    assert!(redis_has_marked(&redis.url(), &ask(mesh, 1, "stays")).await);
    assert_eq!(process.counters.outages(), 0);
}
