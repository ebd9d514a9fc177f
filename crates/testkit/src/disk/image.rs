//! The content of a folder at a moment of a recording, as a power loss at that moment would leave it.

use std::collections::BTreeMap;

use crate::disk::Event;
use crate::seeded::Seeded;

/// Disks write whole sectors; less than one is never torn.
const SECTOR: usize = 512;

/// Which of the writes that no sync had covered reached the disk all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// None of them.
    Nothing,
    /// All of them: what a killed process leaves.
    Everything,
    /// Some whole writes, chosen by the seed: a disk that reorders.
    SomeWrites(u64),
    /// Some sectors of each write, chosen by the seed: a disk that tears.
    SomeSectors(u64),
}

/// A folder after some of a recording's events.
#[derive(Debug, Clone, Default)]
pub struct Image<'a> {
    files: BTreeMap<&'a str, FileImage<'a>>,
}

#[derive(Debug, Clone, Default)]
struct FileImage<'a> {
    /// What the last sync made safe; `None` while no name is. Syncing a file makes its name safe, too.
    durable: Option<Vec<u8>>,
    pending: Vec<Change<'a>>,
}

#[derive(Debug, Clone, Copy)]
enum Change<'a> {
    Create,
    Write { at: u64, bytes: &'a [u8] },
    Truncate { size: u64 },
    Delete,
}

impl<'a> Image<'a> {
    /// Takes the next event in.
    pub fn apply(&mut self, event: &'a Event) {
        match event {
            Event::Opened { file } => {
                if !self.files.entry(file).or_default().exists() {
                    self.pend(file, Change::Create);
                }
            }
            Event::Written { file, at, bytes } => self.pend(file, Change::Write { at: *at, bytes }),
            Event::Truncated { file, size } => self.pend(file, Change::Truncate { size: *size }),
            Event::Deleted { file, folder_synced } => {
                self.pend(file, Change::Delete);
                if *folder_synced {
                    self.sync(file);
                }
            }
            Event::Synced { file } => self.sync(file),
            Event::FolderSynced => self.files.values_mut().for_each(FileImage::sync_name),
            Event::Answered { .. } => {}
        }
    }

    /// Whether some change is not yet covered by a sync, so that `Survivors` make a difference.
    pub fn is_unsettled(&self) -> bool {
        self.files.values().any(|file| !file.pending.is_empty())
    }

    /// The files as a power loss now would leave them.
    pub fn after_power_loss(&self, survivors: Survivors) -> BTreeMap<&'a str, Vec<u8>> {
        let mut dice = match survivors {
            Survivors::Nothing | Survivors::Everything => Seeded::new(0),
            Survivors::SomeWrites(seed) | Survivors::SomeSectors(seed) => Seeded::new(seed),
        };
        let lost = |(name, file): (&&'a str, &FileImage<'a>)| Some((*name, file.lose(survivors, &mut dice)?));
        self.files.iter().filter_map(lost).collect()
    }

    fn pend(&mut self, file: &'a str, change: Change<'a>) {
        self.files.entry(file).or_default().pending.push(change);
    }

    fn sync(&mut self, file: &str) {
        if let Some(file) = self.files.get_mut(file) {
            for change in std::mem::take(&mut file.pending) {
                keep(&mut file.durable, change);
            }
        }
    }
}

impl FileImage<'_> {
    fn exists(&self) -> bool {
        let named = self.pending.iter().rev().find_map(|change| match change {
            Change::Create => Some(true),
            Change::Delete => Some(false),
            Change::Write { .. } | Change::Truncate { .. } => None,
        });
        named.unwrap_or(self.durable.is_some())
    }

    /// The name's making or removal is safe; the content is not.
    fn sync_name(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            match change {
                Change::Create => drop(self.durable.get_or_insert_default()),
                Change::Delete => {
                    self.durable = None;
                    self.pending.clear();
                }
                Change::Write { .. } | Change::Truncate { .. } => self.pending.push(change),
            }
        }
    }

    fn lose(&self, survivors: Survivors, dice: &mut Seeded) -> Option<Vec<u8>> {
        let mut content = self.durable.clone();
        for change in &self.pending {
            match survivors {
                Survivors::Nothing => {}
                Survivors::Everything => keep(&mut content, *change),
                Survivors::SomeWrites(_) => {
                    if dice.chance(50) {
                        keep(&mut content, *change);
                    }
                }
                Survivors::SomeSectors(_) => keep_sectors(&mut content, *change, dice),
            }
        }
        content
    }
}

