//! What happens in the demo, in order.

use std::sync::Arc;
use std::time::Duration;

use model::{Clock, ErrorCode, Rung, Timestamp};
use serde::Serialize;
use wire::local::{InboxPage, OutboxItem, SendAnswer, SendRequest};

use super::agent::{self, Worked};
use super::stage::Stage;
use crate::clock::clock;
use crate::failure::Failure;
use crate::local::LocalDoor;
use crate::output::{Form, Output, gutter};

/// What planner wants before and during the crash: id, agent, words.
const FIRST: (&str, &str, &str) = ("demo-0", "builder", "build 0.9");
const JOBS: &[(&str, &str, &str)] = &[
    ("demo-1", "builder", "run the tests"),
    ("demo-2", "reviewer", "review it"),
    ("demo-3", "builder", "pack it"),
    ("demo-4", "reviewer", "check the notes"),
    ("demo-5", "builder", "tag it"),
    ("demo-6", "reviewer", "say yes or no"),
];
/// How long a rung is waited for.
const RUNG_TIMEOUT: Duration = Duration::from_secs(30);

/// What the demo counted.
#[derive(Debug, Default, Serialize)]
pub struct Count {
    /// Calls that handed a message over.
    pub asked: usize,
    /// Messages they were.
    pub stored: usize,
    /// Asked, and not processed at the end.
    pub lost: usize,
    /// In an inbox, or begun a first time, more than once.
    pub doubled: usize,
    /// Turns that were begun again after the kill, and marked.
    pub redelivered: usize,
}

/// Everyone on the stage, as they speak to the door.
struct Cast {
    planner: LocalDoor,
    builder: LocalDoor,
    reviewer: LocalDoor,
}

/// Plays it to its end.
pub async fn play(stage: &mut Stage, output: &Output) -> Result<Count, Failure> {
    let teller = Teller { output, clock: clock(), utf8: speaks_utf8() };
    let (process, _) = stage.start(&*teller.clock).await?;
    teller.fact("runs", &format!("process {process} on {}", stage.folder().display()));
    let cast = enter(stage).await?;
    teller.fact("agents", "planner, builder, reviewer");
    let mut count = Count::default();
    let mut worked = calm(&cast, &teller, &mut count).await?;
    storm(stage, &cast, &teller, &mut count).await?;
    worked.extend(recovery(stage, &cast, &teller, &mut count).await?);
    judge(&cast, &worked, &mut count).await?;
    Ok(count)
}

async fn enter(stage: &Stage) -> Result<Cast, Failure> {
    let mut doors = Vec::new();
    for name in ["planner", "builder", "reviewer"] {
        let token = stage.agent(&name.parse().expect("the demo's names are names")).await?;
        doors.push(stage.door()?.with_token(&token));
    }
    let [planner, builder, reviewer] =
        doors.try_into().unwrap_or_else(|_| unreachable!("three names give three doors"));
    Ok(Cast { planner, builder, reviewer })
}

/// One message all the way up, nothing in its way.
async fn calm(cast: &Cast, teller: &Teller<'_>, count: &mut Count) -> Result<Vec<Worked>, Failure> {
    let (id, to, words) = FIRST;
    teller.head(&format!("planner asks {to}: \"{words}\""));
    let answer = hand_over(&cast.planner, FIRST, count).await?;
    let item = reached(&cast.planner, &answer, Rung::Delivered).await?;
    teller.climbed(&item, id, Rung::Queued, "safe on this host");
    teller.climbed(&item, id, Rung::Accepted, "safe at the broker");
    teller.climbed(&item, id, Rung::Delivered, "in builder's inbox");
    let turn = agent::begin(&cast.builder).await?.ok_or_else(nothing_came)?;
    let item = reached(&cast.planner, &answer, Rung::Engaged).await?;
    teller.climbed(&item, id, Rung::Engaged, "builder's turn began");
    let worked = agent::end(&cast.builder, &turn).await?;
    let item = reached(&cast.planner, &answer, Rung::Processed).await?;
    teller.climbed(&item, id, Rung::Processed, "ended and answered in one commit");
    Ok(vec![worked])
}

/// Six more at once, one of them begun, and then the plug.
async fn storm(
    stage: &mut Stage,
    cast: &Cast,
    teller: &Teller<'_>,
    count: &mut Count,
) -> Result<(), Failure> {
    teller.head("planner asks for six more things; reviewer begins on one");
    for job in JOBS {
        hand_over(&cast.planner, *job, count).await?;
    }
    let open = agent::begin(&cast.reviewer).await?.ok_or_else(nothing_came)?;
    let begun = open.message.message.fields.client_message_id.to_string();
    let killed = stage.kill().await.unwrap_or_default();
    teller.fact("killed", &format!("kill -9 {killed}, with reviewer's turn on {begun} open"));
    let late = ("demo-late", "builder", "one more");
    match hand_over(&cast.planner, late, &mut Count::default()).await {
        Err(failure) if failure.code == ErrorCode::DaemonNotRunning.code() => {
            teller.fact("refused", "one more: no daemon answers. Nothing was stored.");
        }
        Err(failure) => return Err(failure),
        Ok(_) => return Err(Failure::refused(ErrorCode::Internal, "a dead daemon answered")),
    }
    Ok(())
}

