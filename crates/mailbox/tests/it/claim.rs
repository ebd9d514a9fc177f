//! What the courier gets, and in which order.

use std::time::Duration;

use mailbox::{ClaimRequest, NewRow};
use model::ErrorCode;
use model::limits;
use model::outbox::{Answer, DeadReason, OutboxState, Outcome, Status};

use crate::desk::{ANN, BOB, Desk, HOUR, MAX_AGE, ids, lane, refused};

#[tokio::test]
async fn each_lane_gives_one_frame_with_its_rows_in_the_order_they_were_accepted() {
    let desk = Desk::open();
    for (sender, id, to) in
        [(ANN, "1", "@x"), (BOB, "2", "@x"), (ANN, "3", "#y"), (ANN, "4", "@x"), (ANN, "5", "@x")]
    {
        desk.send(sender, id, to).await;
    }
    let frames = desk.claim().await.frames;
    let shown: Vec<_> = frames.iter().map(|frame| (frame.lane.clone(), ids(frame))).collect();
    assert_eq!(
        shown,
        [(lane(ANN, "#y"), vec!["3"]), (lane(ANN, "@x"), vec!["1", "4", "5"]), (lane(BOB, "@x"), vec!["2"])]
    );
    assert_eq!(desk.claim().await.frames, [], "a lane on the wire gives nothing");
    desk.deliver(&frames[1]).await;
    desk.send(ANN, "6", "@x").await;
    desk.send(ANN, "7", "#y").await;
    assert_eq!(ids(&desk.frame().await), ["6"], "only the lane that is free again goes on");
}

#[tokio::test]
async fn a_lane_behind_more_rows_than_one_claim_sorts_is_reached_by_the_next() {
    let mut desk = Desk::open();
    desk.send(ANN, "first", "@blocked").await;
    let frame = desk.frame().await;
    for n in 0..2 * limits::SORT_ROWS_MAX {
        desk.send(ANN, &format!("n{n}"), "@blocked").await;
    }
    desk.send(ANN, "free", "@free").await;
    for round in 0..2 {
        let claimed = desk.claim().await;
        assert_eq!((claimed.frames, claimed.next_due), (Vec::new(), Some(desk.now)), "round {round}");
        desk.crash();
    }
    let claimed = desk.claim().await;
    assert_eq!(claimed.frames.iter().map(ids).collect::<Vec<_>>(), [["free"]]);
    assert_eq!(claimed.next_due, None, "all are sorted");
    desk.deliver(&frame).await;
    let next: Vec<_> = (0..limits::FRAME_MESSAGES_MAX).map(|n| format!("n{n}")).collect();
    assert_eq!(ids(&desk.frame().await), next, "a lane keeps its order");
}

#[tokio::test]
async fn a_claim_counts_the_try_and_fixes_the_first_attempt_before_anything_leaves() {
    let mut desk = Desk::open();
    let sent = desk.send(ANN, "a", "@x").await;
    let frame = desk.frame().await;
    let row = &frame.rows[0];
    assert_eq!((row.row, row.attempts, row.payload.as_slice()), (sent.row, 1, &b"a"[..]));
    assert_eq!((row.first_attempt_at, row.send_deadline), (desk.broker_now, desk.broker_now + MAX_AGE));
    let first = desk.broker_now;
    desk.crash();
    let stored = desk.row(ANN, "a").await;
    assert_eq!((stored.attempts, stored.first_attempt_at), (1, Some(first)));
    assert_eq!(stored.state, OutboxState::Inflight { lease: frame.lease });
    assert_eq!(desk.mailbox.recover().await.unwrap(), 1);
    desk.advance(HOUR);
    let row = &desk.frame().await.rows[0];
    assert_eq!((row.attempts, row.first_attempt_at, row.send_deadline), (2, first, first + MAX_AGE));
}

#[tokio::test]
async fn a_frame_holds_at_most_64_rows_and_one_mebibyte() {
    let desk = Desk::open();
    for n in 0..70 {
        desk.send(ANN, &format!("n{n:02}"), "@many").await;
    }
    for n in 0..20 {
        let draft = desk.draft(ANN, &format!("l{n:02}"), "@large", &format!("{n:02}"));
        let payload = vec![b'x'; limits::BODY_BYTES_MAX];
        desk.mailbox.accept(NewRow { payload, ..draft }).await.unwrap();
    }
    let frames = desk.claim().await.frames;
    let [large, many] = &frames[..] else { panic!("two lanes") };
    assert_eq!(many.rows.len(), limits::FRAME_MESSAGES_MAX);
    assert_eq!((ids(many)[0], ids(many)[63]), ("n00", "n63"));
    let bytes: usize = large.rows.iter().map(|row| row.payload.len()).sum();
    assert!(bytes <= limits::FRAME_BYTES_MAX && large.rows.len() > 10, "{} rows", large.rows.len());
    desk.deliver(large).await;
    desk.deliver(many).await;
    let rest: Vec<_> = desk.claim().await.frames.iter().map(|frame| frame.rows.len()).collect();
    assert_eq!(rest, [20 - large.rows.len(), 6]);
}

