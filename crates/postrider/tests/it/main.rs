//! The product as its users meet it: the real binary, its words, its exit codes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

mod agents;
mod backups;
mod brokers;
mod chat;
mod demo;
mod doctor;
mod every_command;
mod explain;
mod explained;
mod failing_disk;
mod full_disk;
mod goldens;
mod hook;
mod install;
mod kills;
mod mcp;
mod outages;
mod page;
mod parley;
mod races;
mod refusals;
mod relay;
mod restores;
mod service;
mod start;
mod stopped_store;
mod turns;
mod upgrade;
mod walk;
mod wrong_date;

use testkit::bin::{Binary, Home, Options, Product};

/// A home of its own for the binary with faults.
fn home() -> Home {
    Home::new(Binary::at(env!("CARGO_BIN_EXE_postrider"))).unwrap()
}

/// The product on `home`, ready.
fn up(home: &Home) -> Product<'_> {
    Product::up(home, &Options::default()).unwrap()
}

/// The product with its loopback door, also where loopback may be shared.
fn up_on_loopback(home: &Home) -> Product<'_> {
    let env = vec![("POSTRIDER_TCP".to_owned(), "on".to_owned())];
    Product::up(home, &Options { env, ..Options::default() }).unwrap()
}

/// The product with faults.
fn up_with<'home>(home: &'home Home, fault: &str) -> Product<'home> {
    Product::up(home, &Options { faults: vec![fault.to_owned()], ..Options::default() }).unwrap()
}
