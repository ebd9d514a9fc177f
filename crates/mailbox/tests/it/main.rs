//! The mailbox through its doors, on real files.
#![expect(clippy::unwrap_used, reason = "a test that meets an error ends there, in its helpers too")]

mod accept;
mod claim;
mod damage;
mod desk;
mod inbox;
mod learn;
mod life;
mod names;
mod operator;
mod property;
mod prune;
mod read;
mod receipts;
mod record;
mod relay;
mod restored;
mod retention;
mod salvage;
mod schema;
mod settle;
mod start;
mod turns;
