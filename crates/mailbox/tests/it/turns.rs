//! Turns: engaged once, rerun marked, ended with their reply in one transaction.

use std::time::Duration;

use mailbox::{
    Arrived, BeginTurn, BeginTurnError, Begun, EndTurn, EndTurnError, EndedTurn, InboxRestored, NewRow,
    RetryTurnError, Turn, TurnAsked, TurnLostError,
};
use model::turn::{TurnMark, TurnOutcome, TurnState};
use model::{ConversationId, DeliveryRung, MemberId, MessageId, Priority, Timestamp, TurnId};
use sqlite::{FileMark, MarkedBy};

use crate::desk::{ANN, BOB, Desk, HOUR, message};

const LEASE: Duration = Duration::from_secs(60);

impl Desk {
    fn turn_id(&self) -> TurnId {
        TurnId::from_bytes(self.row_id().to_bytes())
    }

    fn asking(&self, agent: MemberId) -> BeginTurn {
        BeginTurn {
            turn: self.turn_id(),
            agent,
            asked: TurnAsked::Next,
            holder: Some("a test".to_owned()),
            lease_until: self.now + LEASE,
            now: self.now,
            broker_now: self.broker_now,
        }
    }

    async fn begin(&self) -> Option<Turn> {
        match self.mailbox.begin_turn(self.asking(BOB)).await.unwrap() {
            Begun::Turn(turn) => Some(*turn),
            Begun::Nothing => None,
        }
    }

    async fn named(&self, message: MessageId) -> Result<Turn, BeginTurnError> {
        let asked = BeginTurn { asked: TurnAsked::Message(message), ..self.asking(BOB) };
        match self.mailbox.begin_turn(asked).await? {
            Begun::Turn(turn) => Ok(*turn),
            Begun::Nothing => panic!("a named message has a turn or a reason"),
        }
    }

    fn reply(&self, id: &str) -> NewRow {
        self.draft(BOB, id, "@ann", id)
    }

    async fn end(&self, turn: &Turn, reply: Option<NewRow>) -> Result<EndedTurn, EndTurnError> {
        let (turn, outcome, now) = (turn.id, TurnOutcome::Processed, self.now);
        self.mailbox.end_turn(EndTurn { turn, agent: BOB, outcome, error: None, reply, now }).await
    }

    async fn arrive(&self, mail: Vec<Arrived>) {
        self.mailbox.record(mail, self.now, self.broker_now).await.unwrap();
    }

    async fn rung(&self, n: u64) -> (DeliveryRung, TurnMark) {
        let rows = self.mailbox.inbox_by_id(message(n)).await.unwrap();
        (rows[0].rung, rows[0].turn)
    }

    async fn outbox_rows(&self) -> u64 {
        let counts = self.mailbox.outbox_counts().await.unwrap();
        counts.pending + counts.inflight + counts.done + counts.dead + counts.aborted
    }
}

fn in_conversation(n: u8, mail: Arrived) -> Arrived {
    Arrived { conversation: ConversationId::from_bytes([n; 16]), ..mail }
}

#[tokio::test]
async fn a_turn_engages_its_message_and_its_end_leaves_the_reply_in_the_outbox() {
    let desk = Desk::open();
    assert!(desk.begin().await.is_none());
    desk.arrive(vec![desk.mail(1, BOB)]).await;
    let turn = desk.begin().await.unwrap();
    assert_eq!((turn.attempt, turn.redelivered, turn.message.id), (1, false, message(1)));
    assert_eq!(turn.state, TurnState::Open { lease_until: desk.now + LEASE });
    assert_eq!(desk.rung(1).await, (DeliveryRung::Engaged, TurnMark::Open));
    let ended = desk.end(&turn, Some(desk.reply("r1"))).await.unwrap();
    assert!(!ended.replayed && ended.reply.is_some());
    assert_eq!(desk.rung(1).await, (DeliveryRung::Processed, TurnMark::Over));
    assert_eq!(desk.outbox_rows().await, 1);
    assert!(desk.begin().await.is_none());
    assert!(matches!(desk.named(message(1)).await, Err(BeginTurnError::Over)));
}

