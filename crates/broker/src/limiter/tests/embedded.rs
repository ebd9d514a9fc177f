//! The embedded limiter, on a clock the test moves.

use super::*;

struct Fixture {
    clock: Arc<ManualClock>,
    counters: Arc<Counters>,
    limiter: Arc<dyn Limiter>,
    mesh: MeshId,
}

fn fixture(budgets: Budgets) -> Fixture {
    let (clock, counters) = (clock(), Arc::<Counters>::default());
    let limiter = Arc::new(MemoryLimiter::new(budgets, clock.clone(), counters.clone()));
    Fixture { clock, counters, limiter, mesh: mesh() }
}

#[test]
fn the_defaults_are_a_thousand_a_second_for_a_member_and_ten_thousand_for_a_mesh() {
    assert_eq!(Budgets::default(), budgets("1000:10000", "10000:100000"));
    assert_eq!(Budgets::default().mark_ttl(), Duration::from_secs(20));
}

#[tokio::test]
async fn ce5_a_message_is_charged_once_and_its_retries_pass_even_when_the_budget_is_spent() {
    let f = fixture(budgets("10:2", "100:100"));
    let verdicts = [
        f.limiter.consume(&ask(f.mesh, 1, "a")).await,
        f.limiter.consume(&ask(f.mesh, 1, "b")).await,
        f.limiter.consume(&ask(f.mesh, 1, "c")).await,
        f.limiter.consume(&ask(f.mesh, 1, "a")).await,
        f.limiter.consume(&ask(f.mesh, 1, "b")).await,
    ];
    assert_eq!(
        verdicts,
        [Verdict::Granted, Verdict::Granted, denied(100), Verdict::AlreadyGranted, Verdict::AlreadyGranted]
    );
    f.clock.advance(Duration::from_millis(100));
    assert_eq!(f.limiter.consume(&ask(f.mesh, 1, "c")).await, Verdict::Granted);
}

#[tokio::test]
async fn another_sender_and_another_text_pay_for_themselves() {
    let f = fixture(budgets("10:5", "100:100"));
    let first = ask(f.mesh, 1, "a");
    let other_text = Ask { fingerprint_prefix: [8; 8], ..first.clone() };
    let other_mesh = Ask { mesh: mesh(), ..first.clone() };
    for ask in [&first, &ask(f.mesh, 2, "a"), &other_text, &other_mesh] {
        assert_eq!(f.limiter.consume(ask).await, Verdict::Granted, "{ask:?}");
    }
}

#[tokio::test]
async fn a_refusal_by_either_budget_charges_neither() {
    let f = fixture(budgets("10:2", "10:3"));
    for id in ["a", "b"] {
        assert_eq!(f.limiter.consume(&ask(f.mesh, 1, id)).await, Verdict::Granted);
    }
    // Member 1 is spent, the mesh has one unit: refused again and again, the unit stays for member 2.
    for id in ["c", "d", "e"] {
        assert_eq!(f.limiter.consume(&ask(f.mesh, 1, id)).await, denied(100));
    }
    assert_eq!(f.limiter.consume(&ask(f.mesh, 2, "a")).await, Verdict::Granted);
    // Now the mesh is spent: member 2's own second unit must survive the refusals.
    for id in ["b", "c", "d"] {
        assert_eq!(f.limiter.consume(&ask(f.mesh, 2, id)).await, denied(100));
    }
    f.clock.advance(Duration::from_millis(100));
    assert_eq!(f.limiter.consume(&ask(f.mesh, 2, "b")).await, Verdict::Granted);
}

#[tokio::test]
async fn one_member_at_its_limit_does_not_slow_its_neighbour() {
    let f = fixture(budgets("10:2", "100:20"));
    for id in ["a", "b", "c", "d"] {
        f.limiter.consume(&ask(f.mesh, 1, id)).await;
    }
    assert_eq!(f.limiter.consume(&ask(f.mesh, 2, "a")).await, Verdict::Granted);
}

#[tokio::test]
async fn after_its_window_a_message_pays_again() {
    // The longer of the two periods is 1 s, so a mark lives 2 s.
    let f = fixture(budgets("10:2", "100:100"));
    let ask = ask(f.mesh, 1, "a");
    assert_eq!(f.limiter.consume(&ask).await, Verdict::Granted);
    f.clock.advance(Duration::from_micros(1_999_999));
    assert_eq!(f.limiter.consume(&ask).await, Verdict::AlreadyGranted);
    f.clock.advance(Duration::from_micros(1));
    assert_eq!(f.limiter.consume(&ask).await, Verdict::Granted);
}

#[tokio::test]
async fn a_set_date_changes_no_budget() {
    let f = fixture(budgets("10:1", "100:100"));
    assert_eq!(f.limiter.consume(&ask(f.mesh, 1, "a")).await, Verdict::Granted);
    f.clock.set_date(Timestamp::from_micros(3_600_000_000));
    assert_eq!(f.limiter.consume(&ask(f.mesh, 1, "b")).await, denied(100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_equal_asks_at_once_one_is_charged() {
    let f = fixture(budgets("10:100", "100:1000"));
    for round in 0..200 {
        let ask = ask(f.mesh, round, &random_id());
        let verdicts = race(&f.limiter, &ask).await;
        assert_eq!(charges(&verdicts), 1, "{verdicts:?}");
        assert!(verdicts.iter().all(|verdict| !matches!(verdict, Verdict::Denied { .. })));
        f.clock.advance(Duration::from_secs(10));
    }
}

#[tokio::test]
async fn a_full_memory_of_marks_makes_the_oldest_message_pay_again_and_says_so() {
    let f = fixture(budgets("1000000:1000000", "1000000:1000000"));
    let asks_max = model::limits::LIMITER_MARKS_MAX * 5 / 4;
    f.limiter.consume(&ask(f.mesh, 1, "first")).await;
    for number in 0..asks_max {
        let verdict = f.limiter.consume(&ask(f.mesh, 1, &format!("m{number}"))).await;
        // A unit is earned each microsecond: the budget is never the reason.
        f.clock.advance(Duration::from_micros(1));
        assert_eq!(verdict, Verdict::Granted, "m{number}");
    }
    assert!(f.counters.marks_dropped() >= (asks_max - model::limits::LIMITER_MARKS_MAX) as u64);
    assert_eq!(f.limiter.consume(&ask(f.mesh, 1, "first")).await, Verdict::Granted);
    let newest = format!("m{}", asks_max - 1);
    assert_eq!(f.limiter.consume(&ask(f.mesh, 1, &newest)).await, Verdict::AlreadyGranted);
}
