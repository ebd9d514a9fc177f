//! Members whose rows are pushed to an endpoint.

use std::collections::HashSet;
use std::time::Duration;

use model::limits::{
    SWEEP_ROWS_MAX, WEBHOOK_ATTEMPTS_MAX, WEBHOOK_CALLS_PER_ENDPOINT_MAX, WEBHOOK_CLAIM_TTL, WEBHOOK_ROTATION,
};
use model::webhook::{GAVE_UP, GONE, REMOVED, WebhookSecret};
use model::{DeliveryRung, ErrorCode, MemberKind};

use super::Bench;
use super::town::*;
use crate::*;

const URL: &str = "https://hooks.example/x";

fn secret_of(byte: u8) -> WebhookSecret {
    WebhookSecret::from_bytes([byte; 32])
}

pub(super) fn new(name: &str, topics: &[&str]) -> NewWebhook {
    let topics = topics.iter().map(|name| topic(name)).collect();
    NewWebhook { name: member_name(name), url: URL.into(), secret: secret_of(1), topics }
}

/// The ledger, jane's home, and a webhook `hook` that follows `#alerts`.
async fn with_hook(bench: &impl Bench) -> (std::sync::Arc<dyn Ledger>, Home) {
    let (ledger, jane, _) = two_homes(bench).await;
    ledger.create_topic(jane.id(), &topic("alerts")).await.unwrap();
    ledger.create_webhook(new("hook", &["alerts"])).await.unwrap();
    (ledger, jane)
}

async fn claims(ledger: &dyn Ledger) -> Vec<Push> {
    ledger.claim_pushes(100).await.unwrap()
}

fn texts(pushes: &[Push]) -> Vec<&str> {
    pushes.iter().map(|push| std::str::from_utf8(&push.row.envelope).unwrap()).collect()
}

async fn settle(ledger: &dyn Ledger, push: &Push, outcome: PushOutcome) -> PushSettled {
    ledger.settle_push(push.claim, outcome).await.unwrap()
}

fn again(seconds: u64) -> PushOutcome {
    PushOutcome::Again { after: Duration::from_secs(seconds), answer: "http_500".into() }
}

pub async fn a_pushed_member_has_what_its_endpoint_took(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let direct = accepted(&*ledger, &jane, text("@hook", "d", "direct")).await;
    let posted = accepted(&*ledger, &jane, text("#alerts", "t", "posted")).await;
    let mention = mentioning(text("#other", "m", "mention"), &["hook"]);
    let mentioned = accepted(&*ledger, &jane, mention).await;
    let ids = [direct, posted, mentioned].map(|receipt| receipt.broker_message_id);
    for id in ids {
        assert_eq!(rungs(&*ledger, id).await, [("hook".to_owned(), DeliveryRung::Accepted)]);
    }
    let pushes = claims(&*ledger).await;
    assert_eq!(
        texts(&pushes).into_iter().collect::<HashSet<_>>(),
        HashSet::from(["direct", "posted", "mention"])
    );
    for push in &pushes {
        assert_eq!((push.url.as_str(), push.claim.attempts, push.secrets.len()), (URL, 1, 1));
        assert_eq!(settle(&*ledger, push, PushOutcome::Delivered).await, PushSettled::Recorded);
    }
    for id in ids {
        assert_eq!(rungs(&*ledger, id).await, [("hook".to_owned(), DeliveryRung::Delivered)]);
    }
    assert!(claims(&*ledger).await.is_empty());
    // The sender of the direct message is told, as of any member's.
    let told = receipts(&*ledger, &jane).await;
    assert_eq!(
        (told.len(), told[0].id, told[0].rung),
        (1, direct.broker_message_id, DeliveryRung::Delivered)
    );
    assert_eq!(bench.count("webhook_call").await, 0, "nothing is left of what is delivered");
}

pub async fn calls_of_a_log_come_one_by_one_in_its_order(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    for n in 0..5 {
        accepted(&*ledger, &jane, text("#alerts", &format!("t{n}"), &format!("t{n}"))).await;
        accepted(&*ledger, &jane, text("@hook", &format!("d{n}"), &format!("d{n}"))).await;
    }
    for n in 0..5 {
        let pushes = claims(&*ledger).await;
        let mut found = texts(&pushes);
        found.sort_unstable();
        assert_eq!(found, [format!("d{n}"), format!("t{n}")]);
        assert!(claims(&*ledger).await.is_empty(), "both logs have a call under way");
        for push in &pushes {
            settle(&*ledger, push, PushOutcome::Delivered).await;
        }
    }
    assert!(claims(&*ledger).await.is_empty());
}

