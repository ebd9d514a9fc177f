//! Where a recipient's undelivered rows are, as stretches of message numbers.
//!
//! A row that waits stands inside a stretch, always, and a stretch begins with one that waits: it is written with its
//! rows, its beginning moves on as they are taken, and it goes with the last.

use std::collections::{BTreeMap, HashMap};

use ::sqlite::rusqlite::{Connection, Row};

use super::row::{all, change, first, one};
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
pub(super) struct Mail {
    recipients: BTreeMap<i64, Vec<Stretch>>,
    /// Of every log of the batch that has subscribers.
    audiences: HashMap<i64, Audience>,
}

/// A log's subscribers, by how a message gets to them.
#[derive(Default)]
struct Audience {
    /// Their nodes fetch it.
    at_nodes: Vec<i64>,
    /// Their endpoints are called.
    pushed: Vec<i64>,
    /// The broker hosts them: they have it at once.
    hosted: Vec<i64>,
}

/// Whether a message goes to any subscriber but its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    pub at_nodes: bool,
    /// Of those whom the broker serves itself.
    pub served_here: bool,
}

impl Reach {
    /// What either message reaches.
    pub fn or(self, other: Reach) -> Reach {
        let at_nodes = self.at_nodes || other.at_nodes;
        Reach { at_nodes, served_here: self.served_here || other.served_here }
    }
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
    /// None yet, for the subscribers of these logs.
    pub fn to(conn: &Connection, logs: impl Iterator<Item = i64>) -> Result<Self, StorageError> {
        let audiences = logs.map(|log| Ok((log, Audience::of(conn, log)?)));
        Ok(Self { recipients: BTreeMap::new(), audiences: audiences.collect::<Result<_, StorageError>>()? })
    }

    /// Whom a message to a log is written for.
    pub fn reach(&self, log: i64, sender: i64) -> Reach {
        let Some(Audience { at_nodes, pushed, hosted }) = self.audiences.get(&log) else {
            return Reach::default();
        };
        let any = |members: &[i64]| members.iter().any(|member| *member != sender);
        Reach { at_nodes: any(at_nodes), served_here: any(pushed) || any(hosted) }
    }

    /// A message for everybody who waits for a log's messages, but its sender. Messages come in the order of numbers.
    pub fn for_log(&mut self, log: i64, sender: i64, message: i64) {
        let Some(Audience { at_nodes, pushed, .. }) = self.audiences.get(&log) else { return };
        for recipient in at_nodes.iter().chain(pushed).filter(|recipient| **recipient != sender) {
            put(self.recipients.entry(*recipient).or_default(), message);
        }
    }

    /// A message for one that is named.
    pub fn for_one(&mut self, recipient: i64, message: i64) {
        put(self.recipients.entry(recipient).or_default(), message);
    }

    /// Writes the stretches; the first may go on where the recipient's last one ends.
    pub fn write(&self, conn: &Connection) -> Result<(), StorageError> {
        let mut ask = conn.prepare_cached(sql!("mail_last"))?;
        let mut put = conn.prepare_cached(sql!("mail_put"))?;
        for (recipient, stretches) in &self.recipients {
            let mut last =
                first(&mut ask, [recipient], |row| Ok(Stretch { first: row.get(0)?, last: row.get(1)? }))?;
            for stretch in stretches {
                let whole = last.take().and_then(|last| last.with(*stretch)).unwrap_or(*stretch);
                put.execute([*recipient, whole.first, whole.last])?;
            }
        }
        Ok(())
    }
}

impl Audience {
    fn of(conn: &Connection, log: i64) -> Result<Self, StorageError> {
        let mut audience = Self::default();
        let flags = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, bool>(1)?, row.get::<_, bool>(2)?));
        for (member, hosted, pushed) in all(conn, sql!("audience"), [log], flags)? {
            let of_a_kind = match (pushed, hosted) {
                (true, _) => &mut audience.pushed,
                (false, true) => &mut audience.hosted,
                (false, false) => &mut audience.at_nodes,
            };
            of_a_kind.push(member);
        }
        Ok(audience)
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
