//! `postrider relay outbox`: what waits, and what a person may do about it.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context as _;
use model::{ErrorCode, Timestamp, limits};
use wire::relay::{
    Acted, EnvelopePage, EnvelopeView, RelayStatus, ResolveRequest, RetryRequest, TooOldWrite,
};

use super::door::RelayDoor;
use super::replay;
use super::stand_in::{StandIn, Wants};
use crate::args;
use crate::clock::clock;
use crate::cmd::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output, age, clock_time, short_id};

/// Asks the relay; without one, a stand-in for as long as the command takes.
pub async fn run(asked: args::RelayOutbox, context: &Context) -> Result<Exit, Failure> {
    let door = RelayDoor::of(&context.home)?;
    if door.answers().await {
        return act(asked, &door, &context.output).await;
    }
    let wants = match &asked {
        args::RelayOutbox::Replay { upstream_url, upstream_token_file, .. } => {
            Wants::Replay { upstream: upstream_url.as_deref(), token_file: upstream_token_file.as_deref() }
        }
        _ => Wants::Operate,
    };
    let stand_in = StandIn::open(&wants, context).await?;
    if stand_in.is_some() && context.output.form() == Form::Text {
        context.output.fact("warn", "no relay runs here; this command opened its outbox");
    }
    let ended = act(asked, &door, &context.output).await;
    if let Some(stand_in) = stand_in {
        stand_in.close().await;
    }
    ended
}

async fn act(asked: args::RelayOutbox, door: &RelayDoor, output: &Output) -> Result<Exit, Failure> {
    match asked {
        args::RelayOutbox::Status => status(door, output).await?,
        args::RelayOutbox::List { status, limit } => list(door, status.as_deref(), limit, output).await?,
        args::RelayOutbox::Inspect { id } => inspect(door, &id, output).await?,
        args::RelayOutbox::Replay { upstream_url, force_upstream, timeout, .. } => {
            return replay::run(door, upstream_url, force_upstream, timeout, output).await;
        }
        args::RelayOutbox::Export { output: file } => export(door, &file, output).await?,
        args::RelayOutbox::Retry { id, force_duplicate } => {
            let request = RetryRequest { force_duplicate };
            acted(&door.post(&format!("/envelopes/{id}/retry"), &request).await?, output);
        }
        args::RelayOutbox::Cancel { id } => {
            acted(&door.post(&format!("/envelopes/{id}/cancel"), &serde_json::json!({})).await?, output);
        }
        args::RelayOutbox::Resolve { id, keep, drop, edit } => {
            let request = choice(keep, drop, edit.as_deref())?;
            acted(&door.post(&format!("/envelopes/{id}/resolve"), &request).await?, output);
        }
    }
    Ok(Exit::Done)
}

async fn status(door: &RelayDoor, output: &Output) -> Result<(), Failure> {
    let status: RelayStatus = door.get("/status").await?;
    match output.form() {
        Form::Json => output.json(&status),
        Form::Quiet => output.text(&status.queued.to_string()),
        Form::Text => print_status(&status, output),
    }
    Ok(())
}

/// What is known of the upstream, and since when; never a guess.
pub fn upstream_word(status: &RelayStatus, now: Timestamp) -> String {
    let because = status.unanswered_because.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
    let named = status.upstream_id.as_deref().map(|id| format!(", {id}")).unwrap_or_default();
    let answered: Option<Timestamp> = status.last_answered_at.as_deref().and_then(|at| at.parse().ok());
    match (status.unanswered_since, status.away_seconds, answered) {
        (_, Some(seconds), _) => format!("away {} min{because}", seconds / 60),
        (0, None, None) => "not asked yet".to_owned(),
        (0, None, Some(at)) if now.since(at).as_secs() < 60 => format!("answers{named}"),
        (0, None, Some(at)) => format!("last answered {} ago{named}", age(at, now)),
        (tries, None, None) => format!("never answered, {tries} tries unanswered{because}"),
        (tries, None, Some(at)) => {
            format!("last answered at {}, {tries} tries unanswered since{because}", clock_time(at))
        }
    }
}

