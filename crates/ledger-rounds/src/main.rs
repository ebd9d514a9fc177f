//! `ledger-rounds sqlite FILE` or `ledger-rounds postgres URL`: opens a new ledger and prints `ready`. Each line of
//! standard input is a number of callers, answered with a round's figures as one line of JSON. The process ends with
//! its standard input.

use anyhow::{Context, bail};
use ledger_rounds::Books;
use std::io::{BufRead, Write};
use std::path::Path;

/// The allocator of the product's binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("a runtime")?;
    let books = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sqlite", file] => runtime.block_on(Books::sqlite(Path::new(file)))?,
        ["postgres", url] => runtime.block_on(Books::postgres(url))?,
        _ => bail!("usage: ledger-rounds sqlite FILE | ledger-rounds postgres URL"),
    };
    answer("ready")?;
    for line in std::io::stdin().lock().lines() {
        let line = line.context("an order")?;
        let callers: usize = line.trim().parse().with_context(|| format!("a number of callers: {line:?}"))?;
        let measured = runtime.block_on(books.round(callers))?;
        answer(&serde_json::to_string(&measured)?)?;
    }
    runtime.block_on(books.close());
    Ok(())
}

fn answer(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
