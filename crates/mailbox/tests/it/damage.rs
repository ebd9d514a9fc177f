//! Random damages of a mailbox's file: as many rows are told lost as are lost.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use mailbox::{LossCount, Mailbox, OutboxFilter, Salvaged};
use model::{Entropy, limits};
use sqlite::Db;
use testkit::SeededEntropy;

use crate::desk::{ANN, BOB, Desk, options};

/// Rows of the outbox, and of the inbox.
const ROWS: u64 = 90;
/// Rows when the page was last written that a lost write brings back.
const ROWS_BEFORE: u64 = 60;
const PAGE: usize = 4096;
/// Damages of one run; `POSTRIDER_DAMAGES` asks for more, and for others.
const DAMAGES: u64 = 50;

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A page holds noise.
    Noise { page: usize },
    /// A page holds nothing.
    Zeroes { page: usize },
    /// A page was written to another's place.
    Misplaced { page: usize, to: usize },
    /// A page is as it was before: its last write never came.
    Stale { page: usize },
    /// Single bits changed.
    Flips { first: u64, count: u64 },
    /// The key of a row in a leaf of a table changed.
    Key { leaf: usize, cell: usize, key: u8 },
    /// The file lost its end.
    Cut { pages: usize },
}

struct Dice(SeededEntropy);

impl Dice {
    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.next_u64() % bound as u64).unwrap()
    }

    fn damage(&self, whole: &[u8]) -> Damage {
        let pages = whole.len() / PAGE;
        let page = self.below(pages);
        match self.below(8) {
            0 => Damage::Noise { page },
            1 => Damage::Zeroes { page },
            2 => Damage::Misplaced { page, to: self.below(pages) },
            3 => Damage::Stale { page },
            4 => Damage::Flips { first: self.0.next_u64(), count: 1 + self.0.next_u64() % 8 },
            5 => Damage::Cut { pages: 1 + self.below(3) },
            _ => {
                let leaves: Vec<usize> = (1..pages).filter(|page| cells(whole, *page).len() > 1).collect();
                let leaf = leaves[self.below(leaves.len())];
                let cell = self.below(cells(whole, leaf).len());
                Damage::Key { leaf, cell, key: u8::try_from(self.below(128)).unwrap() }
            }
        }
    }
}

/// Where the cells of a table's leaf stand whose keys have one byte; none on other pages.
fn cells(bytes: &[u8], page: usize) -> Vec<usize> {
    const TABLE_LEAF: u8 = 0x0d;
    let start = page * PAGE;
    if bytes[start] != TABLE_LEAF {
        return Vec::new();
    }
    let number = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let found = (0..number(start + 3)).map(|cell| start + number(start + 8 + 2 * cell));
    found.filter_map(|cell| key_of(bytes, cell)).collect()
}

/// The place of a cell's key, behind the varint of its length.
fn key_of(bytes: &[u8], cell: usize) -> Option<usize> {
    let length = bytes[cell..].iter().take(9).position(|byte| byte & 0x80 == 0)?;
    let key = cell + length + 1;
    (bytes[key] & 0x80 == 0).then_some(key)
}

impl Damage {
    fn done_to(self, whole: &[u8], before: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        let place = |page: usize| page * PAGE..(page + 1) * PAGE;
        match self {
            Damage::Noise { page } => {
                let noise = SeededEntropy::new(page as u64);
                bytes[place(page)].iter_mut().for_each(|byte| *byte = noise.next_u64().to_be_bytes()[0]);
            }
            Damage::Zeroes { page } => bytes[place(page)].fill(0),
            Damage::Misplaced { page, to } => bytes[place(to)].copy_from_slice(&whole[place(page)]),
            Damage::Stale { page } => {
                if let Some(old) = before.get(place(page)) {
                    bytes[place(page)].copy_from_slice(old);
                }
            }
            Damage::Flips { first, count } => {
                let dice = Dice(SeededEntropy::new(first));
                for _ in 0..count {
                    let at = dice.below(bytes.len());
                    bytes[at] ^= 1 << dice.below(8);
                }
            }
            Damage::Key { leaf, cell, key } => {
                let at = cells(whole, leaf)[cell];
                bytes[at] = key;
            }
            Damage::Cut { pages } => bytes.truncate(bytes.len() - pages * PAGE),
        }
        bytes
    }
}

