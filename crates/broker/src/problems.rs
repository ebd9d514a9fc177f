//! What an operator has to look at although the broker serves: each kind once, as it was found last.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wire::health::BrokerProblem;

/// The kinds, by the code that scripts match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProblemKind {
    /// The audit found rows that contradict each other.
    BooksContradict,
    /// The store's clock stands ahead of the time that was seen to pass.
    ClockAhead,
    /// Ids were forgotten under a date that lay ahead and was set right.
    ForgottenAhead,
    /// The store's settings do not keep what is acknowledged.
    StoreNotDurable,
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct ProblemList {
    found: Mutex<BTreeMap<ProblemKind, String>>,
}

impl ProblemKind {
    const fn code(self) -> &'static str {
        match self {
            ProblemKind::BooksContradict => "books_contradict",
            ProblemKind::ClockAhead => "clock_ahead",
            ProblemKind::ForgottenAhead => "forgotten_ahead",
            ProblemKind::StoreNotDurable => "store_not_durable",
        }
    }
}

impl ProblemList {
    /// A look was taken: the problem stands so now, or is over. Whether that is news.
    pub(crate) fn note(&self, kind: ProblemKind, message: Option<String>) -> bool {
        let mut found = self.lock();
        let before = match &message {
            Some(message) => found.insert(kind, message.clone()),
            None => found.remove(&kind),
        };
        before != message
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<BrokerProblem> {
        let problem = |(kind, message): (&ProblemKind, &String)| BrokerProblem {
            code: kind.code().to_owned(),
            message: message.clone(),
        };
        self.lock().iter().map(problem).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProblemKind, String>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_once_as_it_was_found_last_until_it_is_over() {
        let list = ProblemList::default();
        list.note(ProblemKind::ClockAhead, Some("by 1 h".to_owned()));
        list.note(ProblemKind::ClockAhead, Some("by 2 h".to_owned()));
        list.note(ProblemKind::BooksContradict, Some("3".to_owned()));
        list.note(ProblemKind::StoreNotDurable, None);
        let told: Vec<_> = list.all().into_iter().map(|found| (found.code, found.message)).collect();
        let words = |code: &str, message: &str| (code.to_owned(), message.to_owned());
        assert_eq!(told, [words("books_contradict", "3"), words("clock_ahead", "by 2 h")]);
        list.note(ProblemKind::ClockAhead, None);
        list.note(ProblemKind::BooksContradict, None);
        assert_eq!(list.all(), []);
    }
}
