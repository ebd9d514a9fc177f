//! The same thing asked many times at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::ErrorCode;
use model::admission::StatusAnswer;
use tokio::task::JoinSet;

use super::Bench;
use super::town::*;
use crate::*;

const WAYS: usize = 64;

async fn all_at_once<T: Send + 'static>(
    tasks: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let mut set = JoinSet::new();
    for task in tasks {
        set.spawn(task);
    }
    set.join_all().await
}

fn one(ledger: &Arc<dyn Ledger>, from: &Home, message: Submission) -> impl Future<Output = Outcome> + use<> {
    let (ledger, from) = (Arc::clone(ledger), from.clone());
    async move { send(&*ledger, &from, vec![message]).await.remove(0) }
}

pub async fn sixty_four_copies_of_one_id_are_one_message(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let outcomes = all_at_once((0..WAYS).map(|_| one(&ledger, &jane, text("@carl", "a", "hi")))).await;
    let (mut new, mut receipts) = (0, BTreeSet::new());
    for outcome in outcomes {
        let Outcome::Admitted { receipt, admission } = outcome else { panic!("admitted, not {outcome:?}") };
        new += usize::from(admission.is_new());
        receipts.insert(receipt.broker_message_id);
    }
    assert_eq!((new, receipts.len()), (1, 1));
    assert_eq!(mail(&*ledger, &carl).await.len(), 1);
}

pub async fn sixty_four_texts_under_one_id_are_one_message(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let message = |way: usize| match way % 3 {
        0 => text("@carl", "a", "one"),
        1 => text("@carl", "a", "two"),
        _ => text("#elsewhere", "a", "three"),
    };
    let outcomes = all_at_once((0..WAYS).map(|way| one(&ledger, &jane, message(way)))).await;
    let mut new = Vec::new();
    for outcome in &outcomes {
        match outcome {
            Outcome::Admitted { receipt, admission: Admission::New { .. } } => new.push(*receipt),
            Outcome::Admitted { .. } => {}
            Outcome::Refused(refusal) => assert_eq!(refusal.code, ErrorCode::IdempotencyKeyReused),
            Outcome::NotTried => panic!("a frame of one message is always tried"),
        }
    }
    assert_eq!(new.len(), 1, "{outcomes:?}");
    assert_eq!(bench.count("dedupe").await, 1);
    assert_eq!(bench.count("message").await, 1);
    let topics = ledger.topics(jane.id(), None, 10).await.unwrap();
    let delivered = mail(&*ledger, &carl).await.len() + topics.len();
    assert_eq!(delivered, 1, "either carl has it or the topic was made, never both");
}

pub async fn a_refusal_among_many_touches_nobody_else(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let message = |way: usize| {
        let id = format!("id-{way}");
        match way % 4 {
            0 => text("@nobody", &id, "hi"),
            1 => mentioning(text("#t", &id, "hi"), &["nobody"]),
            _ => text("#t", &id, &id),
        }
    };
    let froms = [jane.clone(), carl];
    let tasks: Vec<_> = (0..WAYS).map(|way| one(&ledger, &froms[way % 2], message(way))).collect();
    let outcomes = all_at_once(tasks).await;
    let admitted = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Admitted { .. })).count();
    assert_eq!(admitted, WAYS / 2);
    let history = newest(&*ledger, "t", jane.id()).await;
    let places: Vec<_> = history.rows.iter().map(|row| row.history_id).collect();
    assert_eq!(places, (1..=WAYS as u64 / 2).collect::<Vec<_>>(), "no refused message took a place");
    assert!(history.rows.windows(2).all(|pair| pair[0].created_at < pair[1].created_at));
    assert_eq!(bench.count("dedupe").await, WAYS as u64 / 2);
}