#[tokio::test]
async fn a_row_too_large_for_any_frame_goes_alone() {
    let desk = Desk::open();
    let draft = desk.draft(ANN, "huge", "@x", "huge");
    let payload = vec![b'x'; limits::FRAME_BYTES_MAX + 1];
    desk.mailbox.accept(NewRow { payload, ..draft }).await.unwrap();
    desk.send(ANN, "small", "@x").await;
    assert_eq!(ids(&desk.frame().await), ["huge"]);
}

#[tokio::test]
async fn lanes_take_turns_so_that_busy_ones_starve_nobody() {
    let desk = Desk::open();
    let mut served = Vec::new();
    let mut after = None;
    for turn in 0..6 {
        for to in ["@a", "@b", "@c"] {
            desk.send(ANN, &format!("{}{turn}", &to[1..]), to).await;
        }
        let request = ClaimRequest { lanes_max: 1, after: after.clone(), ..desk.request() };
        let claimed = desk.mailbox.claim(request).await.unwrap();
        served.push(claimed.frames[0].lane.lane.clone());
        desk.deliver(&claimed.frames[0]).await;
        after = claimed.after;
    }
    assert_eq!(served, ["@a", "@b", "@c", "@a", "@b", "@c"]);
}

#[tokio::test]
async fn a_lane_the_courier_still_awaits_is_left_alone() {
    let desk = Desk::open();
    desk.send(ANN, "a", "@a").await;
    desk.send(ANN, "b", "@b").await;
    let request = ClaimRequest { busy: vec![lane(ANN, "@a")], ..desk.request() };
    let claimed = desk.mailbox.claim(request).await.unwrap();
    assert_eq!(claimed.frames.iter().map(ids).collect::<Vec<_>>(), [["b"]]);
}

#[tokio::test]
async fn a_row_past_its_deadline_is_buried_and_its_lane_goes_on() {
    let mut desk = Desk::open();
    let late = NewRow { deliver_by: Some(desk.broker_now + HOUR), ..desk.draft(ANN, "late", "@x", "late") };
    desk.mailbox.accept(late).await.unwrap();
    desk.send(ANN, "next", "@x").await;
    desk.advance(HOUR);
    let claimed = desk.claim().await;
    assert_eq!((claimed.buried, ids(&claimed.frames[0])), (1, vec!["next"]));
    let state = desk.row(ANN, "late").await.state;
    let last_error = Some("deliver_by".to_owned());
    assert_eq!(
        state,
        OutboxState::Dead { reason: DeadReason::DeliverBy, outcome: Outcome::NotSent, last_error }
    );
}

#[tokio::test]
async fn a_row_tried_for_too_long_is_buried_unknown_and_one_never_tried_has_no_age() {
    let mut desk = Desk::open();
    desk.send(ANN, "tried", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::Internal)]).await;
    desk.send(ANN, "shut", "@y").await;
    desk.advance(400 * 24 * HOUR);
    let claimed = desk.claim().await;
    assert_eq!((claimed.buried, claimed.frames.iter().map(ids).collect::<Vec<_>>()), (1, vec![vec!["shut"]]));
    let state = desk.row(ANN, "tried").await.state;
    let last_error = Some("max_age: internal".to_owned());
    assert_eq!(
        state,
        OutboxState::Dead { reason: DeadReason::MaxAge, outcome: Outcome::Unknown, last_error }
    );
}

#[tokio::test]
async fn burying_a_long_backlog_takes_several_claims_of_bounded_length() {
    let mut desk = Desk::open();
    let rows = limits::SWEEP_ROWS_MAX + 10;
    for n in 0..rows {
        let deliver_by = Some(desk.broker_now + HOUR);
        desk.mailbox
            .accept(NewRow { deliver_by, ..desk.draft(ANN, &format!("{n}"), "@x", "x") })
            .await
            .unwrap();
    }
    desk.send(ANN, "live", "@x").await;
    desk.advance(HOUR);
    let first = desk.claim().await;
    assert_eq!(
        (first.buried, first.frames.len(), first.next_due),
        (limits::SWEEP_ROWS_MAX, 0, Some(desk.now))
    );
    let second = desk.claim().await;
    assert_eq!((second.buried, ids(&second.frames[0])), (10, vec!["live"]));
}

