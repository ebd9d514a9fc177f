//! Door ③.

use mailbox::{AckRow, Arrival, Arrived, Confirmed, Recorded};
use model::DeliveryRung;

use crate::desk::{ANN, BOB, Desk, HOUR, client_id, message};

async fn record(desk: &Desk, arrived: Vec<Arrived>) -> Vec<Recorded> {
    desk.mailbox.record(arrived, desk.now, desk.broker_now).await.unwrap()
}

#[tokio::test]
async fn what_arrives_twice_is_stored_once_and_acked_again() {
    let mut desk = Desk::open();
    let first = record(&desk, vec![desk.mail(1, BOB), desk.mail(2, BOB), desk.mail(1, BOB)]).await;
    let (stored_at, delivered) = (desk.now, DeliveryRung::Delivered);
    assert_eq!(first[0].arrival, Arrival::Fresh { seq: 1, rung: delivered, at: stored_at, read_at: None });
    assert_eq!(
        first[2].arrival,
        Arrival::Duplicate { seq: 1, rung: delivered, at: stored_at, read_at: None },
        "in one frame too"
    );
    desk.crash();
    desk.advance(HOUR);
    let again = record(&desk, vec![desk.mail(2, BOB)]).await;
    assert_eq!(
        again[0].arrival,
        Arrival::Duplicate { seq: 2, rung: delivered, at: stored_at, read_at: None }
    );
    assert_eq!(again[0].ack(), Some((delivered, stored_at)));
    desk.mailbox.mark_notified(vec![2], desk.now).await.unwrap();
    let later = record(&desk, vec![desk.mail(2, BOB)]).await;
    assert_eq!(later[0].ack(), Some((DeliveryRung::Notified, desk.now)), "the ack tells the rung it has now");
    assert_eq!(desk.mailbox.inbox_counts().await.unwrap()[0].total, 2);
}

#[tokio::test]
async fn one_id_from_two_senders_or_for_two_recipients_is_two_messages() {
    let desk = Desk::open();
    let other_sender = Arrived { sender: BOB, id: message(2), ..desk.mail(1, BOB) };
    let recorded = record(&desk, vec![desk.mail(1, BOB), other_sender, desk.mail(1, ANN)]).await;
    assert!(recorded.iter().all(|row| matches!(row.arrival, Arrival::Fresh { .. })), "{recorded:?}");
}

#[tokio::test]
async fn a_message_past_its_deadline_is_acked_expired_and_not_stored_but_one_stored_in_time_stays() {
    let mut desk = Desk::open();
    let deadline = Some(desk.broker_now + HOUR);
    let kept = Arrived { deliver_by: deadline, ..desk.mail(1, BOB) };
    let late = Arrived { deliver_by: deadline, ..desk.mail(2, BOB) };
    record(&desk, vec![kept.clone()]).await;
    desk.advance(HOUR);
    let recorded = record(&desk, vec![kept, late.clone()]).await;
    assert_eq!(recorded[0].ack().map(|ack| ack.0), Some(DeliveryRung::Delivered));
    assert_eq!(recorded[1].arrival, Arrival::Late { at: desk.now });
    assert_eq!(recorded[1].ack(), Some((DeliveryRung::Expired, desk.now)));
    assert_eq!(desk.mailbox.inbox_by_id(late.id).await.unwrap(), []);
}

#[tokio::test]
async fn a_row_that_cannot_be_stored_is_refused_by_name_and_its_neighbours_are_stored() {
    let desk = Desk::open();
    let poison = Arrived { history_id: u64::MAX, ..desk.mail(2, BOB) };
    let recorded = record(&desk, vec![desk.mail(1, BOB), poison, desk.mail(3, BOB)]).await;
    assert!(matches!(recorded[0].arrival, Arrival::Fresh { .. }));
    assert!(matches!(recorded[1].arrival, Arrival::Poison { .. }), "{:?}", recorded[1]);
    assert_eq!((recorded[1].id, recorded[1].ack()), (message(2), None));
    assert!(matches!(recorded[2].arrival, Arrival::Fresh { .. }));
}

#[tokio::test]
async fn a_message_the_broker_lost_and_accepted_again_goes_by_its_new_name() {
    let desk = Desk::open();
    record(&desk, vec![desk.mail(1, BOB)]).await;
    let confirmed = Confirmed { id: message(1), recipient: BOB, rung: DeliveryRung::Delivered, read: false };
    desk.mailbox.confirm(vec![confirmed]).await.unwrap();
    let renamed = Arrived { id: message(9), history_id: 4, ..desk.mail(1, BOB) };
    let recorded = record(&desk, vec![renamed]).await;
    assert_eq!((recorded[0].id, recorded[0].ack().unwrap().0), (message(9), DeliveryRung::Delivered));
    assert!(desk.mailbox.inbox_by_id(message(1)).await.unwrap().is_empty());
    assert_eq!(desk.mailbox.inbox_by_id(message(9)).await.unwrap()[0].history_id, 4);
    let unconfirmed = desk.mailbox.unconfirmed(0, 10).await.unwrap();
    assert_eq!(
        unconfirmed.iter().map(|row| row.id).collect::<Vec<_>>(),
        [message(9)],
        "told under the new name"
    );
}