#[tokio::test]
async fn an_end_asked_again_is_answered_from_the_first_and_another_end_is_refused() {
    let desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB)]).await;
    let turn = desk.begin().await.unwrap();
    let first = desk.end(&turn, Some(desk.reply("r1"))).await.unwrap();
    let again = desk.end(&turn, Some(desk.reply("r1"))).await.unwrap();
    assert_eq!((again.reply, again.replayed), (first.reply, true));
    assert!(matches!(desk.end(&turn, Some(desk.reply("r2"))).await, Err(EndTurnError::Over)));
    assert!(matches!(desk.end(&turn, None).await, Err(EndTurnError::Over)));
    assert_eq!(desk.outbox_rows().await, 1);
}

#[tokio::test]
async fn a_reply_whose_id_is_taken_by_other_words_leaves_the_turn_open() {
    let desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB)]).await;
    desk.mailbox.accept(desk.draft(BOB, "r1", "@ann", "other words")).await.unwrap();
    let turn = desk.begin().await.unwrap();
    assert!(matches!(
        desk.end(&turn, Some(desk.reply("r1"))).await,
        Err(EndTurnError::ReplyRefused(accepted)) if accepted.verdict != model::outbox::Verdict::Insert
    ));
    assert_eq!(desk.rung(1).await, (DeliveryRung::Engaged, TurnMark::Open));
    desk.end(&turn, Some(desk.reply("r2"))).await.unwrap();
}

#[tokio::test]
async fn an_agent_has_one_open_turn_and_the_same_id_gives_it_again() {
    let desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB), desk.mail(2, BOB), desk.mail(3, ANN)]).await;
    let asked = desk.asking(BOB);
    let Begun::Turn(first) = desk.mailbox.begin_turn(asked.clone()).await.unwrap() else { panic!("a turn") };
    let Begun::Turn(again) = desk.mailbox.begin_turn(asked.clone()).await.unwrap() else { panic!("a turn") };
    assert_eq!(first, again);
    let refused = desk.mailbox.begin_turn(desk.asking(BOB)).await;
    assert!(matches!(refused, Err(BeginTurnError::Open(open)) if open.id == first.id));
    let other = desk.mailbox.begin_turn(desk.asking(ANN)).await.unwrap();
    assert!(matches!(other, Begun::Turn(turn) if turn.message.id == message(3)), "another agent has its own");
    desk.end(&first, None).await.unwrap();
    assert!(matches!(desk.mailbox.begin_turn(asked).await, Err(BeginTurnError::Over)));
}

#[tokio::test]
async fn a_lost_lease_is_an_interruption_one_rerun_is_marked_and_then_a_person_decides() {
    let mut desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB), desk.mail(2, BOB)]).await;
    let first = desk.begin().await.unwrap();
    desk.advance(LEASE);
    let second = desk.begin().await.unwrap();
    assert_eq!((second.message.id, second.attempt, second.redelivered), (message(1), 2, true));
    assert!(matches!(desk.end(&first, None).await, Err(EndTurnError::Lost)));
    let lost = desk.mailbox.extend_turn(first.id, BOB, desk.now + HOUR).await;
    assert!(matches!(lost, Err(TurnLostError::Lost)));
    desk.advance(LEASE);
    let next = desk.begin().await.unwrap();
    assert_eq!(
        (next.message.id, next.attempt),
        (message(2), 1),
        "the other message does not wait for a person"
    );
    assert_eq!(desk.rung(1).await, (DeliveryRung::Engaged, TurnMark::GivenUp));
    let given_up = desk.mailbox.given_up(BOB, 10).await.unwrap();
    assert_eq!(given_up.iter().map(|turn| turn.id).collect::<Vec<_>>(), [second.id]);
    desk.end(&next, None).await.unwrap();
    assert!(desk.begin().await.is_none());
    let third = desk.named(message(1)).await.unwrap();
    assert_eq!((third.attempt, third.redelivered), (3, true));
    let states: Vec<&str> = desk
        .mailbox
        .turns_of(third.message.seq)
        .await
        .unwrap()
        .iter()
        .map(|turn| turn.state.word())
        .collect();
    assert_eq!(states, ["interrupted", "interrupted", "open"]);
}

