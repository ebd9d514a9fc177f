//! `postrider explain`: where a message is and why, from everyone who may know. It changes nothing.

use model::{Clock, ErrorCode, SystemClock, Timestamp};
use net::client::segment;
use wire::local::{ExplainedTurn, Explanation, Receipt};
use wire::relay::{RelayExplained, RelayFound};

use super::Context;
use super::relay::RelayDoor;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output, age, clock_time, harmless, short_id};

/// The ladder, for the rungs that are still to come.
const LADDER: [&str; 6] = ["queued", "accepted", "delivered", "notified", "engaged", "processed"];

pub async fn run(id: &str, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    let told: Explanation = match door.get(&format!("/v1/explain/{}", segment(id))).await {
        Ok(told) => told,
        Err(failure) if failure.code == ErrorCode::DaemonNotRunning.code() => {
            relay_alone(id, failure, context).await?
        }
        Err(failure) => return Err(with_candidates(failure)),
    };
    match output.form() {
        Form::Json => output.json(&told),
        Form::Quiet => output.text(&told.verdict),
        Form::Text => print(&told, output),
    }
    Ok(match told.verdict.as_str() {
        "never_seen" => Exit::Refused,
        "unknown" => Exit::Unreachable,
        _ => Exit::Done,
    })
}

/// A host may run a relay and nothing else: then its word is all there is, and it says whom nobody asked.
async fn relay_alone(id: &str, missing: Failure, context: &Context) -> Result<Explanation, Failure> {
    let door = RelayDoor::of(&context.home)?;
    if context.agent_token_file.is_some() || !door.answers().await {
        return Err(missing);
    }
    let told: RelayExplained = door.get(&format!("/explain/{}", segment(id))).await?;
    let Some(found) = told.found else {
        return Err(missing.line("This home's relay was asked: it holds no record of this id."));
    };
    let mut alone = Explanation {
        id: id.to_owned(),
        broker: "unreachable".to_owned(),
        asked: vec![format!("relay to {}", told.upstream)],
        unasked: vec![format!("this host: {}", missing.code)],
        ..Explanation::default()
    };
    alone.tell_as_relay(&found);
    alone.relay = Some(found);
    Ok(alone)
}

fn with_candidates(mut failure: Failure) -> Failure {
    let candidates = failure.more.get("candidates").and_then(|list| list.as_array()).cloned();
    for candidate in candidates.unwrap_or_default() {
        failure = failure.line(candidate.as_str().unwrap_or_default().to_owned());
    }
    failure
}

fn print(told: &Explanation, output: &Output) {
    let shown = told.client_message_id.as_deref().unwrap_or(&told.id);
    let needs = if told.needs_person { ", needs a person" } else { "" };
    output.text(&headed(&format!("{}{needs}", harmless(&told.sentence)), shown));
    if let (Some(sender), Some(to)) = (&told.sender, &told.to) {
        let asked = told.rungs.first().map(|first| format!(", {}", ago(first.at))).unwrap_or_default();
        output.text(&format!("{sender} to {to}{asked}"));
    }
    if !told.rungs.is_empty() || told.relay.is_some() {
        output.text("");
    }
    if let Some(relay) = &told.relay {
        print_relay(relay, output);
    }
    if !told.rungs.is_empty() {
        print_ladder(told, output);
    }
    print_turns(&told.turns, output);
    if told.recipients.len() > 1 {
        output.text("");
        for copy in &told.recipients {
            let home = copy.home.as_deref().unwrap_or("the broker");
            let why = copy.code.as_deref().map(|code| format!(": {code}")).unwrap_or_default();
            output.fact("", &format!("{:<10} {} at {home}{why}", copy.rung, copy.name));
        }
    }
    output.text("");
    print_reasons(told, output);
}

fn print_ladder(told: &Explanation, output: &Output) {
    for receipt in &told.rungs {
        output.text(&line("●", receipt, place(told, receipt).as_str()));
    }
    let ended = told.receipt.as_ref().filter(|receipt| !LADDER.contains(&receipt.rung.as_str()));
    if let Some(ended) = ended {
        let why = told.code.as_deref().map(|code| format!("{code}, {} tries", told.attempts.unwrap_or(0)));
        output.text(&line(mark(&ended.rung), ended, &why.unwrap_or_default()));
        return;
    }
    let reached = told.rungs.len();
    let to_come =
        LADDER.iter().skip_while(|rung| Some(**rung) != told.rungs.last().map(|last| last.rung.as_str()));
    if reached > 0 {
        to_come.skip(1).for_each(|rung| output.text(&format!("○  {rung}")));
    }
}