pub async fn a_call_put_off_holds_up_its_own_log_alone(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let first = accepted(&*ledger, &jane, text("#alerts", "t0", "t0")).await;
    accepted(&*ledger, &jane, text("#alerts", "t1", "t1")).await;
    let pushes = claims(&*ledger).await;
    assert_eq!(settle(&*ledger, &pushes[0], again(5)).await, PushSettled::Recorded);
    accepted(&*ledger, &jane, text("@hook", "d", "d")).await;
    let direct = claims(&*ledger).await;
    assert_eq!(texts(&direct), ["d"]);
    settle(&*ledger, &direct[0], PushOutcome::Delivered).await;
    bench.advance(Duration::from_secs(4));
    assert!(claims(&*ledger).await.is_empty(), "not before it is due");
    let facts = ledger.pushes(first.broker_message_id).await.unwrap();
    assert_eq!((facts[0].attempts, facts[0].last_answer.as_deref()), (1, Some("http_500")));
    assert!(facts[0].next_attempt_at.is_some());
    bench.advance(Duration::from_secs(2));
    let second = claims(&*ledger).await;
    assert_eq!((texts(&second), second[0].claim.attempts), (vec!["t0"], 2));
    settle(&*ledger, &second[0], PushOutcome::Delivered).await;
    assert_eq!(texts(&claims(&*ledger).await), ["t1"]);
}

pub async fn a_schedule_survives_a_restart(mut bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    accepted(&*ledger, &jane, text("@hook", "d", "d")).await;
    let pushes = claims(&*ledger).await;
    settle(&*ledger, &pushes[0], again(300)).await;
    drop(ledger);
    bench.reopen().await;
    let ledger = bench.ledger();
    assert!(claims(&*ledger).await.is_empty());
    bench.advance(Duration::from_secs(301));
    assert_eq!(claims(&*ledger).await[0].claim.attempts, 2);
}

pub async fn a_lapsed_claim_is_anybodys_and_its_holder_may_only_tell_of_success(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@hook", "d", "d")).await;
    let lost = claims(&*ledger).await.remove(0);
    bench.advance(WEBHOOK_CLAIM_TTL - Duration::from_secs(1));
    assert!(claims(&*ledger).await.is_empty());
    bench.advance(Duration::from_secs(2));
    let held = claims(&*ledger).await.remove(0);
    assert_eq!((held.claim.id, held.claim.attempts), (lost.claim.id, 2), "a crash uses an attempt up");
    for outcome in [again(5), PushOutcome::GaveUp, PushOutcome::Disabled { reason: GONE.into() }] {
        assert_eq!(settle(&*ledger, &lost, outcome).await, PushSettled::ClaimLost);
    }
    assert_eq!(ledger.webhooks().await.unwrap()[0].state, WebhookState::Enabled);
    assert_eq!(settle(&*ledger, &lost, PushOutcome::Delivered).await, PushSettled::Recorded);
    let id = receipt.broker_message_id;
    assert_eq!(rungs(&*ledger, id).await, [("hook".to_owned(), DeliveryRung::Delivered)]);
    // Success outranks what the later holder heard.
    assert_eq!(settle(&*ledger, &held, PushOutcome::GaveUp).await, PushSettled::ClaimLost);
    assert_eq!(rungs(&*ledger, id).await, [("hook".to_owned(), DeliveryRung::Delivered)]);
}

pub async fn many_claims_at_once_never_share_a_row(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for hook in 0..8 {
        ledger.create_webhook(new(&format!("hook{hook}"), &[])).await.unwrap();
        for n in 0..3 {
            let id = format!("{hook}-{n}");
            accepted(&*ledger, &jane, text(&format!("@hook{hook}"), &id, &id)).await;
        }
    }
    let mut seen = HashSet::new();
    for round in 0..3 {
        let mut tries = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let ledger = bench.ledger();
            tries.spawn(async move { ledger.claim_pushes(4).await.unwrap() });
        }
        let mut won = tries.join_all().await.concat();
        // A claim that met another's lock passes that webhook over; the next look finds it.
        won.extend(claims(&*ledger).await);
        assert_eq!(won.len(), 8, "one call a log");
        for push in won {
            let text = String::from_utf8(push.row.envelope.clone()).unwrap();
            assert!(text.ends_with(&format!("-{round}")), "{text} in round {round}");
            assert!(seen.insert(text), "each row once");
            settle(&*ledger, &push, PushOutcome::Delivered).await;
        }
    }
    assert_eq!(seen.len(), 24);
}