#[tokio::test]
async fn what_was_given_up_is_put_back_in_line_for_one_more_marked_attempt() {
    let desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB), desk.mail(2, BOB)]).await;
    let refused = async |expected: TurnMark| match desk.mailbox.retry_turn(BOB, message(1)).await {
        Err(RetryTurnError::NotGivenUp(mark)) => assert_eq!(mark, expected),
        other => panic!("{expected}: {other:?}"),
    };
    refused(TurnMark::Waiting).await;
    for attempt in 1..=4 {
        let turn = desk.begin().await.unwrap();
        assert_eq!((turn.message.id, turn.attempt, turn.redelivered), (message(1), attempt, attempt > 1));
        refused(TurnMark::Open).await;
        desk.mailbox.interrupt_turn(turn.id, BOB, desk.now).await.unwrap();
        if attempt == 1 {
            refused(TurnMark::Interrupted).await;
        } else {
            let last = desk.mailbox.retry_turn(BOB, message(1)).await.unwrap();
            assert_eq!((last.id, last.attempt), (turn.id, attempt));
        }
    }
    let turn = desk.begin().await.unwrap();
    desk.end(&turn, None).await.unwrap();
    refused(TurnMark::Over).await;
    assert!(matches!(desk.mailbox.retry_turn(BOB, message(9)).await, Err(RetryTurnError::Unknown)));
}

#[tokio::test]
async fn a_holder_that_is_late_still_ends_its_turn_while_nobody_took_the_message() {
    let mut desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB)]).await;
    let turn = desk.begin().await.unwrap();
    desk.advance(LEASE * 2);
    desk.mailbox.extend_turn(turn.id, BOB, desk.now + LEASE).await.unwrap();
    let mark = desk.mailbox.interrupt_turn(turn.id, BOB, desk.now).await.unwrap();
    assert_eq!(mark, TurnMark::Interrupted);
    assert_eq!(desk.mailbox.interrupt_turn(turn.id, BOB, desk.now).await.unwrap(), mark);
    desk.end(&turn, Some(desk.reply("late"))).await.unwrap();
    assert_eq!(desk.rung(1).await, (DeliveryRung::Processed, TurnMark::Over));
    assert!(desk.begin().await.is_none(), "it is not run again");
    let over = desk.mailbox.interrupt_turn(turn.id, BOB, desk.now).await;
    assert!(matches!(over, Err(TurnLostError::Over)));
}

#[tokio::test]
async fn priority_orders_between_conversations_and_never_inside_one() {
    let desk = Desk::open();
    let with = |n: u64, conversation: u8, priority| {
        in_conversation(conversation, Arrived { priority, ..desk.mail(n, BOB) })
    };
    desk.arrive(vec![
        with(1, 1, Priority::Low),
        with(2, 1, Priority::Now),
        with(3, 2, Priority::Next),
        with(4, 3, Priority::Now),
        with(5, 2, Priority::Now),
    ])
    .await;
    let mut order = Vec::new();
    while let Some(turn) = desk.begin().await {
        order.push(turn.message.history_id);
        desk.end(&turn, None).await.unwrap();
    }
    assert_eq!(order, [4, 3, 5, 1, 2]);
}

#[tokio::test]
async fn an_interrupted_message_goes_before_what_came_after_it_in_its_conversation() {
    let desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB), Arrived { priority: Priority::Now, ..desk.mail(2, BOB) }]).await;
    let turn = desk.begin().await.unwrap();
    desk.mailbox.interrupt_turn(turn.id, BOB, desk.now).await.unwrap();
    let again = desk.begin().await.unwrap();
    assert_eq!((again.message.id, again.redelivered), (message(1), true));
}

