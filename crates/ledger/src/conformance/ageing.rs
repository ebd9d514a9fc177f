//! A store's clock that stands wrong: what ends by age waits for time that was seen to pass.

use std::time::Duration;

use model::{DeliveryRung, limits};

use super::Bench;
use super::hub::{applied, create, keyed};
use super::town::*;
use crate::*;

/// Past every age there is: the window, the hub's keys, undelivered mail.
const FAR: Duration = Duration::from_secs(400 * 24 * 3_600);

/// Ids, keys and mail that a round of the janitor ends.
async fn swept(ledger: &dyn Ledger) -> (u64, u64, u64) {
    ledger.sweep_way_in().await.unwrap();
    let (ids, keys) = (forgotten(ledger).await, ledger.expire_hub_keys(100).await.unwrap());
    (ids, keys, ledger.expire_undelivered(100).await.unwrap())
}

async fn is_duplicate(ledger: &dyn Ledger, home: &Home, message: Submission) -> bool {
    let outcome = send(ledger, home, vec![message]).await.remove(0);
    matches!(outcome, Outcome::Admitted { admission: Admission::Duplicate { .. }, .. })
}

pub async fn a_clock_ahead_by_the_window_for_an_hour_frees_no_id_and_ends_nothing(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let held = accepted(&*ledger, &jane, text("@carl", "held", "hi")).await.broker_message_id;
    applied(&*ledger, keyed(&jane, "key", 1, create("t1"))).await;
    assert_eq!(swept(&*ledger).await, (0, 0, 0));
    let invites = bench.count("invite").await;
    bench.set_ahead(FAR);
    for minute in 0..=60 {
        assert_eq!(swept(&*ledger).await, (0, 0, 0), "minute {minute}");
        bench.advance(Duration::from_secs(60));
    }
    accepted(&*ledger, &jane, text("@carl", "meanwhile", "hi")).await;
    bench.set_back(FAR);
    assert_eq!(swept(&*ledger).await, (0, 0, 0));
    for id in ["held", "meanwhile"] {
        assert!(is_duplicate(&*ledger, &jane, text("@carl", id, "hi")).await, "{id} is a known id");
    }
    let known = ledger.hub_known(jane.id(), &"key".parse().unwrap()).await.unwrap();
    assert!(known.is_some(), "the hub knows its key");
    assert_eq!(rungs(&*ledger, held).await, [("carl".to_owned(), DeliveryRung::Accepted)]);
    assert_eq!(bench.count("invite").await, invites, "a used invite is told for a day");
}

pub async fn a_jump_ahead_is_told_and_a_clock_that_keeps_its_word_for_a_day_is_believed(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "old", "hi")).await;
    let look = ledger.look_at_clock().await.unwrap();
    assert!(look.ahead < limits::CLOCK_STEP_MAX && look.jumped.is_none(), "{look:?}");
    bench.set_ahead(FAR);
    let look = ledger.look_at_clock().await.unwrap();
    let by = look.jumped.expect("a jump while the process runs is told");
    assert!(by + limits::CLOCK_STEP_MAX > FAR && look.ahead >= by, "{look:?}");
    assert_eq!(ledger.look_at_clock().await.unwrap().jumped, None, "it is told once");
    bench.advance(limits::CLOCK_DOUBT + limits::CLOCK_STEP_MAX);
    let look = ledger.look_at_clock().await.unwrap();
    assert!(look.ahead < limits::CLOCK_STEP_MAX, "{look:?}");
    assert_eq!(forgotten(&*ledger).await, 1);
}

pub async fn restarts_under_a_clock_that_is_ahead_bear_nothing_out(mut bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "held", "hi")).await;
    assert_eq!(forgotten(&*ledger).await, 0);
    bench.advance(Duration::from_secs(60));
    let before = ledger.look_at_clock().await.unwrap().borne_out;
    drop(ledger);
    bench.set_ahead(FAR);
    for _ in 0..5 {
        bench.reopen().await;
        bench.set_ahead(FAR);
        let ledger = bench.ledger();
        assert_eq!(forgotten(&*ledger).await, 0);
        let look = ledger.look_at_clock().await.unwrap();
        assert!(look.borne_out.since(before) < limits::CLOCK_STEP_MAX, "{look:?}");
        assert!(look.jumped.is_none(), "a restart is no jump that a process saw: {look:?}");
        bench.advance(Duration::from_secs(1));
    }
}

pub async fn a_copy_is_judged_by_what_may_be_forgotten_and_not_by_a_clock_that_is_ahead(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let deadline = ledger.look_at_clock().await.unwrap().wall + Duration::from_secs(6 * 24 * 3_600);
    let copy = |id: &str| Submission { send_deadline: Some(deadline), ..text("@carl", id, "hi") };
    bench.set_ahead(FAR);
    ledger.look_at_clock().await.unwrap();
    accepted(&*ledger, &jane, copy("first")).await;
    bench.advance(limits::CLOCK_DOUBT + limits::CLOCK_STEP_MAX);
    ledger.look_at_clock().await.unwrap();
    let refused = send(&*ledger, &jane, vec![copy("second")]).await.remove(0);
    assert!(
        matches!(&refused, Outcome::Refused(refusal) if refusal.code == model::ErrorCode::SendDeadlinePassed),
        "{refused:?}"
    );
}
