//! Which places of a table hold rows, from every part of a damaged file that tells of them: so that what cannot be carried
//! over is counted.
//!
//! - Places are given without gaps and never freed, so a place without a row is a row that was lost. A file that was
//!   salvaged before has gaps of its own: there the index of ids says which places have rows.
//! - One number alone may itself be damaged: a place behind all others counts when two parts of the file name it, or when
//!   none is missing before it.
//! - Where the file does not say how many rows there were, the count is told as a lower bound.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::twice;
use crate::meta::INBOX_REBUILT;
use crate::sql;

/// No row of a table that is carried over by places is shorter.
const ROW_BYTES_MIN: u64 = 64;

/// A table whose rows are carried over by their places.
#[derive(Clone, Copy)]
pub(super) struct PlacedTable {
    pub(super) name: &'static str,
    /// The row at a place.
    pub(super) row: &'static str,
    /// The table of its long bodies, and the one at a place.
    pub(super) bodies: Option<(&'static str, &'static str)>,
    /// Whether a row stands behind a place.
    is_behind: &'static str,
    /// The places that an index of all rows names, from its beginning and from its end.
    indexed: [&'static str; 2],
}

pub(super) const OUTBOX: PlacedTable = PlacedTable {
    name: "outbox",
    row: sql::SALVAGE_OUTBOX,
    bodies: Some(("outbox_payload", sql::SALVAGE_OUTBOX_PAYLOAD)),
    is_behind: sql::SALVAGE_IS_BEHIND,
    indexed: [sql::SALVAGE_OUTBOX_INDEXED, sql::SALVAGE_OUTBOX_INDEXED_BACK],
};

pub(super) const INBOX: PlacedTable = PlacedTable {
    name: "inbox",
    row: sql::SALVAGE_INBOX,
    bodies: Some(("inbox_envelope", sql::SALVAGE_INBOX_ENVELOPE)),
    is_behind: sql::SALVAGE_INBOX_IS_BEHIND,
    indexed: [sql::SALVAGE_INBOX_INDEXED, sql::SALVAGE_INBOX_INDEXED_BACK],
};

pub(super) const TURN: PlacedTable = PlacedTable {
    name: "turn",
    row: sql::SALVAGE_TURN,
    bodies: None,
    is_behind: sql::SALVAGE_TURN_IS_BEHIND,
    indexed: [sql::SALVAGE_TURN_INDEXED, sql::SALVAGE_TURN_INDEXED_BACK],
};

/// Whether as many rows were lost as are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossCount {
    /// Exactly as many.
    #[default]
    Exact,
    /// The file does not say how many rows it had; at least as many.
    AtLeast,
}

/// Whether gaps between the places of a file are losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GapMeaning {
    /// It was never salvaged: each gap is a lost row.
    Loss,
    /// It was salvaged before, or does not say: a gap may be of that time.
    Unknown,
}

impl GapMeaning {
    pub(super) fn of(from: &Connection) -> Self {
        let known = from
            .query_row(sql::SALVAGE_FACT, named_params! {":k": INBOX_REBUILT}, |row| row.get::<_, String>(0))
            .optional();
        if matches!(known, Ok(None)) { Self::Loss } else { Self::Unknown }
    }
}

/// What a file tells of the places of one table.
pub(super) struct Evidence {
    table: PlacedTable,
    /// Places that the index names.
    indexed: PlaceSet,
    /// Whether all of the index could be read.
    is_index_whole: bool,
    /// Numbers beside the table that say how far its places were given.
    counters: Vec<u64>,
    /// Places whose row was read.
    read: PlaceSet,
    /// Places at which something is that cannot be read.
    unreadable: u64,
    /// No place lies behind this one: the file has no room for more.
    pub(super) most: u64,
}