#[tokio::test]
async fn nobody_is_woken_for_a_message_past_its_deadline_and_it_holds_up_nobody() {
    let mut desk = Desk::open();
    let deadline = Some(desk.broker_now + HOUR);
    desk.arrive(vec![Arrived { deliver_by: deadline, ..desk.mail(1, BOB) }, desk.mail(2, BOB)]).await;
    assert!(desk.mailbox.has_turn(BOB, desk.now, desk.broker_now).await.unwrap());
    desk.advance(HOUR);
    let turn = desk.begin().await.unwrap();
    assert_eq!(turn.message.id, message(2));
    desk.end(&turn, None).await.unwrap();
    assert!(!desk.mailbox.has_turn(BOB, desk.now, desk.broker_now).await.unwrap());
}

#[tokio::test]
async fn what_an_earlier_life_of_the_inbox_may_have_had_is_marked_at_its_first_attempt() {
    let desk = Desk::open();
    desk.arrive(vec![Arrived { redelivered: true, ..desk.mail(1, BOB) }]).await;
    let turn = desk.begin().await.unwrap();
    assert_eq!((turn.attempt, turn.redelivered), (1, true));
}

#[tokio::test]
async fn a_crash_forgets_no_attempt() {
    let mut desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB)]).await;
    let turn = desk.begin().await.unwrap();
    desk.crash();
    assert_eq!(desk.mailbox.open_turn(BOB).await.unwrap().map(|open| open.id), Some(turn.id));
    desk.mailbox.interrupt_turn(turn.id, BOB, desk.now).await.unwrap();
    desk.crash();
    let again = desk.begin().await.unwrap();
    assert_eq!((again.attempt, again.redelivered), (2, true));
    desk.end(&again, Some(desk.reply("r"))).await.unwrap();
    desk.crash();
    assert_eq!(desk.rung(1).await, (DeliveryRung::Processed, TurnMark::Over));
    assert_eq!(desk.outbox_rows().await, 1);
}

/// What the broker sends again to an inbox that went back.
fn again(mail: Arrived, rung: DeliveryRung) -> Arrived {
    Arrived { again: Some(rung), redelivered: true, ..mail }
}

#[tokio::test]
async fn t10_a_message_that_comes_again_has_the_rung_it_had_and_its_work_is_not_begun_unmarked() {
    let desk = Desk::open();
    let rungs = [DeliveryRung::Processed, DeliveryRung::Engaged, DeliveryRung::Notified];
    let mail = rungs.iter().zip(1..).map(|(rung, n)| again(desk.mail(n, BOB), *rung)).collect();
    let recorded = desk.mailbox.record(mail, desk.now, desk.broker_now).await.unwrap();
    let acked: Vec<_> = recorded.iter().map(|row| (row.ack().unwrap().0, row.place())).collect();
    assert_eq!(acked, [(rungs[0], Some(1)), (rungs[1], Some(2)), (rungs[2], Some(3))]);
    for expected in [2, 3] {
        let turn = desk.begin().await.unwrap();
        assert_eq!((turn.message.id, turn.redelivered), (message(expected), true));
        desk.end(&turn, None).await.unwrap();
    }
    assert_eq!(desk.begin().await, None, "what is processed has no turn");
}

#[tokio::test]
async fn t10_a_message_of_the_copy_hears_how_far_it_had_come() {
    let desk = Desk::open();
    desk.arrive((1..=3).map(|n| desk.mail(n, BOB)).collect()).await;
    let open = desk.begin().await.unwrap();
    assert_eq!(open.message.id, message(1));
    let heard = vec![
        again(desk.mail(1, BOB), DeliveryRung::Processed),
        again(desk.mail(2, BOB), DeliveryRung::Engaged),
        again(desk.mail(3, BOB), DeliveryRung::Delivered),
    ];
    let recorded = desk.mailbox.record(heard, desk.now, desk.broker_now).await.unwrap();
    let acked: Vec<_> = recorded.iter().map(|row| row.ack().unwrap().0).collect();
    assert_eq!(acked, [DeliveryRung::Processed, DeliveryRung::Engaged, DeliveryRung::Delivered]);
    let turns: Vec<_> = [desk.begin().await.unwrap()].into();
    assert_eq!(turns[0].message.id, message(2), "the turn of the copy is over with its message");
    desk.end(&turns[0], None).await.unwrap();
    let last = desk.begin().await.unwrap();
    assert_eq!((last.message.id, last.redelivered), (message(3), false));
}

