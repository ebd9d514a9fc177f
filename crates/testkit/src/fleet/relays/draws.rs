//! One caller that is the only writer, with keys, paths and credentials drawn at random.
//!
//! - It writes to records by each of their names, decides, syncs statuses, and uses keys a second time.
//! - Hub and relay die in each round; some keys of writes that wait are used at the hub for another request meanwhile.
//! - In some rounds the relay comes back with a credential that the hub refuses.
//! - Judged are conflicts without another writer, keys of other requests that count as committed, writes that meet a
//!   pause, and requests that were refused with a word that denies storage.

use super::caller::Caller;
use super::stage::{Stage, StageFaults};
use crate::bin::Binary;
use crate::fleet::FleetError;
use crate::kills::door::Answer;
use crate::seeded::Seeded;
use crate::stopwatch::Stopwatch;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// Records of each kind that the caller writes to.
const RECORDS: u64 = 4;
/// The 5 s in which a relay promises to end, and what a busy machine adds.
const STOP_BOUND: Duration = Duration::from_secs(10);
/// Writes of a round whose keys are candidates for another request.
const CANDIDATES: u64 = 3;
/// After a connection broke.
const TRIES_MORE: usize = 4;
/// Broken sentences; more of them say nothing new.
const NAMED_MAX: usize = 10;

