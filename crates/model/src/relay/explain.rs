//! What is said about an envelope: a sentence, what happens next, and what a person can do.

use super::{Ending, Outcome, Status};

/// What an envelope is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Where it is.
    pub status: Status,
    /// What is known of the upstream's side.
    pub outcome: Outcome,
    /// How it will end once its key was asked about.
    pub ending: Option<Ending>,
    /// Whether it turned out to be committed after it was withdrawn.
    pub is_late: bool,
    /// Why it does not move, while it waits.
    pub hold: Hold,
    /// What it clashes with, in a conflict.
    pub clash: Clash,
}

/// What a write in conflict clashes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// The resource changed since the write was asked for.
    Resource,
    /// The upstream committed another request under the write's key.
    Key,
}

/// Why an envelope that waits does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is the next to go.
    Nothing,
    /// Older writes to the same resource go first.
    Older,
    /// Its last try did not get through, and the next one waits a moment.
    Delayed,
    /// The upstream does not answer.
    Away,
    /// An older write to the same resource clashed, and a person decides about that one.
    Conflict,
    /// Nothing is replayed until a person looked.
    Paused,
}

/// What a person can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Nothing has to be done.
    None,
    /// Send what waits.
    Replay,
    /// Decide about the conflicts before it.
    Conflicts,
    /// Decide about this one.
    Resolve,
    /// Ask for it once more.
    Retry,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Where it is and why.
    pub sentence: String,
    /// What happens now.
    pub next: &'static str,
    /// What a person can do; with anything but nothing, nothing more happens by itself.
    pub help: Help,
}

impl Said {
    /// Whether nothing more happens by itself.
    pub fn needs_person(&self) -> bool {
        self.help != Help::None
    }
}

/// What is said about an envelope.
pub fn explain(life: Life) -> Said {
    let Life { status, outcome, ending, is_late, hold, clash } = life;
    let said =
        |sentence: &str, next: &'static str, help: Help| Said { sentence: sentence.to_owned(), next, help };
    match status {
        Status::Queued => match ending {
            Some(ending) => Said {
                sentence: format!("queued at the relay, to end {}", ending.status().word()),
                next: "The upstream is asked what became of its key first.",
                help: if hold == Hold::Paused { Help::Replay } else { Help::None },
            },
            None => waits(outcome, hold),
        },
        Status::Inflight => said(
            "inflight: on its way from the relay to the upstream",
            "Its answer settles it; without one it goes again under the same key.",
            Help::None,
        ),
        Status::Done => said("done: the upstream committed it", "Nothing to do.", Help::None),
        Status::Conflict => {
            let sentence = match clash {
                Clash::Resource => "conflict: it clashes with what is there",
                Clash::Key => "conflict: its key was used at the upstream for another request",
            };
            said(sentence, known(outcome), Help::Resolve)
        }
        Status::Rejected => said("rejected: the upstream refused it", known(outcome), Help::Retry),
        Status::Expired => said("expired: too old to be replayed by itself", known(outcome), Help::Retry),
        Status::Cancelled if is_late => {
            said("cancelled, and committed all the same", known(Outcome::Committed), Help::None)
        }
        Status::Cancelled => said("cancelled: a person withdrew it", known(outcome), Help::None),
        Status::Superseded if is_late => {
            said("superseded, and committed all the same", known(Outcome::Committed), Help::None)
        }
        Status::Superseded => said("superseded: another took its place", known(outcome), Help::None),
    }
}

fn waits(outcome: Outcome, hold: Hold) -> Said {
    let (sentence, help) = match hold {
        Hold::Nothing => ("queued at the relay, the next to go", Help::None),
        Hold::Older => ("queued at the relay behind older writes", Help::None),
        Hold::Delayed => ("queued at the relay; its last try did not get through", Help::None),
        Hold::Away => ("queued at the relay; the upstream is away", Help::None),
        Hold::Conflict => ("queued at the relay behind a conflict", Help::Conflicts),
        Hold::Paused => ("queued at the relay; replay is paused", Help::Replay),
    };
    let next = match (hold, outcome) {
        (Hold::Paused, _) => "Nothing is replayed until a person looked.",
        (Hold::Conflict, _) => "A person decides about the conflict first.",
        (Hold::Nothing | Hold::Older | Hold::Delayed | Hold::Away, Outcome::NotSent) => {
            "No byte of it left this host. It goes on by itself."
        }
        (Hold::Nothing | Hold::Older | Hold::Delayed | Hold::Away, _) => {
            "It may have been committed. It goes again by itself, under the same key."
        }
    };
    Said { sentence: sentence.to_owned(), next, help }
}

