//! `postrider up`: broker and daemon in one process, talking over the doors they would use on two machines.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use daemon::home::Home;
use daemon::settings::Settings;
use daemon::{Daemon, OwnMesh, StartError, Surroundings, SystemDisk};
use model::{Clock, Entropy, ErrorCode, OsEntropy, limits};
use sqlite::Stores;
use tokio_util::sync::CancellationToken;
use wire::local::Health;

use super::Context;
use super::relay::Role;
use crate::backup::{BackupError, Leftover};
use crate::clock::clock;
use crate::fabric::OWN_MESH;
use crate::failure::{Exit, Failure};
use crate::home::{audit, ledger, shown, socket};
use crate::local::LocalDoor;
use crate::output::{Form, Output};
use crate::stopped::{exit_after, stop_after_store};
use crate::{args, fabric, journal};

pub async fn run(asked: args::Up, context: &Context) -> Result<Exit, Failure> {
    let (home, output) = (&context.home, &context.output);
    if asked.detach {
        return super::detach::run(&words(&asked), home, output).await;
    }
    check_address(asked.listen)?;
    let stores = Stores::default();
    let ended = serve(asked, context, &stores).await;
    exit_after(&stores, ended)
}

/// Runs the roles until a signal, `postrider down` or a store that has stopped.
async fn serve(asked: args::Up, context: &Context, stores: &Stores) -> Result<Exit, Failure> {
    let (home, output) = (&context.home, &context.output);
    let webhook_allowed_hosts = super::broker::hosts(&asked.webhook_allow_host)?;
    let kept = refuse_second(home)?;
    journal::start_audited(&audit(home))?;
    warn_of_leftovers(&kept);
    let first_time = !home.config().exists();
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) = (clock(), Arc::new(OsEntropy));
    let listener = fabric::bind(asked.listen, last_address(home)).await?;
    let relay = match asked.relay.serve() {
        Some(asked) => Some(Role::open(&asked, home, clock.clone(), stores).await?),
        None => None,
    };
    let setup = fabric::Setup {
        webhook_allowed_hosts,
        local_door: Some(socket(home)?),
        relay: relay.as_ref().map(|role| role.relay.clone()),
        ..fabric::Setup::local(fabric::Store::Sqlite(ledger(home)))
    };
    let fabric = fabric::Fabric::open(setup, listener, clock.clone(), entropy.clone(), stores).await?;
    let stop = CancellationToken::new();
    let config = daemon::Config {
        roles: roles(relay.as_ref()),
        ..daemon_beside(&fabric, home, stores, clock.clone(), entropy, stop.clone())?
    };
    let daemon = match Daemon::start(config).await {
        Ok(daemon) => daemon,
        Err(error) => {
            fabric.stop().await;
            return Err(start_failure(error));
        }
    };
    tokio::spawn(stop_on_signal(stop.clone()));
    stop_after_store(stores, &stop);
    let relay_facts = relay.as_ref().map(|role| (role.url(), role.upstream.clone()));
    let relaying = relay.map(|role| tokio::spawn(role.run(stop.clone())));
    let health = tokio::select! {
        health = settled(home) => health?,
        () = stop.cancelled() => None,
    };
    if let Some(health) = health {
        let sync = sync_time(home, clock.as_ref());
        let page = page_link(&fabric, &health).await;
        print_ready(
            &Ready {
                home,
                health: &health,
                url: &fabric.url,
                page: &page,
                daemon: &daemon,
                relay: relay_facts,
                first_time,
                sync,
            },
            output,
        );
    }
    // The daemon first: what it has on the wire may still be answered.
    daemon.stopped().await;
    if let Some(relaying) = relaying
        && let Err(error) = relaying.await
    {
        tracing::error!(%error, "the relay ended badly");
    }
    fabric.stop().await;
    Ok(Exit::Done)
}

