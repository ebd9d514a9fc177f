//! A budget that a ledger on a file asks by itself: behind the look-up of an id, before anything is written.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ledger::conformance::Bench;
use ledger::conformance::town::{Home, accepted, text, two_homes};
use ledger::{Admission, Budget, LaneSubmission, Ledger, Outcome, Refusal, Submission};
use model::{ErrorCode, MemberId};

use crate::sqlite::Sqlite;

const WAIT: Duration = Duration::from_millis(700);

/// So many units, and what was paid with them.
struct Purse {
    left: AtomicU32,
    paid: Mutex<Vec<String>>,
}

impl Purse {
    fn of(units: u32) -> Arc<Self> {
        Arc::new(Self { left: AtomicU32::new(units), paid: Mutex::default() })
    }

    fn paid(&self) -> Vec<String> {
        self.paid.lock().unwrap().clone()
    }
}

impl Budget for Purse {
    fn take(&self, _: MemberId, message: &Submission) -> Result<(), Duration> {
        let id = message.client_message_id.to_string();
        let mut paid = self.paid.lock().unwrap();
        if !paid.contains(&id) {
            self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).map_err(|_| WAIT)?;
            paid.push(id);
        }
        Ok(())
    }
}

async fn send(
    ledger: &dyn Ledger,
    from: &Home,
    messages: Vec<Submission>,
    purse: &Arc<Purse>,
) -> Vec<Outcome> {
    let budget = Some(Arc::clone(purse) as Arc<dyn Budget>);
    ledger.accept(LaneSubmission { via: from.via(), sender: from.id(), messages, budget }).await.unwrap()
}

fn is_duplicate(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Admitted { admission: Admission::Duplicate { .. }, .. })
}

fn code(outcome: &Outcome) -> Option<ErrorCode> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal.code),
        Outcome::Admitted { .. } | Outcome::NotTried => None,
    }
}

#[tokio::test]
async fn known_ids_cost_nothing_and_new_ones_are_paid_for_once() {
    let bench = Sqlite::start().await;
    let (ledger, jane, _) = two_homes(&bench).await;
    assert!(ledger.looks_up_first());
    accepted(&*ledger, &jane, text("#t", "old", "hi")).await;
    let purse = Purse::of(2);
    let lane = vec![
        text("#t", "old", "hi"),
        text("#t", "old", "another text"),
        text("#fresh", "a", "hi"),
        text("#fresh", "a", "hi"),
        text("#t", "b", "hi"),
    ];
    let outcomes = send(&*ledger, &jane, lane, &purse).await;
    assert!(is_duplicate(&outcomes[0]), "{outcomes:?}");
    assert_eq!(code(&outcomes[1]), Some(ErrorCode::IdempotencyKeyReused));
    assert!(matches!(outcomes[2], Outcome::Admitted { admission: Admission::New { .. }, .. }));
    assert!(is_duplicate(&outcomes[3]), "{outcomes:?}");
    assert!(matches!(outcomes[4], Outcome::Admitted { admission: Admission::New { .. }, .. }));
    assert_eq!(purse.paid(), ["a", "b"]);
}

#[tokio::test]
async fn a_message_without_budget_is_told_when_to_come_back_and_nothing_of_it_is_stored() {
    let bench = Sqlite::start().await;
    let (ledger, jane, _) = two_homes(&bench).await;
    let purse = Purse::of(1);
    let lane = vec![text("#t", "a", "hi"), text("#t", "b", "hi"), text("#t", "c", "hi")];
    let outcomes = send(&*ledger, &jane, lane, &purse).await;
    assert!(matches!(outcomes[0], Outcome::Admitted { .. }));
    assert_eq!(outcomes[1], Outcome::Refused(Refusal::too_soon(WAIT)));
    assert_eq!(outcomes[2], Outcome::NotTried, "a lane keeps its order");
    for (id, known) in [("a", true), ("b", false), ("c", false)] {
        assert_eq!(ledger.known(jane.id(), &id.parse().unwrap()).await.unwrap().is_some(), known, "{id}");
    }
    let again = send(&*ledger, &jane, vec![text("#t", "a", "hi")], &purse).await;
    assert!(is_duplicate(&again[0]), "a spent budget does not hide what was accepted");
}

#[tokio::test]
async fn a_message_that_is_refused_later_was_paid_for() {
    let bench = Sqlite::start().await;
    let (ledger, jane, _) = two_homes(&bench).await;
    let purse = Purse::of(1);
    let outcomes = send(&*ledger, &jane, vec![text("@nobody", "a", "hi")], &purse).await;
    assert_eq!(code(&outcomes[0]), Some(ErrorCode::MemberNotFound));
    assert_eq!(purse.paid(), ["a"]);
}