pub async fn an_endpoint_gets_few_calls_at_once_and_others_go_on(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    ledger.create_webhook(new("quick", &[])).await.unwrap();
    let logs = WEBHOOK_CALLS_PER_ENDPOINT_MAX + 2;
    for n in 0..logs {
        let mention = mentioning(text(&format!("#t{n}"), &format!("t{n}"), "slow"), &["hook"]);
        accepted(&*ledger, &jane, mention).await;
    }
    accepted(&*ledger, &jane, text("@quick", "q", "quick")).await;
    let pushes = claims(&*ledger).await;
    let slow: Vec<&Push> =
        pushes.iter().filter(|push| texts(std::slice::from_ref(push)) == ["slow"]).collect();
    assert_eq!(slow.len(), WEBHOOK_CALLS_PER_ENDPOINT_MAX);
    assert_eq!(pushes.len(), slow.len() + 1, "the other endpoint is served");
    assert!(claims(&*ledger).await.is_empty());
    settle(&*ledger, slow[0], PushOutcome::Delivered).await;
    assert_eq!(claims(&*ledger).await.len(), 1, "one went, one comes");
}

pub async fn who_waited_longest_is_served_first(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    ledger.create_webhook(new("another", &[])).await.unwrap();
    for n in 0..3 {
        accepted(&*ledger, &jane, text("@hook", &format!("h{n}"), "hook")).await;
        accepted(&*ledger, &jane, text("@another", &format!("a{n}"), "another")).await;
    }
    let mut served = Vec::new();
    for _ in 0..6 {
        bench.advance(Duration::from_secs(1));
        let pushes = ledger.claim_pushes(1).await.unwrap();
        served.extend(texts(&pushes).into_iter().map(str::to_owned));
        settle(&*ledger, &pushes[0], PushOutcome::Delivered).await;
    }
    assert!(served.windows(2).all(|pair| pair[0] != pair[1]), "they take turns: {served:?}");
}

pub async fn a_row_given_up_ends_and_its_log_goes_on(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let given_up = accepted(&*ledger, &jane, text("@hook", "d0", "d0")).await;
    accepted(&*ledger, &jane, text("@hook", "d1", "d1")).await;
    let pushes = claims(&*ledger).await;
    assert_eq!(settle(&*ledger, &pushes[0], PushOutcome::GaveUp).await, PushSettled::Recorded);
    let told = receipts(&*ledger, &jane).await;
    assert_eq!(told[0].id, given_up.broker_message_id);
    assert_eq!((told[0].rung, told[0].ended_code.as_deref()), (DeliveryRung::DeadLetter, Some(GAVE_UP)));
    assert_eq!(texts(&claims(&*ledger).await), ["d1"]);
    let row = ledger.webhooks().await.unwrap().remove(0);
    assert_eq!((row.waiting, row.parked), (1, 1));
}

pub async fn claims_that_all_lapse_use_the_attempts_up(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@hook", "d", "d")).await;
    for attempts in 1..=WEBHOOK_ATTEMPTS_MAX {
        let pushes = claims(&*ledger).await;
        assert_eq!(pushes[0].claim.attempts, attempts);
        bench.advance(WEBHOOK_CLAIM_TTL);
    }
    assert!(claims(&*ledger).await.is_empty());
    let id = receipt.broker_message_id;
    assert_eq!(rungs(&*ledger, id).await, [("hook".to_owned(), DeliveryRung::DeadLetter)]);
}

pub async fn a_row_past_its_deliver_by_is_not_pushed(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let now = ledger.now().await.unwrap();
    let within = |id: &str, seconds| {
        let mut message = text("@hook", id, id);
        message.deliver_by = Some(now + Duration::from_secs(seconds));
        message
    };
    let tried = accepted(&*ledger, &jane, within("tried", 60)).await;
    let untried = accepted(&*ledger, &jane, within("untried", 70)).await;
    accepted(&*ledger, &jane, text("@hook", "free", "free")).await;
    let pushes = claims(&*ledger).await;
    settle(&*ledger, &pushes[0], again(3_600)).await;
    bench.advance(Duration::from_secs(80));
    assert_eq!(texts(&claims(&*ledger).await), ["free"], "not an hour later: a dead row holds up nobody");
    for receipt in [tried, untried] {
        let id = receipt.broker_message_id;
        assert_eq!(rungs(&*ledger, id).await, [("hook".to_owned(), DeliveryRung::Expired)]);
    }
    let told = receipts(&*ledger, &jane).await;
    let code = Some(ErrorCode::DeliverByPassed.code());
    assert!(told.iter().all(|row| row.ended_code.as_deref() == code), "{told:?}");
}

