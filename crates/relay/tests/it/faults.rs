//! Every fault of the upstream with every class of route: status, receipt, end.

use std::time::Duration;

use http::Method;

use crate::stage::{Stage, Told};
use crate::upstream::Fault;

/// A fault and what a caller hears under it.
struct Case {
    fault: Option<Fault>,
    /// Of a queueable write: status, outcome.
    queueable: (u16, &'static str),
    /// Of an online-only write: status, code.
    online: (u16, &'static str),
    /// Whether a queueable write is applied once everything is well again.
    applied: usize,
}

const AWAY: (u16, &str) = (503, "upstream_unreachable_online_only");

/// None stands for an upstream that refuses connections.
const CASES: &[Case] = &[
    Case { fault: None, queueable: (202, "not_sent"), online: AWAY, applied: 1 },
    Case { fault: Some(Fault::None), queueable: (201, ""), online: (201, ""), applied: 1 },
    Case {
        fault: Some(Fault::Stall),
        queueable: (202, "unknown"),
        online: (504, "outcome_unknown"),
        applied: 1,
    },
    Case {
        fault: Some(Fault::CutAfter),
        queueable: (202, "unknown"),
        online: (504, "outcome_unknown"),
        applied: 1,
    },
    Case { fault: Some(Fault::Twice), queueable: (201, ""), online: (201, ""), applied: 1 },
    Case {
        fault: Some(Fault::Slow(Duration::from_millis(50))),
        queueable: (201, ""),
        online: (201, ""),
        applied: 1,
    },
    Case { fault: Some(Fault::Status(502)), queueable: (202, "unknown"), online: AWAY, applied: 1 },
    Case { fault: Some(Fault::Status(503)), queueable: (202, "unknown"), online: AWAY, applied: 1 },
    Case { fault: Some(Fault::Status(504)), queueable: (202, "unknown"), online: AWAY, applied: 1 },
    Case {
        fault: Some(Fault::Status(500)),
        queueable: (500, "planted"),
        online: (500, "planted"),
        applied: 0,
    },
    Case {
        fault: Some(Fault::Status(501)),
        queueable: (501, "planted"),
        online: (501, "planted"),
        applied: 0,
    },
    Case {
        fault: Some(Fault::Status(401)),
        queueable: (401, "planted"),
        online: (401, "planted"),
        applied: 0,
    },
    Case {
        fault: Some(Fault::Status(422)),
        queueable: (422, "planted"),
        online: (422, "planted"),
        applied: 0,
    },
    Case {
        fault: Some(Fault::Status(429)),
        queueable: (429, "planted"),
        online: (429, "planted"),
        applied: 0,
    },
];

/// Path, headers, body; status and code while the upstream is away.
type Refused<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, u16, &'a str);

fn heard(told: &Told) -> (u16, String) {
    let word = match told.status {
        202 => told.body["outcome"].as_str().unwrap_or_default(),
        _ => told.code(),
    };
    (told.status, word.to_owned())
}

/// Asks for a write that may wait, and looks at all that its caller hears.
async fn queueable(stage: &Stage, case: &Case, method: Method, path: &str, class: &str, key: &str) {
    let told = stage.call(method, path, &[("idempotency-key", key)], r#"{"n":1}"#).await;
    // Once enough tries met a gateway's answer, a write is not tried any more.
    let counts_as_away = is_gateways(case) && told.body["outcome"] == "not_sent";
    if !counts_as_away {
        assert_eq!(heard(&told), (case.queueable.0, case.queueable.1.to_owned()), "{:?} {path}", case.fault);
    }
    let marked = if told.status == 202 { "queued" } else { "forwarded" };
    assert_eq!(told.header("statehub-relay"), marked, "{:?} {path}", case.fault);
    if told.status == 202 {
        let said = (told.body["status"].as_str(), told.body["committed"].as_bool());
        assert_eq!(said, (Some("queued"), Some(false)));
        assert_eq!(told.body["route_class"], class);
        assert_eq!(told.header("idempotency-key"), key);
    }
}

fn is_gateways(case: &Case) -> bool {
    matches!(case.fault, Some(Fault::Status(502..=504)))
}

/// On a stage of its own: as a barrier it would wait for the tasks before it.
#[tokio::test]
async fn a_batch_over_all_tasks_meets_every_fault_as_a_write_of_one_does() {
    for case in CASES {
        let stage = Stage::open().await;
        match case.fault {
            None => stage.upstream.leave().await,
            Some(fault) => stage.upstream.set(fault),
        }
        queueable(&stage, case, Method::POST, "/tasks/bulk-status-sync", "replace", "batch").await;
        stage.upstream.come_back().await;
        let status = stage.drained().await;
        assert_eq!(stage.upstream.applied("batch"), case.applied, "{:?}", case.fault);
        assert_eq!((&status["conflict"], &status["rejected"]), (&0.into(), &0.into()), "{:?}", case.fault);
    }
}

#[tokio::test]
async fn every_fault_has_its_answer_and_its_end_for_every_class_of_route() {
    for (place, case) in CASES.iter().enumerate() {
        let stage = Stage::open().await;
        match case.fault {
            None => stage.upstream.leave().await,
            Some(fault) => stage.upstream.set(fault),
        }
        for (method, path, class) in [
            (Method::POST, "/progress/", "append"),
            (Method::PATCH, "/messages/m1/read", "append"),
            (Method::PATCH, "/tasks/T-1", "replace"),
        ] {
            let key = format!("{path}-{place}");
            queueable(&stage, case, method, path, class, &key).await;
        }
        if is_gateways(case) {
            stage.away().await;
        }
        let told = stage.call(Method::DELETE, "/elsewhere/1", &[], "").await;
        assert_eq!(heard(&told), (case.online.0, case.online.1.to_owned()), "{:?} online", case.fault);
        stage.upstream.come_back().await;
        let status = stage.drained().await;
        for path in ["/progress/", "/messages/m1/read", "/tasks/T-1"] {
            let key = format!("{path}-{place}");
            assert_eq!(stage.upstream.applied(&key), case.applied, "{:?} {key}", case.fault);
        }
        for word in ["conflict", "rejected", "expired", "cancelled"] {
            assert_eq!(status[word], 0, "{:?} {word}", case.fault);
        }
    }
}

#[tokio::test]
async fn a_gateways_first_answers_pass_to_the_callers_of_what_never_waits() {
    for status in [502, 503, 504] {
        let stage = Stage::open().await;
        stage.upstream.set(Fault::Status(status));
        let told = stage.call(Method::DELETE, "/elsewhere/1", &[], "").await;
        assert_eq!(heard(&told), (status, "planted".to_owned()));
    }
}

#[tokio::test]
async fn what_cannot_wait_passes_while_the_upstream_answers_and_has_its_own_refusal_when_it_is_away() {
    let stage = Stage::open().await;
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(70_000));
    let cases: [Refused<'_>; 6] = [
        ("/progress/", &[("authorization", "Bearer x")], "{}", 503, "credentials_not_queueable"),
        ("/progress/", &[("x-api-key", "x")], "{}", 503, "credentials_not_queueable"),
        ("/decisions/", &[], "{}", 503, "id_required"),
        ("/progress/", &[], &large, 413, "payload_too_large_to_queue"),
        ("/progress/", &[], r#"{"a":{"password":"x"}}"#, 422, "secret_in_payload"),
        ("/progress/", &[("content-type", "text/plain")], "{}", 503, "upstream_unreachable_online_only"),
    ];
    for (path, headers, body, _, code) in &cases {
        let told = stage.call(Method::POST, path, headers, body).await;
        assert_eq!((told.status, told.header("statehub-relay")), (201, "forwarded"), "{code}");
    }
    stage.upstream.leave().await;
    for (path, headers, body, status, code) in &cases {
        let told = stage.call(Method::POST, path, headers, body).await;
        assert_eq!((told.status, told.code()), (*status, *code));
        if *code == "secret_in_payload" {
            assert_eq!(told.body["pointers"], serde_json::json!(["/a/password"]));
        }
    }
    let waits = stage.call(Method::POST, "/decisions/", &[("prefer", "respond-async")], "{}").await;
    assert_eq!(waits.status, 202);
    assert_eq!(stage.status().await["queued"], 1, "nothing else was stored");
}

#[tokio::test]
async fn a_bad_credential_of_the_relay_pauses_the_replay_and_burns_nothing() {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    for key in ["a", "b"] {
        assert_eq!(stage.post("/progress/", key, "{}").await.status, 202);
    }
    stage.upstream.come_back().await;
    stage.upstream.set(Fault::Status(401));
    stage.replay().await;
    let paused = async {
        while stage.status().await["paused"].is_null() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, paused).await.unwrap();
    assert_eq!(stage.status().await["queued"], 2);
    stage.upstream.set(Fault::None);
    stage.drained().await;
    assert_eq!((stage.upstream.applied("a"), stage.upstream.applied("b")), (1, 1));
}

#[tokio::test]
async fn writes_are_not_replayed_to_another_hub_unless_forced() {
    let stage = Stage::open().await;
    stage.upstream.leave().await;
    stage.post("/progress/", "first", "{}").await;
    stage.upstream.come_back().await;
    stage.drained().await;
    stage.upstream.leave().await;
    stage.post("/progress/", "a", "{}").await;
    stage.upstream.call_itself("hub-2");
    stage.upstream.come_back().await;
    let told = stage.replay().await;
    assert_eq!((told.status, told.code()), (409, "wrong_instance"));
    assert_eq!(stage.upstream.applied("a"), 0);
    assert_eq!(stage.operate(Method::POST, "/replay", r#"{"force_upstream":true}"#).await.status, 200);
    stage.until("a", "done").await;
}

#[tokio::test]
async fn a_full_outbox_refuses_while_the_upstream_is_away_and_lets_pass_otherwise() {
    let stage = Stage::with(|config| config.rows_max = 2).await;
    stage.upstream.leave().await;
    for key in ["a", "b"] {
        assert_eq!(stage.post("/progress/", key, "{}").await.status, 202);
    }
    let told = stage.post("/progress/", "c", "{}").await;
    assert_eq!((told.status, told.code()), (503, "outbox_full"));
    stage.upstream.come_back().await;
    stage.drained().await;
    assert_eq!(stage.post("/progress/", "c", "{}").await.status, 201);
}

#[tokio::test]
async fn a_damaged_outbox_is_set_aside_by_name_and_live_traffic_goes_on() {
    let mut stage = Stage::open().await;
    stage.stop().await;
    std::fs::write(&stage.config.outbox, vec![0x5a; 8_192]).unwrap();
    stage.start().await;
    let status = stage.status().await;
    let aside = status["set_aside"].as_str().unwrap();
    assert_eq!(std::fs::read(aside).unwrap(), vec![0x5a; 8_192], "kept as it was");
    assert!(!status["forward_only"].is_null());
    assert_eq!(stage.post("/progress/", "a", "{}").await.status, 201);
    stage.upstream.leave().await;
    assert_eq!(stage.post("/progress/", "b", "{}").await.code(), "outbox_full");
}
