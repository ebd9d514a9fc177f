//! Random lives against a tiny reference: a caller, a courier that may die, and a broker that dedupes.
//! Nothing accepted is lost, nothing reaches the broker out of its lane's order, no id means two things.

use std::collections::BTreeMap;
use std::time::Duration;

use mailbox::{ClaimRequest, LaneFrame, LaneKey, RowAnswer};
use model::outbox::{Answer, Status, Verdict};
use model::{ErrorCode, MemberId, RowId};
use proptest::prelude::*;

use crate::desk::{ANN, BOB, Desk, fingerprint};

#[derive(Clone, Debug)]
enum Op {
    /// Sender, id, lane and text are drawn from few, so that ids and lanes meet.
    Accept {
        sender: usize,
        id: u8,
        lane: u8,
        text: u8,
    },
    Claim {
        lanes_max: usize,
    },
    /// The broker looks at a frame: so many rows pass, then this happens to the next.
    Answer {
        frame: usize,
        pass: usize,
        then: Then,
        heard: bool,
    },
    Crash,
    Advance {
        seconds: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Pass,
    Refuse,
    Wait,
    Gone,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0..2_usize, 0..12_u8, 0..3_u8, 0..2_u8)
            .prop_map(|(sender, id, lane, text)| Op::Accept { sender, id, lane, text }),
        3 => (1..4_usize).prop_map(|lanes_max| Op::Claim { lanes_max }),
        4 => (0..4_usize, 0..4_usize, then(), prop::bool::weighted(0.8))
            .prop_map(|(frame, pass, then, heard)| Op::Answer { frame, pass, then, heard }),
        1 => Just(Op::Crash),
        2 => (0..120_u64).prop_map(|seconds| Op::Advance { seconds }),
    ]
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![4 => Just(Then::Pass), 1 => Just(Then::Refuse), 2 => Just(Then::Wait), 1 => Just(Then::Gone)]
}

/// What the caller and the broker know; the mailbox must agree.
#[derive(Default)]
struct Reference {
    /// By (sender, id): the row, its lane, and the text frozen under the id, in order of acceptance.
    rows: BTreeMap<(MemberId, String), (RowId, LaneKey, String)>,
    /// What the broker committed, per lane, in order.
    log: BTreeMap<LaneKey, Vec<u64>>,
    refused: Vec<u64>,
}

struct Run {
    desk: Desk,
    reference: Reference,
    on_the_wire: Vec<LaneFrame>,
    after: Option<LaneKey>,
}

impl Run {
    async fn step(&mut self, op: &Op) {
        match op {
            Op::Accept { sender, id, lane, text } => {
                let sender = [ANN, BOB][*sender];
                self.accept(sender, &format!("i{id}"), &format!("@l{lane}"), &format!("t{text}")).await;
            }
            Op::Claim { lanes_max } => self.claim(*lanes_max).await,
            Op::Answer { frame, pass, then, heard } => {
                if !self.on_the_wire.is_empty() {
                    let place = frame % self.on_the_wire.len();
                    self.answer(place, *pass, *then, *heard).await;
                }
            }
            Op::Crash => {
                self.desk.crash();
                let held: usize = self.on_the_wire.drain(..).map(|frame| frame.rows.len()).sum();
                assert_eq!(self.desk.mailbox.recover().await.unwrap(), held);
            }
            Op::Advance { seconds } => self.desk.advance(Duration::from_secs(*seconds)),
        }
    }

    async fn accept(&mut self, sender: MemberId, id: &str, lane: &str, text: &str) {
        let draft = self.desk.draft(sender, id, lane, text);
        let (row, asked) = (draft.row, draft.fingerprint);
        let accepted = self.desk.mailbox.accept(draft).await.unwrap();
        let key = (sender, id.to_owned());
        match self.reference.rows.get(&key) {
            None => {
                assert_eq!((accepted.verdict, accepted.row), (Verdict::Insert, row));
                let lane = LaneKey { sender, lane: lane.to_owned() };
                self.reference.rows.insert(key, (row, lane, text.to_owned()));
            }
            Some((held, held_lane, held_text)) => {
                assert_eq!(accepted.row, *held, "the id names its first row for ever");
                let same = fingerprint(&held_lane.lane, held_text) == asked;
                let told =
                    matches!(accepted.verdict, Verdict::Queued | Verdict::Inflight | Verdict::Duplicate(_))
                        || matches!(&accepted.verdict, Verdict::Conflict(conflict) if conflict.matched);
                assert_eq!(told, same, "{:?}", accepted.verdict);
            }
        }
    }