pub async fn a_row_that_ended_elsewhere_does_not_delay_the_next(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let now = ledger.now().await.unwrap();
    let mut brief = text("@hook", "brief", "brief");
    brief.deliver_by = Some(now + Duration::from_secs(60));
    accepted(&*ledger, &jane, brief).await;
    let pushes = claims(&*ledger).await;
    settle(&*ledger, &pushes[0], again(3_600)).await;
    bench.advance(Duration::from_secs(60));
    assert_eq!(ledger.expire_undelivered(100).await.unwrap(), 1);
    accepted(&*ledger, &jane, text("@hook", "next", "next")).await;
    let next = claims(&*ledger).await;
    assert_eq!((texts(&next), next[0].claim.attempts), (vec!["next"], 1), "attempts are each row's own");
}

pub async fn a_disabled_webhook_keeps_its_rows_until_it_is_enabled(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    accepted(&*ledger, &jane, text("@hook", "d0", "d0")).await;
    let pushes = claims(&*ledger).await;
    let gone = PushOutcome::Disabled { reason: GONE.into() };
    assert_eq!(settle(&*ledger, &pushes[0], gone).await, PushSettled::Recorded);
    accepted(&*ledger, &jane, text("#alerts", "t0", "t0")).await;
    bench.advance(Duration::from_secs(24 * 3_600));
    assert!(claims(&*ledger).await.is_empty());
    let row = ledger.webhooks().await.unwrap().remove(0);
    assert!(matches!(&row.state, WebhookState::Disabled { reason, .. } if reason == GONE), "{row:?}");
    assert_eq!((row.waiting, row.parked), (2, 0));
    for _ in 0..2 {
        let enabled = ledger.enable_webhook(&member_name("hook")).await.unwrap();
        assert_eq!(enabled.state, WebhookState::Enabled);
    }
    let pushes = claims(&*ledger).await;
    assert_eq!(pushes.len(), 2);
    assert!(pushes.iter().all(|push| push.claim.attempts == 1), "they begin anew");
}

pub async fn a_rotated_secret_signs_beside_the_new_one_for_a_while(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let hook = member_name("hook");
    let before = ledger.now().await.unwrap();
    let rotated = ledger.rotate_webhook(&hook, secret_of(2)).await.unwrap();
    let after = ledger.now().await.unwrap();
    let until = rotated.old_secret_until.unwrap();
    assert!((before + WEBHOOK_ROTATION..=after + WEBHOOK_ROTATION).contains(&until), "{until}");
    accepted(&*ledger, &jane, text("@hook", "d", "d")).await;
    let mut push = claims(&*ledger).await.remove(0);
    assert_eq!(push.secrets, [secret_of(2), secret_of(1)]);
    ledger.rotate_webhook(&hook, secret_of(3)).await.unwrap();
    for (wait, secrets) in
        [(Duration::from_secs(5), vec![secret_of(3), secret_of(2)]), (WEBHOOK_ROTATION, vec![secret_of(3)])]
    {
        settle(&*ledger, &push, PushOutcome::Again { after: wait, answer: "timeout".into() }).await;
        bench.advance(wait);
        push = claims(&*ledger).await.remove(0);
        assert_eq!(push.secrets, secrets);
    }
}