/// The command line of the same process in the background.
fn words(asked: &args::Up) -> Vec<String> {
    let mut words = vec!["up".to_owned()];
    words.extend(asked.listen.map(|listen| format!("--listen={listen}")));
    words.extend(asked.webhook_allow_host.iter().map(|host| format!("--webhook-allow-host={host}")));
    words.extend(asked.relay.words());
    words
}

/// A daemon whose own mesh is the broker of this process.
fn daemon_beside(
    fabric: &fabric::Fabric,
    home: &Home,
    stores: &Stores,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    stop: CancellationToken,
) -> Result<daemon::Config, Failure> {
    Ok(daemon::Config {
        home: home.root().to_owned(),
        clock,
        entropy,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roles: roles(None),
        page_url: Some(fabric.url.clone()),
        own_mesh: Some(OwnMesh {
            slug: OWN_MESH.to_owned(),
            url: fabric.url.clone(),
            invites: fabric.invites(),
        }),
        more_routes: super::mcp::routes(home)?,
        surroundings: Surroundings::read(|name| std::env::var(name).ok()),
        free_space: Arc::new(SystemDisk),
        stores: stores.clone(),
        stop,
    })
}

/// What this process runs.
fn roles(relay: Option<&Role>) -> Vec<String> {
    let beside = relay.map(|_| "relay");
    ["broker", "chat", "hub", "daemon"].into_iter().chain(beside).map(str::to_owned).collect()
}

/// Refuses when another process runs this home. The lock decides; it is taken for good by the daemon, after this look. Answers
/// with what a restore left beside the home that this account cannot end: the home is whole all the same.
pub fn refuse_second(home: &Home) -> Result<Vec<(Leftover, BackupError)>, Failure> {
    let kept = crate::backup::finish_restore(home.root())
        .map_err(|error| super::backup::failure(&error, home.root()))?;
    home.prepare()
        .map_err(|source| start_failure(StartError::Home { path: home.root().to_owned(), source }))?;
    match net::local::lock_exclusive(&home.lock()) {
        Ok(_) => Ok(kept),
        Err(net::local::LockError::Held { .. }) => {
            Err(start_failure(StartError::AlreadyRunning { home: home.root().to_owned() }))
        }
        Err(error @ net::local::LockError::Unusable { .. }) => Err(start_failure(StartError::Lock(error))),
    }
}

pub fn warn_of_leftovers(kept: &[(Leftover, BackupError)]) {
    for (leftover, error) in kept {
        let fix = super::backup::leftover_command(leftover);
        tracing::warn!(%error, fix, "{}", super::backup::leftover_sentence(leftover));
    }
}

/// Words on an open network would cross it in the clear.
fn check_address(listen: Option<SocketAddr>) -> Result<(), Failure> {
    match listen {
        Some(address) if !address.ip().is_loopback() => Err(Failure::usage(format!(
            "{address} is open to other machines, and this door speaks without TLS"
        ))
        .fix("postrider up --listen 127.0.0.1:7440")),
        Some(_) | None => Ok(()),
    }
}

/// The port of the first start, kept in the mesh's own entry.
fn last_address(home: &Home) -> Option<SocketAddr> {
    let settings = Settings::read(&home.config()).ok()?;
    settings.mesh(OWN_MESH)?.url.strip_prefix("http://")?.parse().ok()
}

/// Why a daemon did not start, in the command line's form.
pub fn start_failure(error: StartError) -> Failure {
    let shown = error.to_string();
    match error {
        StartError::AlreadyRunning { .. } => Failure::refused(ErrorCode::Unavailable, shown)
            .line("Nothing was changed.")
            .fix("postrider status")
            .fix("postrider down"),
        StartError::OtherMachine { .. }
        | StartError::Home { .. }
        | StartError::Lock(_)
        | StartError::Settings(_)
        | StartError::SocketPath(_)
        | StartError::Socket(_) => {
            Failure::refused(ErrorCode::Unavailable, shown).line("Nothing was changed.")
        }
    }
}

