//! `postrider broker`: a broker alone, and the audit of its books.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use broker::limiter::Budgets;
use model::error::Malformed;
use model::webhook::Host;
use model::{OsEntropy, limits};
use net::tls::Identity;
use serde_json::json;
use sqlite::Stores;
use tokio_util::sync::CancellationToken;

use super::Context;
use super::up::stop_on_signal;
use crate::clock::clock;
use crate::fabric::{self, Fabric, OWN_MESH, Setup, Store};
use crate::failure::{Exit, Failure};
use crate::home::{audit, ledger};
use crate::output::Form;
use crate::stopped::{exit_after, stop_after_store};
use crate::{args, journal};

/// Rows an audit names; more of them say nothing new.
const ORPHANS_SHOWN_MAX: usize = 100;

pub async fn run(asked: args::Broker, context: &Context) -> Result<Exit, Failure> {
    match asked {
        args::Broker::Serve(asked) => serve(*asked, context).await,
        args::Broker::Check { store } => check(store.as_deref(), context).await,
    }
}

async fn serve(asked: args::Serve, context: &Context) -> Result<Exit, Failure> {
    let stores = Stores::default();
    let ended = serve_until_stopped(asked, context, &stores).await;
    exit_after(&stores, ended)
}

async fn serve_until_stopped(
    asked: args::Serve,
    context: &Context,
    stores: &Stores,
) -> Result<Exit, Failure> {
    let output = &context.output;
    check_address(&asked)?;
    let setup = setup(&asked, context)?;
    journal::start_audited(&audit(&context.home))?;
    let store = setup.store.to_string();
    let listener = fabric::bind(Some(asked.listen), None).await?;
    let fabric = Fabric::open(setup, listener, clock(), Arc::new(OsEntropy), stores).await?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    stop_after_store(stores, &stop);
    let url = asked.public_url.as_deref().unwrap_or(&fabric.url);
    // An empty store lets its owner in; the secret is shown here and kept nowhere.
    let owner = if fabric.broker.wants_owner().await.map_err(anyhow::Error::from)? {
        Some(fabric::invite(&fabric.broker, url).await.map_err(anyhow::Error::from)?.to_text())
    } else {
        None
    };
    let owner = owner.as_ref().map(|invite| invite.reveal());
    match output.form() {
        Form::Json => output.json(&json!({"event": "ready", "url": fabric.url, "owner_invite": owner})),
        Form::Quiet => output.text(&fabric.url),
        Form::Text => {
            output.fact("broker", &fabric.url);
            output.fact("store", &store);
            if let Some(owner) = owner {
                output.fact("owner", &format!("postrider join '{owner}'"));
                output.fact("", "One join, 15 minutes, shown once: whoever uses it owns the mesh.");
            }
        }
    }
    stop.cancelled().await;
    fabric.stop().await;
    Ok(Exit::Done)
}

fn setup(asked: &args::Serve, context: &Context) -> Result<Setup, Failure> {
    let identity = match (&asked.tls_cert, &asked.tls_key) {
        (Some(cert), Some(key)) => {
            Some(Identity::load(cert, key).map_err(|error| Failure::usage(error.to_string()))?)
        }
        (None, _) | (_, None) => None,
    };
    let defaults = Budgets::default();
    Ok(Setup {
        store: store_of(asked.store.as_deref(), context)?,
        mesh: context.mesh.clone().unwrap_or_else(|| OWN_MESH.to_owned()),
        limiter: asked
            .limiter
            .parse()
            .map_err(|error: broker::limiter::BackendUnknown| Failure::usage(error.to_string()))?,
        budgets: Budgets {
            member: asked.limit_member.as_deref().map_or(Ok(defaults.member), parsed)?,
            mesh: asked.limit_mesh.as_deref().map_or(Ok(defaults.mesh), parsed)?,
        },
        public_url: asked.public_url.clone(),
        identity,
        webhook_allowed_hosts: hosts(&asked.webhook_allow_host)?,
        message_retention: asked
            .message_retention
            .map(|days| Duration::from_secs(u64::from(days) * 24 * 3600)),
        local_door: None,
        relay: None,
    })
}

/// Hosts as an operator names them.
pub fn hosts(named: &[String]) -> Result<Vec<Host>, Failure> {
    named.iter().map(|host| parsed(host)).collect()
}

fn parsed<T: FromStr<Err = Malformed>>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: Malformed| Failure::usage(error.to_string()))
}

/// Off this machine words go behind TLS: ours, or a proxy's that the public address names.
fn check_address(asked: &args::Serve) -> Result<(), Failure> {
    let open = !asked.listen.ip().is_loopback();
    if open && asked.tls_cert.is_none() && asked.public_url.is_none() && !asked.insecure_lan {
        return Err(Failure::usage(format!(
            "{} is open to other machines, and nothing encrypts it",
            asked.listen
        ))
        .fix("postrider broker serve --tls-cert FILE --tls-key FILE")
        .fix("postrider broker serve --public-url https://NAME       behind a proxy")
        .fix("postrider broker serve --insecure-lan"));
    }
    Ok(())
}

async fn check(store: Option<&str>, context: &Context) -> Result<Exit, Failure> {
    let (store, output) = (store_of(store, context)?, &context.output);
    if let Store::Sqlite(path) = &store
        && !path.exists()
    {
        return Err(
            Failure::usage(format!("{store} is not there")).fix("postrider broker check --store sqlite:PATH")
        );
    }
    let books = store.open(clock(), Arc::new(OsEntropy)).await.map_err(|failure| {
        failure
            .line("A running broker audits itself: cm_broker_dedupe_orphan_found at /metrics.")
            .fix("postrider down && postrider broker check")
    })?;
    let ledger = books.ledger();
    let now = ledger.now().await.map_err(anyhow::Error::from)?;
    // Nobody else writes to a file that was just locked; a shared database may have an accept under way.
    let before = match &store {
        Store::Sqlite(_) => now,
        Store::Postgres(_) => model::Timestamp::from_micros(
            now.as_micros() - i64::try_from(limits::ORPHAN_AGE_MIN.as_micros()).unwrap_or(i64::MAX),
        ),
    };
    let orphans = ledger.orphans(before, ORPHANS_SHOWN_MAX).await.map_err(anyhow::Error::from)?;
    let warnings = ledger.durability().await.map_err(anyhow::Error::from)?;
    let told: Vec<_> = warnings
        .iter()
        .map(|found| json!({"setting": found.setting, "value": found.value, "message": found.message}))
        .collect();
    match output.form() {
        Form::Json => output.json(&json!({"orphans": orphans.len(), "durability": told})),
        Form::Quiet => output.text(&orphans.len().to_string()),
        Form::Text if orphans.is_empty() => output.text("the books agree"),
        Form::Text => orphans.iter().for_each(|orphan| output.fact("orphan", &format!("{orphan:?}"))),
    }
    if output.form() == Form::Text {
        warnings.iter().for_each(|warning| output.fact("warn", &warning.to_string()));
    }
    books.close().await;
    Ok(if orphans.is_empty() { Exit::Done } else { Exit::Refused })
}

fn store_of(asked: Option<&str>, context: &Context) -> Result<Store, Failure> {
    asked.map_or_else(|| Ok(Store::Sqlite(ledger(&context.home))), parsed)
}