/// What is known of the upstream's side of one that ended.
const fn known(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotSent => "No byte of it left this host.",
        Outcome::Unknown => "It may have been committed; the upstream could not say.",
        Outcome::Committed => "The upstream has it.",
        Outcome::NotCommitted => "The upstream did not commit it, and never will under this key.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(status: Status, outcome: Outcome) -> Life {
        Life { status, outcome, ending: None, is_late: false, hold: Hold::Nothing, clash: Clash::Resource }
    }

    #[test]
    fn every_end_is_named_by_its_word_with_what_is_known_and_what_helps() {
        use Outcome::{Committed, NotCommitted, NotSent, Unknown};
        for (status, outcome, help, next) in [
            (Status::Inflight, Unknown, Help::None, "Its answer settles it"),
            (Status::Done, Committed, Help::None, "Nothing to do."),
            (Status::Conflict, NotCommitted, Help::Resolve, "The upstream did not commit it"),
            (Status::Conflict, Unknown, Help::Resolve, "It may have been committed"),
            (Status::Rejected, NotCommitted, Help::Retry, "The upstream did not commit it"),
            (Status::Expired, NotSent, Help::Retry, "No byte of it left this host."),
            (Status::Expired, Unknown, Help::Retry, "It may have been committed"),
            (Status::Cancelled, NotSent, Help::None, "No byte of it left this host."),
            (Status::Superseded, NotCommitted, Help::None, "The upstream did not commit it"),
        ] {
            let said = explain(life(status, outcome));
            assert!(said.sentence.starts_with(status.word()), "{status:?}: {}", said.sentence);
            assert_eq!(said.help, help, "{status:?} {outcome:?}");
            assert!(said.next.starts_with(next), "{status:?} {outcome:?}: {}", said.next);
        }
    }

    #[test]
    fn a_conflict_over_a_key_is_told_apart_from_one_over_a_resource() {
        let conflict =
            |clash| explain(Life { clash, ..life(Status::Conflict, Outcome::NotCommitted) }).sentence;
        assert!(conflict(Clash::Key).contains("its key was used"), "{}", conflict(Clash::Key));
        assert!(!conflict(Clash::Resource).contains("key"), "{}", conflict(Clash::Resource));
    }

    #[test]
    fn what_waits_says_for_what_and_whether_it_left() {
        for (hold, help, words) in [
            (Hold::Nothing, Help::None, "the next to go"),
            (Hold::Older, Help::None, "behind older writes"),
            (Hold::Delayed, Help::None, "did not get through"),
            (Hold::Away, Help::None, "the upstream is away"),
            (Hold::Conflict, Help::Conflicts, "behind a conflict"),
            (Hold::Paused, Help::Replay, "replay is paused"),
        ] {
            for outcome in [Outcome::NotSent, Outcome::Unknown] {
                let said = explain(Life { hold, ..life(Status::Queued, outcome) });
                assert_eq!((said.help, said.needs_person()), (help, help != Help::None), "{hold:?}");
                assert!(said.sentence.starts_with("queued") && said.sentence.contains(words), "{hold:?}");
                let by_itself = said.next.contains("by itself");
                assert_eq!(by_itself, help == Help::None, "{hold:?} {outcome:?}: {}", said.next);
                let left = said.next.contains("may have been committed");
                assert_eq!(left, by_itself && outcome == Outcome::Unknown, "{hold:?} {outcome:?}");
            }
        }
    }

    #[test]
    fn one_that_waits_for_the_word_on_its_key_says_how_it_will_end() {
        for ending in Ending::ALL {
            let said = explain(Life { ending: Some(*ending), ..life(Status::Queued, Outcome::Unknown) });
            assert!(said.sentence.ends_with(ending.status().word()), "{}", said.sentence);
        }
    }

    #[test]
    fn a_withdrawn_write_that_was_committed_after_all_says_so() {
        for status in [Status::Cancelled, Status::Superseded] {
            let said = explain(Life { is_late: true, ..life(status, Outcome::Unknown) });
            assert!(said.sentence.contains("committed all the same"), "{}", said.sentence);
            assert_eq!(said.next, "The upstream has it.");
        }
    }
}