/// What to run.
#[derive(Clone, Debug)]
pub struct DrawPlan {
    /// The product with faults.
    pub binary: Binary,
    /// Writes in all.
    pub writes: u64,
    /// Outages they are spread over.
    pub rounds: u64,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// A bug of the relay's.
    pub planted: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct DrawOutcome {
    /// Writes that were answered with success or a receipt.
    pub acked: u64,
    /// Of them: with a receipt.
    pub queued: u64,
    /// Requests refused with a word that denies storage.
    pub refused: u64,
    /// Keys of waiting writes that were used at the hub for another request.
    pub taken_keys: u64,
    /// Restarts with a credential that the hub refuses.
    pub bad_credentials: u64,
    /// Conflicts although nobody else wrote.
    pub false_conflicts: u64,
    /// Writes said to be done whose key another request has.
    pub wrongly_done: u64,
    /// Writes that met the hub during a pause.
    pub unpaused: u64,
    /// Processes that did not end when they were told to.
    pub endless: u64,
    /// Refused requests that were stored or applied all the same.
    pub stored_refusals: u64,
    /// Acknowledged writes that are nowhere, or more than once.
    pub lost_or_doubled: u64,
    /// What else must not be, and the first of each of the above.
    pub broken: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

impl DrawOutcome {
    /// Whether nothing of what must not be was found.
    pub fn holds(&self) -> bool {
        let counted = self.false_conflicts
            + self.wrongly_done
            + self.unpaused
            + self.endless
            + self.stored_refusals
            + self.lost_or_doubled;
        counted == 0 && self.broken.is_empty()
    }

    fn found(&mut self, count: fn(&mut Self) -> &mut u64, sentence: String) {
        *count(self) += 1;
        self.broken(sentence);
    }

    fn broken(&mut self, sentence: String) {
        if self.broken.len() < NAMED_MAX {
            self.broken.push(sentence);
        }
    }
}

/// Runs it.
pub fn run(plan: &DrawPlan) -> Result<DrawOutcome, FleetError> {
    let watch = Stopwatch::start();
    let relay = plan.planted.iter().map(|bug| format!("bug:{bug}")).collect();
    let mut stage = Stage::open(&plan.binary, StageFaults { hub: Vec::new(), relay })?;
    let caller = stage.caller("only");
    let mut run = DrawRun {
        seeded: Seeded::new(plan.seed),
        outcome: DrawOutcome::default(),
        caller,
        next: 0,
        changes: BTreeMap::new(),
        decided: HashSet::new(),
        notes: Vec::new(),
        refusals: Vec::new(),
        round: 0,
    };
    let each = (plan.writes / plan.rounds / 2).max(1);
    for round in 0..plan.rounds {
        run.round = round;
        run.make_records()?;
        for _ in 0..each {
            run.write()?;
        }
        run.outage(&mut stage, each)?;
        if run.outcome.endless > 0 {
            break;
        }
    }
    run.judge(&stage)?;
    run.outcome.elapsed = watch.elapsed();
    Ok(run.outcome)
}

/// A write that waits, and whether another request takes its key.
struct Candidate {
    key: String,
    method: &'static str,
    path: String,
    taken: bool,
}

struct DrawRun {
    seeded: Seeded,
    outcome: DrawOutcome,
    caller: Caller,
    /// The number of the next key.
    next: u64,
    /// How often each record was changed, by its path; the first change makes it.
    changes: BTreeMap<String, u64>,
    decided: HashSet<String>,
    /// Notes that were acknowledged: each must stand there once.
    notes: Vec<String>,
    /// Keys of requests that were refused with a word that denies storage.
    refusals: Vec<String>,
    round: u64,
}

impl DrawRun {
    fn key(&mut self) -> String {
        self.next += 1;
        format!("drawn-{}", self.next)
    }

    fn ask(&mut self, method: &str, path: &str, key: &str, body: &Value) -> Result<Answer, FleetError> {
        self.ask_with(method, path, &format!("idempotency-key: {key}\r\n"), body)
    }

    /// Asks again on a fresh connection when the old one was closed: the same key makes it the same write.
    fn ask_with(&mut self, method: &str, path: &str, more: &str, body: &Value) -> Result<Answer, FleetError> {
        let mut answered = self.caller.ask(method, path, more, body);
        for _ in 0..TRIES_MORE {
            if answered.is_ok() {
                break;
            }
            answered = self.caller.ask(method, path, more, body);
        }
        Ok(answered?)
    }

    /// The records of a round, made through the relay, which passes them on.
    fn make_records(&mut self) -> Result<(), FleetError> {
        for kind in ["tasks", "decisions", "workplans"] {
            for place in 0..RECORDS {
                let id = format!("r{}-{place}", self.round);
                let key = self.key();
                let body = json!({"id": id, "title": "made"});
                // A decision is made while its caller waits for the answer: its id is needed.
                let made = self.ask("POST", &format!("/{kind}/"), &key, &body)?;
                if made.status != 201 {
                    self.outcome.broken(format!("{kind} {id} was answered {}: {}", made.status, made.body));
                }
                self.changes.insert(format!("/{kind}/{id}"), 1);
            }
        }
        Ok(())
    }

    /// One write, drawn.
    fn write(&mut self) -> Result<(), FleetError> {
        let id = format!("r{}-{}", self.round, self.seeded.below(RECORDS));
        let key = self.key();
        let title = json!({"title": key});
        let (method, path, body, touched) = match self.seeded.below(9) {
            0 => ("PATCH", format!("/workplans/{id}"), title, vec![format!("/workplans/{id}")]),
            1 => ("PATCH", format!("/workstreams/{id}"), title, vec![format!("/workplans/{id}")]),
            2 if self.decided.insert(id.clone()) => {
                let body = json!({"resolution": "yes"});
                ("POST", format!("/decisions/{id}/resolve"), body, vec![format!("/decisions/{id}")])
            }
            2 | 3 => ("PATCH", format!("/decisions/{id}"), title, vec![format!("/decisions/{id}")]),
            4 | 5 => ("PATCH", format!("/tasks/{id}"), title, vec![format!("/tasks/{id}")]),
            6 | 7 => {
                let first = self.seeded.below(RECORDS);
                let ids = (first..RECORDS).map(|place| format!("r{}-{place}", self.round));
                let ids: Vec<String> = ids.collect();
                let tasks: Vec<Value> =
                    ids.iter().map(|id| json!({"id": id, "status": "in_progress"})).collect();
                let touched = ids.iter().map(|id| format!("/tasks/{id}")).collect();
                ("POST", "/tasks/bulk-status-sync".to_owned(), json!({"tasks": tasks}), touched)
            }
            _ => return self.note(key),
        };
        let answer = self.ask(method, &path, &key, &body)?;
        if self.is_acked(&answer) {
            for record in touched {
                *self.changes.entry(record).or_default() += 1;
            }
        } else if answer.status == 409 {
            let sentence = format!("{key}: {method} {path} was answered 409 {}", answer.body);
            self.outcome.found(|outcome| &mut outcome.false_conflicts, sentence);
        } else if !self.is_refused(&answer, &key) {
            self.outcome.broken(format!("{key}: {method} {path}: {} {}", answer.status, answer.body));
        }
        Ok(())
    }

    /// A note; its key is often used a second time, for the same or for another request.
    fn note(&mut self, key: String) -> Result<(), FleetError> {
        let body = json!({"summary": key});
        let answer = self.ask("POST", "/progress/", &key, &body)?;
        if self.is_refused(&answer, &key) {
            return Ok(());
        }
        if !self.is_acked(&answer) {
            self.outcome.broken(format!("{key}: a note was answered {} {}", answer.status, answer.body));
            return Ok(());
        }
        self.notes.push(key.clone());
        if self.seeded.chance(50) {
            let copy = self.ask("POST", "/progress/", &key, &body)?;
            if !matches!(copy.status, 201 | 202) {
                self.outcome.broken(format!("{key}: a copy was answered {} {}", copy.status, copy.body));
            }
        }
        if self.seeded.chance(50) {
            let other = self.ask("POST", "/progress/", &key, &json!({"summary": format!("other-{key}")}))?;
            if other.body["error"] != "idempotency_key_reused" {
                self.outcome.broken(format!("{key}: another request: {} {}", other.status, other.body));
            }
        }
        Ok(())
    }

    fn is_acked(&mut self, answer: &Answer) -> bool {
        let is_acked = matches!(answer.status, 200..=202);
        self.outcome.acked += u64::from(is_acked);
        self.outcome.queued += u64::from(answer.status == 202);
        is_acked
    }

    /// Notes a refusal by a word that says that nothing was stored.
    fn is_refused(&mut self, answer: &Answer, key: &str) -> bool {
        const DENIALS: [&str; 7] = [
            "upstream_unreachable_online_only",
            "credentials_not_queueable",
            "id_required",
            "pending_writes",
            "outbox_full",
            "payload_too_large_to_queue",
            "secret_in_payload",
        ];
        let denies = answer.body["error"].as_str().is_some_and(|word| DENIALS.contains(&word));
        if denies {
            self.outcome.refused += 1;
            self.refusals.push(key.to_owned());
        }
        denies
    }

    /// Requests that are refused while the hub is away, each for another reason.
    fn refused_requests(&mut self) -> Result<(), FleetError> {
        let large = "x".repeat(70_000);
        let task = format!("/tasks/r{}-0", self.round);
        for (method, path, more, body) in [
            ("POST", "/progress/", "", json!({"summary": "s", "meta": {"password": "hunter2"}})),
            ("POST", "/progress/", "", json!({"summary": large})),
            ("POST", "/progress/", "x-api-key: k\r\n", json!({"summary": "s"})),
            ("POST", "/decisions/", "", json!({"title": "t"})),
            ("DELETE", "/progress/none", "", Value::Null),
            ("DELETE", task.as_str(), "", Value::Null),
        ] {
            let key = self.key();
            let answer = self.ask_with(method, path, &format!("idempotency-key: {key}\r\n{more}"), &body)?;
            if !self.is_refused(&answer, &key) {
                let said = format!("{method} {path} was not refused: {} {}", answer.status, answer.body);
                self.outcome.broken(said);
            }
        }
        Ok(())
    }

    /// Hub and relay die, in between the caller writes on; some keys are taken; both come back.
    fn outage(&mut self, stage: &mut Stage, each: u64) -> Result<(), FleetError> {
        let mut candidates = self.make_candidates()?;
        stage.hub.kill9();
        for _ in 0..each {
            self.write()?;
        }
        self.refused_requests()?;
        self.ask_candidates(&mut candidates)?;
        stage.relay.kill9();
        stage.start_hub()?;
        for candidate in candidates.iter_mut().filter(|candidate| candidate.taken) {
            let body = other_body(candidate);
            let more = format!("idempotency-key: {}\r\n", candidate.key);
            let direct = stage.at_hub_with(candidate.method, &candidate.path, &more, &body)?;
            if !matches!(direct.status, 200 | 201) {
                self.outcome
                    .broken(format!("{}: directly: {} {}", candidate.key, direct.status, direct.body));
            }
            self.outcome.taken_keys += 1;
        }
        if self.seeded.chance(50) || self.round == 0 {
            self.bad_credential(stage)?;
        }
        if self.outcome.endless > 0 {
            return Ok(());
        }
        stage.start_relay()?;
        stage.drain()?;
        self.judge_conflicts(stage, &candidates)
    }

    fn make_candidates(&mut self) -> Result<Vec<Candidate>, FleetError> {
        let mut candidates = Vec::new();
        for place in 0..CANDIDATES {
            let id = format!("own{}-{place}", self.round);
            let made = self.key();
            self.ask("POST", "/tasks/", &made, &json!({"id": id, "title": "made"}))?;
            let (note, task) = (self.key(), self.key());
            let taken = self.seeded.chance(50) || place == 0;
            candidates.push(Candidate { key: note, method: "POST", path: "/progress/".to_owned(), taken });
            candidates.push(Candidate { key: task, method: "PATCH", path: format!("/tasks/{id}"), taken });
        }
        Ok(candidates)
    }

    fn ask_candidates(&mut self, candidates: &mut Vec<Candidate>) -> Result<(), FleetError> {
        let mut waiting = Vec::new();
        for candidate in candidates.drain(..) {
            let body = own_body(&candidate);
            let answer = self.ask(candidate.method, &candidate.path, &candidate.key, &body)?;
            if self.is_refused(&answer, &candidate.key) {
                continue;
            }
            if !self.is_acked(&answer) {
                self.outcome.broken(format!("{}: {} {}", candidate.key, answer.status, answer.body));
                continue;
            }
            if candidate.method == "POST" && !candidate.taken {
                self.notes.push(candidate.key.clone());
            }
            waiting.push(candidate);
        }
        *candidates = waiting;
        Ok(())
    }

    /// The relay starts with a credential that the hub refuses: one write a pause, every command and the process end, and
    /// the pause outlives it.
    fn bad_credential(&mut self, stage: &mut Stage) -> Result<(), FleetError> {
        self.outcome.bad_credentials += 1;
        let before = attempts(stage)?;
        stage.break_token()?;
        stage.start_relay()?;
        // At its start, by the running relay, and by a stand-in.
        let pauses = 3;
        let replayed = stage.replay_once();
        if !matches!(replayed, Ok(Some(3))) {
            self.outcome.broken(format!("replay with a bad credential ended with {replayed:?}"));
        }
        stage.relay.terminate();
        if stage.relay.wait_exit(STOP_BOUND).is_err() {
            stage.relay.kill9();
            let sentence = format!("round {}: a relay did not end within {STOP_BOUND:?}", self.round);
            self.outcome.found(|outcome| &mut outcome.endless, sentence);
        } else if !matches!(stage.replay_once(), Ok(Some(3))) {
            self.outcome.broken(format!("round {}: a stand-in's replay did not end with 3", self.round));
        }
        let status = stage.status()?;
        if status["paused"].is_null() {
            self.outcome.broken(format!("round {}: the pause did not outlive its process", self.round));
        }
        let met = attempts(stage)?.saturating_sub(before);
        if met > pauses {
            let sentence = format!("round {}: {met} writes met the hub in {pauses} pauses", self.round);
            self.outcome.found(|outcome| &mut outcome.unpaused, sentence);
        }
        stage.mend_token()
    }

    /// Conflicts are those whose keys were taken, and no others; a copy of the request that has a key gets its answer.
    fn judge_conflicts(&mut self, stage: &Stage, candidates: &[Candidate]) -> Result<(), FleetError> {
        let conflicts: HashMap<String, Value> = stage
            .listed("conflict")?
            .into_iter()
            .filter_map(|row| Some((row["idempotency_key"].as_str()?.to_owned(), row)))
            .collect();
        for candidate in candidates.iter().filter(|candidate| candidate.taken) {
            let key = &candidate.key;
            match conflicts.get(key) {
                Some(row) if row["response_code"] == "idempotency_key_reused" => {}
                Some(row) => self.outcome.broken(format!("{key}: its conflict does not name the key: {row}")),
                None => {
                    let sentence = format!("{key}: another request has the key, and it is no conflict");
                    self.outcome.found(|outcome| &mut outcome.wrongly_done, sentence);
                }
            }
            let copy = self.ask(candidate.method, &candidate.path, key, &other_body(candidate))?;
            if !matches!(copy.status, 200 | 201) {
                self.outcome
                    .broken(format!("{key}: the committed request's copy: {} {}", copy.status, copy.body));
            }
        }
        let taken: HashSet<&String> =
            candidates.iter().filter(|candidate| candidate.taken).map(|candidate| &candidate.key).collect();
        for (key, row) in &conflicts {
            if !taken.contains(key) {
                let sentence = format!("{key}: {} {} is in conflict", row["method"], row["path"]);
                self.outcome.found(|outcome| &mut outcome.false_conflicts, sentence);
            }
            let id = row["envelope_id"].as_str().unwrap_or_default();
            stage.cli(&["relay", "outbox", "resolve", id, "--drop"])?;
        }
        // What waited behind a false conflict may go now.
        if conflicts.len() > taken.len() { stage.drain() } else { Ok(()) }
    }

    fn judge(&mut self, stage: &Stage) -> Result<(), FleetError> {
        let mut notes: HashMap<String, u64> = HashMap::new();
        for note in super::judge::applied(stage)? {
            *notes.entry(note).or_default() += 1;
        }
        for note in &self.notes {
            let times = notes.get(note).copied().unwrap_or_default();
            if times != 1 {
                let sentence = format!("{note}: a note stands there {times} times");
                self.outcome.lost_or_doubled += 1;
                self.outcome.broken.push(sentence);
            }
        }
        if self.outcome.endless == 0 && self.outcome.false_conflicts == 0 {
            for (path, changes) in self.changes.clone() {
                let record = stage.at_hub("GET", &path, &Value::Null)?;
                if record.body["version"] != changes {
                    let sentence =
                        format!("{path}: version {} after {changes} changes", record.body["version"]);
                    self.outcome.found(|outcome| &mut outcome.lost_or_doubled, sentence);
                }
            }
        }
        for key in self.refusals.clone() {
            let state = stage.at_hub("GET", &format!("/idempotency/{key}"), &Value::Null)?;
            let stored = stage.inspect(&key)?;
            if stored.is_some() || state.body["state"] != "absent" {
                let sentence =
                    format!("{key} was refused, and is {stored:?} here and {} there", state.body["state"]);
                self.outcome.found(|outcome| &mut outcome.stored_refusals, sentence);
            }
        }
        Ok(())
    }
}

fn own_body(candidate: &Candidate) -> Value {
    match candidate.method {
        "POST" => json!({"summary": candidate.key}),
        _ => json!({"title": candidate.key}),
    }
}

/// What the other request under the candidate's key asks.
fn other_body(candidate: &Candidate) -> Value {
    let other = format!("direct-{}", candidate.key);
    match candidate.method {
        "POST" => json!({"summary": other}),
        _ => json!({"title": other}),
    }
}

/// Tries of all that waits.
fn attempts(stage: &Stage) -> Result<u64, FleetError> {
    Ok(stage.listed("queued")?.iter().filter_map(|row| row["attempts"].as_u64()).sum())
}
