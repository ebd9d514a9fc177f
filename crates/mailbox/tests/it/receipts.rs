//! Rungs that travel back to the sender's row.

use mailbox::{OutboxKey, Receipt};
use model::outbox::Status;
use model::receipt::{Ended, Rung, Standing};
use model::{DeliveryRung, MessageId, Timestamp};

use crate::desk::{ANN, Desk, HOUR, client_id, message};

fn receipt(id: MessageId, rung: DeliveryRung, at: Timestamp) -> Receipt {
    Receipt { id, sender: ANN, client_message_id: client_id("a"), rung, at, ended_code: None }
}

async fn apply(desk: &Desk, id: MessageId, rung: DeliveryRung) -> usize {
    desk.mailbox.apply_receipts(vec![receipt(id, rung, desk.now)]).await.unwrap().len()
}

/// Ann's row `a` is done as message 1.
async fn done() -> Desk {
    let desk = Desk::open();
    desk.send(ANN, "a", "@bob").await;
    let frame = desk.frame().await;
    desk.deliver(&frame).await;
    desk
}

#[tokio::test]
async fn rungs_rise_one_by_one_and_never_fall() {
    let mut desk = done().await;
    assert_eq!(desk.row(ANN, "a").await.standing(), Standing::At(Rung::Accepted));
    for (rung, standing) in [
        (DeliveryRung::Delivered, Rung::Delivered),
        (DeliveryRung::Notified, Rung::Notified),
        (DeliveryRung::Engaged, Rung::Engaged),
        (DeliveryRung::Processed, Rung::Processed),
    ] {
        desk.advance(HOUR);
        assert_eq!(apply(&desk, message(1), rung).await, 1);
        desk.crash();
        assert_eq!(desk.row(ANN, "a").await.standing(), Standing::At(standing));
    }
    let before = desk.row(ANN, "a").await;
    desk.advance(HOUR);
    for rung in DeliveryRung::ALL {
        assert_eq!(apply(&desk, message(1), *rung).await, 0, "{rung} after processed");
    }
    assert_eq!(desk.row(ANN, "a").await, before);
    let rungs = before.rungs;
    assert!(rungs.delivered_at < rungs.notified_at && rungs.engaged_at < rungs.processed_at);
}

#[tokio::test]
async fn a_late_ack_takes_back_an_end() {
    let desk = done().await;
    apply(&desk, message(1), DeliveryRung::Expired).await;
    assert_eq!(desk.row(ANN, "a").await.standing(), Standing::Ended(Ended::Expired));
    apply(&desk, message(1), DeliveryRung::DeadLetter).await;
    let row = desk.row(ANN, "a").await;
    assert_eq!((row.standing(), row.state.status()), (Standing::Ended(Ended::Dead), Status::Done));
    apply(&desk, message(1), DeliveryRung::Delivered).await;
    let row = desk.row(ANN, "a").await;
    assert_eq!((row.standing(), row.rungs.ended_as), (Standing::At(Rung::Delivered), None));
}

#[tokio::test]
async fn a_receipt_for_another_message_or_another_id_changes_nothing() {
    let desk = done().await;
    let before = desk.row(ANN, "a").await;
    assert_eq!(apply(&desk, message(2), DeliveryRung::Delivered).await, 0);
    let unknown = Receipt {
        client_message_id: client_id("b"),
        ..receipt(message(1), DeliveryRung::Delivered, desk.now)
    };
    assert_eq!(desk.mailbox.apply_receipts(vec![unknown]).await.unwrap(), []);
    assert_eq!(desk.row(ANN, "a").await, before);
}

#[tokio::test]
async fn a_receipt_that_overtakes_the_acceptance_counts_once_the_acceptance_names_its_message() {
    let desk = Desk::open();
    desk.send(ANN, "a", "@bob").await;
    let frame = desk.frame().await;
    assert_eq!(apply(&desk, message(1), DeliveryRung::Delivered).await, 1);
    assert_eq!(desk.row(ANN, "a").await.standing(), Standing::At(Rung::Queued), "hearsay is no success");
    desk.deliver(&frame).await;
    assert_eq!(desk.row(ANN, "a").await.standing(), Standing::At(Rung::Delivered));
}

#[tokio::test]
async fn a_receipt_of_an_earlier_use_of_the_id_is_dropped_when_the_acceptance_names_another_message() {
    let desk = Desk::open();
    desk.send(ANN, "a", "@bob").await;
    let frame = desk.frame().await;
    apply(&desk, message(77), DeliveryRung::Processed).await;
    desk.deliver(&frame).await;
    assert_eq!(desk.row(ANN, "a").await.standing(), Standing::At(Rung::Accepted));
    assert_eq!(
        apply(&desk, message(1), DeliveryRung::Delivered).await,
        1,
        "its own rungs start from the bottom"
    );
}

#[tokio::test]
async fn hearsay_about_one_message_does_not_hold_back_hearsay_about_another() {
    let desk = Desk::open();
    desk.send(ANN, "a", "@bob").await;
    let frame = desk.frame().await;
    apply(&desk, message(77), DeliveryRung::Processed).await;
    assert_eq!(apply(&desk, message(1), DeliveryRung::Delivered).await, 1);
    assert_eq!(desk.mailbox.outbox_row(OutboxKey::Message(message(77))).await.unwrap(), None);
    desk.deliver(&frame).await;
    assert_eq!(desk.row(ANN, "a").await.standing(), Standing::At(Rung::Delivered));
}

#[tokio::test]
async fn a_message_is_looked_up_at_the_row_that_is_done_not_at_one_that_heard_of_it() {
    let desk = Desk::open();
    for id in ["a", "b", "c"] {
        desk.send(ANN, id, &format!("@{id}")).await;
    }
    let frames = desk.claim().await.frames;
    for id in ["a", "c"] {
        let heard = Receipt {
            client_message_id: client_id(id),
            ..receipt(message(2), DeliveryRung::Delivered, desk.now)
        };
        desk.mailbox.apply_receipts(vec![heard]).await.unwrap();
    }
    desk.deliver(&frames[1]).await;
    let found = desk.mailbox.outbox_row(OutboxKey::Message(message(2))).await.unwrap().unwrap();
    assert_eq!(found.client_message_id, client_id("b"));
}

#[tokio::test]
async fn the_reason_of_an_end_is_kept_while_it_is_ended() {
    let desk = done().await;
    let ended = Receipt {
        ended_code: Some("poison".to_owned()),
        ..receipt(message(1), DeliveryRung::DeadLetter, desk.now)
    };
    desk.mailbox.apply_receipts(vec![ended]).await.unwrap();
    assert_eq!(desk.row(ANN, "a").await.last_error.as_deref(), Some("poison"));
    apply(&desk, message(1), DeliveryRung::Delivered).await;
    assert_eq!(desk.row(ANN, "a").await.last_error, None, "a late ack is truth: it did not end");
}