/// A write that a person has to decide about, and why.
pub fn too_old_word(write: &TooOldWrite) -> String {
    let known = match write.outcome.as_str() {
        "not_committed" => "it was not applied",
        _ if write.status == "expired" => "it may have been applied, and the upstream cannot tell any more",
        _ => "it may have been applied; the upstream is asked first",
    };
    format!("{} {} is too old to be sent again by itself: {known}", write.method, write.path)
}

/// The relay's standing for people.
pub fn print_status(status: &RelayStatus, output: &Output) {
    output.fact("upstream", &format!("{} {}", status.upstream, upstream_word(status, clock().now())));
    let oldest = status.oldest_queued_at.as_deref().and_then(|at| at.parse().ok());
    let oldest = oldest.map(|at| format!(", oldest {}", age(at, clock().now()))).unwrap_or_default();
    output.fact(
        "queued",
        &format!("{}{oldest}: {} not_sent, {} unknown", status.queued, status.not_sent, status.unknown),
    );
    output.fact(
        "conflict",
        &format!(
            "{:<6} rejected {:<6} expired {:<6} done {} (kept 24 h)",
            status.conflict, status.rejected, status.expired, status.done
        ),
    );
    if status.blocked > 0 {
        output.fact("", &format!("{} of the queued wait for a person's word on a conflict.", status.blocked));
    }
    if let Some(alarm) = &status.age_alarm {
        let when = if alarm == "last" { "within a day" } else { "at 13 days" };
        output.fact("warn", &format!("the oldest expires {when}, and is then not sent by itself"));
    }
    for write in &status.too_old {
        output.fact_with_id("too old", &too_old_word(write), &write.envelope_id);
    }
    for (word, text) in [
        ("paused", &status.paused),
        ("aside", &status.set_aside),
        ("warn", &status.forward_only),
        ("warn", &status.went_back),
    ] {
        if let Some(text) = text {
            output.fact(word, text);
        }
    }
}

async fn list(door: &RelayDoor, status: Option<&str>, limit: usize, output: &Output) -> Result<(), Failure> {
    let filter = status.map(|status| format!("&status={status}")).unwrap_or_default();
    let page: EnvelopePage = door.get(&format!("/envelopes?limit={limit}{filter}")).await?;
    let rows: Vec<&EnvelopeView> =
        page.envelopes.iter().filter(|row| status.is_some() || row.status != "done").collect();
    match output.form() {
        Form::Json => rows.iter().for_each(|row| output.json(row)),
        Form::Quiet => rows.iter().for_each(|row| output.text(&row.envelope_id)),
        Form::Text => {
            output.text("ROW     STATE      OUTCOME        ASKED    TRIES  WRITE");
            rows.iter().for_each(|row| output.text(&line(row)));
        }
    }
    Ok(())
}

fn line(row: &EnvelopeView) -> String {
    let asked = row.queued_at.parse().map_or_else(|_| String::new(), |at| age(at, clock().now()));
    format!(
        "{:<6}  {:<9}  {:<13}  {asked:<7}  {:>5}  {} {}",
        short_id(&row.envelope_id),
        row.status,
        row.outcome,
        row.attempts,
        row.method,
        row.path
    )
}

async fn inspect(door: &RelayDoor, id: &str, output: &Output) -> Result<(), Failure> {
    let row: EnvelopeView = door.get(&format!("/envelopes/{id}")).await?;
    match output.form() {
        Form::Json => output.json(&row),
        Form::Quiet => output.text(&row.envelope_id),
        Form::Text => print_envelope(&row, output),
    }
    Ok(())
}

