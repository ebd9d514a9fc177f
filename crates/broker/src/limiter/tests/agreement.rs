//! The script in a real Redis and the rule in Rust give the same verdicts for the same asks at the same instants.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use redis::AsyncTypedCommands;
use testkit::redis::Keyspace;

use super::*;
use crate::limiter::script::{Consume, SERVER_TIME, keys};

#[derive(Clone, Debug)]
struct Step {
    wait: Wait,
    member: u8,
    id: u8,
    text: u8,
    cost: u32,
}

/// How much time passes before a step.
#[derive(Clone, Debug)]
enum Wait {
    Span(Duration),
    /// Exactly until a mark made just now ends.
    MarkLife,
    /// Exactly as long as the last refusal said.
    AsTold,
    /// One grain less.
    AlmostAsTold,
}

/// Periods of 5 s and more: keys expire on the server's clock, which the given instants must not race.
fn quotas() -> impl Strategy<Value = Quota> {
    (1_u32..=40, 5_u32..=30).prop_map(|(per_second, seconds)| {
        Quota::new(per_second, per_second * seconds).expect("within bounds")
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let span = |micros| Wait::Span(Duration::from_micros(micros));
    let wait = prop_oneof![
        4 => Just(span(0)),
        4 => (0..400_000_u64).prop_map(span),
        2 => (0..20_000_000_u64).prop_map(span),
        1 => Just(Wait::MarkLife),
        2 => Just(Wait::AsTold),
        2 => Just(Wait::AlmostAsTold),
    ];
    let cost = prop_oneof![Just(1), 1..=50_u32, 1..=2_000_u32];
    let step = (wait, 0..2_u8, 0..5_u8, 0..2_u8, cost).prop_map(|(wait, member, id, text, cost)| Step {
        wait,
        member,
        id,
        text,
        cost,
    });
    prop::collection::vec(step, 1..60)
}

#[test]
fn lua_and_rust_give_the_same_verdicts() {
    let keyspace = Keyspace::create().expect("a redis-server");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = redis::Client::open(keyspace.url()).expect("the test's server has an address");
    let connection = runtime.block_on(client.get_multiplexed_async_connection()).expect("a connection");
    // Counted, so that a generator that drifts into one kind of verdict is noticed.
    let seen = [const { Cell::new(0_u32) }; 3];
    let case = (quotas(), quotas(), 0_u64..=4_000_000_000_000_000, steps());
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() });
    runner
        .run(&case, |(member, mesh, start_us, steps)| {
            let budgets = Budgets { member, mesh };
            let clock = clock();
            clock.advance(Duration::from_micros(start_us));
            let embedded = MemoryLimiter::new(budgets, clock.clone(), Arc::default());
            let script = Consume::new(budgets);
            let mesh = super::mesh();
            let mut told = Duration::ZERO;
            for (place, step) in steps.iter().enumerate() {
                clock.advance(match step.wait {
                    Wait::Span(span) => span,
                    Wait::MarkLife => budgets.mark_ttl(),
                    Wait::AsTold => told,
                    Wait::AlmostAsTold => told.saturating_sub(Duration::from_micros(1)),
                });
                let ask = Ask {
                    fingerprint_prefix: [step.text; 8],
                    cost: step.cost,
                    ..ask(mesh, step.member, &format!("id-{}", step.id))
                };
                let instant = model::Clock::monotonic(&*clock).as_micros().to_string();
                let lua = runtime.block_on(script.invoke(&mut connection.clone(), &ask, &instant));
                let lua = lua.map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(lua, embedded.decide(&ask), "step {}: {:?}", place, step);
                let kind = match lua {
                    Verdict::Granted => 0,
                    Verdict::AlreadyGranted => 1,
                    Verdict::Denied { retry_after } => {
                        told = retry_after;
                        2
                    }
                };
                seen[kind].set(seen[kind].get() + 1);
            }
            Ok(())
        })
        .expect("the two agree");
    let seen = seen.map(|cell| cell.get());
    assert!(seen.iter().all(|count| *count > 500), "granted, already, denied: {seen:?}");
}

#[tokio::test]
async fn a_server_clock_that_went_back_makes_nobody_wait_longer_than_told() {
    let keyspace = Keyspace::create().expect("a redis-server");
    let client = redis::Client::open(keyspace.url()).expect("the test's server has an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    // A unit is earned each second; the budget is whole after ten.
    let script = Consume::new(budgets("1:10", "1:10"));
    let mesh = mesh();
    let ask = |id: &str, cost| Ask { cost, ..ask(mesh, 1, id) };
    for (ask, second, expected) in [
        (ask("all", 10), 9_000_u64, Verdict::Granted),
        (ask("a", 1), 8_990, denied(11_000)),
        (ask("a", 1), 9_000, denied(1_000)),
        (ask("a", 1), 9_001, Verdict::Granted),
        (ask("b", 1), 100, Verdict::Granted),
        (ask("c", 10), 101, Verdict::Granted),
        (ask("d", 1), 101, denied(1_000)),
    ] {
        let verdict = script.invoke(&mut connection, &ask, &(second * 1_000_000).to_string()).await;
        assert_eq!(verdict.expect("a verdict"), expected, "{ask:?} at {second} s");
    }
}

#[tokio::test]
async fn every_key_expires_and_all_keys_of_an_ask_share_one_hash_tag() {
    let keyspace = Keyspace::create().expect("a redis-server");
    let client = redis::Client::open(keyspace.url()).expect("the test's server has an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let budgets = budgets("10:50", "100:1000");
    let ask = ask(mesh(), 1, "a.b_c:d-e");
    let verdict = Consume::new(budgets).invoke(&mut connection, &ask, SERVER_TIME).await;
    assert_eq!(verdict.ok(), Some(Verdict::Granted));
    let tag = format!("{{{}}}", ask.mesh);
    for (key, life) in
        keys(&ask).into_iter().zip([budgets.mark_ttl(), budgets.member.period(), budgets.mesh.period()])
    {
        assert!(key.contains(&tag) && key.matches('{').count() == 1, "{key}");
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.expect("an answer");
        let life = i64::try_from(life.as_millis()).expect("a test's life is short");
        assert!(left > 0 && left <= life, "{key}: {left} of {life}");
    }
    // Whatever else the script wrote for this mesh would show here.
    let mine: Vec<String> = connection.keys(format!("*{}*", ask.mesh)).await.expect("an answer");
    assert_eq!(mine.len(), 3, "{mine:?}");
}

#[tokio::test]
async fn the_servers_own_clock_earns_units() {
    let keyspace = Keyspace::create().expect("a redis-server");
    let client = redis::Client::open(keyspace.url()).expect("the test's server has an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
    let script = Consume::new(budgets("20:1", "20:1"));
    let mesh = mesh();
    // Refused now and granted later, without any instant given: only the server's time can have passed.
    let mut refused_then_granted = 0;
    let mut last = Verdict::Granted;
    for _ in 0..1_000_000 {
        let ask = ask(mesh, 1, &random_id());
        let verdict = script.invoke(&mut connection, &ask, SERVER_TIME).await.expect("a verdict");
        if verdict == Verdict::Granted && matches!(last, Verdict::Denied { .. }) {
            refused_then_granted += 1;
        }
        if refused_then_granted == 3 {
            return;
        }
        last = verdict;
    }
    panic!("a million asks, and the server's clock stood still");
}
