//! The relay's file: order, leases, conditions, ends.

mod ages;
mod files;

use std::sync::Arc;
use std::time::Duration;

use mailbox::relay::{
    Ahead, Bodies, Claims, Envelope, Envelopes, Forgetting, Heard, LeftVersion, NewEnvelope, OperateError,
    RELAY_SCHEMA, Response, Source, Start, Stored, Successor, Taken, Task, Withdrawn,
};
use model::relay::{Answer, Ending, Fenced, Moment, Outcome, Precondition, Status};
use model::route_class::{OrderKey, RouteClass};
use model::{Fingerprint, LeaseToken, OsEntropy, Timestamp, limits};

struct Stage {
    envelopes: Envelopes,
    folder: tempfile::TempDir,
}

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn days(days: u64) -> Timestamp {
    NOW + Duration::from_secs(days * 86_400)
}

/// Both clocks say so.
fn by_both(now: Timestamp) -> Moment {
    Moment { here: now, upstream: now }
}

impl Stage {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let envelopes = Envelopes::open(folder.path().join("outbox.db"), Arc::new(OsEntropy), NOW).unwrap();
        Self { envelopes, folder }
    }

    async fn store(&self, key: &str, order: &str, class: RouteClass, start: Start) -> Envelope {
        match self.envelopes.store(new(key, order, class), start, NOW).await.unwrap() {
            Stored::New(envelope) => *envelope,
            Stored::Known { .. } => panic!("{key} is new"),
        }
    }

    async fn claim(&self, now: Timestamp) -> Vec<Taken> {
        let Claims { taken, .. } = self.envelopes.claim(by_both(now), 8).await.unwrap();
        taken
    }

    async fn answer(&self, taken: &Taken, answer: Answer, etag: Option<&str>) -> Envelope {
        let response = Response { etag: etag.map(str::to_owned), ..Response::default() };
        let heard = Heard { response, ..heard(&taken.envelope, taken.lease, answer) };
        self.envelopes.settle(heard).await.unwrap().unwrap().envelope
    }

    async fn conclude(&self, taken: &Taken, fenced: Fenced) -> Envelope {
        let (seq, lease) = (taken.envelope.local_seq, taken.lease);
        self.envelopes.conclude(seq, lease, fenced, Response::default(), NOW).await.unwrap().unwrap()
    }

    async fn now(&self, envelope: &Envelope) -> Envelope {
        self.envelopes.find(envelope.envelope_id).await.unwrap().unwrap()
    }
}

fn heard(envelope: &Envelope, lease: LeaseToken, answer: Answer) -> Heard {
    Heard {
        local_seq: envelope.local_seq,
        lease,
        outcome_before: envelope.outcome,
        answer,
        response: Response::default(),
        left: Vec::new(),
        error: None,
        retry_after: None,
        random: 0,
        now: NOW,
    }
}

fn new(key: &str, order: &str, class: RouteClass) -> NewEnvelope {
    NewEnvelope {
        idempotency_key: Some(key.to_owned()),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        method: "PATCH".to_owned(),
        path: "/tasks/1".to_owned(),
        query: None,
        route_class: class,
        order_key: OrderKey::parse(order).unwrap(),
        precondition: (class == RouteClass::Replace).then_some(Precondition::UnmodifiedSince(NOW)),
        chains: class == RouteClass::Replace,
        source: Source::default(),
        upstream_id: None,
        created_at: NOW,
        possible_duplicate_of: None,
        body: b"{}".to_vec(),
        base: None,
    }
}

fn keys_of(rows: &[Envelope]) -> Vec<&str> {
    rows.iter().map(|row| row.idempotency_key.as_str()).collect()
}

fn keys(taken: &[Taken]) -> Vec<&str> {
    taken.iter().map(|taken| taken.envelope.idempotency_key.as_str()).collect()
}

fn successor(key: &str, forced: bool) -> Successor {
    Successor {
        idempotency_key: key.to_owned(),
        precondition: Some(Precondition::Match("\"43\"".into())),
        body: None,
        created_at: NOW,
        resolution: "kept mine".into(),
        forced,
    }
}

