//! The broker at a real TCP door, over a SQLite ledger in a temporary folder, driven by a raw link client.

#![expect(clippy::unwrap_used, reason = "a test that meets an error ends there, with the error")]

mod brokers;
mod chat;
mod direct;
mod forged;
mod hang_up;
mod health;
mod hostile;
mod hub;
mod hub_keys;
mod janitor;
mod join;
mod lanes;
mod links;
mod negotiation;
mod node;
mod openapi;
mod questions;
mod scene;
mod send;
mod webhooks;
mod windows;
