//! The plain limiter before the look-up, the choice of a backend, and the figures.

use super::*;

#[test]
fn the_same_request_counts_every_time_up_to_ten_times_the_budget() {
    let clock = clock();
    let (mesh, member) = (mesh(), member(1));
    let limiter = RequestLimiter::new(budgets("10:2", "100:100"), clock.clone());
    for _ in 0..20 {
        assert_eq!(limiter.admit(mesh, member, 1), Ok(()));
    }
    let refusal = TooSoon { retry_after: Duration::from_millis(10) };
    assert_eq!(limiter.admit(mesh, member, 1), Err(refusal));
    clock.advance(refusal.retry_after);
    assert_eq!(limiter.admit(mesh, member, 1), Ok(()));
}

#[test]
fn a_frame_is_admitted_whole_or_not_at_all() {
    let limiter = RequestLimiter::new(budgets("10:2", "100:100"), clock());
    let (mesh, member) = (mesh(), member(1));
    assert_eq!(limiter.admit(mesh, member, 15), Ok(()));
    assert!(limiter.admit(mesh, member, 6).is_err());
    assert_eq!(limiter.admit(mesh, member, 5), Ok(()));
}

#[test]
fn a_limiter_is_named_memory_or_by_a_redis_address() {
    for (text, shown) in
        [("memory", Some("memory")), ("redis://:secret@127.0.0.1:6379/", Some("redis")), ("file.db", None)]
    {
        assert_eq!(
            text.parse::<Backend>().ok().map(|backend| format!("{backend:?}")).as_deref(),
            shown,
            "{text}"
        );
    }
}

#[test]
fn every_figure_is_shown_with_its_help_and_kind() {
    let counters = Counters::default();
    counters.granted_locally();
    counters.redis_went_away();
    let mut text = String::new();
    counters.render(&mut text);
    let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        values,
        [
            "cm_broker_rate_limit_local_grant_total 1",
            "cm_broker_rate_limit_outage_total 1",
            "cm_broker_rate_limit_mark_dropped_total 0",
            "cm_broker_rate_limit_local_mode 1",
        ]
    );
    assert_eq!(text.lines().count(), values.len() * 3);
}
