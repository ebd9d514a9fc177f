use proptest::prelude::*;

use super::*;

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn quota(per_second: u32, burst: u32) -> Quota {
    Quota::new(per_second, burst).unwrap()
}

#[test]
fn a_decision_for_every_kind_of_state() {
    // Ten a second, three at once: a unit is 100 ms, the period 300 ms.
    let quota = quota(10, 3);
    let ms = Duration::from_millis;
    let conforming = |arrival| Decision::Conforming { arrival: ms(arrival) };
    let too_soon = |retry_after| Decision::TooSoon(TooSoon { retry_after: ms(retry_after) });
    for (arrival, now, units, expected, why) in [
        (0, 1_000, 1, conforming(1_100), "never seen"),
        (400, 1_000, 1, conforming(1_100), "long ago earns no more than the burst"),
        (1_000, 1_000, 3, conforming(1_300), "the whole burst at once"),
        (1_200, 1_000, 1, conforming(1_300), "the last unit"),
        (1_201, 1_000, 1, too_soon(1), "one grain over"),
        (1_300, 1_000, 1, too_soon(100), "spent"),
        (1_100, 1_000, 3, too_soon(100), "two left, three asked"),
        (1_000, 1_000, 4, conforming(1_300), "more than the burst counts as the burst"),
        (1_001, 1_000, 4, too_soon(1), "and needs the whole of it"),
        (1_600, 1_000, 1, too_soon(400), "the clock went back by a period: the wait is the true one"),
        (1_601, 1_000, 1, conforming(1_100), "it went back further: the state is of another clock"),
        (1_300, 1_000, 0, conforming(1_300), "nothing costs nothing"),
    ] {
        assert_eq!(spend(ms(arrival), ms(now), &quota, units), expected, "{why}");
    }
}

#[test]
fn a_charge_is_never_refused_and_spends_no_more_than_the_burst() {
    let quota = quota(10, 3);
    let ms = Duration::from_millis;
    for (arrival, units, expected) in
        [(0, 1, 1_100), (1_250, 1, 1_300), (1_300, 3, 1_300), (1_350, 1, 1_350), (9_000, 1, 1_100)]
    {
        assert_eq!(charge(ms(arrival), ms(1_000), &quota, units), ms(expected), "{arrival} {units}");
    }
}

#[test]
fn a_quota_is_written_as_rate_or_rate_and_burst() {
    for (text, expected) in [
        ("1000", Some(quota(1_000, 10_000))),
        ("1000:1000", Some(quota(1_000, 1_000))),
        ("1:86400", Some(quota(1, 86_400))),
        ("1000000:1", Some(quota(1_000_000, 1))),
        ("1:86401", None),
        ("1000001:1", None),
        ("0", None),
        ("0:5", None),
        ("5:0", None),
        ("", None),
        ("fast", None),
        ("1:2:3", None),
        ("-1", None),
        ("99999999999", None),
    ] {
        assert_eq!(text.parse::<Quota>().ok(), expected, "{text}");
    }
    assert_eq!(quota(7, 9).to_string().parse(), Ok(quota(7, 9)));
}

#[test]
fn ten_times_a_quota_is_as_deep_in_time_until_the_fastest_rate() {
    let ten = NonZeroU32::new(10).unwrap();
    assert_eq!(quota(1_000, 10_000).times(ten), quota(10_000, 100_000));
    assert_eq!(quota(500_000, 5).times(ten), quota(1_000_000, 50));
}

proptest! {
    /// From any instant on: what was granted never exceeds burst + rate × time.
    #[test]
    fn no_span_ever_grants_more_than_burst_and_rate_allow(
        per_second in 1_u32..=1_000_000,
        burst in 1_u32..=1_000,
        asks in prop::collection::vec((0_u64..2_000_000, 1_u32..=50), 1..200),
    ) {
        let quota = quota(per_second, burst);
        let (mut now, mut arrival, mut grants) = (Duration::ZERO, Duration::ZERO, Vec::new());
        for (wait_us, units) in asks {
            // Clamped units are another promise: see the table.
            let units = units.min(burst);
            now += micros(wait_us % (2 * quota.period().as_micros() as u64));
            if let Decision::Conforming { arrival: next } = spend(arrival, now, &quota, units) {
                arrival = next;
                grants.push((now, units));
            }
        }
        for (start, (from, _)) in grants.iter().enumerate() {
            let mut spent = 0;
            for (at, units) in &grants[start..] {
                spent += u128::from(*units);
                let earned = u128::from(per_second) * (*at - *from).as_micros() / 1_000_000;
                prop_assert!(spent <= u128::from(burst) + earned, "{spent} units in {:?}", *at - *from);
            }
        }
    }

    /// Whatever was stored, also by a clock that was ahead.
    #[test]
    fn the_named_wait_is_exact_and_at_most_two_periods(
        per_second in 1_u32..=1_000_000,
        burst in 1_u32..=10_000,
        units in 1_u32..=20_000,
        now_us in 0_u64..=2_000_000_000_000_000,
        ahead in 0.0..3.0,
    ) {
        let quota = quota(per_second, burst);
        let now = micros(now_us);
        let arrival = now + micros(quota.period().mul_f64(ahead).as_micros() as u64);
        if let Decision::TooSoon(TooSoon { retry_after }) = spend(arrival, now, &quota, units) {
            prop_assert!(retry_after <= quota.period() * 2);
            let early = spend(arrival, now + retry_after - micros(1), &quota, units);
            prop_assert_eq!(early, Decision::TooSoon(TooSoon { retry_after: micros(1) }));
            let due = spend(arrival, now + retry_after, &quota, units);
            prop_assert!(matches!(due, Decision::Conforming { .. }), "{:?}", due);
        }
    }

    #[test]
    fn a_rested_spender_gets_its_burst_unit_by_unit_and_not_one_more(
        per_second in 1_u32..=1_000_000,
        burst in 1_u32..=300,
        now_us in 0_u64..=2_000_000_000_000_000,
    ) {
        let quota = quota(per_second, burst);
        let now = micros(now_us);
        let mut arrival = Duration::ZERO;
        for place in 0..burst {
            match spend(arrival, now, &quota, 1) {
                Decision::Conforming { arrival: next } => arrival = next,
                Decision::TooSoon(refusal) => prop_assert!(false, "unit {place}: {refusal}"),
            }
        }
        prop_assert!(matches!(spend(arrival, now, &quota, 1), Decision::TooSoon(_)));
    }

    #[test]
    fn no_number_overflows(
        arrival_us in 0_u64..=u64::MAX, now_us in 0_u64..=u64::MAX, units in 0_u32..=u32::MAX,
    ) {
        let quota = quota(3, 7);
        let (arrival, now) = (micros(arrival_us), micros(now_us));
        match spend(arrival, now, &quota, units) {
            Decision::TooSoon(TooSoon { retry_after }) => prop_assert!(retry_after <= quota.period() * 2),
            Decision::Conforming { arrival } => prop_assert!(arrival <= now + quota.period()),
        }
        prop_assert!(charge(arrival, now, &quota, units) <= now + quota.period() * 2);
    }
}
