//! The daemon from outside: its local door on both listeners, and a broker that is a script.

#![expect(clippy::unwrap_used, reason = "a test that meets an error ends there, in its helpers too")]

mod accept_table;
mod broker;
mod counterexamples;
mod courier;
mod door;
mod explained;
mod full_disk;
mod hang_up;
mod home;
mod hostile;
mod inbox;
mod lessons;
mod lifecycle;
mod link;
mod operator;
mod recover;
mod turns;
mod upkeep;
