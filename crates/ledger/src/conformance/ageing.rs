//! A store's clock that stands wrong: what ends by age waits for time that was seen to pass.

use std::time::Duration;

use model::admission::StatusAnswer;
use model::outbox::max_age;
use model::{DeliveryRung, ErrorCode, Timestamp, limits};

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
        matches!(&refused, Outcome::Refused(refusal) if refusal.code == ErrorCode::SendDeadlinePassed),
        "{refused:?}"
    );
}

/// What a node promises for a message that it tries first at `begun_at`.
fn tried(id: &str, begun_at: Timestamp) -> Submission {
    Submission { send_deadline: Some(begun_at + max_age(POLICIES.dedupe)), ..text("@carl", id, "hi") }
}

fn made(by: &Home, key: &str, at: Timestamp) -> HubWrite {
    let mut write = keyed(by, key, 1, create(key));
    write.key.as_mut().unwrap().created_at = Some(at);
    write
}

async fn look(bench: &impl Bench) -> Timestamp {
    bench.ledger().look_at_clock().await.unwrap().wall
}

pub async fn a_date_that_was_believed_and_set_right_refuses_what_was_forgotten_and_nothing_fresh(
    mut bench: impl Bench,
) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let begun_at = look(&bench).await;
    accepted(&*ledger, &jane, tried("old", begun_at)).await;
    applied(&*ledger, made(&jane, "old-key", begun_at)).await;
    bench.set_ahead(FAR);
    look(&bench).await;
    bench.advance(limits::CLOCK_DOUBT + limits::CLOCK_STEP_MAX);
    look(&bench).await;
    assert_eq!(forgotten(&*ledger).await, 1);
    assert_eq!(ledger.expire_hub_keys(100).await.unwrap(), 1);
    assert_eq!(ledger.orphans(Timestamp::from_micros(i64::MAX), 10).await.unwrap(), []);
    bench.set_back(FAR);
    drop(ledger);
    for round in ["at once", "after a restart"] {
        // A restart of PostgreSQL's ledger forgets how its clock was set.
        bench.advance(limits::FIRST_ATTEMPT_ERROR_MAX * 2);
        let now = look(&bench).await;
        let ledger = bench.ledger();
        let late = send(&*ledger, &jane, vec![tried("old", begun_at)]).await.remove(0);
        assert!(
            matches!(&late, Outcome::Refused(refusal) if refusal.code == ErrorCode::SendDeadlinePassed),
            "{round}: {late:?}"
        );
        let question = StatusQuestion {
            sender: jane.id(),
            client_message_id: "old".parse().unwrap(),
            fingerprint: tried("old", begun_at).fingerprint,
            first_attempt_at: begun_at,
        };
        let via = jane.via();
        let said = ledger.message_status(&via, vec![question], Fence::Retire).await.unwrap();
        assert_eq!(said, [StatusAnswer::Unknown], "{round}");
        let late = ledger.hub_write(made(&jane, "old-key", begun_at)).await.unwrap();
        assert!(matches!(late, HubOutcome::Refused(HubRefusal::KeyExpired)), "{round}: {late:?}");
        accepted(&*ledger, &jane, tried(&format!("fresh {round}").replace(' ', "-"), now)).await;
        applied(&*ledger, made(&jane, &format!("key {round}").replace(' ', "-"), now)).await;
        assert_eq!(ledger.orphans(Timestamp::from_micros(i64::MAX), 10).await.unwrap(), [], "{round}");
        drop(ledger);
        bench.reopen().await;
    }
}

pub async fn what_is_stored_under_a_clock_that_stands_behind_keeps_its_time_when_it_is_set_right(
    bench: impl Bench,
) {
    let (ledger, jane, _) = two_homes(&bench).await;
    look(&bench).await;
    bench.set_back(FAR);
    look(&bench).await;
    accepted(&*ledger, &jane, text("@carl", "behind", "hi")).await;
    applied(&*ledger, keyed(&jane, "behind-key", 1, create("t1"))).await;
    bench.set_ahead(FAR);
    look(&bench).await;
    bench.advance(limits::CLOCK_DOUBT + limits::CLOCK_STEP_MAX);
    let aged = ledger.look_at_clock().await.unwrap();
    assert!(aged.ahead < limits::CLOCK_STEP_MAX, "{aged:?}");
    assert_eq!((forgotten(&*ledger).await, ledger.expire_hub_keys(100).await.unwrap()), (0, 0));
    assert!(is_duplicate(&*ledger, &jane, text("@carl", "behind", "hi")).await);
}
