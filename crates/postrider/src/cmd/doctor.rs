//! `postrider doctor`: looks at a home from outside and from inside, and says what is wrong and what fixes it. It
//! changes nothing, and it needs no daemon to run.

mod files;
mod finding;
mod link;
mod process;
mod system;

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};
pub use files::quoted;
use finding::{Finding, Level};
pub use link::broker_problems;

/// What `fine` may fill of a line.
const LINE_WIDTH: usize = 70;

pub async fn run(asked: args::Doctor, context: &Context) -> Result<Exit, Failure> {
    let mut findings = files::look(&context.home);
    findings.extend(system::look(&context.home, &*crate::clock::clock()));
    if context.home.root().is_dir() {
        findings.extend(process::look(&context.home).await);
    }
    let output = &context.output;
    match output.form() {
        Form::Json => findings.iter().for_each(|finding| output.json(finding)),
        Form::Quiet => findings
            .iter()
            .filter(|finding| finding.level != Level::Fine)
            .for_each(|finding| output.text(finding.check)),
        Form::Text => print(&findings, asked.all, output),
    }
    let well = findings.iter().all(|finding| finding.level == Level::Fine);
    Ok(if well { Exit::Done } else { Exit::Refused })
}

fn print(findings: &[Finding], all: bool, output: &Output) {
    let (fine, found): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.level == Level::Fine);
    let count = match found.len() {
        0 => "nothing to do".to_owned(),
        1 => "1 finding".to_owned(),
        several => format!("{several} findings"),
    };
    output.text(&format!("{} checks, {count}", findings.len()));
    for finding in found {
        output.text("");
        output.fact(finding.level.word(), &finding.message);
        finding.more.iter().for_each(|line| output.fact("", line));
        for (place, fix) in finding.fix.iter().enumerate() {
            output.fact(if place == 0 { "fix" } else { "" }, fix);
        }
    }
    output.text("");
    let fine: Vec<&str> = fine.iter().map(|finding| finding.message.as_str()).collect();
    let lines = if all { fine.iter().map(|line| (*line).to_owned()).collect() } else { filled(&fine) };
    for (place, line) in lines.iter().enumerate() {
        output.fact(if place == 0 { "fine" } else { "" }, line);
    }
}

/// Sentences in lines that fit beside the gutter.
fn filled(sentences: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (place, sentence) in sentences.iter().enumerate() {
        let piece = if place + 1 < sentences.len() { format!("{sentence};") } else { (*sentence).to_owned() };
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + piece.chars().count() <= LINE_WIDTH => {
                line.push(' ');
                line.push_str(&piece);
            }
            Some(_) | None => lines.push(piece),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fine_fills_lines_without_breaking_a_sentence() {
        assert_eq!(filled(&[]), Vec::<String>::new());
        assert_eq!(filled(&["a", "b"]), ["a; b"]);
        let long = "x".repeat(LINE_WIDTH - 1);
        assert_eq!(filled(&[&long, "b", "c"]), [format!("{long};"), "b; c".to_owned()]);
    }
}
