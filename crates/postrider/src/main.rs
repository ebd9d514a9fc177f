//! The binary: a thin shell that gives the rooms their clock, their home and their doors.

mod args;
mod backup;
mod clock;
mod cmd;
mod fabric;
mod failure;
mod home;
mod journal;
mod local;
mod output;
mod stopped;

use std::process::ExitCode;

use clap::Parser;

/// A request is dozens of short-lived pieces, often freed on another thread than took them: what this allocator is made
/// for. It gave a tenth more sends and receipts a second.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let output = output::Output::new(args.style());
    net::serve::spread_over_strands();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output.error(&failure::Failure::from(anyhow::Error::from(error)));
            return failure::Exit::Refused.into();
        }
    };
    let ended = runtime.block_on(cmd::run(args, &output));
    // Blocking reads of a stopping store must not hold the exit.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output.error(&failure);
            failure.exit.into()
        }
    }
}
