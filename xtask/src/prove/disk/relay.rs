//! The relay's file as the campaign asks it: writes that wait, writes that leave, and facts kept beside them.

use mailbox::relay::{Envelopes, NewEnvelope, Source, Start};
use model::relay::{Moment, Precondition};
use model::route_class::{OrderKey, RouteClass};
use model::{Fingerprint, OsEntropy, Timestamp};
use sqlite::fault::Disk;
use sqlite::{Db, StorageError};
use std::path::Path;
use std::sync::Arc;
use testkit::disk::campaign::{
    AdjustBounds, OpenStore, PendingAnswer, Request, StoreAnswer, StoreDriver, answer_to,
};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
/// Records that writes are spread over.
const RECORDS: u64 = 5;

/// Facts that a request may keep.
const FACTS: [&str; 4] = ["campaign-0", "campaign-1", "campaign-2", "campaign-3"];

/// The relay's files, one a folder.
pub struct RelayDriver;

struct OpenRelay {
    db: Db,
    envelopes: Envelopes,
}

impl StoreDriver for RelayDriver {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn kinds(&self) -> u64 {
        4
    }

    fn open(&self, folder: &Path, bounds: &AdjustBounds, disk: Disk) -> Result<Box<dyn OpenStore>, String> {
        let mut options = Envelopes::options(folder.join("relay.db")).fault(disk);
        options.bounds = bounds(options.bounds);
        let db = Db::open(options).map_err(|error| error.to_string())?;
        let envelopes =
            Envelopes::over(db.clone(), Arc::new(OsEntropy), NOW).map_err(|error| error.to_string())?;
        Ok(Box::new(OpenRelay { db, envelopes }))
    }
}

impl OpenRelay {
    async fn put(&self, request: Request) -> Result<StoreAnswer, StorageError> {
        match request.kind {
            0 | 1 => {
                let start = if request.kind == 0 { Start::Waiting } else { Start::Live };
                self.envelopes.store(envelope(request), start, NOW).await?;
            }
            2 => {
                self.envelopes.claim(Moment { here: NOW, upstream: NOW }, 2).await?;
                return Ok(StoreAnswer::NotPut);
            }
            _ => {
                // A value that a later request replaces says nothing about this one, so neither is judged.
                self.envelopes.keep_fact(fact(request), Some(request.number.to_string())).await?;
                return Ok(StoreAnswer::NotPut);
            }
        }
        Ok(StoreAnswer::Stored)
    }
}

impl OpenStore for OpenRelay {
    fn db(&self) -> &Db {
        &self.db
    }

    fn ask(&self, request: Request) -> PendingAnswer<'_> {
        Box::pin(async move {
            match self.put(request).await {
                Ok(word) => word,
                Err(_) if request.kind > 1 => StoreAnswer::NotPut,
                Err(error) => StoreAnswer::of(&error),
            }
        })
    }

    fn holds(&self, request: Request) -> Result<bool, String> {
        let found = answer_to(self.envelopes.find_key(key(request)))?;
        found.map(|envelope| envelope.is_some()).map_err(|error| error.to_string())
    }
}

fn envelope(request: Request) -> NewEnvelope {
    let record = request.number % RECORDS;
    NewEnvelope {
        idempotency_key: Some(key(request)),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        method: "PATCH".to_owned(),
        path: format!("/tasks/{record}"),
        query: None,
        route_class: RouteClass::Replace,
        order_key: OrderKey::parse(&format!("task:{record}")).expect("a record's key"),
        precondition: Some(Precondition::UnmodifiedSince(NOW)),
        chains: true,
        source: Source::default(),
        upstream_id: None,
        created_at: NOW,
        possible_duplicate_of: None,
        body: vec![b'x'; request.bytes],
        base: None,
    }
}

fn key(request: Request) -> String {
    format!("request-{}", request.number)
}

fn fact(request: Request) -> &'static str {
    FACTS[usize::try_from(request.number).unwrap_or(0) % FACTS.len()]
}