#[test]
fn the_sum_of_the_relays_migrations_is_the_checked_in_schema() {
    sqlite::assert_schema_sum(&mailbox::relay::RELAY_SCHEMA);
}

#[tokio::test]
async fn what_is_told_of_a_stored_write_is_what_stands_in_the_file() {
    let relay = Stage::open();
    let first = relay.store("first", "task:1", RouteClass::Replace, Start::Waiting).await;
    let mut full = new("full", "task:1", RouteClass::Replace);
    full.query = Some("a=1".into());
    full.precondition = Some(Precondition::Match("\"7\"".into()));
    full.source = Source { agent: Some("a".into()), session: Some("s".into()), principal: Some("p".into()) };
    full.upstream_id = Some("hub-1".into());
    full.possible_duplicate_of = Some(first.envelope_id);
    let mut told = vec![first];
    for (key, start) in [("waiting", Start::Waiting), ("live", Start::Live)] {
        let new = NewEnvelope { idempotency_key: Some(key.into()), ..full.clone() };
        let Stored::New(envelope) = relay.envelopes.store(new, start, NOW).await.unwrap() else { panic!() };
        told.push(*envelope);
    }
    told.push(relay.store("added", "append:s /progress", RouteClass::Append, Start::Live).await);
    for envelope in &told {
        assert_eq!(*envelope, relay.now(envelope).await);
    }
    let again = NewEnvelope {
        fingerprint: Fingerprint::from_bytes([8; 32]),
        ..new("live", "task:1", RouteClass::Replace)
    };
    let known = relay.envelopes.store(again, Start::Waiting, NOW).await.unwrap();
    let Stored::Known { envelope, matches } = known else { panic!("its key is taken: {known:?}") };
    assert_eq!((*envelope, matches), (told[2].clone(), false));
}

#[tokio::test]
async fn of_each_order_key_only_the_oldest_leaves() {
    let relay = Stage::open();
    for (key, order) in [("a1", "task:1"), ("a2", "task:1"), ("b1", "task:2")] {
        relay.store(key, order, RouteClass::Replace, Start::Waiting).await;
    }
    let first = relay.claim(NOW).await;
    assert_eq!(keys(&first), ["a1", "b1"]);
    assert!(relay.claim(NOW).await.is_empty(), "two replayers never take one row");
    relay.answer(&first[0], Answer::Busy, None).await;
    assert!(relay.claim(NOW).await.is_empty(), "a2 waits for a1, which waits for its delay");
    let again = relay.claim(NOW + Duration::from_secs(2)).await;
    assert_eq!(keys(&again), ["a1"]);
    relay.answer(&again[0], Answer::Committed, None).await;
    assert_eq!(keys(&relay.claim(NOW).await), ["a2"]);
}

#[tokio::test]
async fn an_envelope_is_found_by_its_key_with_what_stands_before_it() {
    let relay = Stage::open();
    for (key, order, class) in [
        ("a1", "task:1", RouteClass::Replace),
        ("a2", "task:1", RouteClass::Replace),
        ("b1", "task:2", RouteClass::Replace),
        ("note", "task:1", RouteClass::Append),
        ("all", "task:*", RouteClass::Replace),
    ] {
        relay.store(key, order, class, Start::Waiting).await;
    }
    let ahead = async |key: &str| {
        let row = relay.envelopes.find_key(key.to_owned()).await.unwrap().unwrap();
        relay.envelopes.ahead(row.local_seq).await.unwrap()
    };
    let before = |older, conflicts| Ahead { older, conflicts };
    assert_eq!((ahead("a1").await, ahead("b1").await), (before(0, 0), before(0, 0)));
    assert_eq!(
        (ahead("a2").await, ahead("note").await, ahead("all").await),
        (before(1, 0), before(2, 0), before(4, 0))
    );
    let taken = relay.claim(NOW).await;
    relay.answer(&taken[0], Answer::Conflict, None).await;
    let asking = relay.claim(NOW).await;
    relay.conclude(&asking[0], Fenced::Retired).await;
    assert_eq!(
        (ahead("a2").await, ahead("note").await),
        (before(0, 1), before(1, 0)),
        "an append waits for no person"
    );
    assert_eq!(relay.envelopes.find_key("never".to_owned()).await.unwrap(), None);
}

