//! The hub: writes that happen once under a key, records with versions, fences.

use std::sync::Arc;
use std::time::Duration;

use model::hub::{Change, Precondition, RecordId, RecordKind, Refusal as RecordRefusal};
use model::{ErrorCode, Fingerprint, limits};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::Bench;
use super::town::*;
use crate::*;

const DAY: Duration = Duration::from_secs(24 * 3600);
const WAYS: usize = 64;

fn fields(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap()
}

fn id(name: &str) -> RecordId {
    name.parse().unwrap()
}

/// Says everything that was done, so that two answers differ when two effects do.
fn say(applied: &HubApplied) -> HubAnswer {
    let (status, etag) = match applied {
        HubApplied::Made(record) => (201, Some(record.version.to_string())),
        HubApplied::Changed(record) => (200, Some(record.version.to_string())),
        HubApplied::Deleted { .. } | HubApplied::Batch(_) | HubApplied::Read { .. } => (200, None),
    };
    HubAnswer { changed_at: None, status, etag, body: format!("{applied:?}").into_bytes() }
}

pub(super) fn keyed(by: &Home, key: &str, asked: u8, effect: HubEffect) -> HubWrite {
    let key = HubKey {
        key: key.parse().unwrap(),
        method: "POST".into(),
        path: "/hub/tasks".into(),
        fingerprint: Fingerprint::from_bytes([asked; 32]),
        created_at: None,
    };
    HubWrite { principal: by.id(), key: Some(key), effect, render: say }
}

fn task(name: &str, change: Change, precondition: Precondition) -> HubEffect {
    HubEffect::Record { kind: RecordKind::Task, id: id(name), change, precondition }
}

