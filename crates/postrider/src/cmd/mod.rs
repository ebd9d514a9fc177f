//! One file per subcommand.

mod detach;
mod down;
mod inbox;
mod send;
mod status;
mod topic;
mod up;

use crate::args::{Args, Command};
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Does what was asked.
pub async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let home = crate::home::resolve(args.home.as_deref())?;
    match args.command {
        Command::Up(up) => up::run(up, &home, output).await,
        Command::Down => down::run(&home, output).await,
        Command::Status => status::run(&home, output).await,
        Command::Send(send) => send::run(send, &home, output).await,
        Command::Inbox(inbox) => inbox::run(inbox, &home, output).await,
        Command::Topic(topic) => topic::run(topic, &home, output).await,
    }
}
