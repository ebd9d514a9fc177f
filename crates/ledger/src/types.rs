//! What crosses the ledger's doors, one file per family of doors.

pub mod accept;
pub mod chat;
pub mod durable;
pub mod explain;
pub mod hub;
pub mod manage;
pub mod mesh;
pub mod read;
pub mod status;
pub mod wayin;
pub mod webhook;
pub mod window;
