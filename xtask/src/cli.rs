//! The command line.

use crate::workspace::Workspace;
use crate::{Ending, bench, docs, prove, soak, test, tidy};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands", disable_version_flag = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test: installs what they need, starts private servers, prints how many passed
    Test {
        /// Passed on to the runner: names of tests, `-p CRATE`, `-E EXPRESSION`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        filters: Vec<String>,
    },
    /// Run one of the larger proofs and write its page under docs/proof/
    #[command(after_help = prove::list())]
    Prove {
        /// Which proof
        name: Option<String>,
        /// How much of it; each proof names its unit and its usual amount
        #[arg(long)]
        scale: Option<u64>,
        /// Replays a run
        #[arg(long, default_value_t = prove::SEED)]
        seed: u64,
    },
    /// Run proofs again and again with new seeds until the time is up or one breaks
    Soak {
        /// Only this proof
        name: Option<String>,
        /// How long
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// The first seed
        #[arg(long, default_value_t = prove::SEED)]
        seed: u64,
    },
    /// Measure: limits, peers and product interleaved in one run, ratios printed
    #[command(after_help = bench::list())]
    Bench {
        /// Which benchmark
        name: Option<String>,
        /// See that it runs, with figures that mean nothing
        #[arg(long)]
        quick: bool,
        /// Also write docs/bench/NAME.md
        #[arg(long)]
        save: bool,
    },
    /// Check the crate graph, the rules of the source, its size figures and the generated pages
    Tidy {
        /// Write today's figures down as the new limits
        #[arg(long)]
        ratchet: bool,
    },
    /// Write the generated pages
    Docs,
}

/// Runs the command line; exit 0 when all holds, 1 when not, 2 for wrong usage.
pub fn main() -> ExitCode {
    match run(Line::parse().command) {
        Ok(Ending::Holds) => ExitCode::SUCCESS,
        Ok(Ending::Broken) => ExitCode::FAILURE,
        Ok(Ending::Usage) => ExitCode::from(2),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<Ending> {
    let workspace = Workspace::read()?;
    match command {
        Command::Test { filters } => test::run(&workspace, &filters),
        Command::Prove { name, scale, seed } => prove::run(&workspace, name.as_deref(), scale, seed),
        Command::Soak { name, minutes, seed } => soak::run(&workspace, name.as_deref(), minutes, seed),
        Command::Bench { name, quick, save } => bench::run(&workspace, name.as_deref(), quick, save),
        Command::Tidy { ratchet: true } => tidy::tighten(&workspace),
        Command::Tidy { ratchet: false } => tidy::run(&workspace),
        Command::Docs => docs::write(&workspace),
    }
}