/// A closed file, and the same when it held fewer rows.
async fn files() -> (Desk, Vec<u8>, Vec<u8>) {
    let mut desk = Desk::open();
    let mut before = Vec::new();
    for n in 0..ROWS {
        if n == ROWS_BEFORE {
            desk.mailbox.clone().close().await;
            before = std::fs::read(desk.path()).unwrap();
            desk.crash();
        }
        let words = format!("{n} ").repeat(if n % 7 == 0 { 900 } else { 60 });
        desk.mailbox
            .accept(desk.draft(ANN, &format!("id{n}"), &format!("@{}", n % 5), &words))
            .await
            .unwrap();
        desk.mailbox.record(vec![desk.mail(n, BOB)], desk.now, desk.broker_now).await.unwrap();
    }
    let claimed = desk.claim().await;
    desk.deliver(&claimed.frames[0]).await;
    desk.mailbox.clone().close().await;
    let whole = std::fs::read(desk.path()).unwrap();
    (desk, whole, before)
}

fn salvage(damaged: &Path, now: model::Timestamp) -> (tempfile::TempDir, Mailbox, Salvaged) {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open_inline(options(folder.path())).unwrap();
    let mailbox = Mailbox::over(db, Arc::new(SeededEntropy::new(99))).unwrap();
    let salvaged = mailbox.salvage_blocking(damaged, now).unwrap();
    (folder, mailbox, salvaged)
}

/// Places of the outbox that are there.
async fn outbox_places(mailbox: &Mailbox) -> BTreeSet<u64> {
    let filter = OutboxFilter { limit: limits::PAGE_ROWS_MAX, ..OutboxFilter::default() };
    mailbox.outbox_list(filter).await.unwrap().into_iter().map(|row| row.seq).collect()
}

/// What was told of a damage, and what is true.
struct Judged {
    wrong: Vec<String>,
    /// Damages after which the file did not say how many rows it had had.
    inexact: u64,
}

impl Judged {
    fn judge(&mut self, table: &str, told: u64, lost: u64, count: LossCount, damage: Damage) {
        let is_right = match count {
            LossCount::Exact => told == lost,
            LossCount::AtLeast => told <= lost,
        };
        if !is_right {
            self.wrong.push(format!("{damage:?}: {lost} rows of the {table} lost, {told} told"));
        }
    }
}

#[tokio::test]
async fn as_many_rows_are_told_lost_as_are_lost() {
    let (desk, whole, before) = files().await;
    let asked = std::env::var("POSTRIDER_DAMAGES").ok();
    let damages = asked.map_or(DAMAGES, |number| number.parse().expect("POSTRIDER_DAMAGES is a number"));
    let dice = Dice(SeededEntropy::new(21 + damages));
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("mailbox.db");
    let mut judged = Judged { wrong: Vec::new(), inexact: 0 };
    for _ in 0..damages {
        let damage = dice.damage(&whole);
        std::fs::write(&damaged, damage.done_to(&whole, &before)).unwrap();
        let (_folder, new, salvaged) = salvage(&damaged, desk.now);
        let outbox = outbox_places(&new).await.len() as u64;
        let count = salvaged.count;
        judged.judge("outbox", salvaged.outbox_lost, ROWS.saturating_sub(outbox), count, damage);
        judged.judge("inbox", salvaged.inbox_lost, ROWS.saturating_sub(salvaged.inbox), count, damage);
        judged.inexact += u64::from(count == LossCount::AtLeast);
    }
    assert!(judged.wrong.is_empty(), "{} of {damages}: {:#?}", judged.wrong.len(), judged.wrong);
    assert!(judged.inexact * 10 <= damages, "{} of {damages} told as a lower bound", judged.inexact);
}

#[tokio::test]
async fn a_file_that_was_salvaged_before_is_not_told_its_old_losses_again() {
    let (desk, whole, _) = files().await;
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("mailbox.db");
    // Every leaf of a table in turn is lost.
    let leaves = (1..whole.len() / PAGE).filter(|page| cells(&whole, *page).len() > 1);
    let mut with_losses = 0;
    for page in leaves {
        std::fs::write(&damaged, Damage::Noise { page }.done_to(&whole, &whole)).unwrap();
        let (_first_folder, first, once) = salvage(&damaged, desk.now);
        first.clone().close().await;
        let (_second_folder, _second, twice) = salvage(first.path(), desk.now);
        assert_eq!((twice.outbox, twice.outbox_lost), (once.outbox, 0), "page {page}: {twice:?}");
        assert_eq!((twice.inbox, twice.inbox_lost), (once.inbox, 0), "page {page}: {twice:?}");
        assert_eq!(twice.count, LossCount::Exact, "page {page}");
        with_losses += u64::from(once.outbox_lost + once.inbox_lost > 0);
    }
    assert!(with_losses > 5, "{with_losses} leaves held rows");
}