impl Evidence {
    /// None when the file does not know the table.
    pub(super) fn of(from: &Connection, table: PlacedTable) -> Option<Self> {
        twice(|| from.prepare(table.row).map(drop)).ok()?;
        let number = |row: &rusqlite::Row<'_>| row.get::<_, u64>(0);
        let bytes = twice(|| from.query_row(sql::SALVAGE_BYTES, [], number));
        let most = bytes.unwrap_or(0) / ROW_BYTES_MIN;
        let mut indexed = PlaceSet::default();
        let is_index_whole = table.indexed.iter().any(|statement| {
            let is_whole = add_places(from, statement, most, &mut indexed);
            is_whole.unwrap_or(false)
        });
        let given = from.query_row(sql::SALVAGE_LAST, named_params! {":name": table.name}, number);
        let mut counters: Vec<u64> = given.into_iter().collect();
        if table.name == OUTBOX.name {
            // Nothing counts its places: how far it was sorted, and its names, lead to them.
            counters.extend(from.query_row(sql::SALVAGE_LAST_SORTED, [], number));
            let mut named = PlaceSet::default();
            if add_places(from, sql::SALVAGE_NAMES, most, &mut named).is_ok() {
                counters.push(named.last());
            }
        }
        counters.retain(|place| *place <= most);
        let read = PlaceSet::default();
        Some(Self { table, indexed, is_index_whole, counters, read, unreadable: 0, most })
    }

    /// The last place that anything beside the table speaks of.
    pub(super) fn known(&self) -> u64 {
        self.counters.iter().copied().max().unwrap_or(0).max(self.indexed.last())
    }

    pub(super) fn was_read(&mut self, seq: u64) {
        self.read.add(seq);
    }

    pub(super) fn was_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Whether the table ends before this place. A gap is no end: an earlier repair may have left it. What cannot be read
    /// may hold rows.
    pub(super) fn is_end(&self, from: &Connection, seq: u64) -> bool {
        let behind = from
            .prepare_cached(self.table.is_behind)
            .and_then(|mut rows| rows.exists(named_params! {":seq": seq}));
        matches!(behind, Ok(false))
    }

    /// How many rows the table had that are not among the `kept` ones.
    pub(super) fn lost(&self, kept: u64, gaps: GapMeaning) -> (u64, LossCount) {
        let exactly = |rows: u64| (rows.saturating_sub(kept), LossCount::Exact);
        let is_told = self.is_index_whole || self.unreadable == 0 || !self.counters.is_empty();
        match gaps {
            GapMeaning::Loss if is_told => exactly(self.last()),
            GapMeaning::Loss => (self.last().saturating_sub(kept), LossCount::AtLeast),
            GapMeaning::Unknown if self.is_index_whole => exactly(self.indexed.len()),
            GapMeaning::Unknown => (self.read.len().saturating_sub(kept), LossCount::AtLeast),
        }
    }

    /// The last place that held a row.
    fn last(&self) -> u64 {
        let counted = self.counters.iter().copied().max().unwrap_or(0);
        let twice = self.read.last_shared_with(&self.indexed).max(counted);
        let mut last = twice;
        while self.read.has(last + 1) || self.indexed.has(last + 1) {
            last += 1;
        }
        last
    }
}

/// Adds the places that a statement answers, as far as they can be read and lie in the file: whether all could.
fn add_places(
    from: &Connection,
    statement: &str,
    most: u64,
    places: &mut PlaceSet,
) -> rusqlite::Result<bool> {
    let mut statement = from.prepare(statement)?;
    let mut rows = statement.query([])?;
    let mut is_whole = true;
    loop {
        match rows.next() {
            Ok(None) => return Ok(is_whole),
            Err(_) => return Ok(false),
            Ok(Some(row)) => match row.get::<_, u64>(0) {
                Ok(seq) if seq <= most => places.add(seq),
                Ok(_) | Err(_) => is_whole = false,
            },
        }
    }
}

/// Places as bits: a large outbox has tens of millions of them.
#[derive(Default)]
struct PlaceSet {
    words: Vec<u64>,
}

