//! A long conversation: what opening it costs the broker in memory, and how fast it is followed.

use crate::bench::{Bar, Row, Table, measuring};
use anyhow::{Context, bail, ensure};
use serde_json::json;
use std::time::Duration;
use testkit::bin::Binary;
use testkit::fleet::chat::{Frame, Probe, Venue};
use testkit::fleet::races::Store;
use testkit::stopwatch::Stopwatch;

/// Whatever its length.
const MEMORY_MAX_MIB: f64 = 128.0;
const WRITERS: u64 = 64;
const OPENERS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn measure(binary: &Binary, messages: u64, table: &mut Table) -> anyhow::Result<()> {
    measuring(format_args!("a conversation of {messages} messages"));
    let venue = Venue::open(binary, Store::Sqlite, &[])?;
    let made = venue.poster().post("#long", "first", "x")?;
    let conversation = made["conversation"].as_str().context("a conversation")?.to_owned();
    write(&venue, messages)?;
    let before = resident_mib(venue.pid())?;
    let watch = Stopwatch::start();
    std::thread::scope(|scope| {
        let openers: Vec<_> =
            (0..OPENERS).map(|_| scope.spawn(|| whole(&venue, &conversation, messages))).collect();
        openers.into_iter().try_for_each(|opener| opener.join().expect("an opener ends with an error"))
    })?;
    let rows = (messages as f64) * OPENERS as f64 / watch.elapsed().as_secs_f64();
    let peak = peak_mib(venue.pid())?;
    let what = format!("{messages} messages followed from the start by {OPENERS} at once");
    table.push(Row::measured(what, rows, "rows/s"));
    table.push(Row::measured("broker's memory before", before, "MiB"));
    table.push(Row::measured("broker's largest memory", peak, "MiB"));
    let what = format!("largest memory / {MEMORY_MAX_MIB} MiB");
    table.push(Row::ratio(what, peak / MEMORY_MAX_MIB, Bar::AtMost(1.0)));
    Ok(())
}

/// All but the first.
fn write(venue: &Venue, messages: u64) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut poster = venue.poster();
                    (writer..messages).step_by(WRITERS as usize).try_for_each(|n| {
                        poster.post("#long", &format!("m{n}"), "a message of a long conversation").map(drop)
                    })
                })
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer ends with an error"))
    })?;
    Ok(())
}

/// Follows the conversation from its first row to its last.
fn whole(venue: &Venue, conversation: &str, messages: u64) -> anyhow::Result<()> {
    let mut probe = Probe::open(venue.addresses()[0], venue.token())?;
    probe.say(&json!({"type": "subscribe", "conversation_id": conversation}))?;
    let mut rows = 0;
    loop {
        match probe.next(PATIENCE)? {
            Frame::Text(text) if text.starts_with("{\"type\":\"message\"") => rows += 1,
            Frame::Text(text) if text.starts_with("{\"type\":\"subscribed\"") => {
                ensure!(rows == messages, "{rows} of {messages} rows came");
                return Ok(());
            }
            Frame::Text(_) => {}
            Frame::Closed { code, reason } => bail!("closed: {code} {reason}"),
            Frame::Nothing => bail!("nothing came for {PATIENCE:?}"),
        }
    }
}

fn resident_mib(pid: u32) -> anyhow::Result<f64> {
    status_mib(pid, "VmRSS:")
}

fn peak_mib(pid: u32) -> anyhow::Result<f64> {
    status_mib(pid, "VmHWM:")
}

fn status_mib(pid: u32, field: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("a figure of the process")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
