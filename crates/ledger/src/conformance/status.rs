//! Questions about ids, and the fence.

use model::admission::{KnownState, StatusAnswer};
use model::outbox::DedupeWindow;
use model::{ErrorCode, Timestamp};

use super::Bench;
use super::town::*;
use crate::*;

fn about(from: &Home, message: &Submission, first_attempt_at: Timestamp) -> StatusQuestion {
    StatusQuestion {
        sender: from.id(),
        client_message_id: message.client_message_id.clone(),
        fingerprint: message.fingerprint,
        first_attempt_at,
    }
}

async fn ask(ledger: &dyn Ledger, from: &Home, message: &Submission, fence: Fence) -> StatusAnswer {
    let question = about(from, message, ledger.now().await.unwrap());
    ledger.message_status(&from.via(), vec![question], fence).await.unwrap().remove(0)
}

pub async fn a_question_without_a_fence_changes_nothing(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let message = text("#t", "a", "hi");
    for _ in 0..2 {
        assert_eq!(ask(&*ledger, &jane, &message, Fence::None).await, StatusAnswer::Absent);
    }
    let receipt = accepted(&*ledger, &jane, message.clone()).await;
    for fence in [Fence::None, Fence::Retire] {
        assert_eq!(ask(&*ledger, &jane, &message, fence).await, StatusAnswer::Accepted(receipt));
    }
    let other = text("#t", "a", "other");
    for fence in [Fence::None, Fence::Retire] {
        assert_eq!(ask(&*ledger, &jane, &other, fence).await, StatusAnswer::AcceptedOtherFingerprint);
    }
    assert_eq!(bench.count("dedupe").await, 1);
}

/// A copy past B0 while the operator asks: the fence decides, in the dedupe table.
pub async fn ce1_a_fenced_id_is_never_accepted(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let message = text("#t", "a", "hi");
    assert_eq!(ask(&*ledger, &jane, &message, Fence::Retire).await, StatusAnswer::Absent);
    for fence in [Fence::None, Fence::Retire] {
        assert_eq!(ask(&*ledger, &jane, &message, fence).await, StatusAnswer::Retired);
    }
    assert_eq!(refused(&*ledger, &jane, message.clone()).await.code, ErrorCode::IdRetired);
    assert_eq!(refused(&*ledger, &jane, text("#t", "a", "other")).await.code, ErrorCode::IdRetired);
    let known = ledger.known(jane.id(), &message.client_message_id).await.unwrap().unwrap();
    assert_eq!(known.state, KnownState::Retired);
    assert_eq!(bench.count("message").await, 0);
}

/// After the window nobody can tell; nothing is retired then.
pub async fn ce3_past_the_window_an_absent_id_is_unknown(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let message = text("#t", "a", "hi");
    let first = ledger.now().await.unwrap();
    bench.advance(PAST_WINDOW);
    let question = about(&jane, &message, first);
    let answers = ledger.message_status(&jane.via(), vec![question.clone()], Fence::Retire).await.unwrap();
    assert_eq!(answers, [StatusAnswer::Unknown]);
    assert_eq!(bench.count("dedupe").await, 0);
    ledger.set_policies(Policies { dedupe: DedupeWindow::Permanent, ..POLICIES }).await.unwrap();
    let answers = ledger.message_status(&jane.via(), vec![question], Fence::Retire).await.unwrap();
    assert_eq!(answers, [StatusAnswer::Absent], "a ledger that never forgets always knows");
}

/// A copy that lay in a proxy past the window finds its deadline over, whatever the sender's clock said.
pub async fn ce3_a_copy_past_its_deadline_is_not_accepted_again(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let mut message = text("#t", "a", "hi");
    let max_age = model::outbox::max_age(POLICIES.dedupe);
    message.send_deadline = Some(ledger.now().await.unwrap() + max_age);
    accepted(&*ledger, &jane, message.clone()).await;
    bench.advance(PAST_WINDOW);
    assert_eq!(forgotten(&*ledger).await, 1);
    assert_eq!(refused(&*ledger, &jane, message).await.code, ErrorCode::SendDeadlinePassed);
    assert_eq!(bench.count("message").await, 1);
}