impl PlaceSet {
    fn add(&mut self, seq: u64) {
        let (word, bit) = at(seq);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    fn has(&self, seq: u64) -> bool {
        let (word, bit) = at(seq);
        self.words.get(word).is_some_and(|found| found & bit != 0)
    }

    fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn last(&self) -> u64 {
        last_bit(self.words.iter().copied())
    }

    fn last_shared_with(&self, other: &PlaceSet) -> u64 {
        last_bit(self.words.iter().zip(&other.words).map(|(word, other)| word & other))
    }
}

const WORD_BITS: u64 = 64;

fn at(seq: u64) -> (usize, u64) {
    // A place lies within the file, and a file's pages within the memory's words.
    (usize::try_from(seq / WORD_BITS).unwrap_or(usize::MAX - 1), 1 << (seq % WORD_BITS))
}

fn last_bit(words: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator) -> u64 {
    let found = words.enumerate().rfind(|(_, word)| *word != 0);
    found.map_or(0, |(place, word)| place as u64 * WORD_BITS + u64::from(word.ilog2()))
}

#[cfg(test)]
mod tests {
    use super::{Evidence, GapMeaning, LossCount, OUTBOX, PlaceSet};

    fn places(all: impl IntoIterator<Item = u64>) -> PlaceSet {
        let mut places = PlaceSet::default();
        all.into_iter().for_each(|seq| places.add(seq));
        places
    }

    fn evidence(read: PlaceSet, indexed: PlaceSet, is_index_whole: bool, counters: &[u64]) -> Evidence {
        let counters = counters.to_vec();
        Evidence { table: OUTBOX, indexed, is_index_whole, counters, read, unreadable: 0, most: 10_000 }
    }

    #[test]
    fn a_set_knows_its_places_its_size_and_its_last() {
        let set = places([1, 63, 64, 700]);
        assert_eq!(
            (set.len(), set.last(), set.has(64), set.has(65), set.has(9_999)),
            (4, 700, true, false, false)
        );
        assert_eq!(set.last_shared_with(&places([64, 900])), 64);
        assert_eq!((places([]).last(), places([5]).last_shared_with(&places([]))), (0, 0));
    }

    #[test]
    fn what_is_lost_is_counted_from_whatever_part_of_the_file_still_tells() {
        use GapMeaning::{Loss, Unknown};
        use LossCount::{AtLeast, Exact};
        let whole = || places(1..=90);
        for (name, evidence, kept, gaps, expected) in [
            (
                "a gap in the table",
                evidence(places((1..=90).filter(|n| *n != 17)), whole(), true, &[]),
                89,
                Loss,
                (1, Exact),
            ),
            ("the table's end", evidence(places(1..=60), whole(), true, &[]), 60, Loss, (30, Exact)),
            ("the index's end", evidence(whole(), places(1..=60), false, &[]), 90, Loss, (0, Exact)),
            (
                "a key that leads far away",
                evidence(places((1..=89).chain([120])), whole(), true, &[]),
                90,
                Loss,
                (0, Exact),
            ),
            (
                "both ends, but a counter",
                evidence(places(1..=60), places(1..=60), false, &[90]),
                60,
                Loss,
                (30, Exact),
            ),
            (
                "gaps of an earlier repair",
                evidence(places(11..=90), places(11..=90), true, &[90]),
                80,
                Unknown,
                (0, Exact),
            ),
            (
                "a loss beside such gaps",
                evidence(places(11..=80), places(11..=90), true, &[90]),
                70,
                Unknown,
                (10, Exact),
            ),
            (
                "a row that the tables refused",
                evidence(whole(), places(1..=50), false, &[90]),
                89,
                Unknown,
                (1, AtLeast),
            ),
        ] {
            assert_eq!(evidence.lost(kept, gaps), expected, "{name}");
        }
        let blind = Evidence { unreadable: 9, ..evidence(places(1..=60), places(1..=60), false, &[]) };
        assert_eq!(blind.lost(60, Loss), (0, AtLeast), "nobody tells where the table ended");
    }
}
