//! A key that was used at the upstream for another request: in no order of outage, direct use and replay does its
//! envelope end as done.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use mailbox::relay::Envelopes;
use model::{OsEntropy, Timestamp, limits};
use net::client::Target;
use relay::Config;
use serde_json::{Value, json};
use sqlite::{Db, StorageError};
use testkit::ManualClock;

use crate::stage::{Stage, Told};
use crate::upstream::{Fault, KeyAnswers, Upstream};

const DAY: Duration = Duration::from_secs(86_400);

async fn explained(stage: &Stage, id: &str) -> Value {
    stage.operate(Method::GET, &format!("/explain/{id}"), "").await.body["found"].clone()
}

/// The envelope of `key` clashes with another request that has the key, and everything that is said of it says so.
async fn is_said_to_clash(stage: &Stage, key: &str) {
    let row = stage.until(key, "conflict").await;
    assert_eq!(
        (&row["outcome"], &row["response_code"]),
        (&json!("not_committed"), &json!("idempotency_key_reused"))
    );
    let found = explained(stage, key).await;
    assert_eq!((&found["verdict"], &found["needs_person"]), (&json!("conflict"), &json!(true)));
    assert_eq!(found["sentence"], "conflict: its key was used at the upstream for another request");
    assert_eq!(stage.status().await["done"], 0);
}

