//! `cargo xtask`: the project's own commands.

use std::process::ExitCode;

/// The binary's own: benchmarks of a room in this process measure what the product does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    xtask::main()
}