/// The same id with another body is no proof that this one was accepted.
pub async fn ce4_another_body_under_the_id_is_told_apart(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("#t", "a", "before the wipe")).await;
    let after = text("#t", "a", "after the wipe");
    assert_eq!(ask(&*ledger, &jane, &after, Fence::Retire).await, StatusAnswer::AcceptedOtherFingerprint);
    assert_eq!(refused(&*ledger, &jane, after).await.code, ErrorCode::IdempotencyKeyReused);
}

pub async fn a_link_asks_about_its_own_members_only(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let message = text("#t", "a", "hi");
    accepted(&*ledger, &jane, message.clone()).await;
    let now = ledger.now().await.unwrap();
    let questions = vec![about(&jane, &message, now), about(&carl, &message, now)];
    let answers = ledger.message_status(&carl.via(), questions.clone(), Fence::Retire).await.unwrap();
    assert_eq!(answers, [StatusAnswer::Unknown, StatusAnswer::Absent]);
    let answers = ledger.message_status(&Via::Broker, questions, Fence::None).await.unwrap();
    assert!(matches!(answers[..], [StatusAnswer::Accepted(_), StatusAnswer::Retired]), "{answers:?}");
    come_back(&*ledger, "carl", "1").await;
    for fence in [Fence::None, Fence::Retire] {
        let refused = ledger.message_status(&carl.via(), Vec::new(), fence).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::LinkReplaced);
    }
}

pub async fn an_id_nobody_used_is_not_known(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("#t", "a", "hi")).await;
    assert_eq!(ledger.known(jane.id(), &"b".parse().unwrap()).await.unwrap(), None);
    assert_eq!(ledger.known(carl.id(), &"a".parse().unwrap()).await.unwrap(), None);
    let stranger = model::MemberId::from_bytes([9; 16]);
    assert_eq!(ledger.known(stranger, &"a".parse().unwrap()).await.unwrap(), None);
}

pub async fn a_retired_id_is_forgotten_one_window_after_the_fence(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let message = text("#t", "a", "hi");
    ask(&*ledger, &jane, &message, Fence::Retire).await;
    assert_eq!(forgotten(&*ledger).await, 0);
    bench.advance(PAST_WINDOW);
    assert_eq!(refused(&*ledger, &jane, message).await.code, ErrorCode::IdRetired, "until it is swept");
    assert_eq!(forgotten(&*ledger).await, 1);
    assert_eq!(bench.count("dedupe").await, 0);
}

/// A home that lost its outbox uses an id again: the no it hears must outlast every copy of its own, also when
/// what it met there is nearly forgotten.
pub async fn a_row_that_was_the_reason_of_a_no_is_kept_for_a_window(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    accepted(&*ledger, &jane, text("#t", "a", "before the loss")).await;
    ask(&*ledger, &jane, &text("#t", "b", "before the loss"), Fence::Retire).await;
    let after = [text("#t", "a", "after it"), text("#t", "b", "after it")];
    let nos = [StatusAnswer::AcceptedOtherFingerprint, StatusAnswer::Retired];
    let nearly = PAST_WINDOW / 2;
    bench.advance(nearly);
    for (message, no) in after.iter().zip(nos) {
        assert_eq!(ask(&*ledger, &jane, message, Fence::None).await, no);
        assert_eq!(ask(&*ledger, &jane, message, Fence::Retire).await, no);
    }
    bench.advance(nearly);
    assert_eq!(forgotten(&*ledger).await, 0, "both are kept from the question on");
    for message in after {
        refused(&*ledger, &jane, message).await;
    }
    bench.advance(nearly);
    assert_eq!(forgotten(&*ledger).await, 2);
}