#[tokio::test]
async fn t10_what_came_again_is_counted_once_and_a_deadline_does_not_keep_it_away() {
    let mut desk = Desk::open();
    desk.arrive(vec![desk.mail(1, BOB)]).await;
    assert_eq!(desk.mailbox.received_upto().await.unwrap(), 1);
    let noticed_at = desk.broker_now;
    desk.mailbox.note_inbox_went_back(noticed_at, 3, 1, 3).await.unwrap();
    let deliver_by = Some(desk.broker_now);
    desk.advance(HOUR);
    let late = Arrived { deliver_by, ..again(desk.mail(2, BOB), DeliveryRung::Delivered) };
    let held = again(desk.mail(1, BOB), DeliveryRung::Delivered);
    for _ in 0..2 {
        desk.arrive(vec![held.clone(), late.clone()]).await;
        let inbox = desk.mailbox.went_back().await.unwrap().inbox.unwrap();
        assert_eq!((inbox.lacking(), inbox.back, inbox.is_complete), (2, 1, false));
    }
    desk.mailbox.note_inbox_went_back(noticed_at, 3, 1, 1).await.unwrap();
    assert!(!desk.mailbox.went_back().await.unwrap().inbox.unwrap().is_complete);
    desk.mailbox.inbox_is_complete().await.unwrap();
    desk.crash();
    let inbox = desk.mailbox.went_back().await.unwrap().inbox.unwrap();
    assert_eq!((inbox.back, inbox.is_complete, inbox.noticed_at), (1, true, noticed_at));
    desk.mailbox.note_inbox_went_back(desk.broker_now, 9, 2, 0).await.unwrap();
    let next = desk.mailbox.went_back().await.unwrap().inbox.unwrap();
    assert_eq!((next.from, next.back, next.is_complete), (9, 0, true), "another occurrence begins anew");
}

/// `postrider restore` leaves a mark beside the file. What waits may have been worked on since the backup.
#[tokio::test]
async fn a_restored_mailbox_marks_what_waits_and_begins_another_life_once() {
    let mut desk = Desk::open();
    desk.arrive((1..=4).map(|n| in_conversation(n as u8, desk.mail(n, BOB))).collect()).await;
    let over = desk.begin().await.unwrap();
    desk.end(&over, None).await.unwrap();
    let open = desk.begin().await.unwrap();
    let epoch = desk.mailbox.inbox_epoch();
    let (restored_at, backup_at) = (desk.now, Timestamp::from_micros(7));
    let mark = FileMark {
        place: 0,
        at_us: restored_at.as_micros(),
        by: MarkedBy::Restore { backup_at_us: backup_at.as_micros() },
    };
    mark.write(&desk.path()).unwrap();
    desk.crash();
    assert_eq!(FileMark::read(&desk.path()).unwrap(), None, "the mark is taken");
    let restored = desk.mailbox.inbox_epoch();
    assert!(restored != epoch && desk.mailbox.inbox_epoch_before() == Some(epoch));
    let known = InboxRestored { restored_at, backup_at, waiting: 3 };
    assert_eq!(desk.mailbox.went_back().await.unwrap().restored, Some(known));
    assert!(desk.mailbox.turn(open.id, BOB).await.unwrap().unwrap().redelivered, "its end may be lost");
    // Killed before the mark was removed: it is known, and what came since is new.
    desk.arrive(vec![in_conversation(5, desk.mail(5, BOB))]).await;
    mark.write(&desk.path()).unwrap();
    desk.crash();
    assert_eq!((desk.mailbox.inbox_epoch(), desk.mailbox.inbox_epoch_before()), (restored, Some(epoch)));
    let mut marks = Vec::new();
    for n in 1..=5 {
        marks.push(desk.mailbox.inbox_by_id(message(n)).await.unwrap()[0].redelivered);
    }
    assert_eq!(marks, [false, true, true, true, false]);
    desk.advance(LEASE);
    for redelivered in [true, true, true, false] {
        let turn = desk.begin().await.unwrap();
        assert_eq!(turn.redelivered, redelivered, "{turn:?}");
        desk.end(&turn, None).await.unwrap();
    }
}
