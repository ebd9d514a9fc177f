//! The binary: a thin shell that gives the rooms their clock, their home and their doors.

mod args;
mod clock;
mod cmd;
mod fabric;
mod failure;
mod home;
mod journal;
mod local;
mod output;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let output = output::Output::new(args.style());
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
