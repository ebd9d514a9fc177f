//! `cargo xtask`: the project's own commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