/// The same home again: every id asked once more, every agent back at work.
async fn recovery(
    stage: &mut Stage,
    cast: &Cast,
    teller: &Teller<'_>,
    count: &mut Count,
) -> Result<Vec<Worked>, Failure> {
    let (process, took) = stage.start(&*teller.clock).await?;
    teller.fact("started", &format!("process {process} on the same home, {:.1} s", took.as_secs_f64()));
    let mut answers = Vec::new();
    for job in JOBS {
        answers.push(hand_over(&cast.planner, *job, count).await?);
    }
    teller.fact("asked", "all six again, with the ids they had");
    teller.head("and the agents go on");
    let (builder, reviewer) = tokio::join!(work(&cast.builder, 3), work(&cast.reviewer, 3));
    let worked: Vec<Worked> = builder?.into_iter().chain(reviewer?).collect();
    for ((id, to, words), answer) in JOBS.iter().zip(&answers) {
        let item = reached(&cast.planner, answer, Rung::Processed).await?;
        let again = worked.iter().find(|worked| worked.client_message_id == *id && worked.redelivered);
        let mark = again.map_or_else(String::new, |again| format!(", try {}, marked", again.attempt));
        let rung = item.receipt.rung.parse().unwrap_or(Rung::Queued);
        teller.climbed(&item, id, rung, &format!("{to}: {words}{mark}"));
    }
    Ok(worked)
}

/// Works off so many messages.
async fn work(door: &LocalDoor, messages: usize) -> Result<Vec<Worked>, Failure> {
    let mut worked = Vec::new();
    let mut idle = 0;
    while worked.len() < messages && idle < RUNG_TIMEOUT.as_secs() {
        match agent::begin(door).await {
            Ok(Some(turn)) => worked.push(agent::end(door, &turn).await?),
            Ok(None) => idle += 1,
            // The turn the kill took is its holder's until its lease is over.
            Err(failure) if failure.code == ErrorCode::TurnOpen.code() => {
                idle += 1;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(worked)
}

/// Counts by what the agents hold, not by what anybody said.
async fn judge(cast: &Cast, worked: &[Worked], count: &mut Count) -> Result<(), Failure> {
    for (door, name) in [(&cast.builder, "builder"), (&cast.reviewer, "reviewer")] {
        let page: InboxPage = door.get("/v1/inbox?limit=100").await?;
        for (id, to, _) in [FIRST].iter().chain(JOBS) {
            let copies = page
                .items
                .iter()
                .filter(|item| item.message.fields.client_message_id.as_str() == *id)
                .count();
            let firsts =
                worked.iter().filter(|work| work.client_message_id == *id && work.attempt == 1).count();
            let wanted = usize::from(*to == name);
            count.stored += wanted.min(copies);
            count.doubled += copies.saturating_sub(wanted) + wanted * firsts.saturating_sub(1);
            let done = worked.iter().any(|work| work.client_message_id == *id);
            count.lost += usize::from(wanted > copies || (wanted == 1 && !done));
        }
    }
    count.redelivered = worked.iter().filter(|work| work.redelivered).count();
    Ok(())
}

async fn hand_over(
    door: &LocalDoor,
    (id, to, words): (&str, &str, &str),
    count: &mut Count,
) -> Result<SendAnswer, Failure> {
    let request = SendRequest {
        to: format!("@{to}"),
        body: Some(words.to_owned()),
        client_message_id: Some(id.to_owned()),
        ..SendRequest::default()
    };
    let answer = door.post("/v1/send", &request).await?;
    count.asked += 1;
    Ok(answer)
}

/// Its row, once it is there or time is up.
async fn reached(door: &LocalDoor, answer: &SendAnswer, rung: Rung) -> Result<OutboxItem, Failure> {
    let path = format!("/v1/messages/{}?rung={rung}&wait={}", answer.row, RUNG_TIMEOUT.as_secs());
    door.get_within(&path, RUNG_TIMEOUT * 2).await
}

fn nothing_came() -> Failure {
    Failure::refused(ErrorCode::Internal, "no message came to an agent in time").fix("postrider doctor")
}

/// Says what happened, to people only.
struct Teller<'a> {
    output: &'a Output,
    clock: Arc<dyn Clock>,
    utf8: bool,
}

impl Teller<'_> {
    fn fact(&self, word: &str, text: &str) {
        if self.output.form() == Form::Text {
            self.output.fact(word, text);
        }
    }

    fn head(&self, text: &str) {
        if self.output.form() == Form::Text {
            self.output.text("");
            self.output.text(text);
        }
    }

    /// A rung, with the instant its receipt names.
    fn climbed(&self, item: &OutboxItem, id: &str, rung: Rung, text: &str) {
        let receipt = item.rungs.iter().find(|receipt| receipt.rung == rung.word());
        if let (Some(receipt), Form::Text) = (receipt, self.output.form()) {
            let (ladder, word) = (ladder(rung, self.utf8), gutter(rung.word(), ""));
            self.output.text(&format!("{ladder}  {word} {}  {id}  {text}", milliseconds(receipt.at)));
        }
    }
}

/// The time of day to the millisecond, as the receipt says it in UTC.
fn milliseconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(11..23).unwrap_or(&text).to_owned()
}

/// Six rungs in three places: this host, broker, recipient.
fn ladder(rung: Rung, utf8: bool) -> String {
    let (full, empty) = if utf8 { ('●', '○') } else { ('#', '.') };
    let mark = |at: &Rung| if *at <= rung { full } else { empty };
    let marks: Vec<char> = Rung::ALL.iter().map(mark).collect();
    let place = |marks: &[char]| marks.iter().collect::<String>();
    format!("{}|{}|{}", place(&marks[..1]), place(&marks[1..2]), place(&marks[2..]))
}

/// Whether the surroundings say that they can show more than ASCII.
fn speaks_utf8() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    said.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_fills_from_this_host_to_the_recipient() {
        assert_eq!(ladder(Rung::Queued, true), "●|○|○○○○");
        assert_eq!(ladder(Rung::Delivered, true), "●|●|●○○○");
        assert_eq!(ladder(Rung::Processed, true), "●|●|●●●●");
        assert_eq!(ladder(Rung::Accepted, false), "#|#|....");
    }
}