pub async fn many_lanes_at_once_keep_their_own_order(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let frames = 8;
    let lane = |from: Home, to: &'static str| {
        let ledger = Arc::clone(&ledger);
        async move {
            for frame in 0..frames {
                let name = from.person.name.to_string();
                let messages =
                    (0..16).map(|n| text(to, &format!("{to}-{frame}-{n}").replace(['#', '@'], ""), &name));
                let outcomes = send(&*ledger, &from, messages.collect()).await;
                assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Admitted { .. })));
            }
        }
    };
    let lanes =
        [("#a", &jane), ("#b", &jane), ("#a", &carl), ("#b", &carl), ("@carl", &jane), ("@jane", &carl)];
    all_at_once(lanes.map(|(to, from)| lane(from.clone(), to))).await;
    for topic in ["a", "b"] {
        let history = newest(&*ledger, topic, jane.id()).await;
        assert_eq!(history.rows.len(), frames * 16 * 2);
        let places: Vec<_> = history.rows.iter().map(|row| row.history_id).collect();
        assert_eq!(places, (1..=frames as u64 * 32).collect::<Vec<_>>());
        for home in [&jane, &carl] {
            let own = history.rows.iter().filter(|row| row.sender == home.id());
            let ids: Vec<_> = own.map(|row| row.client_message_id.to_string()).collect();
            let asked: Vec<_> =
                (0..frames).flat_map(|f| (0..16).map(move |n| format!("{topic}-{f}-{n}"))).collect();
            assert_eq!(ids, asked);
        }
    }
}

pub async fn an_id_is_accepted_or_retired_and_never_both(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for round in 0..16 {
        let id = format!("id-{round}");
        let message = text("#t", &id, "hi");
        let accept = one(&ledger, &jane, message.clone());
        let (fencing, from) = (Arc::clone(&ledger), jane.clone());
        let fence = async move {
            let question = StatusQuestion {
                sender: from.id(),
                client_message_id: message.client_message_id,
                fingerprint: message.fingerprint,
                first_attempt_at: fencing.now().await.unwrap(),
            };
            fencing.message_status(&from.via(), vec![question], Fence::Retire).await.unwrap().remove(0)
        };
        let (outcome, answer) = tokio::join!(tokio::spawn(accept), tokio::spawn(fence));
        match (outcome.unwrap(), answer.unwrap()) {
            (Outcome::Admitted { receipt, .. }, StatusAnswer::Accepted(found)) => assert_eq!(receipt, found),
            (Outcome::Refused(refusal), StatusAnswer::Absent) => {
                assert_eq!(refusal.code, ErrorCode::IdRetired)
            }
            other => panic!("one of them wins, and both know which: {other:?}"),
        }
    }
}

pub async fn a_ticket_used_sixty_four_times_at_once_joins_once(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Owner).await;
    let exchange = by_invite("jane", "i", "n");
    let ticket = exchange.ticket;
    ledger.exchange(exchange).await.unwrap();
    let redeem = |_| {
        let ledger = Arc::clone(&ledger);
        async move { ledger.redeem(ticket, "postrider-link").await.map_err(|error| error.code()) }
    };
    let results = all_at_once((0..WAYS).map(redeem)).await;
    let joined = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(joined, 1);
    let others: BTreeSet<_> =
        results.iter().filter_map(|result| result.as_ref().err()).map(|code| code.code()).collect();
    assert_eq!(others, BTreeSet::from([ErrorCode::TicketAlreadyUsed.code()]));
    assert_eq!((bench.count("node").await, bench.count("member").await), (1, 1));
}

pub async fn tickets_of_one_invite_used_at_once_join_once(bench: impl Bench) {
    let ledger = mesh(&bench).await;
    invite(&*ledger, "i", Role::Owner).await;
    let mut tickets = Vec::new();
    for name in ["a", "b", "c"] {
        let exchange = by_invite(name, "i", name);
        tickets.push(exchange.ticket);
        ledger.exchange(exchange).await.unwrap();
    }
    let redeem = |ticket| {
        let ledger = Arc::clone(&ledger);
        async move { ledger.redeem(ticket, "postrider-link").await.map_err(|error| error.code()) }
    };
    let results = all_at_once(tickets.into_iter().map(redeem)).await;
    let refused: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(refused, [&ErrorCode::TokenAlreadyUsed; 2]);
    assert_eq!((bench.count("node").await, bench.count("member").await), (1, 1));
}