fn print_envelope(row: &EnvelopeView, output: &Output) {
    output.fact_with_id(&row.status, &row.outcome, &row.envelope_id);
    output.fact("write", &format!("{} {}", row.method, row.path));
    output.fact("key", &row.idempotency_key);
    output.fact("order", &row.order_key);
    output.fact("asked", &format!("{}, {} tries", row.queued_at, row.attempts));
    for (word, text) in [
        ("on", &row.precondition),
        ("", &row.base_unknown),
        ("last", &row.last_error),
        ("ends", &row.ending),
        ("decided", &row.resolution),
        ("replaced", &row.superseded_by),
    ] {
        if let Some(text) = text {
            output.fact(word, &crate::output::harmless(text));
        }
    }
    for (word, body) in [("base", &row.base), ("mine", &row.mine), ("theirs", &row.theirs)] {
        if let Some(body) = body {
            output.fact(word, &crate::output::harmless(&body.to_string()));
        }
    }
    if row.status == "conflict" {
        let id = short_id(&row.envelope_id);
        output.fact("fix", &format!("postrider relay outbox resolve {id} --drop     keep the hub's"));
        let on = match row.response_code.as_deref() == Some(ErrorCode::IdempotencyKeyReused.code()) {
            true => "yours, under a new key: another request has this one",
            false => "yours, on the version shown",
        };
        output.fact("", &format!("postrider relay outbox resolve {id} --keep     {on}"));
    }
}

fn choice(keep: bool, drop: bool, edit: Option<&Path>) -> Result<ResolveRequest, Failure> {
    let request = |choice: &str, body| ResolveRequest { choice: choice.to_owned(), seen_etag: None, body };
    match (keep, drop, edit) {
        (true, false, None) => Ok(request("keep", None)),
        (false, true, None) => Ok(request("drop", None)),
        (false, false, Some(file)) => {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            let body = serde_json::from_str(&text)
                .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
            Ok(request("edit", Some(body)))
        }
        _ => Err(Failure::usage("say --keep, --drop or --edit FILE")),
    }
}

fn acted(acted: &Acted, output: &Output) {
    match output.form() {
        Form::Json => output.json(acted),
        Form::Quiet => output.text(&acted.successor.as_ref().unwrap_or(&acted.envelope).envelope_id),
        Form::Text => {
            output.fact_with_id(&acted.did, &acted.envelope.outcome, &acted.envelope.envelope_id);
            if let Some(next) = &acted.successor {
                output.fact_with_id("queued", "in its place", &next.envelope_id);
            }
            if let Some(warning) = &acted.warning {
                output.fact("warn", warning);
            }
        }
    }
}

async fn export(door: &RelayDoor, file: &Path, output: &Output) -> Result<(), Failure> {
    let shown = || file.display().to_string();
    let mut out = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(|error| Failure::usage(format!("{} cannot be made: {error}", file.display())))?;
    let (mut after, mut rows) = (0, 0);
    loop {
        let path = format!("/envelopes?bodies=true&after={after}&limit={}", limits::PAGE_ROWS_DEFAULT);
        let page: EnvelopePage = door.get(&path).await?;
        let Some(last) = page.envelopes.last() else { break };
        after = last.local_seq;
        for row in &page.envelopes {
            let line = serde_json::to_string(row).context("an envelope is JSON")?;
            writeln!(out, "{line}").with_context(shown)?;
            rows += 1;
        }
    }
    out.sync_all().with_context(shown)?;
    match output.form() {
        Form::Json => output.json(&serde_json::json!({"exported": rows, "file": file})),
        Form::Quiet => output.text(&rows.to_string()),
        Form::Text => output.fact("exported", &format!("{rows} envelopes to {}", file.display())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstreams_word_says_what_is_known_and_since_when() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let told = |answered: Option<i64>, tries: u32, away: Option<u64>| {
            let status = RelayStatus {
                upstream_id: Some("hub-1".into()),
                last_answered_at: answered.map(|second| at(second).to_string()),
                unanswered_since: tries,
                unanswered_because: (tries > 0).then(|| "Connection refused".into()),
                away_seconds: away,
                ..RelayStatus::default()
            };
            upstream_word(&status, at(300))
        };
        for (word, expected) in [
            (told(None, 0, None), "not asked yet".to_owned()),
            (told(Some(290), 0, None), "answers, hub-1".to_owned()),
            (told(Some(60), 0, None), "last answered 4 min ago, hub-1".to_owned()),
            (told(None, 2, None), "never answered, 2 tries unanswered (Connection refused)".to_owned()),
            (
                told(Some(299), 1, None),
                format!(
                    "last answered at {}, 1 tries unanswered since (Connection refused)",
                    clock_time(at(299))
                ),
            ),
            (told(Some(0), 9, Some(240)), "away 4 min (Connection refused)".to_owned()),
        ] {
            assert_eq!(word, expected);
        }
    }
}
