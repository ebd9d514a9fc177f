//! Which envelopes are too old to be sent, and by which clock.

use super::*;

#[tokio::test]
async fn past_thirteen_days_what_never_left_expires_and_what_may_have_left_is_asked_about() {
    let relay = Stage::open();
    let never = relay.store("a", "task:1", RouteClass::Append, Start::Waiting).await;
    let maybe = relay.store("b", "task:2", RouteClass::Append, Start::Live).await;
    let live = Taken {
        envelope: maybe.clone(),
        lease: maybe.lease.unwrap(),
        task: Task::Send { precondition: None, body: vec![] },
    };
    relay.answer(&live, Answer::Lost, None).await;
    let claims = relay.envelopes.claim(by_both(days(13)), 8).await.unwrap();
    assert_eq!(claims.ended.len(), 1);
    assert_eq!(
        (relay.now(&never).await.status, relay.now(&never).await.outcome),
        (Status::Expired, Outcome::NotSent)
    );
    assert!(matches!(claims.taken[0].task, Task::Ask(_)));
    assert_eq!(relay.conclude(&claims.taken[0], Fenced::Unknown).await.outcome, Outcome::Unknown);
    let refused = relay.envelopes.succeed(maybe.envelope_id, successor("b2", false), days(15)).await;
    assert!(matches!(refused, Err(OperateError::Unknown)), "ce21: no successor without the upstream's word");
    assert!(relay.envelopes.succeed(maybe.envelope_id, successor("b2", true), days(15)).await.is_ok());
    assert!(relay.envelopes.succeed(never.envelope_id, successor("a2", false), days(15)).await.is_ok());
}

#[tokio::test]
async fn past_thirteen_days_by_one_clock_alone_what_may_have_left_is_asked_about_and_what_never_left_is_sent()
{
    for (here, upstream) in [(days(13), days(13)), (days(13), NOW), (NOW, days(13))] {
        let relay = Stage::open();
        // As far as running time goes, hardly any has passed.
        relay.envelopes.look_at_clock(NOW, None).await.unwrap();
        let never = relay.store("a", "task:1", RouteClass::Append, Start::Waiting).await;
        let maybe = relay.store("b", "task:2", RouteClass::Append, Start::Live).await;
        let task = Task::Send { precondition: None, body: vec![] };
        let live = Taken { envelope: maybe.clone(), lease: maybe.lease.unwrap(), task };
        relay.answer(&live, Answer::Lost, None).await;
        let now = Moment { here: here + Duration::from_secs(60), upstream };
        assert!(relay.envelopes.too_old(now, 8).await.unwrap().iter().eq([&relay.now(&maybe).await]));
        let claims = relay.envelopes.claim(now, 8).await.unwrap();
        assert_eq!((keys(&claims.taken), claims.ended.len()), (vec!["a", "b"], 0), "{now:?}");
        assert!(matches!(claims.taken[0].task, Task::Send { .. }), "{now:?}");
        assert!(matches!(claims.taken[1].task, Task::Ask(Ending::Expired)), "{now:?}");
        // What never left before is not committed when the upstream refuses it for its age.
        let refused = relay.answer(&claims.taken[0], Answer::KeyExpired, None).await;
        assert_eq!((refused.status, refused.outcome), (Status::Expired, Outcome::NotCommitted));
        let expired = relay.conclude(&claims.taken[1], Fenced::Unknown).await;
        assert_eq!((expired.status, expired.outcome), (Status::Expired, Outcome::Unknown));
        assert!(relay.envelopes.succeed(never.envelope_id, successor("a2", false), here).await.is_ok());
        assert_eq!(keys_of(&relay.envelopes.too_old(now, 8).await.unwrap()), ["b"]);
    }
}

#[tokio::test]
async fn what_was_stored_by_a_date_that_was_ahead_and_may_have_left_is_asked_about_and_says_so() {
    let day = Duration::from_secs(86_400);
    let relay = Stage::open();
    let maybe = relay.store("a", "task:1", RouteClass::Append, Start::Live).await;
    let task = Task::Send { precondition: None, body: vec![] };
    let live = Taken { envelope: maybe.clone(), lease: maybe.lease.unwrap(), task };
    relay.answer(&live, Answer::Lost, None).await;
    let right = Timestamp::from_micros(NOW.as_micros() - i64::try_from(day.as_micros()).unwrap());
    relay.envelopes.all_due(right).await.unwrap();
    assert_eq!(keys_of(&relay.envelopes.too_old(by_both(right), 8).await.unwrap()), ["a"]);
    let taken = relay.claim(right).await;
    assert!(matches!(taken[0].task, Task::Ask(Ending::Expired)), "{:?}", taken[0].task);
    let why = "older than 13 days, or from a date that was ahead: it is asked about, not sent again";
    assert_eq!(relay.now(&maybe).await.last_error.as_deref(), Some(why));
}

#[tokio::test]
async fn a_clock_ahead_for_an_hour_expires_no_envelope_and_forgets_no_key() {
    let relay = Stage::open();
    let hour = Duration::from_secs(3_600);
    relay.store("waits", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("done", "task:2", RouteClass::Replace, Start::Waiting).await;
    let taken = relay.claim(NOW).await;
    relay.answer(&taken[0], Answer::NotSent, None).await;
    relay.answer(&taken[1], Answer::Committed, None).await;
    let mut aged = relay.envelopes.look_at_clock(NOW, None).await.unwrap();
    for later in [Duration::ZERO, hour] {
        let (wall, counted) = (days(400) + later, aged + later);
        aged = relay.envelopes.look_at_clock(wall, Some(counted)).await.unwrap();
        assert_eq!(relay.envelopes.trim(aged).await.unwrap(), 0, "the key is known for a day");
        let claims = relay.envelopes.claim(by_both(wall), 8).await.unwrap();
        assert_eq!(claims.ended.len(), 0, "nothing is thirteen days old");
        assert_eq!(keys(&claims.taken), ["waits"]);
        relay.answer(&claims.taken[0], Answer::NotSent, None).await;
    }
}