#[tokio::test]
async fn unconfirmed_rungs_are_told_again_until_the_broker_confirms_that_very_rung() {
    let mut desk = Desk::open();
    record(&desk, vec![desk.mail(1, BOB), desk.mail(2, BOB), desk.mail(3, ANN)]).await;
    let received_at = desk.now;
    desk.crash();
    let told = desk.mailbox.unconfirmed(0, 2).await.unwrap();
    let ack = |seq, recipient, rung, at| AckRow { seq, id: message(seq), recipient, rung, at, read_at: None };
    let delivered = DeliveryRung::Delivered;
    assert_eq!(told, [ack(1, BOB, delivered, received_at), ack(2, BOB, delivered, received_at)]);
    assert_eq!(desk.mailbox.unconfirmed(2, 10).await.unwrap(), [ack(3, ANN, delivered, received_at)]);
    desk.advance(HOUR);
    let notified = desk.mailbox.mark_notified(vec![1], desk.now).await.unwrap();
    assert_eq!(notified, [ack(1, BOB, DeliveryRung::Notified, desk.now)]);
    assert_eq!(desk.mailbox.mark_notified(vec![1, 77], desk.now).await.unwrap(), [], "a rung rises once");
    let confirmed = |seq, recipient, rung| Confirmed { id: message(seq), recipient, rung, read: false };
    let rows = vec![confirmed(1, BOB, delivered), confirmed(2, BOB, delivered), confirmed(3, BOB, delivered)];
    assert_eq!(desk.mailbox.confirm(rows).await.unwrap(), 2, "the third is another recipient's");
    let left: Vec<_> = desk.mailbox.unconfirmed(0, 10).await.unwrap().iter().map(|row| row.seq).collect();
    assert_eq!(left, [1, 3], "the broker knows row 1 as delivered, not as notified");
    desk.mailbox.confirm(vec![confirmed(1, BOB, DeliveryRung::Notified)]).await.unwrap();
    assert_eq!(
        desk.mailbox.confirm(vec![confirmed(1, BOB, delivered)]).await.unwrap(),
        0,
        "confirmations only rise"
    );
    assert_eq!(desk.mailbox.unconfirmed(0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_row_keeps_what_the_link_said_of_it() {
    let desk = Desk::open();
    let deliver_by = Some(desk.broker_now + HOUR);
    let arrived = Arrived { deliver_by, redelivered: true, ..desk.mail(5, BOB) };
    record(&desk, vec![arrived.clone()]).await;
    let row = desk.mailbox.inbox_by_id(message(5)).await.unwrap().remove(0);
    assert_eq!((row.client_message_id, row.sender), (client_id("m5"), ANN));
    assert_eq!((row.envelope, row.conversation), (Some(arrived.envelope), arrived.conversation));
    assert_eq!((row.history_id, row.redelivered, row.deliver_by), (5, true, deliver_by));
    assert_eq!((row.received_at, row.notified_at, row.read_at), (desk.now, None, None));
}

#[tokio::test]
async fn a_reading_is_told_with_the_rung_until_the_broker_confirms_that_it_heard_of_it() {
    let mut desk = Desk::open();
    record(&desk, vec![desk.mail(1, BOB)]).await;
    let confirmed = |read| Confirmed { id: message(1), recipient: BOB, rung: DeliveryRung::Delivered, read };
    assert_eq!(desk.mailbox.confirm(vec![confirmed(false)]).await.unwrap(), 1);
    desk.advance(HOUR);
    assert_eq!(desk.mailbox.mark_read(BOB, vec![message(1)], desk.now).await.unwrap(), 1);
    let read_at = desk.now;
    desk.crash();
    let told = desk.mailbox.unconfirmed(0, 10).await.unwrap();
    assert_eq!((told.len(), told[0].read_at), (1, Some(read_at)));
    assert_eq!(desk.mailbox.confirm(vec![confirmed(false)]).await.unwrap(), 0, "an answer from before it");
    assert_eq!(desk.mailbox.confirm(vec![confirmed(true)]).await.unwrap(), 1);
    assert!(desk.mailbox.unconfirmed(0, 10).await.unwrap().is_empty());
    assert_eq!(desk.mailbox.mark_read(BOB, vec![message(1)], desk.now).await.unwrap(), 0, "read once");
}

#[tokio::test]
async fn an_inbox_that_was_lost_learns_back_what_was_read() {
    let desk = Desk::open();
    let read_at = Some(desk.broker_now);
    let recorded = record(&desk, vec![Arrived { read_at, ..desk.mail(1, BOB) }]).await;
    assert_eq!(recorded[0].read_at(), read_at, "the ack says it too, or it would stay unconfirmed");
    let row = desk.mailbox.inbox_by_id(message(1)).await.unwrap().remove(0);
    assert_eq!(row.read_at, read_at);
}