#[tokio::test]
async fn a_refused_lane_waits_alone_then_tries_its_head_only_and_rows_behind_are_not_stamped() {
    let mut desk = Desk::open();
    for id in ["1", "2", "3"] {
        desk.send(ANN, id, "@x").await;
    }
    let request = ClaimRequest { lanes_max: 1, ..desk.request() };
    let frame = desk.mailbox.claim(request).await.unwrap().frames.remove(0);
    for id in ["4", "5"] {
        desk.send(ANN, id, "@x").await;
    }
    let answers = [refused(ErrorCode::RateLimited), Answer::NotTried, Answer::NotTried];
    let settled = desk.settle(&frame, &answers).await;
    desk.send(BOB, "other", "@x").await;
    let claimed = desk.claim().await;
    assert_eq!(claimed.frames.iter().map(ids).collect::<Vec<_>>(), [["other"]], "another lane never waits");
    assert_eq!(claimed.next_due, settled.next_attempt_at);
    desk.advance(Duration::from_secs(1));
    let head = desk.frame().await;
    assert_eq!(ids(&head), ["1"]);
    let rows = [desk.row(ANN, "2").await, desk.row(ANN, "4").await];
    assert_eq!((rows[0].attempts, rows[0].first_attempt_at), (0, Some(frame.rows[0].first_attempt_at)));
    assert_eq!((rows[1].attempts, rows[1].first_attempt_at), (0, None));
    desk.deliver(&head).await;
    assert_eq!(ids(&desk.frame().await), ["2", "3", "4", "5"], "after a success the frame is full again");
}

#[tokio::test]
async fn a_clock_set_back_keeps_no_lane_waiting_longer_than_the_longest_wait() {
    let mut desk = Desk::open();
    desk.send(ANN, "a", "@x").await;
    let frame = desk.frame().await;
    desk.settle(&frame, &[refused(ErrorCode::Internal)]).await;
    desk.now = model::Timestamp::from_micros(desk.now.as_micros() - 40 * 24 * 3_600_000_000);
    let claimed = desk.claim().await;
    assert_eq!(claimed.next_due, Some(desk.now + limits::RETRY_AFTER_MAX));
    desk.advance(limits::RETRY_AFTER_MAX);
    assert_eq!(ids(&desk.frame().await), ["a"]);
}

#[tokio::test]
async fn recovery_returns_what_was_on_the_wire_and_nothing_else() {
    let mut desk = Desk::open();
    crate::accept::one_row_in_each_state(&desk).await;
    desk.crash();
    assert_eq!(desk.mailbox.recover().await.unwrap(), 1);
    assert_eq!(desk.mailbox.recover().await.unwrap(), 0);
    for status in Status::ALL {
        let expected = if *status == Status::Inflight { Status::Pending } else { *status };
        assert_eq!(desk.status(ANN, status.word()).await, expected);
    }
}

/// Takes a row's payload out of the file behind the mailbox's back.
fn lose_payload(desk: &Desk, id: &str) {
    let file = sqlite::rusqlite::Connection::open(desk.path()).unwrap();
    let taken = file.execute("UPDATE outbox SET payload = NULL WHERE client_message_id = ?1", [id]).unwrap();
    assert_eq!(taken, 1, "{id} had its payload in its row");
}

#[tokio::test]
async fn a_row_without_its_payload_dies_by_name_and_its_lane_and_all_others_go_on() {
    let mut desk = Desk::open();
    for (id, to) in [("lost", "@a"), ("behind", "@a"), ("tried", "@b"), ("after", "@b"), ("free", "@c")] {
        desk.send(ANN, id, to).await;
    }
    let request = ClaimRequest { lanes_max: 3, ..desk.request() };
    assert_eq!(desk.mailbox.claim(request).await.unwrap().frames.len(), 3);
    desk.crash();
    desk.mailbox.recover().await.unwrap();
    desk.send(ANN, "fresh", "@d").await;
    desk.send(ANN, "next", "@d").await;
    for id in ["lost", "tried", "fresh"] {
        lose_payload(&desk, id);
    }
    let claimed = desk.claim().await;
    let left: Vec<_> = claimed.frames.iter().map(ids).collect();
    assert_eq!(left, [["behind"], ["after"], ["free"], ["next"]]);
    assert_eq!(claimed.buried, 3);
    for (id, outcome) in
        [("lost", Outcome::Unknown), ("tried", Outcome::Unknown), ("fresh", Outcome::NotSent)]
    {
        let row = desk.row(ANN, id).await;
        let OutboxState::Dead { reason, outcome: found, last_error, .. } = row.state else {
            panic!("{id} is {:?}", row.state)
        };
        assert_eq!((reason, found), (DeadReason::Poison, outcome), "{id}");
        assert_eq!(
            last_error.as_deref(),
            Some("payload_missing: the file holds the row without its payload")
        );
    }
}