#[tokio::test]
async fn a_barrier_waits_for_all_of_its_kind_and_all_of_its_kind_wait_for_it() {
    let relay = Stage::open();
    for (key, order) in [("a", "task:1"), ("all", "task:*"), ("b", "task:2"), ("w", "workplan:1")] {
        relay.store(key, order, RouteClass::Replace, Start::Waiting).await;
    }
    let first = relay.claim(NOW).await;
    assert_eq!(keys(&first), ["a", "w"]);
    relay.answer(&first[0], Answer::Committed, None).await;
    let second = relay.claim(NOW).await;
    assert_eq!(keys(&second), ["all"]);
    relay.answer(&second[0], Answer::Committed, None).await;
    assert_eq!(keys(&relay.claim(NOW).await), ["b"]);
}

#[tokio::test]
async fn a_conflict_holds_back_later_replaces_of_its_key_until_a_person_decides_and_nothing_else() {
    let relay = Stage::open();
    let mine = relay.store("a1", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("a2", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("note", "append:s /progress", RouteClass::Append, Start::Waiting).await;
    relay.store("b1", "task:2", RouteClass::Replace, Start::Waiting).await;
    let sent = relay.claim(NOW).await;
    assert_eq!(keys(&sent), ["a1", "note", "b1"], "appends and other keys go on");
    let asked = relay.answer(&sent[0], Answer::Conflict, None).await;
    assert_eq!(
        (asked.status, asked.outcome),
        (Status::Queued, Outcome::Unknown),
        "unfinished until it was asked about"
    );
    let asking = relay.claim(NOW).await;
    assert!(matches!(asking[0].task, Task::Ask(_)));
    assert_eq!(keys(&asking), ["a1"]);
    assert_eq!(relay.conclude(&asking[0], Fenced::Retired).await.status, Status::Conflict);
    assert!(relay.claim(NOW).await.is_empty(), "a2 is blocked");
    assert_eq!(relay.envelopes.blocked().await.unwrap(), 1);
    let (_, next) =
        relay.envelopes.succeed(mine.envelope_id, successor("a1-again", false), NOW).await.unwrap();
    assert_eq!(relay.now(&mine).await.superseded_by, Some(next.envelope_id));
    let resolved = relay.claim(NOW).await;
    assert_eq!(keys(&resolved), ["a1-again"], "the successor stands where its predecessor stood, before a2");
    let Task::Send { precondition, .. } = &resolved[0].task else { panic!("it is sent") };
    assert_eq!(precondition, &Some(Precondition::Match("\"43\"".into())));
}

#[tokio::test]
async fn a_successors_successor_still_stands_where_the_first_stood() {
    let relay = Stage::open();
    let mut mine = relay.store("a1", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("a2", "task:1", RouteClass::Replace, Start::Waiting).await;
    for key in ["again", "once more"] {
        relay.answer(&relay.claim(NOW).await[0], Answer::Conflict, None).await;
        relay.conclude(&relay.claim(NOW).await[0], Fenced::Retired).await;
        (_, mine) = relay.envelopes.succeed(mine.envelope_id, successor(key, false), NOW).await.unwrap();
    }
    assert_eq!(keys(&relay.claim(NOW).await), ["once more"]);
}

#[tokio::test]
async fn a_chain_goes_on_from_the_tag_its_predecessor_left() {
    let relay = Stage::open();
    relay.store("a1", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("a2", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("a3", "task:1", RouteClass::Replace, Start::Waiting).await;
    let condition = |taken: &Taken| match &taken.task {
        Task::Send { precondition, .. } => precondition.clone().unwrap(),
        Task::Ask(_) => panic!("it is sent"),
    };
    let first = relay.claim(NOW).await;
    assert_eq!(condition(&first[0]), Precondition::UnmodifiedSince(NOW));
    relay.answer(&first[0], Answer::Committed, Some("\"9\"")).await;
    let second = relay.claim(NOW).await;
    assert_eq!(condition(&second[0]), Precondition::Match("\"9\"".into()));
    relay.answer(&second[0], Answer::Lost, None).await;
    let repeated = relay.claim(NOW + Duration::from_secs(5)).await;
    assert_eq!(condition(&repeated[0]), Precondition::Match("\"9\"".into()), "the same on every attempt");
    relay.answer(&repeated[0], Answer::Refused, None).await;
    let asking = relay.claim(NOW).await;
    relay.conclude(&asking[0], Fenced::Retired).await;
    let third = relay.claim(NOW).await;
    assert_eq!(condition(&third[0]), Precondition::UnmodifiedSince(NOW), "its own, never none");
}

#[tokio::test]
async fn what_waits_in_a_file_that_went_back_may_have_been_sent_and_its_condition_still_follows() {
    let relay = Stage::open();
    let tried = relay.store("tried", "workplan:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("a", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("all", "task:*", RouteClass::Replace, Start::Waiting).await;
    let last = relay.store("b", "task:1", RouteClass::Replace, Start::Waiting).await;
    let append = relay.store("n", "append:s /progress", RouteClass::Append, Start::Waiting).await;
    let unsent = relay.claim(NOW).await.remove(0);
    relay.answer(&unsent, Answer::NotSent, None).await;
    let ended = relay.store("ended", "append:t /progress", RouteClass::Append, Start::Waiting).await;
    relay.envelopes.cancel(ended.envelope_id, "withdrawn".into(), NOW).await.unwrap();
    let later = NOW + limits::RELAY_LEASE * 2;
    relay.envelopes.claim(by_both(later), 0).await.unwrap();
    relay.envelopes.note_went_back("went_back", "once".into()).await.unwrap();
    assert_eq!(relay.envelopes.fact("went_back").await.unwrap().as_deref(), Some("once"));
    for row in [&tried, &last, &append] {
        let row = relay.now(row).await;
        assert_eq!((row.status, row.outcome), (Status::Queued, Outcome::Unknown), "{}", row.idempotency_key);
    }
    assert_eq!(relay.now(&tried).await.sent_precondition, None, "what was sent since is not known");
    assert_eq!(relay.now(&ended).await.outcome, Outcome::NotSent, "it ended, and was not sent");
    let mut condition = None;
    for key in ["a", "all", "b"] {
        let taken = relay.claim(later).await;
        let of_tasks = taken.iter().find(|taken| taken.envelope.idempotency_key == key).unwrap();
        let Task::Send { precondition, .. } = &of_tasks.task else { panic!("{key} is sent") };
        condition.clone_from(precondition);
        let left = LeftVersion { order_key: last.order_key.clone(), tag: format!("\"{key}\"") };
        let heard =
            Heard { left: vec![left], ..heard(&of_tasks.envelope, of_tasks.lease, Answer::Committed) };
        relay.envelopes.settle(heard).await.unwrap();
    }
    assert_eq!(condition, Some(Precondition::Match("\"all\"".into())), "as the batch before it left it");
}

#[tokio::test]
async fn ce23_a_stale_replayer_cannot_bring_a_cancelled_envelope_back() {
    let relay = Stage::open();
    let row = relay.store("a", "task:1", RouteClass::Append, Start::Waiting).await;
    let stale = relay.claim(NOW).await;
    assert!(matches!(
        relay.envelopes.cancel(row.envelope_id, "withdrawn".into(), NOW).await,
        Err(OperateError::Inflight)
    ));
    let later = NOW + Duration::from_secs(120);
    let fresh = relay.claim(later).await;
    assert_eq!(keys(&fresh), ["a"], "the lease ran out");
    relay.answer(&fresh[0], Answer::Busy, None).await;
    let Withdrawn::Asking(_) =
        relay.envelopes.cancel(row.envelope_id, "withdrawn".into(), later).await.unwrap()
    else {
        panic!("it may have left")
    };
    let asking = relay.claim(later).await;
    assert_eq!(relay.conclude(&asking[0], Fenced::Retired).await.status, Status::Cancelled);
    relay.answer(&stale[0], Answer::Lost, None).await;
    assert_eq!(relay.now(&row).await.status, Status::Cancelled);
    relay.answer(&stale[0], Answer::Committed, None).await;
    let told = relay.now(&row).await;
    assert_eq!((told.status, told.late_ack_at), (Status::Cancelled, Some(NOW)), "noted, not undone");
}

#[tokio::test]
async fn what_was_on_the_wire_at_a_crash_waits_with_an_unknown_outcome() {
    let relay = Stage::open();
    let row = relay.store("a", "task:1", RouteClass::Append, Start::Live).await;
    assert_eq!(row.status, Status::Inflight);
    let Stage { envelopes, folder } = relay;
    envelopes.close().await;
    let envelopes = Envelopes::open(folder.path().join("outbox.db"), Arc::new(OsEntropy), NOW).unwrap();
    let row = envelopes.find(row.envelope_id).await.unwrap().unwrap();
    assert_eq!((row.status, row.outcome), (Status::Queued, Outcome::Unknown));
}

#[tokio::test]
async fn a_key_is_stored_once_and_the_same_words_are_recognised() {
    let relay = Stage::open();
    relay.store("a", "task:1", RouteClass::Append, Start::Waiting).await;
    let mut other = new("a", "task:1", RouteClass::Append);
    for (fingerprint, same) in [([7; 32], true), ([8; 32], false)] {
        other.fingerprint = Fingerprint::from_bytes(fingerprint);
        let Stored::Known { matches, .. } =
            relay.envelopes.store(other.clone(), Start::Live, NOW).await.unwrap()
        else {
            panic!("the key is known")
        };
        assert_eq!(matches, same);
    }
}

#[tokio::test]
async fn a_live_write_is_forgotten_unless_a_copy_was_recognised_while_it_was_under_way() {
    let relay = Stage::open();
    let copy = |key, words| NewEnvelope {
        fingerprint: Fingerprint::from_bytes([words; 32]),
        ..new(key, "task:2", RouteClass::Append)
    };
    for (key, words, start, expected) in [
        ("live copy", 7, Start::Live, Forgetting::Promised),
        ("waiting copy", 7, Start::Waiting, Forgetting::Promised),
        ("other words", 8, Start::Live, Forgetting::Forgotten),
        ("other words wait", 8, Start::Waiting, Forgetting::Forgotten),
    ] {
        let write = relay.store(key, "task:1", RouteClass::Append, Start::Live).await;
        let stored = relay.envelopes.store(copy(key, words), start, NOW).await.unwrap();
        assert!(matches!(stored, Stored::Known { matches, .. } if matches == (words == 7)), "{key}");
        let lease = write.lease.unwrap();
        assert_eq!(relay.envelopes.forget_live(write.local_seq, lease).await.unwrap(), expected, "{key}");
        let left = relay.envelopes.find(write.envelope_id).await.unwrap().map(|row| row.status);
        let kept = (expected == Forgetting::Promised).then_some(Status::Inflight);
        assert_eq!(left, kept, "{key}");
        if kept.is_some() {
            let refused = heard(&write, lease, Answer::Refused);
            let settled = relay.envelopes.settle(refused).await.unwrap().unwrap().envelope;
            assert_eq!((settled.status, settled.ending), (Status::Queued, Some(Ending::Rejected)), "{key}");
        }
    }
}

#[tokio::test]
async fn a_copy_that_comes_while_its_write_is_being_forgotten_is_new_or_keeps_it() {
    let relay = Stage::open();
    for round in 0..64 {
        let key = format!("k{round}");
        let write = relay.store(&key, "task:1", RouteClass::Append, Start::Live).await;
        let copied = relay.envelopes.store(new(&key, "task:1", RouteClass::Append), Start::Waiting, NOW);
        let forgotten = relay.envelopes.forget_live(write.local_seq, write.lease.unwrap());
        let (copied, forgotten) = if round % 2 == 0 {
            tokio::join!(copied, forgotten)
        } else {
            let (forgotten, copied) = tokio::join!(forgotten, copied);
            (copied, forgotten)
        };
        let is_new = matches!(copied.unwrap(), Stored::New(_));
        let expected = if is_new { Forgetting::Forgotten } else { Forgetting::Promised };
        assert_eq!(forgotten.unwrap(), expected, "{key}");
    }
}

#[tokio::test]
async fn done_envelopes_lose_their_body_at_once_and_their_row_after_a_day() {
    let relay = Stage::open();
    let row = relay.store("a", "task:1", RouteClass::Append, Start::Waiting).await;
    let sent = relay.claim(NOW).await;
    relay.answer(&sent[0], Answer::Committed, None).await;
    assert_eq!(relay.envelopes.bodies(row.local_seq).await.unwrap(), None);
    assert_eq!(relay.envelopes.trim(NOW).await.unwrap(), 0);
    assert_eq!(relay.envelopes.trim(days(1)).await.unwrap(), 1);
}

#[tokio::test]
async fn a_write_without_a_key_is_known_by_its_own_id() {
    let relay = Stage::open();
    let asked = NewEnvelope { idempotency_key: None, ..new("x", "task:1", RouteClass::Append) };
    let Stored::New(row) = relay.envelopes.store(asked, Start::Waiting, NOW).await.unwrap() else {
        panic!("nobody has used its key")
    };
    assert_eq!(row.idempotency_key, row.envelope_id.to_string());
    assert_eq!(relay.now(&row).await, *row);
    let again = new(&row.idempotency_key, "task:1", RouteClass::Append);
    let Stored::Known { envelope, matches } =
        relay.envelopes.store(again, Start::Waiting, NOW).await.unwrap()
    else {
        panic!("whoever was told the key may ask again by it")
    };
    assert_eq!((envelope.envelope_id, matches), (row.envelope_id, true));
}

#[tokio::test]
async fn appends_that_wait_leave_in_their_order_however_many_there_are() {
    let relay = Stage::open();
    let key = OrderKey::session("ann", "/notes");
    let rows = limits::SORT_ROWS_MAX + 3;
    for n in 0..rows {
        relay.store(&format!("n{n}"), key.as_str(), RouteClass::Append, Start::Waiting).await;
    }
    relay.store("other", "task:1", RouteClass::Append, Start::Waiting).await;
    let Claims { taken, next_due, .. } = relay.envelopes.claim(by_both(NOW), 8).await.unwrap();
    assert_eq!((keys(&taken), next_due), (vec![], Some(NOW)), "nothing leaves before all are sorted");
    for n in 0..3 {
        let sent = relay.claim(NOW).await;
        assert_eq!(sent[0].envelope.idempotency_key, format!("n{n}"));
        assert_eq!(sent.len(), if n == 0 { 2 } else { 1 });
        relay.answer(&sent[0], Answer::Committed, None).await;
    }
}

#[tokio::test]
async fn an_append_that_waits_unsorted_can_be_withdrawn_and_grows_old() {
    let relay = Stage::open();
    let key = OrderKey::session("ann", "/notes");
    let stored = |name: &'static str| relay.store(name, key.as_str(), RouteClass::Append, Start::Waiting);
    let (withdrawn, old) = (stored("withdrawn").await, stored("old").await);
    relay.envelopes.cancel(withdrawn.envelope_id, "not wanted".into(), NOW).await.unwrap();
    assert_eq!(relay.now(&withdrawn).await.status, Status::Cancelled);
    let claims = relay.envelopes.claim(by_both(days(15)), 8).await.unwrap();
    assert_eq!(claims.ended.iter().map(|row| row.envelope_id).collect::<Vec<_>>(), [old.envelope_id]);
    assert_eq!(keys(&claims.taken), Vec::<&str>::new());
}

#[tokio::test]
async fn short_and_long_bodies_are_kept_sent_and_forgotten_alike() {
    let relay = Stage::open();
    let short = limits::SHORT_BODY_BYTES;
    for (bytes, base) in [(0, None), (short, None), (short, Some(b"before".to_vec())), (short + 1, None)] {
        let body = vec![b'x'; bytes];
        let key = format!("of-{bytes}-{}", base.is_some());
        let asked = NewEnvelope {
            body: body.clone(),
            base: base.clone(),
            ..new(&key, &format!("task:{key}"), RouteClass::Append)
        };
        let Stored::New(row) = relay.envelopes.store(asked, Start::Waiting, NOW).await.unwrap() else {
            panic!("the key is new")
        };
        let seq = row.local_seq;
        let kept = |theirs| Some(Bodies { mine: body.clone(), theirs, base: base.clone() });
        assert_eq!(relay.envelopes.bodies(seq).await.unwrap(), kept(None), "{key}");
        let theirs = Some(b"theirs".to_vec());
        relay.envelopes.keep_theirs(seq, theirs.clone(), None).await.unwrap();
        assert_eq!(relay.envelopes.bodies(seq).await.unwrap(), kept(theirs), "{key}");
        let sent = relay.claim(NOW).await;
        assert!(matches!(&sent[0].task, Task::Send { body: sent, .. } if *sent == body), "{key}");
        relay.answer(&sent[0], Answer::Committed, None).await;
        assert_eq!(relay.envelopes.bodies(seq).await.unwrap(), None, "{key}");
    }
}

#[tokio::test]
async fn an_envelope_without_its_body_ends_by_name_and_the_other_keys_go_on() {
    let relay = Stage::open();
    let fresh = relay.store("fresh", "task:1", RouteClass::Replace, Start::Waiting).await;
    relay.store("behind", "task:1", RouteClass::Replace, Start::Waiting).await;
    let tried = relay.store("tried", "task:2", RouteClass::Replace, Start::Waiting).await;
    relay.store("free", "task:3", RouteClass::Replace, Start::Waiting).await;
    let taken = relay.claim(NOW).await;
    assert_eq!(keys(&taken), ["fresh", "tried", "free"]);
    relay.answer(&taken[0], Answer::NotSent, None).await;
    relay.answer(&taken[1], Answer::Lost, None).await;
    relay.answer(&taken[2], Answer::Committed, None).await;
    let file = sqlite::rusqlite::Connection::open(relay.folder.path().join("outbox.db")).unwrap();
    for lost in [&fresh, &tried] {
        let id = lost.local_seq;
        assert_eq!(file.execute("UPDATE envelope SET body = NULL WHERE local_seq = ?1", [id]).unwrap(), 1);
    }
    relay.store("later", "task:4", RouteClass::Replace, Start::Waiting).await;
    let taken = relay.claim(days(1)).await;
    assert_eq!(keys(&taken), ["tried", "later"], "what never left ends, what may have left is asked about");
    assert!(matches!(taken[0].task, Task::Ask(model::relay::Ending::Rejected)), "{:?}", taken[0].task);
    let ended = relay.conclude(&taken[0], Fenced::Retired).await;
    let missing = "body_missing: the file holds the envelope without its body";
    assert_eq!((ended.status, ended.last_error.as_deref()), (Status::Rejected, Some(missing)));
    let ended = relay.now(&fresh).await;
    assert_eq!((ended.status, ended.outcome), (Status::Rejected, Outcome::NotSent));
    assert_eq!(ended.last_error.as_deref(), Some(missing));
    assert_eq!(keys(&relay.claim(days(1)).await), ["behind"]);
}
