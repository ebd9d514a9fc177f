//! What a program's end means for its message.

use model::limits;
use model::turn::TurnOutcome;
use wire::local::{TurnEnd, TurnReply};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Exited(i32),
    /// Somebody ended it who was not the adapter.
    Killed(i32),
    /// The adapter ended it, because its time was over.
    TimedOut,
    /// The adapter ended it, because the turn was lost.
    TurnLost,
}

/// Everything a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// How it ended.
    pub ended: Ended,
    /// Its standard output, up to one byte over the bound.
    pub stdout: Vec<u8>,
    /// The end of its standard error.
    pub stderr: String,
    /// How long it may take, for the sentence about it.
    pub timeout_s: u64,
}

/// What to tell the daemon.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The turn ended.
    End(Box<TurnEnd>),
    /// Nobody knows what was done: the message is run again, marked.
    GiveBack(String),
    /// Somebody else has the message.
    Drop,
}

/// Exit 0 is `processed`, with what was printed as the reply; any other exit is `failed`. A program that was killed
/// did not end, it was interrupted.
pub fn verdict(left: Left) -> Verdict {
    match left.ended {
        Ended::TurnLost => Verdict::Drop,
        Ended::Killed(signal) => Verdict::GiveBack(format!("the program was killed by signal {signal}")),
        Ended::TimedOut => failed(format!("it took longer than {} s", left.timeout_s), &left.stderr),
        Ended::Exited(0) => match reply(left.stdout) {
            Ok(reply) => {
                let outcome = TurnOutcome::Processed;
                Verdict::End(Box::new(TurnEnd { outcome, error: None, reply, mesh: None }))
            }
            Err(why) => failed(why.to_owned(), &left.stderr),
        },
        Ended::Exited(code) => failed(format!("exit {code}"), &left.stderr),
    }
}

/// The end of a turn whose reply the daemon refused for good.
pub fn refused(code: &str, message: &str) -> TurnEnd {
    let error = Some(format!("the reply was refused: {code}: {message}"));
    TurnEnd { outcome: TurnOutcome::Failed, error, reply: None, mesh: None }
}

fn failed(why: String, stderr: &str) -> Verdict {
    let stderr = stderr.trim();
    let error = if stderr.is_empty() { why } else { format!("{why}: {stderr}") };
    Verdict::End(Box::new(TurnEnd {
        outcome: TurnOutcome::Failed,
        error: Some(error),
        reply: None,
        mesh: None,
    }))
}

/// Refused rather than cut or mended: half an answer is another answer.
fn reply(stdout: Vec<u8>) -> Result<Option<TurnReply>, &'static str> {
    if stdout.len() > limits::BODY_BYTES_MAX {
        return Err("it printed more than a message may hold");
    }
    let text = String::from_utf8(stdout).map_err(|_| "it printed something that is no UTF-8 text")?;
    let body = text.trim_end_matches(['\n', '\r']);
    Ok((!body.is_empty()).then(|| TurnReply { body: body.to_owned(), ..TurnReply::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(ended: Ended, stdout: &[u8], stderr: &str) -> Left {
        Left { ended, stdout: stdout.to_vec(), stderr: stderr.to_owned(), timeout_s: 5 }
    }

    fn shown(left: Left) -> String {
        match verdict(left) {
            Verdict::End(end) => format!(
                "{} {} {}",
                end.outcome,
                end.reply.map_or("-".to_owned(), |reply| reply.body),
                end.error.unwrap_or("-".to_owned())
            ),
            Verdict::GiveBack(why) => format!("back {why}"),
            Verdict::Drop => "drop".to_owned(),
        }
    }

    #[test]
    fn each_end_has_its_word() {
        let long = vec![b'x'; limits::BODY_BYTES_MAX + 1];
        for (left, expected) in [
            (left(Ended::Exited(0), b"hi\n", "noise"), "processed hi -"),
            (left(Ended::Exited(0), b"two\nlines\n\n", ""), "processed two\nlines -"),
            (left(Ended::Exited(0), b"\n", ""), "processed - -"),
            (left(Ended::Exited(3), b"half", "no such file\n"), "failed - exit 3: no such file"),
            (left(Ended::Exited(1), b"", ""), "failed - exit 1"),
            (left(Ended::Killed(9), b"half", ""), "back the program was killed by signal 9"),
            (left(Ended::TimedOut, b"half", ""), "failed - it took longer than 5 s"),
            (left(Ended::TurnLost, b"", ""), "drop"),
            (left(Ended::Exited(0), &long, ""), "failed - it printed more than a message may hold"),
            (left(Ended::Exited(0), &[0xff], ""), "failed - it printed something that is no UTF-8 text"),
        ] {
            assert_eq!(shown(left), expected);
        }
    }
}