fn print_relay(found: &RelayFound, output: &Output) {
    for step in &found.steps {
        let ended = step.step == found.verdict && !matches!(step.step.as_str(), "queued" | "done");
        let mark = if ended { mark(&step.step) } else { "●" };
        let receipt = Receipt { rung: step.step.clone(), by: "relay".to_owned(), at: step.at };
        output.text(&line(mark, &receipt, &harmless(step.note.as_deref().unwrap_or_default())));
    }
}

fn line(mark: &str, receipt: &Receipt, note: &str) -> String {
    let text = format!("{mark}  {:<10} {:<16} {:<10} {note}", receipt.rung, exact(receipt.at), receipt.by);
    text.trim_end().to_owned()
}

fn place(told: &Explanation, receipt: &Receipt) -> String {
    match (receipt.rung.as_str(), told.history_id) {
        ("queued", _) => "outbox row on disk".to_owned(),
        ("accepted", Some(place)) => format!("place {place}"),
        ("delivered", _) if told.recipients.len() == 1 => format!("{}'s inbox", told.recipients[0].name),
        _ => String::new(),
    }
}

fn mark(ended: &str) -> &'static str {
    match ended {
        "rejected" | "refused" => "⊘",
        "conflict" => "≠",
        "expired" => "◌",
        "aborted" | "cancelled" | "superseded" => "–",
        _ => "✕",
    }
}

fn print_turns(turns: &[ExplainedTurn], output: &Output) {
    // One turn that went well is in the ladder already.
    if turns.len() < 2 && turns.iter().all(|turn| turn.state == "processed" || turn.state == "open") {
        return;
    }
    output.text("");
    for (place, turn) in turns.iter().enumerate() {
        let word = if place == 0 { "turns" } else { "" };
        let until = turn.ended_at.map(|at| format!(" to {}", clock_time(at))).unwrap_or_default();
        let error =
            turn.error.as_deref().map(|error| format!(": {}", crate::output::headline(error, Some(32))));
        let (began, error) = (clock_time(turn.began_at), error.unwrap_or_default());
        output.fact(
            word,
            &format!("{} attempt {} {began}{until} {}{error}", turn.agent, turn.attempt, turn.state),
        );
    }
}

fn print_reasons(told: &Explanation, output: &Output) {
    if let Some(error) = &told.last_error {
        output.fact("why", &format!("{}, {} tries", harmless(error), told.attempts.unwrap_or(0)));
    }
    if let Some(row) = &told.superseded_by {
        output.fact("chain", &format!("row {} took its place", short_id(row)));
    }
    if let Some(relay) = told.relay.as_ref().filter(|relay| relay.sentence != told.sentence) {
        output.fact("relay", &harmless(&relay.sentence));
    }
    if told.rungs.is_empty() || !told.unasked.is_empty() {
        output.fact("asked", &told.asked.join(", "));
    }
    for unasked in &told.unasked {
        output.fact("unasked", unasked);
    }
    if !told.next.is_empty() {
        output.fact("next", &told.next);
    }
    for (place, fix) in told.fix.iter().enumerate() {
        output.fact(if place == 0 { "fix" } else { "" }, fix);
    }
}

fn headed(text: &str, id: &str) -> String {
    let pad = 45usize.saturating_sub(text.chars().count()).max(2);
    format!("{text}{}{id}", " ".repeat(pad))
}

fn ago(at: Timestamp) -> String {
    match age(at, SystemClock::start().now()).as_str() {
        "now" => "now".to_owned(),
        age => format!("{age} ago"),
    }
}

/// Clock time to the millisecond, with the day when it is not today.
fn exact(at: Timestamp) -> String {
    let zone = jiff::tz::TimeZone::system();
    let day = |instant: Timestamp| {
        jiff::Timestamp::from_microsecond(instant.as_micros()).map(|instant| instant.to_zoned(zone.clone()))
    };
    match (day(at), day(SystemClock::start().now())) {
        (Ok(at), Ok(now)) if at.date() == now.date() => at.strftime("%H:%M:%S%.3f").to_string(),
        (Ok(at), _) => at.strftime("%-d %b %H:%M:%S").to_string(),
        (Err(_), _) => at.to_string(),
    }
}
