//! One life of a mailbox, with the process dying after each of its steps in turn: what was answered is
//! there, what was not comes again, and the end is the same.

use mailbox::{Arrival, Confirmed, LaneFrame, Receipt, Requeue, Requeued, RowStatus, Word};
use mailbox::{Doubt, OutboxFilter, OutboxRow};
use model::admission::StatusAnswer;
use model::outbox::{AbortedBy, Answer};
use model::receipt::Standing;
use model::{DeliveryRung, ErrorCode};

use crate::desk::{ANN, BOB, Desk, HOUR, client_id, message, refused};

/// In the order they happen; each is one door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    SendThree,
    ClaimFirst,
    SettleFirst,
    ClaimHead,
    SettleHead,
    ClaimRest,
    SettleRest,
    Receive,
    Notify,
    Confirm,
    ApplyReceipts,
    AbortFourth,
    LearnOfFourth,
    HoldFifth,
    RequeueFifth,
}

const LIFE: &[Step] = &[
    Step::SendThree,
    Step::ClaimFirst,
    Step::SettleFirst,
    Step::ClaimHead,
    Step::SettleHead,
    Step::ClaimRest,
    Step::SettleRest,
    Step::Receive,
    Step::Notify,
    Step::Confirm,
    Step::ApplyReceipts,
    Step::AbortFourth,
    Step::LearnOfFourth,
    Step::HoldFifth,
    Step::RequeueFifth,
];

struct Life {
    desk: Desk,
    /// On the wire; a crash forgets it.
    frame: Option<LaneFrame>,
}

impl Life {
    async fn claim(&mut self) {
        self.desk.advance(HOUR);
        self.frame = Some(self.desk.frame().await);
    }

    /// Settles the frame; after a crash the courier has to claim it again.
    async fn settle(&mut self, answers: impl Fn(&Desk, &LaneFrame) -> Vec<Answer>) {
        if self.frame.is_none() {
            self.claim().await;
        }
        let frame = self.frame.take().expect("claimed just now");
        let answers = answers(&self.desk, &frame);
        self.desk.settle(&frame, &answers).await;
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::SendThree => {
                for id in ["1", "2", "3"] {
                    self.desk.send(ANN, id, "@x").await;
                }
            }
            Step::ClaimFirst | Step::ClaimHead | Step::ClaimRest => self.claim().await,
            Step::SettleFirst => {
                self.settle(|_, _| vec![refused(ErrorCode::RateLimited), Answer::NotTried, Answer::NotTried])
                    .await;
            }
            Step::SettleHead | Step::SettleRest => {
                self.settle(|desk, frame| frame.rows.iter().map(|row| desk.accepted(row.seq)).collect())
                    .await;
            }
            Step::Receive | Step::Notify | Step::Confirm => self.take_inbox(step).await,
            Step::ApplyReceipts => {
                let (id, client_message_id) = (message(1), client_id("1"));
                let (rung, at) = (DeliveryRung::Delivered, self.desk.now);
                let receipt = Receipt { id, sender: ANN, client_message_id, rung, at, ended_code: None };
                self.desk.mailbox.apply_receipts(vec![receipt]).await.unwrap();
            }
            Step::AbortFourth | Step::LearnOfFourth | Step::HoldFifth | Step::RequeueFifth => {
                self.take_operator(step).await;
            }
        }
    }

    async fn take_inbox(&mut self, step: Step) {
        let (desk, mailbox) = (&self.desk, &self.desk.mailbox);
        match step {
            Step::Receive => {
                let recorded =
                    mailbox.record(vec![desk.mail(1, BOB)], desk.now, desk.broker_now).await.unwrap();
                assert!(matches!(recorded[0].arrival, Arrival::Fresh { .. }));
            }
            Step::Notify => {
                mailbox.mark_notified(vec![1], desk.now).await.unwrap();
            }
            _ => {
                let confirmed =
                    Confirmed { id: message(1), recipient: BOB, rung: DeliveryRung::Notified, read: false };
                assert_eq!(mailbox.confirm(vec![confirmed]).await.unwrap(), 1);
            }
        }
    }

    async fn take_operator(&mut self, step: Step) {
        match step {
            Step::AbortFourth => {
                self.desk.send(ANN, "4", "@y").await;
                let frame = self.desk.frame().await;
                self.desk.settle(&frame, &[Answer::Lost]).await;
                let row = self.desk.row(ANN, "4").await.row;
                self.desk.mailbox.abort(row, AbortedBy::Operator, self.desk.now).await.unwrap();
            }
            Step::LearnOfFourth => {
                let row = self.desk.mailbox.unsettled(0, 10).await.unwrap().remove(0);
                let answer = StatusAnswer::Absent;
                let word = RowStatus { seq: row.seq, fingerprint: row.fingerprint, answer };
                self.desk.mailbox.learn(vec![word], self.desk.now).await.unwrap();
            }
            Step::HoldFifth => {
                self.desk.send(ANN, "5", "@z").await;
                let row = self.desk.row(ANN, "5").await.row;
                self.desk.mailbox.hold(row, self.desk.now).await.unwrap();
                self.desk.advance(HOUR);
            }
            _ => {
                let row = self.desk.row(ANN, "5").await.row;
                let held = self.desk.mailbox.hold(row, self.desk.now).await.unwrap();
                let requeue = Requeue {
                    row,
                    lease: held.lease,
                    word: Word::Silence,
                    doubt: Doubt::Refuse,
                    successor: self.desk.row_id(),
                    client_message_id: client_id("5b"),
                    fingerprint: held.row.fingerprint,
                    payload: held.payload,
                    deliver_by: None,
                    now: self.desk.now,
                };
                let requeued = self.desk.mailbox.requeue(requeue).await.unwrap();
                assert!(matches!(requeued, Requeued::Replaced { .. }));
            }
        }
    }
}

/// What a life leaves behind, without the instants and tries a crash may add.
async fn end(desk: &Desk) -> Vec<(String, Standing, Option<&'static str>)> {
    let filter = OutboxFilter { limit: 100, ..OutboxFilter::default() };
    let rows = desk.mailbox.outbox_list(filter).await.unwrap();
    let outcome = |row: &OutboxRow| match &row.state {
        model::outbox::OutboxState::Aborted { outcome, .. } => Some(outcome.word()),
        _ => None,
    };
    let told = |row: &OutboxRow| (row.client_message_id.to_string(), row.standing(), outcome(row));
    rows.iter().map(told).collect()
}

async fn live(crash_after: Option<Step>) -> Desk {
    let mut life = Life { desk: Desk::open(), frame: None };
    for step in LIFE {
        life.take(*step).await;
        if crash_after == Some(*step) {
            life.desk.crash();
            life.desk.mailbox.recover().await.unwrap();
            life.frame = None;
        }
    }
    life.desk
}

#[tokio::test]
async fn a_crash_after_any_step_leads_to_the_same_end() {
    let whole = live(None).await;
    let expected = end(&whole).await;
    assert_eq!(expected.len(), 6, "{expected:?}");
    for step in LIFE {
        let crashed = live(Some(*step)).await;
        assert_eq!(end(&crashed).await, expected, "crashed after {step:?}");
        assert_eq!(crashed.mailbox.unconfirmed(0, 10).await.unwrap(), [], "crashed after {step:?}");
        let row = crashed.mailbox.inbox_by_id(message(1)).await.unwrap().remove(0);
        assert_eq!(row.rung, DeliveryRung::Notified, "crashed after {step:?}");
    }
}
