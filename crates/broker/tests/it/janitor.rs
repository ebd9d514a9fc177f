//! What ends by itself.

use std::time::Duration;

use ledger::Wanted;
use model::{DeliveryRung, admission, limits};
use wire::ask::{Question, StatusAnswer};
use wire::link::ToNode;
use wire::log::{Page, PageRequest};

use crate::node::{accepted, client_id, item_of, refused};
use crate::scene::{Props, Scene};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Lets `span` pass for the books and runs the janitor's next round.
async fn later(clock: &testkit::ManualClock, scene: &Scene, span: Duration) {
    clock.advance(span);
    one_more(limits::JANITOR_EVERY, || scene.broker.metrics().ttl_sweeps.get()).await;
}

/// Lets `span` pass for the books and has the janitor look at every id.
async fn walked(clock: &testkit::ManualClock, scene: &Scene, span: Duration) {
    clock.advance(span);
    one_more(limits::DEDUPE_WALK_EVERY, || scene.broker.metrics().dedupe_walks.get()).await;
}

/// Waits until what comes `every` so often has come once more.
async fn one_more(every: Duration, count: impl Fn() -> u64) {
    let before = count();
    tokio::time::pause();
    tokio::time::advance(every).await;
    tokio::time::resume();
    let came = async {
        while count() == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), came).await.expect("the janitor comes round");
}

#[tokio::test]
async fn mail_past_its_time_expires_and_its_sender_is_told() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let mut jane = scene.joined("jane").await.link().await;
    let node = scene.joined("tom").await;
    let soon = model::Clock::now(clock.as_ref()) + Duration::from_secs(60);
    let message = serde_json::json!({"client_message_id": "m1", "to": "@tom", "body": "hi", "deliver_by": soon.to_string()});
    accepted(jane.send(vec![item_of(message).1]).await.remove(0));
    later(&clock, &scene, Duration::from_secs(61)).await;
    let receipts = jane
        .await_frame(|frame| match frame {
            ToNode::Receipts(rows) => Ok(rows.rows),
            other => Err(other.into()),
        })
        .await;
    assert_eq!(receipts[0].row.rung, DeliveryRung::Expired);
    accepted(jane.send_one("@tom", "m2", "later").await);
    let mail = node.link().await.mail().await;
    assert_eq!(mail[0].message.fields.client_message_id.as_str(), "m2", "what expired is not pushed");
}

#[tokio::test]
async fn an_id_is_forgotten_after_its_window_and_not_before() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(props).await;
    let mut jane = scene.joined("jane").await.link().await;
    accepted(jane.send_one("#a", "m1", "hi").await);
    let window = admission::days_long(limits::DEDUPE_DAYS_DEFAULT);
    walked(&clock, &scene, window - DAY).await;
    assert!(scene.ledger.known(jane.person, &client_id("m1")).await.unwrap().is_some());
    walked(&clock, &scene, DAY + Duration::from_secs(1)).await;
    assert!(scene.ledger.known(jane.person, &client_id("m1")).await.unwrap().is_none());
}

#[tokio::test]
async fn pruned_messages_are_gone_from_history_and_their_ids_still_known() {
    let (props, clock) = Props::with_manual_clock();
    let scene = Scene::with(Props { message_retention: Some(90 * DAY), ..props }).await;
    let mut jane = scene.joined("jane").await.link().await;
    let first = accepted(jane.send_one("#a", "m1", "hi").await);
    later(&clock, &scene, 91 * DAY).await;
    let page = Question::TopicHistory { topic: "a".parse().unwrap(), page: PageRequest::default() };
    assert!(jane.ask::<Page>(page).await.unwrap().messages.is_empty());
    let again = accepted(jane.send_one("#a", "m1", "hi").await);
    assert_eq!((again.duplicate, again.history_available), (true, false));
    assert_eq!(again.broker_message_id, first.broker_message_id);
    let other = jane.send_one("#a", "m1", "ho").await;
    assert_eq!(refused(&other).0, 409);
}

#[tokio::test]
async fn a_healthy_ledger_has_no_orphans_and_the_check_says_when_it_looked() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let row = accepted(jane.send_one("#a", "m1", "hi").await);
    assert!(broker::check(scene.ledger.as_ref()).await.unwrap().is_empty());
    assert_eq!(scene.ledger.explain(&Wanted::Message(row.broker_message_id)).await.unwrap().len(), 1);
    let metrics = scene.broker.metrics();
    assert!(metrics.dedupe_orphan_check.get() >= 1, "a start begins with an audit");
    assert_eq!((metrics.dedupe_orphan_found.get(), metrics.atomicity_violation_found.get()), (0, 0));
    let absent: StatusAnswer = jane
        .ask(Question::MessageStatus {
            sender: jane.person,
            client_message_id: client_id("m2"),
            request_fingerprint: row.request_fingerprint,
            first_attempt_at: jane.hello.now,
            fence: false,
        })
        .await
        .unwrap();
    assert!(matches!(absent, StatusAnswer::Absent));
}

#[tokio::test]
async fn a_retention_under_ninety_days_is_refused_at_the_start() {
    let props = Props { message_retention: Some(89 * DAY), ..Props::default() };
    let refused = Scene::try_with(props).await.err().expect("refused");
    assert!(matches!(refused, broker::StartError::RetentionTooShort), "{refused}");
    let mut props = Props::default();
    props.policies.dedupe = model::outbox::DedupeWindow::Days(6);
    let refused = Scene::try_with(props).await.err().expect("refused");
    assert!(matches!(refused, broker::StartError::DedupeWindowTooShort), "{refused}");
}
