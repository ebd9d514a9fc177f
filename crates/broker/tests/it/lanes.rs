//! Order within a lane, none between lanes.

use model::limits;
use wire::link::SendOutcome;

use crate::node::{accepted, item, item_of, refused};
use crate::scene::Scene;

#[tokio::test]
async fn a_lane_goes_on_after_a_permanent_refusal_and_stops_at_any_other() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    accepted(jane.send_one("#a", "m0", "hi").await);
    let outcomes = jane
        .send(vec![item("#a", "m1", "one").1, item("#a", "m0", "other").1, item("#a", "m2", "two").1])
        .await;
    let places: Vec<_> = [0, 2].map(|n| accepted(outcomes_at(&outcomes, n)).history_id).to_vec();
    assert_eq!(places, [2, 3]);
    assert_eq!(refused(&outcomes[1]).0, 409);
    let outcomes = jane.send(vec![item("@nobody", "d1", "a").1, item("@nobody", "d2", "b").1]).await;
    assert_eq!(refused(&outcomes[0]).0, 404);
    assert!(matches!(outcomes[1], SendOutcome::NotTried), "{:?}", outcomes[1]);
}

fn outcomes_at(outcomes: &[SendOutcome], n: usize) -> SendOutcome {
    match &outcomes[n] {
        SendOutcome::Accepted(row) => SendOutcome::Accepted(row.clone()),
        other => panic!("accepted, not {other:?}"),
    }
}

#[tokio::test]
async fn frames_of_one_lane_sent_without_waiting_are_committed_in_order() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let person = jane.person;
    let mut numbers = Vec::new();
    for frame in 0..20 {
        let messages = (0..3).map(|n| item("#a", &format!("m{frame}.{n}"), "hi").1).collect();
        numbers.push(jane.start_send(person, messages).await);
    }
    let mut places = Vec::new();
    for n in numbers {
        places.extend(jane.sent(n).await.into_iter().map(|result| accepted(result.outcome).history_id));
    }
    assert_eq!(places, (1..=60).collect::<Vec<u64>>());
}

#[tokio::test]
async fn many_lanes_at_once_are_all_answered() {
    let scene = Scene::open().await;
    let mut jane = scene.joined("jane").await.link().await;
    let person = jane.person;
    let mut numbers = Vec::new();
    for lane in 0..limits::LANES_IN_FLIGHT_MAX * 3 {
        numbers.push(
            jane.start_send(person, vec![item(&format!("#t{lane}"), &format!("m{lane}"), "hi").1]).await,
        );
    }
    for n in numbers {
        assert_eq!(accepted(jane.sent(n).await.remove(0).outcome).history_id, 1);
    }
}

#[tokio::test]
async fn a_frame_holds_one_lane_of_at_most_sixty_four_messages() {
    let scene = Scene::open().await;
    let node = scene.joined("jane").await;
    let mut jane = node.link().await;
    let outcomes =
        jane.send(vec![item("#a", "m1", "hi").1, item("#b", "m2", "hi").1, item("#a", "m3", "hi").1]).await;
    assert_eq!((refused(&outcomes[1]).0, refused(&outcomes[1]).1), (400, "invalid_request"));
    assert!(matches!(outcomes[2], SendOutcome::Accepted(_)));
    let own = jane.send(vec![item("@me", "m4", "hi").1, item("@jane", "m5", "hi").1]).await;
    assert!(
        own.iter().all(|outcome| matches!(outcome, SendOutcome::Accepted(_))),
        "@me is the sender's own name"
    );
    let full: Vec<_> =
        (0..limits::FRAME_MESSAGES_MAX).map(|n| item("#c", &format!("c{n}"), "hi").1).collect();
    assert_eq!(jane.send(full).await.len(), limits::FRAME_MESSAGES_MAX);
    let over = (0..=limits::FRAME_MESSAGES_MAX).map(|n| item("#d", &format!("d{n}"), "hi").1).collect();
    let person = jane.person;
    jane.start_send(person, over).await;
    assert_eq!(jane.close().await.code, 1007);
}

#[tokio::test]
async fn a_body_of_the_largest_size_passes_a_frame() {
    let scene = Scene::open().await;
    let (mut jane, mut tom) =
        (scene.joined("jane").await.link().await, scene.joined("tom").await.link().await);
    let body = "\u{1}".repeat(limits::BODY_BYTES_MAX);
    let outcome = jane
        .send(vec![item_of(serde_json::json!({"client_message_id": "m1", "to": "@tom", "body": body})).1])
        .await;
    assert!(matches!(outcome[0], SendOutcome::Accepted(_)), "{:?}", outcome[0]);
    assert_eq!(tom.mail().await[0].message.fields.body.len(), limits::BODY_BYTES_MAX);
}
