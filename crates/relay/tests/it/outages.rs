//! Many writes over many outages, in small.

use std::collections::HashMap;

use http::Method;
use model::limits;
use serde_json::json;
use testkit::seeded::Seeded;

use crate::stage::Stage;
use crate::upstream::Fault;

#[tokio::test]
async fn an_upstream_that_answers_502_to_504_counts_as_away_and_back_with_its_next_answer() {
    for status in [502, 503, 504] {
        let stage = Stage::open().await;
        stage.upstream.set(Fault::Status(status));
        for place in 0..limits::BREAKER_FAILURES_MAX {
            let (key, session) = (format!("k{place}"), format!("s{place}"));
            let headers = [("idempotency-key", key.as_str()), ("statehub-session", session.as_str())];
            let told = stage.call(Method::POST, "/progress/", &headers, "{}").await;
            assert_eq!(told.status, 202, "{status}: {told:?}");
        }
        let away = stage.away().await;
        assert!(away["reachable"] == false, "{status}: {away}");
        assert!(away["unanswered_because"].as_str().unwrap().contains(&status.to_string()), "{away}");
        // A write of another order, which waits for none of these, is not tried.
        let headers = [("idempotency-key", "other"), ("statehub-session", "other")];
        let told = stage.call(Method::POST, "/progress/", &headers, "{}").await;
        assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("not_sent")), "{status}");
        let delete = stage.call(Method::DELETE, "/elsewhere/1", &[], "").await;
        assert_eq!((delete.status, delete.code()), (503, "upstream_unreachable_online_only"), "{status}");
        stage.upstream.set(Fault::None);
        stage.until("other", "done").await;
        let back = stage.status().await;
        assert!(back["away_seconds"].is_null() && back["reachable"] == true, "{status}: {back}");
    }
}

const WRITES: usize = 2_000;
const OUTAGES: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_writes_over_twenty_outages_are_applied_once_and_in_their_order() {
    let mut stage = Stage::open().await;
    let mut seeded = Seeded::new(7);
    let mut written: HashMap<String, Vec<String>> = HashMap::new();
    for round in 0..OUTAGES {
        let fault = match seeded.below(5) {
            0 => None,
            1 => Some(Fault::CutAfter),
            2 => Some(Fault::Status(503)),
            3 => Some(Fault::Hold),
            _ => Some(Fault::Twice),
        };
        for step in 0..WRITES / OUTAGES {
            if step == 40 {
                match fault {
                    None => stage.upstream.leave().await,
                    Some(fault) => stage.upstream.set(fault),
                }
            }
            // Under a fault that is not away every write waits for its turn first: one is enough.
            if step == 41 {
                stage.upstream.leave().await;
            }
            let key = format!("w-{round}-{step}");
            let session = format!("s{}", seeded.below(6));
            let headers = [("idempotency-key", key.as_str()), ("statehub-session", session.as_str())];
            let told =
                stage.call(Method::POST, "/progress/", &headers, &json!({"key": key}).to_string()).await;
            assert!(matches!(told.status, 201 | 202), "{told:?}");
            written.entry(session).or_default().push(key);
        }
        if seeded.chance(30) {
            stage.stop().await;
            stage.start().await;
        }
        stage.upstream.come_back().await;
        stage.upstream.release();
        stage.drained().await;
    }
    let books = stage.upstream.books.lock().unwrap();
    let place: HashMap<&str, usize> =
        books.applied.iter().enumerate().map(|(place, (key, _))| (key.as_str(), place)).collect();
    assert_eq!((books.applied.len(), place.len()), (WRITES, WRITES), "none lost, none twice");
    for keys in written.values() {
        let places: Vec<usize> = keys.iter().map(|key| place[key.as_str()]).collect();
        assert!(places.is_sorted(), "one session's writes keep their order");
    }
}
