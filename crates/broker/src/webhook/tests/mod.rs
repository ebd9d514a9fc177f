//! Calls against real sockets, over a SQLite ledger whose clock the test moves.

mod answers;
mod delivery;
mod gate;
mod receiver;
mod scene;
mod secure;
