//! The command line.

use crate::workspace::Workspace;
use crate::{Ending, bench, docs, prove, soak, stored, test, tidy};
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
        /// Run each proof whose page is older than the code that it covers
        #[arg(long, conflicts_with_all = ["name", "scale"])]
        stale: bool,
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
        /// Build this commit too and compare both, round by round in one run
        #[arg(long, value_name = "REV", conflicts_with_all = ["quick", "save"])]
        against: Option<String>,
        /// Compare only these rows of the bars, such as D1,D4
        #[arg(long, value_delimiter = ',', requires = "against")]
        rows: Vec<String>,
        /// How often each of both commits is measured
        #[arg(long, default_value_t = bench::ROUNDS, value_parser = clap::value_parser!(u64).range(1..))]
        rounds: u64,
    },
    /// Check the crate graph, the rules of the source, its size figures and the generated pages
    Tidy {
        /// Write today's figures down as the new limits
        #[arg(long)]
        ratchet: bool,
    },
    /// Write the generated pages
    Docs,
    /// Keep a read transaction open on an SQLite file until it is killed; for `prove pressure`
    #[command(hide = true)]
    HoldRead {
        /// The file
        file: std::path::PathBuf,
    },
    /// Keep what a team under that commit's binary leaves behind, for the tests of upgrades
    StoreState {
        /// The commit
        revision: String,
        /// Its binary, when there is one already
        #[arg(long, value_name = "FILE")]
        binary: Option<std::path::PathBuf>,
    },
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
        Command::Prove { seed, stale: true, .. } => prove::run_stale(&workspace, seed),
        Command::Prove { name, scale, seed, stale: false } => {
            prove::run(&workspace, name.as_deref(), scale, seed)
        }
        Command::Soak { name, minutes, seed } => soak::run(&workspace, name.as_deref(), minutes, seed),
        Command::Bench { name, quick, save, against, rows, rounds } => {
            let asked = bench::Asked { quick, save, against, rows, rounds };
            bench::run(&workspace, name.as_deref(), &asked)
        }
        Command::Tidy { ratchet: true } => tidy::tighten(&workspace),
        Command::Tidy { ratchet: false } => tidy::run(&workspace),
        Command::Docs => docs::write(&workspace),
        Command::HoldRead { file } => prove::hold_read(&file),
        Command::StoreState { revision, binary } => stored::run(&workspace, &revision, binary),
    }
}