/// Cancels `stop` at the first signal and ends the process at the second.
pub async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::warn!("signals cannot be listened to; stop with postrider down");
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    stop.cancel();
    // Asked twice means now: everything acknowledged is on disk.
    interrupt.recv().await;
    std::process::exit(130);
}

/// Waits until the home's own mesh is linked, so that the first send after `ready` goes the whole way.
async fn settled(home: &Home) -> Result<Option<Health>, Failure> {
    let door = LocalDoor::of(home)?;
    let linked = async {
        loop {
            let health: Health = door.get("/v1/health").await?;
            let own = health.meshes.iter().find(|mesh| mesh.mesh == OWN_MESH);
            if own.is_none_or(|mesh| mesh.connected || mesh.link == "parked") {
                return Ok(Some(health));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(limits::DRAIN_TIMEOUT, linked).await {
        Ok(health) => health,
        // Sends are taken and kept meanwhile; status says what the link does.
        Err(_) => door.get("/v1/health").await.map(Some),
    }
}

/// The page's address with a key that signs this home's person in, once.
async fn page_link(fabric: &fabric::Fabric, health: &Health) -> String {
    let own = health.meshes.iter().find(|mesh| mesh.mesh == OWN_MESH);
    let Some(Ok(person)) = own.map(|mesh| mesh.person.parse()) else { return fabric.url.clone() };
    match fabric.broker.sign_in(&person).await {
        Ok(made) => super::signin::link(&fabric.url, &made.key),
        Err(error) => {
            tracing::warn!(%error, "no link for signing in could be made");
            fabric.url.clone()
        }
    }
}

/// What one synced write costs on this disk.
fn sync_time(home: &Home, clock: &dyn Clock) -> Option<Duration> {
    let path = home.daemon().join("sync-probe");
    let measured = File::create(&path).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        let started = clock.monotonic();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        Ok(clock.monotonic().saturating_sub(started))
    });
    // A probe that cannot be removed is replaced by the next one.
    let _ = std::fs::remove_file(&path);
    measured.ok()
}

struct Ready<'a> {
    home: &'a Home,
    health: &'a Health,
    url: &'a str,
    page: &'a str,
    daemon: &'a Daemon,
    /// Where the relay is reached, and what it stands before.
    relay: Option<(String, String)>,
    first_time: bool,
    sync: Option<Duration>,
}

fn print_ready(ready: &Ready<'_>, output: &Output) {
    let own = ready.health.meshes.iter().find(|mesh| mesh.mesh == OWN_MESH);
    let (person, node) = own.map_or(("", ""), |mesh| (mesh.person.as_str(), mesh.node.as_str()));
    match output.form() {
        Form::Json => output.json(&serde_json::json!({
            "event": "ready",
            "url": ready.url,
            "page": ready.page,
            "socket": ready.daemon.socket(),
            "home": ready.home.root(),
            "person": person,
            "node": node,
            "relay": ready.relay.as_ref().map(|(url, _)| url),
        })),
        Form::Quiet => output.text(ready.url),
        Form::Text => {
            if ready.first_time {
                let made = shown(ready.home.root());
                output.text(&format!("Made a home in {made} and the open mesh \"{OWN_MESH}\"."));
                output.text("");
            }
            let sync = ready
                .sync
                .map_or_else(String::new, |sync| format!(" ({:.1} ms here)", sync.as_secs_f64() * 1_000.0));
            output.fact("page", ready.page);
            output.fact("you", &format!("{person} on {node}"));
            output.fact("socket", &shown(ready.daemon.socket()));
            output.fact("runs", &ready.health.roles.join(", "));
            if let Some((url, upstream)) = &ready.relay {
                output.fact("relay", &format!("{url} before {upstream}"));
            }
            output.fact(
                "disk",
                &format!("SQLite {}, every answer synced first{sync}", sqlite::rusqlite::version()),
            );
            output.text("");
            output.fact("try", "postrider send me \"hello\"          in a second terminal");
            output.fact("stop", "Ctrl-C, or postrider down          queued work stays on disk");
        }
    }
}
