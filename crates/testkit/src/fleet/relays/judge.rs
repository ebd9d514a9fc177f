//! What the hub has, against what callers were told.

use super::stage::Stage;
use super::{Answered, Outcome};
use crate::fleet::FleetError;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Broken sentences of one kind; more of them say nothing new.
const NAMED_MAX: usize = 5;

pub(super) fn judge(stage: &Stage, answers: &[Answered], outcome: &mut Outcome) -> Result<(), FleetError> {
    let applied = applied(stage)?;
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, key) in applied.iter().enumerate() {
        places.entry(key).or_default().push(place);
    }
    let expired = keys(&stage.listed("expired")?);
    let mut ended = expired.clone();
    for status in ["conflict", "rejected", "cancelled", "superseded"] {
        ended.extend(keys(&stage.listed(status)?));
    }
    (outcome.acked, outcome.expired) = (answers.len() as u64, expired.len() as u64);
    outcome.queued = answers.iter().filter(|answer| answer.queued).count() as u64;
    let mut last: HashMap<u64, usize> = HashMap::new();
    for answer in answers {
        let found = places.get(answer.key.as_str()).map_or(&[][..], Vec::as_slice);
        match found {
            [] if ended.contains(&answer.key) => {}
            [] => named(
                outcome,
                |outcome| &mut outcome.lost,
                format!("{} was answered and is nowhere", answer.key),
            ),
            [place] => {
                let before = last.insert(answer.session, *place);
                if before.is_some_and(|before| before > *place) {
                    let said = format!("{} stands before an earlier write of its session", answer.key);
                    named(outcome, |outcome| &mut outcome.overtaken, said);
                }
            }
            several => {
                let said = format!("{} was applied {} times", answer.key, several.len());
                named(outcome, |outcome| &mut outcome.doubled, said);
            }
        }
    }
    Ok(())
}

fn named(outcome: &mut Outcome, count: fn(&mut Outcome) -> &mut u64, said: String) {
    *count(outcome) += 1;
    if outcome.broken.len() < NAMED_MAX {
        outcome.broken.push(said);
    }
}

fn keys(rows: &[Value]) -> HashSet<String> {
    rows.iter().filter_map(|row| row["idempotency_key"].as_str().map(str::to_owned)).collect()
}

/// The summaries of all progress records, in the order they were applied.
pub(super) fn applied(stage: &Stage) -> Result<Vec<String>, FleetError> {
    let (mut applied, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/progress/?limit=1000{after}");
        let page = stage.at_hub("GET", &path, &Value::Null)?;
        let records = page.body["records"]
            .as_array()
            .ok_or_else(|| FleetError::Unreadable { asked: path.clone(), answered: page.body.to_string() })?;
        applied.extend(records.iter().filter_map(|record| record["summary"].as_str().map(str::to_owned)));
        if page.body["has_more"] != true {
            return Ok(applied);
        }
        after = format!("&after={}", page.body["cursor"].as_str().unwrap_or_default());
    }
}
