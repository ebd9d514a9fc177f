//! What a command prints: words in a ten-column gutter for people, one JSON object a line for programs.
//!
//! - Results go to stdout, refusals and fixes to stderr.
//! - A reader that closes its end is not an error of ours: printing simply stops.
//! - Whatever came from outside is shown without control characters, so that no message can move the
//!   cursor or forge a line.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use model::Timestamp;
use serde::Serialize;

use crate::failure::Failure;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// Ids only.
    Quiet,
}

/// The printer of one command.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    form: Form,
    terminal: bool,
}

const GUTTER: usize = 10;
const ID_COLUMN: usize = 45;

impl Output {
    /// A printer in this form.
    pub fn new(form: Form) -> Self {
        Self { form, terminal: std::io::stdout().is_terminal() }
    }

    /// How to print.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether a person looks on.
    pub fn on_terminal(&self) -> bool {
        self.terminal && self.form == Form::Text
    }

    /// One line of text as it is.
    pub fn text(&self, line: &str) {
        print_line(line);
    }

    /// A word in the gutter and what it is about.
    pub fn fact(&self, word: &str, text: &str) {
        print_line(&gutter(word, text));
    }

    /// A sentence that begins with its word, and an id at the right.
    pub fn head(&self, sentence: &str, id: &str) {
        let pad = ID_COLUMN.saturating_sub(sentence.chars().count()).max(2);
        let word = sentence.split([':', ',', ' ']).next().unwrap_or_default();
        let style = style_of(word);
        print_line(&format!("{style}{word}{style:#}{}{}{id}", &sentence[word.len()..], " ".repeat(pad)));
    }

    /// A fact with an id at the right.
    pub fn fact_with_id(&self, word: &str, text: &str, id: &str) {
        let line = gutter(word, text);
        let width = visible_width(&line);
        print_line(&format!("{line}{}{id}", " ".repeat(ID_COLUMN.saturating_sub(width).max(2))));
    }

    /// One JSON object on its own line.
    pub fn json(&self, value: &impl Serialize) {
        print_line(&serde_json::to_string(value).expect("what we print is JSON"));
    }

    /// A refusal, with what is still true and what helps.
    pub fn error(&self, failure: &Failure) {
        let mut stderr = anstream::stderr().lock();
        let text = match self.form {
            Form::Json => error_json(failure),
            Form::Text | Form::Quiet => error_text(failure),
        };
        // Nobody is left to be told when stderr is closed.
        let _ = writeln!(stderr, "{text}");
    }
}

fn print_line(line: &str) {
    let mut stdout = anstream::stdout().lock();
    if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
        // The reader went away: the rest has no audience, and what was asked is already done.
        std::process::exit(0);
    }
}

fn error_json(failure: &Failure) -> String {
    let mut body = failure.more.clone();
    body.insert("error".into(), failure.code.clone().into());
    body.insert("message".into(), failure.lines.join(" ").into());
    body.insert("fix".into(), failure.fix.clone().into());
    serde_json::Value::Object(body).to_string()
}

fn error_text(failure: &Failure) -> String {
    let mut lines = Vec::new();
    for (place, line) in failure.lines.iter().enumerate() {
        let line = harmless(line);
        if place == 0 {
            let head = gutter(failure.word, &line);
            let width = visible_width(&head);
            if width + failure.code.len() + 2 <= 80 {
                lines.push(format!(
                    "{head}{}{}",
                    " ".repeat(59usize.saturating_sub(width).max(2)),
                    failure.code
                ));
            } else {
                lines.push(head);
                lines.push(gutter("", &failure.code));
            }
        } else {
            lines.push(gutter("", &line));
        }
    }
    for (place, fix) in failure.fix.iter().enumerate() {
        lines.push(gutter(if place == 0 { "fix" } else { "" }, fix));
    }
    lines.join("\n")
}

/// `word` in its column, coloured, then `text`.
pub fn gutter(word: &str, text: &str) -> String {
    let style = style_of(word);
    let pad = " ".repeat(GUTTER.saturating_sub(word.chars().count()).max(1));
    format!("{style}{word}{style:#}{pad}{text}")
}

/// Only the first word is coloured, and the colour only repeats it.
fn style_of(word: &str) -> Style {
    let colour = match word {
        "accepted" | "live" | "page" => AnsiColor::Blue,
        "delivered" | "notified" | "engaged" => AnsiColor::Cyan,
        "processed" | "done" => AnsiColor::Green,
        "dead" | "rejected" | "refused" | "stopped" | "wrong" => AnsiColor::Red,
        "conflict" => AnsiColor::Magenta,
        "expired" | "waiting" | "away" | "parked" | "warn" => AnsiColor::Yellow,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(colour.into()))
}

/// Characters on the screen: escape sequences of our own colours take none.
fn visible_width(line: &str) -> usize {
    anstream::adapter::strip_str(line).to_string().chars().count()
}

/// Text from outside without control characters or marks that turn the writing direction.
pub fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The first line of a body, cut to `width` on a terminal.
pub fn headline(body: &str, width: Option<usize>) -> String {
    let line = harmless(body.lines().next().unwrap_or_default());
    match width {
        Some(width) if line.chars().count() > width => {
            let kept: String = line.chars().take(width.saturating_sub(3)).collect();
            format!("{kept}...")
        }
        Some(_) | None => line,
    }
}

/// Ids made by us by their last six characters (their heads look alike), callers' own ids whole.
pub fn short_id(id: &str) -> &str {
    let ours = id.parse::<model::RowId>().is_ok() || id.parse::<model::MessageId>().is_ok();
    if ours { &id[id.len() - 6..] } else { id }
}

/// `now`, `4 min`, `2 h`, `2 d`.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.since(then).as_secs();
    match seconds {
        0..60 => "now".to_owned(),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A clock time for people, in their own zone.
pub fn clock_time(instant: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(instant.as_micros()) {
        Ok(instant) => instant.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string(),
        Err(_) => instant.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_people_say_them() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        for (seconds, text) in
            [(0, "now"), (59, "now"), (60, "1 min"), (3_599, "59 min"), (7_200, "2 h"), (200_000, "2 d")]
        {
            assert_eq!(age(at(0), at(seconds)), text);
        }
        assert_eq!(age(at(100), at(0)), "now", "a clock that is ahead is no reason to lie");
    }

    #[test]
    fn a_body_cannot_move_the_cursor_or_turn_the_line() {
        assert_eq!(harmless("a\x1b[2Jb\r\u{202e}c\td"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c d");
        assert_eq!(headline("first\nsecond", None), "first");
        assert_eq!(headline("0123456789", Some(8)), "01234...");
    }

    #[test]
    fn our_ids_are_shown_by_their_tail_and_callers_ids_whole() {
        assert_eq!(short_id("01M7GH3C2R6V0D9QK1TJX4N8YE"), "X4N8YE");
        assert_eq!(short_id("ci-4127-done"), "ci-4127-done");
    }

    #[test]
    fn a_refusal_says_what_the_code_and_the_fix_within_eighty_columns() {
        let failure = Failure::unreachable(
            model::ErrorCode::DaemonNotRunning,
            "no daemon answers at ~/.postrider/daemon/sock",
        )
        .line("Nothing was stored.")
        .fix("postrider up");
        let text = anstream::adapter::strip_str(&error_text(&failure)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "stopped   no daemon answers at ~/.postrider/daemon/sock    daemon_not_running");
        assert_eq!(lines[1], "          Nothing was stored.");
        assert_eq!(lines[2], "fix       postrider up");
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
    }
}