    async fn claim(&mut self, lanes_max: usize) {
        let request = ClaimRequest { lanes_max, after: self.after.clone(), ..self.desk.request() };
        let claimed = self.desk.mailbox.claim(request).await.unwrap();
        for frame in &claimed.frames {
            let busy = self.on_the_wire.iter().any(|other| other.lane == frame.lane);
            assert!(!busy, "two frames of one lane on the wire");
            assert!(frame.rows.windows(2).all(|pair| pair[0].seq < pair[1].seq));
        }
        self.on_the_wire.extend(claimed.frames);
        self.after = claimed.after;
    }

    /// The broker commits a prefix, then refuses or waits; its answer may be lost on the way back.
    async fn answer(&mut self, place: usize, pass: usize, then: Then, heard: bool) {
        let frame = self.on_the_wire.remove(place);
        let mut answers = Vec::new();
        let mut stopped = false;
        for (n, row) in frame.rows.iter().enumerate() {
            let known = self.reference.log.get(&frame.lane).is_some_and(|log| log.contains(&row.seq));
            let refused = self.reference.refused.contains(&row.seq);
            let answer = match then {
                _ if stopped => Answer::NotTried,
                // What is refused for good is refused again, also when the first refusal got lost.
                _ if refused => Answer::Refused(ErrorCode::TooLarge),
                _ if known || n != pass => self.commit(&frame.lane, row.seq),
                Then::Pass => self.commit(&frame.lane, row.seq),
                Then::Refuse => {
                    self.reference.refused.push(row.seq);
                    Answer::Refused(ErrorCode::TooLarge)
                }
                Then::Wait => Answer::Refused(ErrorCode::RateLimited),
                Then::Gone => Answer::Refused(ErrorCode::TopicNotFound),
            };
            stopped = stopped
                || matches!(answer, Answer::Refused(ErrorCode::RateLimited | ErrorCode::TopicNotFound));
            let answer = if heard { answer } else { Answer::Lost };
            let fingerprint = row.fingerprint;
            answers.push(RowAnswer {
                seq: row.seq,
                fingerprint,
                answer,
                error_text: None,
                retry_after: None,
            });
        }
        self.desk.settle_rows(&frame, answers).await;
    }

    fn commit(&mut self, lane: &LaneKey, seq: u64) -> Answer {
        let log = self.reference.log.entry(lane.clone()).or_default();
        if !log.contains(&seq) {
            log.push(seq);
        }
        self.desk.accepted(seq)
    }

    /// Faults stop: everything drains, and both sides agree on every row.
    async fn drain_and_compare(mut self) {
        while !self.on_the_wire.is_empty() {
            self.answer(0, usize::MAX, Then::Pass, true).await;
        }
        loop {
            self.desk.advance(Duration::from_secs(60));
            self.claim(32).await;
            if self.on_the_wire.is_empty() {
                break;
            }
            while !self.on_the_wire.is_empty() {
                self.answer(0, usize::MAX, Then::Pass, true).await;
            }
        }
        let counts = self.desk.mailbox.outbox_counts().await.unwrap();
        assert_eq!((counts.pending, counts.inflight, counts.aborted), (0, 0, 0), "{counts:?}");
        assert_eq!(counts.done + counts.dead, self.reference.rows.len() as u64, "no row is lost");
        for log in self.reference.log.values() {
            assert!(log.windows(2).all(|pair| pair[0] < pair[1]), "out of order: {log:?}");
        }
        for (sender, id) in self.reference.rows.keys() {
            let row = self.desk.row(*sender, id).await;
            let lane = LaneKey { sender: *sender, lane: row.lane.clone() };
            let committed = self.reference.log.get(&lane).is_some_and(|log| log.contains(&row.seq));
            match row.state.status() {
                Status::Done => assert!(committed, "{id} is done and the broker does not have it"),
                Status::Dead => {
                    assert!(
                        !committed && self.reference.refused.contains(&row.seq),
                        "{id} was given up wrongly"
                    )
                }
                other => panic!("{id} ended {other}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_accepted_is_lost_doubled_or_out_of_order(ops in prop::collection::vec(op(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut run =
                Run { desk: Desk::open(), reference: Reference::default(), on_the_wire: Vec::new(), after: None };
            for op in &ops {
                run.step(op).await;
            }
            run.drain_and_compare().await;
        });
    }
}