#[tokio::test]
async fn a_key_that_another_request_took_during_an_outage_ends_as_conflict_for_every_class_of_route() {
    for (method, path) in
        [(Method::POST, "/progress/"), (Method::PATCH, "/tasks/1"), (Method::PATCH, "/messages/m1/read")]
    {
        let stage = Stage::open().await;
        stage.upstream.leave().await;
        let headers = [("idempotency-key", "k")];
        assert_eq!(stage.call(method.clone(), path, &headers, r#"{"n":"mine"}"#).await.status, 202);
        assert_eq!(stage.upstream.direct(method.as_str(), path, "k", &json!({"n": "theirs"})), 201);
        stage.upstream.come_back().await;
        stage.drained().await;
        is_said_to_clash(&stage, "k").await;
        assert_eq!(stage.upstream.applied("k"), 1, "{path}: the other request alone");
        assert_eq!(stage.upstream.record(path.trim_end_matches('/')), Some(json!({"n": "theirs"})), "{path}");
    }
}

#[tokio::test]
async fn a_key_that_another_request_took_after_a_lost_attempt_ends_as_conflict() {
    let stage = Stage::open().await;
    stage.upstream.set(Fault::Hold);
    let told = stage.post("/progress/", "k", r#"{"n":"mine"}"#).await;
    assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("unknown")));
    assert_eq!(stage.upstream.direct("POST", "/progress/", "k", &json!({"n": "theirs"})), 201);
    stage.upstream.come_back().await;
    stage.drained().await;
    is_said_to_clash(&stage, "k").await;
    assert!(stage.upstream.release().iter().all(|status| *status == 409), "a late copy finds the key taken");
}

#[tokio::test]
async fn an_attempt_that_was_committed_is_done_although_it_was_withdrawn_or_refused_later() {
    let stage = Stage::open().await;
    stage.upstream.set(Fault::CutAfter);
    let told = stage.post("/progress/", "k", r#"{"n":"mine"}"#).await;
    cancel(&stage, &told).await;
    stage.upstream.come_back().await;
    stage.drained().await;
    stage.until("k", "done").await;
}

async fn cancel(stage: &Stage, told: &Told) -> Told {
    let id = told.body["envelope_id"].as_str().unwrap();
    stage.upstream.leave().await;
    loop {
        let told = stage.operate(Method::POST, &format!("/envelopes/{id}/cancel"), "{}").await;
        if told.code() != "row_inflight" {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A lost attempt, the key used directly, and then a person who withdraws the write.
async fn withdrawn(key_answers: KeyAnswers) -> Value {
    let stage = Stage::open().await;
    stage.upstream.books.lock().unwrap().key_answers = key_answers;
    stage.upstream.set(Fault::Hold);
    let told = stage.post("/progress/", "k", r#"{"n":"mine"}"#).await;
    assert_eq!(cancel(&stage, &told).await.body["did"], "cancelling");
    assert_eq!(stage.upstream.direct("POST", "/progress/", "k", &json!({"n": "theirs"})), 201);
    stage.upstream.come_back().await;
    stage.drained().await;
    stage.envelope("k").await.unwrap()
}

#[tokio::test]
async fn a_withdrawn_write_is_not_done_because_another_request_has_its_key() {
    let row = withdrawn(KeyAnswers::WithFingerprint).await;
    assert_eq!((&row["status"], &row["outcome"]), (&json!("cancelled"), &json!("not_committed")));
    // An upstream that does not name the request cannot settle it.
    let row = withdrawn(KeyAnswers::StateAlone).await;
    assert_eq!((&row["status"], &row["outcome"]), (&json!("cancelled"), &json!("unknown")));
}

#[tokio::test]
async fn an_upstream_that_does_not_name_the_request_of_a_key_is_believed_when_it_refuses_the_write_for_it() {
    let stage = Stage::open().await;
    stage.upstream.books.lock().unwrap().key_answers = KeyAnswers::StateAlone;
    stage.upstream.leave().await;
    stage.post("/progress/", "k", r#"{"n":"mine"}"#).await;
    stage.upstream.direct("POST", "/progress/", "k", &json!({"n": "theirs"}));
    stage.upstream.come_back().await;
    stage.drained().await;
    is_said_to_clash(&stage, "k").await;
}

#[tokio::test]
async fn the_exact_duplicate_of_the_request_that_has_a_key_gets_its_answer_also_after_a_live_409() {
    let stage = Stage::open().await;
    assert_eq!(stage.upstream.direct("POST", "/progress/", "k", &json!({"n": "first"})), 201);
    let other = stage.post("/progress/", "k", r#"{"n":"other"}"#).await;
    assert_eq!((other.status, other.code()), (409, "idempotency_key_reused"));
    assert_eq!(other.header("statehub-relay"), "forwarded");
    // At once, and also when the key was asked about.
    for _ in 0..2 {
        let copy = stage.post("/progress/", "k", r#"{"n":"first"}"#).await;
        assert_eq!((copy.status, &copy.body["replayed"]), (201, &json!(true)), "{copy:?}");
        stage.drained().await;
    }
    assert_eq!(stage.upstream.applied("k"), 1);
}

#[tokio::test]
async fn what_the_upstream_refused_while_its_caller_waited_may_come_again_under_its_key() {
    let refused = [
        (Method::POST, "/progress/", "", r#"{"invalid":true}"#, Fault::None, 422, r#"{"n":1}"#),
        (Method::PATCH, "/tasks/1", "\"9\"", r#"{"n":1}"#, Fault::None, 409, r#"{"n":1}"#),
        (Method::POST, "/progress/", "", r#"{"n":1}"#, Fault::Status(429), 429, r#"{"n":1}"#),
        (Method::POST, "/progress/", "", r#"{"n":1}"#, Fault::Status(500), 500, r#"{"n":1}"#),
    ];
    for (method, path, condition, body, fault, status, corrected) in refused {
        let stage = Stage::open().await;
        stage.upstream.set(fault);
        let headers = [("idempotency-key", "k"), ("if-match", condition)];
        let asked = &headers[..if condition.is_empty() { 1 } else { 2 }];
        let told = stage.call(method.clone(), path, asked, body).await;
        assert_eq!((told.status, told.header("statehub-relay")), (status, "forwarded"), "{told:?}");
        stage.upstream.set(Fault::None);
        assert_eq!(stage.drained().await["queued"], 0, "{status}");
        let again = stage.call(method, path, &headers[..1], corrected).await;
        assert_eq!((again.status, stage.upstream.applied("k")), (201, 1), "after a {status}: {again:?}");
    }
}

/// A write under way at the upstream, which judges it under `fault` once a copy with this body was answered: what the
/// write's caller and the copy's caller heard.
async fn copied_while_under_way(stage: &Stage, body: &str, copy: &str, fault: Fault) -> (Told, Told) {
    stage.upstream.set(Fault::LateWrites);
    let copied = async {
        stage.until("k", "inflight").await;
        // Of another session, so that it need not wait for its turn behind the write.
        let headers = [("idempotency-key", "k"), ("statehub-session", "other")];
        let told = stage.call(Method::POST, "/progress/", &headers, copy).await;
        stage.upstream.judge_write(fault);
        told
    };
    tokio::join!(stage.post("/progress/", "k", body), copied)
}

async fn patient() -> Stage {
    Stage::with(|config| config.answer_timeout = limits::RELAY_ANSWER_TIMEOUT).await
}

#[tokio::test]
async fn a_receipt_that_a_copy_got_while_the_write_was_under_way_outlives_the_upstreams_refusal() {
    let (valid, invalid) = (r#"{"n":"mine"}"#, r#"{"invalid":true}"#);
    for (body, taken, fault, status, ends) in [
        (invalid, false, Fault::None, 422, "rejected"),
        (valid, true, Fault::None, 409, "conflict"),
        (valid, false, Fault::Status(429), 429, "done"),
    ] {
        let stage = patient().await;
        if taken {
            stage.upstream.direct("POST", "/progress/", "k", &json!({"n": "theirs"}));
        }
        let (told, copy) = copied_while_under_way(&stage, body, body, fault).await;
        assert_eq!((told.status, told.header("statehub-relay")), (status, "forwarded"), "{told:?}");
        assert_eq!((copy.status, copy.header("statehub-relay")), (202, "queued"), "{copy:?}");
        stage.upstream.set(Fault::None);
        stage.drained().await;
        let found = explained(&stage, "k").await;
        let (verdict, id) = (&found["verdict"], &found["envelope"]["envelope_id"]);
        assert_eq!((verdict, id), (&json!(ends), &copy.body["envelope_id"]), "after a {status}: {found}");
        let standing = stage.status().await;
        assert_eq!((&standing[ends], &standing["queued"]), (&json!(1), &json!(0)), "after a {status}");
        let applied = usize::from(taken || ends == "done");
        assert_eq!(stage.upstream.applied("k"), applied, "after a {status}");
    }
}

#[tokio::test]
async fn a_receipt_that_a_copy_got_holds_also_when_the_upstream_refuses_the_relays_credential() {
    let stage = patient().await;
    let body = r#"{"n":1}"#;
    let (told, copy) = copied_while_under_way(&stage, body, body, Fault::Status(401)).await;
    assert_eq!((told.status, copy.status), (401, 202));
    let row = stage.until("k", "queued").await;
    assert_eq!(row["envelope_id"], copy.body["envelope_id"]);
    assert!(stage.status().await["paused"].is_string(), "as after a replay that was refused so");
    stage.upstream.set(Fault::None);
    stage.drained().await;
    stage.until("k", "done").await;
}

/// Changes the outbox's tables while no relay has it open.
async fn change_tables(stage: &mut Stage, change: &'static str) {
    stage.stop().await;
    let db = Db::open(Envelopes::options(&stage.config.outbox)).unwrap();
    db.write_blocking("test.change_tables", move |conn| Ok::<_, StorageError>(conn.execute_batch(change)?))
        .unwrap();
    db.close().await;
    stage.start().await;
}

#[tokio::test]
async fn a_refused_write_that_cannot_be_forgotten_is_told_as_unknown_because_it_is_sent_again() {
    for (fault, headers) in [
        (Fault::Status(429), &[("idempotency-key", "k")][..]),
        (Fault::Status(500), &[("idempotency-key", "k")]),
        (Fault::Status(422), &[]),
    ] {
        let mut stage = Stage::open().await;
        let no_room =
            "CREATE TRIGGER kept BEFORE DELETE ON envelope BEGIN SELECT RAISE(ABORT, 'no room'); END";
        change_tables(&mut stage, no_room).await;
        stage.upstream.set(fault);
        let told = stage.call(Method::POST, "/progress/", headers, r#"{"n":1}"#).await;
        assert_eq!((told.status, told.code()), (503, "outcome_unknown"), "{fault:?}: {told:?}");
        let key = told.header("idempotency-key").to_owned();
        stage.upstream.set(Fault::None);
        change_tables(&mut stage, "DROP TRIGGER kept").await;
        stage.drained().await;
        assert_eq!(stage.upstream.applied(&key), 1, "{fault:?}: {told:?}");
        let again = stage.post("/progress/", &key, r#"{"n":1}"#).await;
        assert_eq!((again.status, &again.body["replayed"]), (201, &json!(true)), "{fault:?}: {again:?}");
    }
}

#[tokio::test]
async fn a_refusal_that_comes_when_the_write_was_sent_again_already_is_told_as_unknown() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_800_000_000_000_000)));
    let upstream = Upstream::start().await;
    let target = Target::of_url(&format!("http://{}", upstream.address)).unwrap();
    let patient = |config: &mut Config| config.answer_timeout = limits::RELAY_ANSWER_TIMEOUT;
    let stage = Stage::before(upstream, target, clock.clone(), patient).await;
    stage.upstream.set(Fault::LateWrites);
    let sent_again = async {
        stage.until("k", "inflight").await;
        clock.advance(limits::RELAY_LEASE);
        let leaves = async {
            while stage.envelope("k").await.unwrap()["attempts"] != 2 {
                stage.replay().await;
            }
        };
        tokio::time::timeout(crate::stage::PATIENCE, leaves).await.expect("its lease is over");
        stage.upstream.judge_write(Fault::Status(429));
    };
    let (told, ()) = tokio::join!(stage.post("/progress/", "k", r#"{"n":1}"#), sent_again);
    assert_eq!((told.status, told.code()), (503, "outcome_unknown"), "{told:?}");
    stage.upstream.judge_write(Fault::None);
    stage.until("k", "done").await;
    assert_eq!(stage.upstream.applied("k"), 1);
}

#[tokio::test]
async fn another_request_under_the_key_of_a_write_under_way_keeps_nothing_of_the_write() {
    let stage = patient().await;
    let (told, other) =
        copied_while_under_way(&stage, r#"{"invalid":true}"#, r#"{"n":1}"#, Fault::None).await;
    assert_eq!((told.status, other.status, other.code()), (422, 409, "idempotency_key_reused"));
    assert_eq!(stage.drained().await["queued"], 0);
    assert_eq!(stage.envelope("k").await, None, "nobody holds a receipt for it");
    assert_eq!(stage.post("/progress/", "k", r#"{"n":1}"#).await.status, 201);
}

#[tokio::test]
async fn the_exact_duplicate_gets_its_answer_while_a_conflict_over_its_key_is_kept() {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    stage.post("/progress/", "k", r#"{"n":"mine"}"#).await;
    stage.upstream.direct("POST", "/progress/", "k", &json!({"n": "theirs"}));
    stage.upstream.come_back().await;
    stage.drained().await;
    is_said_to_clash(&stage, "k").await;
    let copy = stage.post("/progress/", "k", r#"{"n":"theirs"}"#).await;
    assert_eq!((copy.status, &copy.body["replayed"]), (201, &json!(true)), "{copy:?}");
    let mine = stage.post("/progress/", "k", r#"{"n":"mine"}"#).await;
    assert_eq!((mine.status, mine.code()), (409, "idempotency_key_reused"));
}

/// By a clock of its own, so that days pass for relay and upstream.
async fn aging() -> (Stage, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_800_000_000_000_000)));
    let upstream = Upstream::start().await;
    upstream.by(clock.clone());
    let target = Target::of_url(&format!("http://{}", upstream.address)).unwrap();
    let stage = Stage::before(upstream, target, clock.clone(), |_| {}).await;
    // The relay learns the upstream's time.
    stage.replay().await;
    (stage, clock)
}

#[tokio::test]
async fn a_key_that_the_relay_forgot_and_the_upstream_did_not_ends_as_conflict() {
    let (stage, clock) = aging().await;
    assert_eq!(stage.post("/progress/", "k", r#"{"n":"first"}"#).await.status, 201);
    clock.advance(limits::RELAY_DONE_KEPT + DAY);
    stage.replay().await;
    let forgotten = async {
        while stage.envelope("k").await.is_some() {
            stage.replay().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, forgotten).await.unwrap();
    stage.upstream.leave().await;
    assert_eq!(stage.post("/progress/", "k", r#"{"n":"second"}"#).await.status, 202);
    stage.upstream.come_back().await;
    stage.drained().await;
    is_said_to_clash(&stage, "k").await;
}

#[tokio::test]
async fn a_write_past_its_age_is_a_conflict_while_another_request_must_have_come_before_it_was_forgotten() {
    for (used_after, outcome) in [(1, "not_committed"), (15, "unknown")] {
        let (stage, clock) = aging().await;
        stage.upstream.set(Fault::Hold);
        let told = stage.post("/progress/", "k", r#"{"n":"mine"}"#).await;
        assert_eq!(told.body["outcome"], "unknown");
        stage.upstream.leave().await;
        clock.advance(DAY * used_after);
        stage.upstream.direct("POST", "/progress/", "k", &json!({"n": "theirs"}));
        clock.advance(DAY * (16 - used_after));
        stage.upstream.come_back().await;
        stage.drained().await;
        let row = stage.envelope("k").await.unwrap();
        let status = if outcome == "unknown" { "expired" } else { "conflict" };
        assert_eq!((&row["status"], &row["outcome"]), (&json!(status), &json!(outcome)), "{used_after}");
    }
}

/// A relay with one write that may have been sent, `maybe`, and one that surely was not, `never`. It does not run while
/// its host's date and the upstream's time go on by so many days.
async fn off_for(host_days: u32, upstream_days: u32) -> Stage {
    let start = Timestamp::from_micros(1_800_000_000_000_000);
    let (clock, upstreams) = (Arc::new(ManualClock::at(start)), Arc::new(ManualClock::at(start)));
    let upstream = Upstream::start().await;
    upstream.by(upstreams.clone());
    let target = Target::of_url(&format!("http://{}", upstream.address)).unwrap();
    let mut stage = Stage::before(upstream, target, clock.clone(), |_| {}).await;
    stage.replay().await;
    stage.upstream.set(Fault::CutAfter);
    let told = stage.post("/progress/", "maybe", r#"{"n":1}"#).await;
    assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("unknown")));
    stage.upstream.leave().await;
    let headers = [("idempotency-key", "never"), ("statehub-session", "other")];
    let told = stage.call(Method::POST, "/progress/", &headers, r#"{"n":2}"#).await;
    assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("not_sent")));
    stage.stop().await;
    // As after days of running: the file knows how far its clock is borne out.
    let envelopes = Envelopes::open(&stage.config.outbox, Arc::new(OsEntropy), start).unwrap();
    envelopes.look_at_clock(start, None).await.unwrap();
    envelopes.close().await;
    clock.set_date(start + DAY * host_days);
    upstreams.set_date(start + DAY * upstream_days);
    if upstream_days > 13 {
        stage.upstream.forget_keys();
    }
    stage.upstream.books.lock().unwrap().seen.clear();
    stage.start().await;
    stage
}

#[tokio::test]
async fn a_write_that_may_have_been_sent_is_not_sent_again_once_any_clock_says_that_its_key_may_be_forgotten()
{
    for (host_days, upstream_days, status, outcome) in
        [(14, 14, "expired", "unknown"), (0, 14, "expired", "unknown"), (14, 0, "done", "committed")]
    {
        let stage = off_for(host_days, upstream_days).await;
        stage.upstream.books.lock().unwrap().takes_old = true;
        let case = format!("{host_days} days here, {upstream_days} there");
        // Before anybody could be asked.
        let early = stage.status().await["too_old"].clone();
        stage.upstream.come_back().await;
        stage.drained().await;
        assert_eq!(stage.upstream.applied("maybe"), 1, "{case}");
        if host_days > 13 {
            let id = &stage.envelope("maybe").await.unwrap()["envelope_id"];
            assert_eq!((&early[0]["envelope_id"], &early[0]["status"]), (id, &json!("queued")), "{case}");
        }
        let row = stage.until("maybe", status).await;
        assert_eq!(row["outcome"], outcome, "{case}");
        let named = stage.status().await["too_old"].clone();
        let path = if status == "expired" { json!("/progress/") } else { Value::Null };
        assert_eq!(named[0]["path"], path, "{case}: {named}");
    }
}

#[tokio::test]
async fn a_write_that_was_never_sent_goes_after_a_long_time_off_and_the_upstreams_time_says_whether_it_is_too_old()
 {
    for (host_days, upstream_days, status, applied) in [(14, 0, "done", 1), (14, 14, "expired", 0)] {
        let stage = off_for(host_days, upstream_days).await;
        stage.upstream.come_back().await;
        stage.drained().await;
        let row = stage.until("never", status).await;
        assert_eq!(stage.upstream.applied("never"), applied, "{host_days} {upstream_days}");
        if status == "expired" {
            assert_eq!(row["outcome"], "not_committed");
            let id = row["envelope_id"].as_str().unwrap();
            let again = stage.operate(Method::POST, &format!("/envelopes/{id}/retry"), "{}").await;
            assert_eq!(again.body["did"], "superseded", "{again:?}");
            stage.until(again.body["successor"]["idempotency_key"].as_str().unwrap(), "done").await;
        }
    }
}