fn keep(content: &mut Option<Vec<u8>>, change: Change<'_>) {
    match change {
        Change::Create => drop(content.get_or_insert_default()),
        Change::Delete => *content = None,
        Change::Truncate { size } => content.get_or_insert_default().resize(place(size), 0),
        Change::Write { at, bytes } => {
            let (content, at) = (content.get_or_insert_default(), place(at));
            if content.len() < at + bytes.len() {
                content.resize(at + bytes.len(), 0);
            }
            content[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
}

fn keep_sectors(content: &mut Option<Vec<u8>>, change: Change<'_>, dice: &mut Seeded) {
    let Change::Write { at, bytes } = change else {
        if dice.chance(50) {
            keep(content, change);
        }
        return;
    };
    let mut start = 0;
    while start < bytes.len() {
        // Sectors are counted from the start of the file, not of the write.
        let to_edge = SECTOR - (place(at) + start) % SECTOR;
        let end = (start + to_edge).min(bytes.len());
        if dice.chance(50) {
            keep(content, Change::Write { at: at + start as u64, bytes: &bytes[start..end] });
        }
        start = end;
    }
}

fn place(at: u64) -> usize {
    usize::try_from(at).expect("a recording fits into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(at: u64, bytes: &[u8]) -> Event {
        Event::Written { file: "f".into(), at, bytes: bytes.to_vec() }
    }

    fn image(events: &[Event]) -> Image<'_> {
        let mut image = Image::default();
        events.iter().for_each(|event| image.apply(event));
        image
    }

    #[test]
    fn only_synced_bytes_survive_for_sure() {
        let events = [
            Event::Opened { file: "f".into() },
            written(0, b"safe"),
            Event::Synced { file: "f".into() },
            written(2, b"lost"),
        ];
        let image = image(&events);
        assert!(image.is_unsettled());
        assert_eq!(image.after_power_loss(Survivors::Nothing)["f"], b"safe");
        assert_eq!(image.after_power_loss(Survivors::Everything)["f"], b"salost");
    }

    #[test]
    fn torn_writes_differ_by_whole_sectors() {
        let events = [Event::Opened { file: "f".into() }, written(100, &[7; 4096])];
        let torn = image(&events).after_power_loss(Survivors::SomeSectors(3)).remove("f").unwrap();
        let kept = torn.iter().filter(|byte| **byte == 7).count();
        assert!(kept > 0 && kept < 4096, "{kept}");
        let edges = torn.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
        assert!(edges.map(|(at, _)| at + 1).all(|at| at % SECTOR == 0 || at == 100));
    }

    #[test]
    fn a_deleted_name_may_come_back_until_its_folder_is_synced() {
        let deleted = |folder_synced| Event::Deleted { file: "f".into(), folder_synced };
        let start =
            [Event::Opened { file: "f".into() }, written(0, b"x"), Event::Synced { file: "f".into() }];
        let unsure = [&start[..], &[deleted(false)]].concat();
        assert_eq!(image(&unsure).after_power_loss(Survivors::Nothing)["f"], b"x");
        assert!(image(&unsure).after_power_loss(Survivors::Everything).is_empty());
        for sure in [vec![deleted(true)], vec![deleted(false), Event::FolderSynced]] {
            let events = [&start[..], &sure].concat();
            assert!(image(&events).after_power_loss(Survivors::Nothing).is_empty());
        }
    }

    #[test]
    fn a_new_name_is_safe_once_the_file_or_its_folder_is_synced() {
        let opened = Event::Opened { file: "f".into() };
        let unsure = [opened.clone(), written(0, b"x")];
        assert!(image(&unsure).after_power_loss(Survivors::Nothing).is_empty());
        let named = [opened, written(0, b"x"), Event::FolderSynced];
        assert_eq!(image(&named).after_power_loss(Survivors::Nothing)["f"], b"");
        assert_eq!(image(&named).after_power_loss(Survivors::Everything)["f"], b"x");
    }
}
