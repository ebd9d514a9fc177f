//! Where a recipient's undelivered rows are, as stretches of message numbers.
//!
//! A row that waits stands inside a stretch, always, and a stretch begins with one that waits: it is written with its
//! rows, its beginning moves on as they are taken, and it goes with the last.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, HashMap};

use ::sqlite::rusqlite::Connection;

use super::row::{all, change, one};
use super::sql;
use crate::StorageError;

/// Messages for others that a stretch may pass over: whoever reads it looks at each of them.
const PASSED_OVER_MAX: i64 = 8;
/// Messages of a stretch: one that nobody takes makes readers look at as many behind it.
const LENGTH_MAX: i64 = 1_024;

/// From one message to another, both for the recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: i64,
    last: i64,
}

/// The mail of a batch.
#[derive(Default)]
pub(super) struct Mail {
    recipients: BTreeMap<i64, Vec<Stretch>>,
    /// Who of a log's subscribers has to wait; each log is asked about once.
    audiences: HashMap<i64, Vec<i64>>,
}

impl Stretch {
    /// With a later one, if that is near.
    fn with(self, later: Stretch) -> Option<Stretch> {
        let near = later.first - self.last <= PASSED_OVER_MAX + 1;
        let short = later.last - self.first < LENGTH_MAX;
        (near && short).then_some(Stretch { first: self.first, last: later.last })
    }
}

impl Mail {
    /// A message for everybody who waits for a log's messages, but its sender. Messages come in the order of numbers.
    pub fn for_log(
        &mut self,
        conn: &Connection,
        log: i64,
        sender: i64,
        message: i64,
    ) -> Result<(), StorageError> {
        let audience = match self.audiences.entry(log) {
            Occupied(known) => known.into_mut(),
            Vacant(unknown) => unknown.insert(all(conn, sql!("mail_audience"), [log], |row| row.get(0))?),
        };
        for recipient in audience.iter().filter(|recipient| **recipient != sender) {
            put(self.recipients.entry(*recipient).or_default(), message);
        }
        Ok(())
    }

    /// A message for one that is named.
    pub fn for_one(&mut self, recipient: i64, message: i64) {
        put(self.recipients.entry(recipient).or_default(), message);
    }

    /// Writes the stretches; the first may go on where the recipient's last one ends.
    pub fn write(&self, conn: &Connection) -> Result<(), StorageError> {
        for (recipient, stretches) in &self.recipients {
            let mut last = one(conn, sql!("mail_last"), [recipient], |row| {
                Ok(Stretch { first: row.get(0)?, last: row.get(1)? })
            })?;
            for stretch in stretches {
                let whole = last.take().and_then(|last| last.with(*stretch)).unwrap_or(*stretch);
                change(conn, sql!("mail_put"), [*recipient, whole.first, whole.last])?;
            }
        }
        Ok(())
    }
}

fn put(stretches: &mut Vec<Stretch>, message: i64) {
    let alone = Stretch { first: message, last: message };
    match stretches.last_mut().and_then(|last| last.with(alone).map(|whole| (last, whole))) {
        Some((last, whole)) => *last = whole,
        None => stretches.push(alone),
    }
}

/// After a row stopped waiting: where it was the beginning of a stretch, the next that waits is, if there is one.
pub(super) fn done(conn: &Connection, recipient: i64, message: i64) -> Result<(), StorageError> {
    let begun = one(conn, sql!("mail_next"), [recipient, message], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
    })?;
    let Some((last, next)) = begun else { return Ok(()) };
    change(conn, sql!("mail_drop"), [recipient, message])?;
    if let Some(next) = next {
        change(conn, sql!("mail_put"), [recipient, next, last])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LENGTH_MAX, Stretch, put};

    fn stretches(messages: impl IntoIterator<Item = i64>) -> Vec<(i64, i64)> {
        let mut stretches = Vec::new();
        messages.into_iter().for_each(|message| put(&mut stretches, message));
        stretches.into_iter().map(|Stretch { first, last }| (first, last)).collect()
    }

    #[test]
    fn a_stretch_passes_over_a_few_messages_for_others_and_no_more() {
        for (messages, expected) in [
            (vec![], vec![]),
            (vec![7], vec![(7, 7)]),
            (vec![7, 7, 8, 9], vec![(7, 9)]),
            (vec![1, 10], vec![(1, 10)]),
            (vec![1, 11], vec![(1, 1), (11, 11)]),
            (vec![1, 2, 20, 22], vec![(1, 2), (20, 22)]),
        ] {
            assert_eq!(stretches(messages.clone()), expected, "{messages:?}");
        }
    }

    #[test]
    fn a_stretch_has_an_end() {
        assert_eq!(stretches(1..=LENGTH_MAX), [(1, LENGTH_MAX)]);
        assert_eq!(stretches(1..=LENGTH_MAX + 1), [(1, LENGTH_MAX), (LENGTH_MAX + 1, LENGTH_MAX + 1)]);
    }
}