pub async fn a_removed_webhook_takes_its_rows_and_subscriptions_along(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let hook = member_name("hook");
    // More than one round takes.
    let waiting = SWEEP_ROWS_MAX + 1;
    let messages = (0..waiting).map(|n| text("@hook", &format!("d{n}"), "d")).collect();
    let outcomes = send(&*ledger, &jane, messages).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Admitted { .. })));
    let under_way = claims(&*ledger).await.remove(0);
    ledger.remove_webhook(&hook).await.unwrap();
    assert!(ledger.webhooks().await.unwrap().is_empty());
    assert_eq!((bench.count("webhook").await, bench.count("webhook_call").await), (0, 0));
    let told = receipts(&*ledger, &jane).await;
    assert_eq!(told.len(), waiting);
    assert!(told.iter().all(|row| row.ended_code.as_deref() == Some(REMOVED)));
    // The call that was under way may still end well.
    assert_eq!(settle(&*ledger, &under_way, again(5)).await, PushSettled::ClaimLost);
    assert_eq!(settle(&*ledger, &under_way, PushOutcome::Delivered).await, PushSettled::Recorded);
    assert_eq!(rungs(&*ledger, under_way.claim.id).await, [("hook".to_owned(), DeliveryRung::Delivered)]);
    // The member is one like any other that the broker hosts, and follows nothing.
    let posted = accepted(&*ledger, &jane, text("#alerts", "t", "t")).await;
    assert_eq!(rungs(&*ledger, posted.broker_message_id).await, []);
    let direct = accepted(&*ledger, &jane, text("@hook", "later", "later")).await;
    let delivered = [("hook".to_owned(), DeliveryRung::Delivered)];
    assert_eq!(rungs(&*ledger, direct.broker_message_id).await, delivered);
    let missing = ledger.remove_webhook(&hook).await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::NotFound);
    ledger.create_webhook(new("hook", &[])).await.unwrap();
    assert!(claims(&*ledger).await.is_empty(), "what was delivered before is not pushed");
}

pub async fn a_removed_member_takes_its_webhook_along(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    let receipt = accepted(&*ledger, &jane, text("@hook", "d", "d")).await;
    ledger.remove_member(&member_name("hook")).await.unwrap();
    assert!(claims(&*ledger).await.is_empty());
    assert_eq!(bench.count("webhook").await, 0, "its secrets are gone");
    assert_eq!(ledger.expire_undelivered(100).await.unwrap(), 1);
    let id = receipt.broker_message_id;
    assert_eq!(rungs(&*ledger, id).await, [("hook".to_owned(), DeliveryRung::DeadLetter)]);
}

pub async fn only_a_hosted_service_gets_a_webhook_and_only_one(bench: impl Bench) {
    let (ledger, jane) = with_hook(&bench).await;
    ledger.register_member(&jane.link, &member_name("reviewer"), MemberKind::Agent).await.unwrap();
    ledger.host_member(&member_name("robot"), MemberKind::Agent).await.unwrap();
    ledger.host_member(&member_name("gone"), MemberKind::Service).await.unwrap();
    ledger.remove_member(&member_name("gone")).await.unwrap();
    let before = row_counts(&bench).await;
    for (new, code) in [
        (new("hook", &[]), ErrorCode::NameTaken),
        (new("jane", &[]), ErrorCode::NameTaken),
        (new("reviewer", &[]), ErrorCode::NameTaken),
        (new("robot", &[]), ErrorCode::NameTaken),
        (new("gone", &[]), ErrorCode::NameTaken),
        (new("fresh", &["alerts", "nowhere"]), ErrorCode::TopicNotFound),
    ] {
        let name = new.name.clone();
        assert_eq!(ledger.create_webhook(new).await.unwrap_err().code(), code, "{name}");
        assert_eq!(row_counts(&bench).await, before, "{name}");
    }
    ledger.host_member(&member_name("service"), MemberKind::Service).await.unwrap();
    let earlier = accepted(&*ledger, &jane, text("@service", "s0", "s0")).await;
    assert_eq!(rungs(&*ledger, earlier.broker_message_id).await[0].1, DeliveryRung::Delivered);
    ledger.create_webhook(new("service", &["alerts"])).await.unwrap();
    accepted(&*ledger, &jane, text("@service", "s1", "s1")).await;
    assert_eq!(texts(&claims(&*ledger).await), ["s1"]);
}

pub async fn a_list_shows_each_webhook_without_its_secrets(bench: impl Bench) {
    let (ledger, _) = with_hook(&bench).await;
    ledger.create_webhook(new("another", &[])).await.unwrap();
    let list = ledger.webhooks().await.unwrap();
    let names: Vec<&str> = list.iter().map(|row| row.member.name.as_str()).collect();
    assert_eq!(names, ["another", "hook"]);
    assert_eq!((list[1].url.as_str(), list[1].topics.as_slice()), (URL, [topic("alerts")].as_slice()));
    assert_eq!(list[1].member.kind, MemberKind::Service);
    assert_eq!((list[1].waiting, list[1].parked, list[1].old_secret_until), (0, 0, None));
    assert!(!format!("{list:?} {:?}", new("x", &[])).contains("1, 1, 1"), "secrets have no way out");
}
