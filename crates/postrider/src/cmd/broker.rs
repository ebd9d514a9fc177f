//! `postrider broker`: a broker alone, and the audit of its books.

use std::path::PathBuf;
use std::sync::Arc;

use ledger::{Ledger, SqliteLedger};
use model::{Clock, ErrorCode, OsEntropy, SystemClock, Timestamp};
use tokio_util::sync::CancellationToken;

use super::Context;
use super::up::stop_on_signal;
use crate::fabric::{self, Fabric};
use crate::failure::{Exit, Failure};
use crate::home::{ledger, shown};
use crate::output::Form;
use crate::{args, journal};

/// Rows an audit names; more of them say nothing new.
const ORPHANS_SHOWN_MAX: usize = 100;

pub async fn run(asked: args::Broker, context: &Context) -> Result<Exit, Failure> {
    match asked {
        args::Broker::Serve(asked) => serve(asked, context).await,
        args::Broker::Check { store } => check(store.as_deref(), context).await,
    }
}

async fn serve(asked: args::Serve, context: &Context) -> Result<Exit, Failure> {
    journal::start();
    let output = &context.output;
    let path = path_of(asked.store.as_deref(), context)?;
    let listener = fabric::bind(Some(asked.listen), None).await?;
    let fabric = Fabric::open(&path, listener, Arc::new(SystemClock::start()), Arc::new(OsEntropy)).await?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    match output.form() {
        Form::Json => output.json(&serde_json::json!({"event": "ready", "url": fabric.url})),
        Form::Quiet => output.text(&fabric.url),
        Form::Text => {
            output.fact("broker", &fabric.url);
            output.fact("store", &shown(&path));
        }
    }
    stop.cancelled().await;
    fabric.stop().await;
    Ok(Exit::Done)
}

async fn check(store: Option<&str>, context: &Context) -> Result<Exit, Failure> {
    let path = path_of(store, context)?;
    if !path.exists() {
        return Err(Failure::usage(format!("{} is not there", shown(&path)))
            .fix("postrider broker check --store sqlite:PATH"));
    }
    let clock = Arc::new(SystemClock::start());
    let now: Timestamp = clock.now();
    let books = SqliteLedger::open(&path, clock, Arc::new(OsEntropy)).map_err(|error| {
        Failure::refused(ErrorCode::Unavailable, error.to_string())
            .line("A running broker audits itself: cm_broker_dedupe_orphan_found at /metrics.")
            .fix("postrider down && postrider broker check")
    })?;
    let orphans = books.orphans(now, ORPHANS_SHOWN_MAX).await.map_err(anyhow::Error::from)?;
    match context.output.form() {
        Form::Json => context.output.json(&serde_json::json!({"orphans": orphans.len()})),
        Form::Quiet => context.output.text(&orphans.len().to_string()),
        Form::Text if orphans.is_empty() => context.output.text("the books agree"),
        Form::Text => orphans.iter().for_each(|orphan| context.output.fact("orphan", &format!("{orphan:?}"))),
    }
    Ok(if orphans.is_empty() { Exit::Done } else { Exit::Refused })
}

fn path_of(store: Option<&str>, context: &Context) -> Result<PathBuf, Failure> {
    match store {
        None => Ok(ledger(&context.home)),
        Some(text) => text.strip_prefix("sqlite:").map(PathBuf::from).ok_or_else(|| {
            Failure::usage("--store must be sqlite:PATH")
                .fix("postrider broker serve --store sqlite:ledger.db")
        }),
    }
}