pub(super) fn create(name: &str) -> HubEffect {
    task(name, Change::Create(fields(r#"{"status":"todo","title":"t"}"#)), Precondition::None)
}

fn patch(name: &str, json: &str, precondition: Precondition) -> HubEffect {
    task(name, Change::Patch(fields(json)), precondition)
}

pub(super) async fn applied(ledger: &dyn Ledger, write: HubWrite) -> HubAnswer {
    match ledger.hub_write(write).await.unwrap() {
        HubOutcome::Applied(answer) => answer,
        other => panic!("to be applied, not {other:?}"),
    }
}

async fn refused(ledger: &dyn Ledger, write: HubWrite) -> HubRefusal {
    match ledger.hub_write(write).await.unwrap() {
        HubOutcome::Refused(refusal) => refusal,
        other => panic!("to be refused, not {other:?}"),
    }
}

async fn version(ledger: &dyn Ledger, name: &str) -> Option<u64> {
    ledger.hub_record(RecordKind::Task, &id(name)).await.unwrap().map(|record| record.version)
}

pub async fn a_write_is_applied_once_and_answered_alike_ever_after(mut bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let first = applied(&*ledger, keyed(&jane, "k", 1, create("t1"))).await;
    assert_eq!((first.status, first.etag.as_deref()), (201, Some("1")));
    // Somebody else changes the record: the first answer stays the first answer.
    applied(&*ledger, keyed(&jane, "k2", 2, patch("t1", r#"{"status":"done"}"#, Precondition::None))).await;
    drop(ledger);
    bench.reopen().await;
    let ledger = bench.ledger();
    let again = ledger.hub_write(keyed(&jane, "k", 1, create("t1"))).await.unwrap();
    assert_eq!(again, HubOutcome::Replayed(first));
    assert_eq!(version(&*ledger, "t1").await, Some(2));
    assert_eq!((bench.count("hub_record").await, bench.count("idem").await), (1, 2));
}

pub async fn a_key_of_another_request_is_refused_and_another_principals_is_its_own(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    applied(&*ledger, keyed(&jane, "k", 1, create("t1"))).await;
    assert_eq!(refused(&*ledger, keyed(&jane, "k", 2, create("t2"))).await, HubRefusal::KeyReused);
    applied(&*ledger, keyed(&carl, "k", 2, create("t2"))).await;
    let known = ledger.hub_known(carl.id(), &"k".parse().unwrap()).await.unwrap().unwrap();
    assert!(
        matches!(known, HubKnown::Stored { fingerprint, .. } if fingerprint == Fingerprint::from_bytes([2; 32]))
    );
    assert_eq!(ledger.hub_known(carl.id(), &"other".parse().unwrap()).await.unwrap(), None);
}

pub async fn no_refused_hub_write_leaves_a_row_in_any_table(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    applied(&*ledger, keyed(&jane, "k", 1, create("t1"))).await;
    let mail = super::town::accepted(&*ledger, &jane, text("@carl", "m", "hi")).await;
    let before = row_counts(&bench).await;
    let stale = Precondition::Versions(vec![7]);
    let batch = HubEffect::Batch {
        kind: RecordKind::Task,
        changes: vec![
            (id("t1"), Change::Patch(fields(r#"{"a":1}"#)), Precondition::None),
            (id("t9"), Change::Patch(fields(r#"{"a":1}"#)), Precondition::None),
        ],
    };
    for (place, effect) in [
        create("t1"),
        patch("t9", "{}", Precondition::None),
        patch("t1", "{}", stale.clone()),
        task("t1", Change::Delete, stale),
        batch,
        HubEffect::Read(mail.broker_message_id),
    ]
    .into_iter()
    .enumerate()
    {
        refused(&*ledger, keyed(&jane, &format!("r{place}"), 9, effect)).await;
    }
    ledger.remove_member(&member_name("carl")).await.unwrap();
    assert_eq!(refused(&*ledger, keyed(&carl, "r", 9, create("t2"))).await, HubRefusal::Revoked);
    assert_eq!(row_counts(&bench).await, before);
    assert_eq!(version(&*ledger, "t1").await, Some(1));
}

pub async fn versions_rise_and_a_precondition_names_one(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    applied(&*ledger, keyed(&jane, "k1", 1, create("t1"))).await;
    let seen = || Precondition::Versions(vec![1]);
    applied(&*ledger, keyed(&carl, "k2", 2, patch("t1", r#"{"status":"done"}"#, seen()))).await;
    let late = refused(&*ledger, keyed(&jane, "k3", 3, patch("t1", r#"{"status":"todo"}"#, seen()))).await;
    assert_eq!(late, HubRefusal::Record(RecordRefusal::Conflict { current: Some(2) }));
    let record = ledger.hub_record(RecordKind::Task, &id("t1")).await.unwrap().unwrap();
    assert_eq!((record.version, record.body.as_slice()), (2, br#"{"status":"done","title":"t"}"#.as_slice()));
    assert_eq!((record.created_by.as_str(), record.updated_by.as_str()), ("jane", "carl"));
    // The refused copy used nothing up: it may come again with what it has learned.
    let now = Precondition::Versions(vec![2]);
    applied(&*ledger, keyed(&jane, "k3", 3, patch("t1", r#"{"status":"todo"}"#, now))).await;
    assert_eq!(version(&*ledger, "t1").await, Some(3));
}

pub async fn a_deleted_record_goes_on_counting(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    applied(&*ledger, keyed(&jane, "k1", 1, create("t1"))).await;
    applied(&*ledger, keyed(&jane, "k2", 2, task("t1", Change::Delete, Precondition::None))).await;
    assert_eq!(version(&*ledger, "t1").await, None);
    let seen = Precondition::Versions(vec![1]);
    let late = refused(&*ledger, keyed(&jane, "k3", 3, patch("t1", "{}", seen))).await;
    assert_eq!(late, HubRefusal::Record(RecordRefusal::Conflict { current: Some(2) }));
    let gone = refused(&*ledger, keyed(&jane, "k4", 4, patch("t1", "{}", Precondition::None))).await;
    assert_eq!(gone, HubRefusal::Record(RecordRefusal::NotFound));
    let made = applied(&*ledger, keyed(&carl, "k5", 5, create("t1"))).await;
    assert_eq!((made.status, made.etag.as_deref()), (201, Some("3")));
    let record = ledger.hub_record(RecordKind::Task, &id("t1")).await.unwrap().unwrap();
    assert_eq!((record.created_by.as_str(), record.version), ("carl", 3));
}

pub async fn a_batch_is_applied_whole_in_its_order_or_names_what_failed(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for n in 1..=3 {
        applied(&*ledger, keyed(&jane, &format!("k{n}"), n, create(&format!("t{n}")))).await;
    }
    let set = |name: &str, status: &str, precondition| {
        (id(name), Change::Patch(fields(&format!(r#"{{"status":"{status}"}}"#))), precondition)
    };
    let batch = |changes| HubEffect::Batch { kind: RecordKind::Task, changes };
    let stale = || Precondition::Versions(vec![5]);
    let mixed = vec![
        set("t1", "done", Precondition::None),
        set("t2", "done", stale()),
        set("t9", "done", Precondition::None),
        set("t2", "todo", stale()),
    ];
    let failed = refused(&*ledger, keyed(&jane, "b1", 10, batch(mixed))).await;
    let expected =
        vec![(id("t2"), RecordRefusal::Conflict { current: Some(1) }), (id("t9"), RecordRefusal::NotFound)];
    assert_eq!(failed, HubRefusal::Batch(expected));
    assert_eq!(version(&*ledger, "t1").await, Some(1), "nothing of it was done");
    let good = vec![
        set("t1", "blocked", Precondition::None),
        set("t2", "done", Precondition::Versions(vec![1])),
        set("t1", "done", Precondition::Versions(vec![2])),
    ];
    applied(&*ledger, keyed(&jane, "b2", 11, batch(good))).await;
    let status = async |name: &str| ledger.hub_record(RecordKind::Task, &id(name)).await.unwrap().unwrap();
    let (one, two) = (status("t1").await, status("t2").await);
    assert_eq!((one.version, two.version), (3, 2));
    assert!(String::from_utf8(one.body).unwrap().contains("done"));
}

pub async fn a_list_is_followed_by_place_and_a_changed_record_comes_again(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for n in 1..=5 {
        applied(&*ledger, keyed(&jane, &format!("k{n}"), n, create(&format!("t{n}")))).await;
    }
    let names = |page: &HubPage| page.records.iter().map(|record| record.id.to_string()).collect::<Vec<_>>();
    let first = ledger.hub_list(RecordKind::Task, 0, 2).await.unwrap();
    assert_eq!((names(&first), first.more, first.head), (vec!["t1".into(), "t2".into()], true, 5));
    applied(&*ledger, keyed(&jane, "k6", 6, patch("t1", r#"{"status":"done"}"#, Precondition::None))).await;
    applied(&*ledger, keyed(&jane, "k7", 7, task("t4", Change::Delete, Precondition::None))).await;
    let rest = ledger.hub_list(RecordKind::Task, first.records[1].seq, 10).await.unwrap();
    assert_eq!((names(&rest), rest.more, rest.head), (vec!["t3".into(), "t5".into(), "t1".into()], false, 7));
    assert_eq!(ledger.hub_list(RecordKind::Decision, 0, 10).await.unwrap().head, 0);
}

pub async fn instants_of_a_record_rise_when_the_clock_goes_back(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    applied(&*ledger, keyed(&jane, "k1", 1, create("t1"))).await;
    let made = ledger.hub_record(RecordKind::Task, &id("t1")).await.unwrap().unwrap();
    bench.set_back(Duration::from_secs(60));
    applied(&*ledger, keyed(&jane, "k2", 2, patch("t1", r#"{"a":1}"#, Precondition::None))).await;
    let since = Precondition::UnchangedSince(made.updated_at);
    let late = refused(&*ledger, keyed(&jane, "k3", 3, patch("t1", r#"{"a":2}"#, since))).await;
    assert_eq!(late, HubRefusal::Record(RecordRefusal::Conflict { current: Some(2) }));
}

async fn all_at_once(ledger: &Arc<dyn Ledger>, writes: Vec<HubWrite>) -> Vec<HubOutcome> {
    let mut set = JoinSet::new();
    for write in writes {
        let ledger = Arc::clone(ledger);
        set.spawn(async move { ledger.hub_write(write).await.unwrap() });
    }
    set.join_all().await
}

pub async fn sixty_four_copies_of_one_key_are_one_effect(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    applied(&*ledger, keyed(&jane, "made", 1, create("t1"))).await;
    let change = || patch("t1", r#"{"status":"done"}"#, Precondition::None);
    let outcomes = all_at_once(&ledger, (0..WAYS).map(|_| keyed(&jane, "k", 2, change())).collect()).await;
    let mut answers = Vec::new();
    let mut new = 0;
    for outcome in outcomes {
        match outcome {
            HubOutcome::Applied(answer) => {
                new += 1;
                answers.push(answer);
            }
            HubOutcome::Replayed(answer) => answers.push(answer),
            HubOutcome::Refused(refusal) => panic!("a copy, not {refusal:?}"),
        }
    }
    answers.dedup();
    assert_eq!((new, answers.len(), version(&*ledger, "t1").await), (1, 1, Some(2)));
}

pub async fn sixty_four_writers_who_saw_one_version_make_one_change(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    applied(&*ledger, keyed(&jane, "made", 1, create("t1"))).await;
    let writes = (0..WAYS).map(|way| {
        let by = if way % 2 == 0 { &jane } else { &carl };
        let json = format!(r#"{{"way":{way}}}"#);
        keyed(by, &format!("k{way}"), 2, patch("t1", &json, Precondition::Versions(vec![1])))
    });
    let outcomes = all_at_once(&ledger, writes.collect()).await;
    let new = outcomes.iter().filter(|outcome| matches!(outcome, HubOutcome::Applied(_))).count();
    assert_eq!((new, version(&*ledger, "t1").await), (1, Some(2)));
    assert_eq!(bench.count("idem").await, 2, "a conflict uses no key up");
}

pub async fn a_key_is_used_or_retired_and_never_both(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for round in 0..8 {
        let (key, name) = (format!("k{round}"), format!("t{round}"));
        let mut set = JoinSet::new();
        for way in 0..16 {
            let (ledger, write) = (Arc::clone(&ledger), keyed(&jane, &key, 1, create(&name)));
            let (id, by) = (key.parse().unwrap(), jane.id());
            set.spawn(async move {
                if way % 2 == 0 {
                    match ledger.hub_write(write).await.unwrap() {
                        HubOutcome::Applied(_) | HubOutcome::Replayed(_) => true,
                        HubOutcome::Refused(refusal) => {
                            assert_eq!(refusal, HubRefusal::KeyRetired);
                            false
                        }
                    }
                } else {
                    match ledger.hub_key_status(by, &id, None, Fence::Retire).await.unwrap() {
                        HubKeyStatus::Committed(_) => true,
                        HubKeyStatus::Retired => false,
                        other => panic!("with a fence never {other:?}"),
                    }
                }
            });
        }
        let said = set.join_all().await;
        let done = version(&*ledger, &name).await.is_some();
        assert!(said.iter().all(|committed| *committed == done), "round {round}: {said:?}");
    }
}

pub async fn ce19_ce20_a_fenced_key_is_never_applied(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let key = "k".parse().unwrap();
    let ask = async |fence| ledger.hub_key_status(jane.id(), &key, None, fence).await.unwrap();
    assert_eq!(ask(Fence::None).await, HubKeyStatus::Absent);
    assert_eq!(bench.count("idem").await, 0, "a question without a fence changes nothing");
    assert_eq!(ask(Fence::Retire).await, HubKeyStatus::Retired);
    assert_eq!(refused(&*ledger, keyed(&jane, "k", 1, create("t1"))).await, HubRefusal::KeyRetired);
    assert_eq!(ask(Fence::Retire).await, HubKeyStatus::Retired);
    let outcome = send(&*ledger, &jane, vec![text("#t", "k", "hi")]).await.remove(0);
    assert_eq!(outcome, Outcome::Refused(Refusal::plain(ErrorCode::IdRetired)), "as a message's id neither");
    assert_eq!(version(&*ledger, "t1").await, None);
}

pub async fn ce21_a_copy_that_may_be_forgotten_is_refused(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    let made_at = ledger.now().await.unwrap();
    let copy = || {
        let mut write = keyed(&jane, "k", 1, patch("t1", r#"{"n":1}"#, Precondition::None));
        write.key.as_mut().unwrap().created_at = Some(made_at);
        write
    };
    applied(&*ledger, keyed(&jane, "made", 9, create("t1"))).await;
    applied(&*ledger, copy()).await;
    let status =
        async || ledger.hub_key_status(jane.id(), &"k".parse().unwrap(), Some(made_at), Fence::None).await;
    bench.advance(DAY * limits::HUB_KEY_DAYS + DAY);
    assert!(matches!(ledger.hub_write(copy()).await.unwrap(), HubOutcome::Replayed(_)), "known at any age");
    assert_eq!(ledger.expire_hub_keys(100).await.unwrap(), 2);
    assert_eq!(refused(&*ledger, copy()).await, HubRefusal::KeyExpired);
    assert_eq!(status().await.unwrap(), HubKeyStatus::Unknown);
    let fenced = ledger.hub_key_status(jane.id(), &"k".parse().unwrap(), Some(made_at), Fence::Retire).await;
    assert_eq!(fenced.unwrap(), HubKeyStatus::Unknown, "what nobody knows is not called undone");
    assert_eq!(version(&*ledger, "t1").await, Some(2));
}

pub async fn a_key_is_kept_for_its_days_and_forgotten_in_bounded_rounds(bench: impl Bench) {
    let (ledger, jane, _) = two_homes(&bench).await;
    for n in 1..=3 {
        applied(&*ledger, keyed(&jane, &format!("k{n}"), n, create(&format!("t{n}")))).await;
    }
    bench.advance(DAY * limits::HUB_KEY_DAYS - Duration::from_secs(60));
    assert_eq!(ledger.expire_hub_keys(100).await.unwrap(), 0);
    assert!(matches!(
        ledger.hub_write(keyed(&jane, "k1", 1, create("t1"))).await.unwrap(),
        HubOutcome::Replayed(_)
    ));
    bench.advance(Duration::from_secs(120));
    assert_eq!(ledger.expire_hub_keys(2).await.unwrap(), 2);
    assert_eq!(ledger.expire_hub_keys(2).await.unwrap(), 1);
    assert_eq!((bench.count("idem").await, bench.count("hub_record").await), (0, 3));
}

pub async fn a_message_is_read_by_its_recipient_once(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let id = super::town::accepted(&*ledger, &jane, text("@carl", "m", "hi")).await.broker_message_id;
    let read = |by: &Home, key: &str| keyed(by, key, 1, HubEffect::Read(id));
    assert_eq!(refused(&*ledger, read(&jane, "k")).await, HubRefusal::NoSuchMessage);
    let first = applied(&*ledger, read(&carl, "k1")).await;
    bench.advance(Duration::from_secs(5));
    assert_eq!(applied(&*ledger, read(&carl, "k2")).await, first, "the first instant stands");
    let facts = ledger.explain(&Wanted::Message(id)).await.unwrap().remove(0);
    assert!(facts.accepted.unwrap().deliveries[0].read_at.is_some());
}

pub async fn a_messages_id_is_a_key_too(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let receipt = super::town::accepted(&*ledger, &jane, text("@carl", "m", "hi")).await;
    assert_eq!(refused(&*ledger, keyed(&jane, "m", 1, create("t1"))).await, HubRefusal::KeyReused);
    let status = ledger.hub_key_status(jane.id(), &"m".parse().unwrap(), None, Fence::Retire).await.unwrap();
    assert!(
        matches!(status, HubKeyStatus::Committed(HubKnown::Message { receipt: told, .. }) if told == receipt),
        "{status:?}"
    );
    applied(&*ledger, keyed(&carl, "m", 1, create("t1"))).await;
}

pub async fn a_readers_messages_lead_back_to_the_first_and_are_no_others(bench: impl Bench) {
    let (ledger, jane, carl) = two_homes(&bench).await;
    let dora = super::town::join(&*ledger, "dora", Role::Member).await;
    let mut ids = Vec::new();
    for (n, to) in ["@carl", "#t", "@dora", "#t", "@carl"].into_iter().enumerate() {
        let message = text(to, &format!("m{n}"), &n.to_string());
        ids.push(super::town::accepted(&*ledger, &jane, message).await.broker_message_id);
    }
    applied(&*ledger, keyed(&carl, "k", 1, HubEffect::Read(ids[0]))).await;
    for (reader, expected) in [(&jane, &[4, 3, 2, 1, 0][..]), (&carl, &[4, 3, 1, 0]), (&dora, &[3, 2, 1])] {
        let (mut before, mut rows) = (None, Vec::new());
        loop {
            let page = ledger.messages(reader.id(), before, 2).await.unwrap();
            assert!(page.rows.len() <= 2);
            rows.extend(page.rows);
            let Some(next) = page.before else { break };
            before = Some(next);
        }
        let wanted: Vec<_> = expected.iter().map(|n: &usize| ids[*n]).collect();
        let found: Vec<_> = rows.iter().map(|listed| listed.row.id).collect();
        assert_eq!(found, wanted);
        let read: Vec<_> = rows.iter().filter(|listed| listed.read_at.is_some()).map(|r| r.row.id).collect();
        assert_eq!(
            read,
            if reader.id() == carl.id() { vec![ids[0]] } else { vec![] },
            "one's own copy alone"
        );
    }
    let names: Vec<_> = ledger.messages(carl.id(), None, 2).await.unwrap().rows;
    let names: Vec<_> = names.iter().map(|listed| listed.place.name.to_string()).collect();
    assert_eq!(names, ["@jane", "#t"]);
    ledger.remove_member(&"dora".parse().unwrap()).await.unwrap();
    let gone = ledger.messages(dora.id(), None, 10).await.unwrap();
    assert_eq!((gone.rows.len(), gone.before), (0, None));
}
