//! `postrider relay`: the edge relay, its outbox and its checklist.

mod doctor;
mod door;
mod outbox;
mod replay;
mod role;
mod serve;
mod stand_in;

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};

pub use door::RelayDoor;
pub use role::Role;

pub async fn run(asked: args::Relay, context: &Context) -> Result<Exit, Failure> {
    match asked {
        args::Relay::Serve(asked) => serve::run(*asked, context).await,
        args::Relay::Outbox(asked) => outbox::run(asked, context).await,
        args::Relay::Doctor => doctor::run(context).await,
    }
}
