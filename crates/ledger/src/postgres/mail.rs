//! Where a recipient's undelivered rows are, as stretches of message numbers.
//!
//! A row that waits names the stretch it stands in. A stretch is written with its rows and goes with the last that
//! waits; nothing else changes it.

use tokio_postgres::Row;

use super::session::Tx;
use super::sql;
use crate::StorageError;

/// Numbers of a stretch: whoever looks for the one row of it that still waits looks at each.
const LENGTH_MAX: i64 = 64;

/// The stretches of a batch, one array per column: what a log's subscribers get together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stretches {
    pub conversation: Vec<i64>,
    pub first: Vec<i64>,
    pub last: Vec<i64>,
    /// The sender, if all are of one: it has nothing to find there.
    pub only_sender: Vec<Option<i64>>,
}

impl Stretches {
    /// The first number of the stretch a message stands in. Messages come log by log, in the order of numbers.
    pub fn place(&mut self, conversation: i64, number: i64, sender: i64) -> i64 {
        if let (Some(last_of), Some(&first)) = (self.conversation.last(), self.first.last())
            && *last_of == conversation
            && number - first < LENGTH_MAX
            && let (Some(last), Some(only)) = (self.last.last_mut(), self.only_sender.last_mut())
        {
            *last = number;
            *only = only.filter(|only| *only == sender);
            return first;
        }
        self.conversation.push(conversation);
        self.first.push(number);
        self.last.push(number);
        self.only_sender.push(Some(sender));
        number
    }
}

/// After rows of these recipients and stretches stopped waiting: the stretches go, where nothing else waits. Locked first,
/// so that of two who each take one of the last two rows the second sees that both are taken.
pub(super) async fn done(tx: &Tx, mut taken: Vec<(i64, i64)>) -> Result<(), StorageError> {
    taken.sort_unstable();
    taken.dedup();
    if !taken.is_empty() {
        let (recipients, stretches): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
        tx.all(sql!("mail_lock"), &[&recipients, &stretches]).await?;
        tx.change(sql!("mail_done"), &[&recipients, &stretches]).await?;
    }
    Ok(())
}

/// [`done`] for rows of recipient and stretch; those that did not wait name none.
pub(super) async fn done_of(tx: &Tx, rows: &[Row]) -> Result<(), StorageError> {
    let mut taken = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(stretch) = row.try_get(1)? {
            taken.push((row.try_get(0)?, stretch));
        }
    }
    done(tx, taken).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_gets_together_is_one_stretch_of_bounded_length() {
        let mut stretches = Stretches::default();
        let placed: Vec<_> =
            [(1, 10, 7), (1, 11, 7), (2, 12, 7), (2, 14, 8), (1, 15, 8), (1, 10 + LENGTH_MAX + 5, 8)]
                .map(|(log, number, sender)| stretches.place(log, number, sender))
                .into();
        assert_eq!(placed, [10, 10, 12, 12, 15, 79]);
        let expected = Stretches {
            conversation: vec![1, 2, 1, 1],
            first: vec![10, 12, 15, 79],
            last: vec![11, 14, 15, 79],
            only_sender: vec![Some(7), None, Some(8), Some(8)],
        };
        assert_eq!(stretches, expected);
    }
}
