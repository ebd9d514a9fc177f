//! The running process: whether it answers, in which version, and at which doors.

use std::net::{Ipv4Addr, SocketAddr};

use daemon::home::Home;
use daemon::settings::Settings;
use model::limits;
use net::client::{Client, ClientError, Target};
use net::local::{LockError, lock_exclusive};
use wire::local::{Health, Version};

use super::finding::Finding;
use super::link;
use crate::fabric::OWN_MESH;
use crate::home::{shown, socket};

/// Who holds a home that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Silence {
    /// Nobody.
    Nobody,
    /// A process, by its id when it left one.
    Held { pid: Option<String> },
}

/// Every check of the running process; those after the first need it to answer.
pub async fn look(home: &Home) -> Vec<Finding> {
    let Ok(socket) = socket(home) else { return Vec::new() };
    let door = Client::new(Target::Unix(socket.clone())).with_timeout(limits::ASK_TIMEOUT);
    let version: Result<Version, ClientError> = door.get("/v1/version").await;
    let version = match version {
        Ok(version) => version,
        Err(error) => {
            let mut findings = vec![judge_silence(&shown(&socket), &silence(home), &error)];
            findings.extend(own_port(home).await);
            return findings;
        }
    };
    let mut findings = vec![
        Finding::fine("daemon", "socket answers"),
        judge_version(&version.daemon_version, env!("CARGO_PKG_VERSION")),
        loopback(home).await,
    ];
    match door.get::<Health>("/v1/health").await {
        Ok(health) => findings.extend(link::look(home, &door, &health).await),
        Err(error) => findings.push(
            Finding::act("health", format!("the daemon does not say how it is: {error}"))
                .fix("postrider daemon logs"),
        ),
    }
    findings
}

fn silence(home: &Home) -> Silence {
    match lock_exclusive(&home.lock()) {
        Err(LockError::Held { .. }) => {
            let pid = std::fs::read_to_string(home.pid()).ok();
            Silence::Held { pid: pid.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()) }
        }
        Ok(_) | Err(LockError::Unusable { .. }) => Silence::Nobody,
    }
}

fn judge_silence(socket: &str, silence: &Silence, error: &ClientError) -> Finding {
    match silence {
        Silence::Nobody => Finding::act("daemon", format!("no daemon runs for this home ({socket})"))
            .line("Nothing is lost; what is queued goes on at the next start.")
            .fix("postrider up"),
        Silence::Held { pid } => {
            let who = pid.as_deref().map(|pid| format!(" {pid}")).unwrap_or_default();
            let found = Finding::act("daemon", format!("process{who} holds this home and does not answer"))
                .line(format!("{error}. Whatever was acknowledged is on disk."));
            match pid {
                Some(pid) => found.fix(format!("kill -9 {pid} && postrider up")),
                None => found.fix("ps aux | grep postrider"),
            }
        }
    }
}

fn judge_version(running: &str, this: &str) -> Finding {
    if running == this {
        return Finding::fine("version", format!("version {this}"));
    }
    Finding::warn("version", format!("the daemon runs {running}, this is {this}"))
        .line("They may not understand each other.")
        .fix("postrider down && postrider up")
}

/// The loopback twin of the socket, with its token; a container has none.
async fn loopback(home: &Home) -> Finding {
    let port =
        std::fs::read_to_string(home.http_port()).ok().and_then(|text| text.trim().parse::<u16>().ok());
    let Some(port) = port else { return Finding::fine("loopback", "no loopback door here") };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let token = match home.read_token() {
        Ok(token) => token,
        Err(error) => {
            return Finding::act("loopback", format!("local_token cannot be read: {error}"))
                .fix("postrider daemon rotate-token");
        }
    };
    let target = Target::of_url(&format!("http://{address}")).expect("an address has the form of a URL");
    let client = Client::new(target).with_bearer(&token).with_timeout(limits::ASK_TIMEOUT);
    judge_loopback(address, client.get::<Version>("/v1/version").await.err())
}

fn judge_loopback(address: SocketAddr, error: Option<ClientError>) -> Finding {
    match error {
        None => Finding::fine("loopback", format!("{address} answers")),
        Some(ClientError::Refused { status, .. }) => {
            Finding::act("loopback", format!("{address} refuses the home's own token ({status})"))
                .line("Another program may have taken the port, or the token's file was changed.")
                .fix("postrider down && postrider up")
        }
        Some(error) => Finding::act("loopback", format!("{address} does not answer: {error}"))
            .line("The socket does; only programs without it are cut off.")
            .fix("postrider down && postrider up"),
    }
}

/// Whether the next `up` finds its port free.
async fn own_port(home: &Home) -> Option<Finding> {
    let settings = Settings::read(&home.config()).ok()?;
    let address: SocketAddr = settings.mesh(OWN_MESH)?.url.strip_prefix("http://")?.parse().ok()?;
    let free = tokio::net::TcpListener::bind(address).await.is_ok();
    Some(judge_port(address, free))
}

fn judge_port(address: SocketAddr, free: bool) -> Finding {
    if free {
        return Finding::fine("port", format!("{address} is free"));
    }
    Finding::warn("port", format!("another program listens on {address}, this home's own port"))
        .line("The next start takes another port; links and bookmarks to this one go astray.")
        .fix(format!("ss -ltnp 'sport = :{}'", address.port()))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_silent_home_is_told_apart_by_who_holds_it() {
        let error = ClientError::Timeout;
        let nobody = judge_silence("~/s", &Silence::Nobody, &error);
        assert_eq!((nobody.level, nobody.fix), (Level::Act, vec!["postrider up".to_owned()]));
        let held = judge_silence("~/s", &Silence::Held { pid: Some("7".to_owned()) }, &error);
        assert_eq!(held.fix, ["kill -9 7 && postrider up"]);
        assert!(
            judge_silence("~/s", &Silence::Held { pid: None }, &error).message.starts_with("process holds")
        );
    }

    #[test]
    fn another_version_another_token_and_a_taken_port_are_found() {
        assert_eq!(judge_version("1", "1").level, Level::Fine);
        assert_eq!(judge_version("1", "2").level, Level::Warn);
        let address: SocketAddr = "127.0.0.1:7440".parse().unwrap();
        assert_eq!(judge_loopback(address, None).level, Level::Fine);
        assert_eq!(judge_loopback(address, Some(ClientError::Timeout)).level, Level::Act);
        assert_eq!(judge_port(address, true).level, Level::Fine);
        let taken = judge_port(address, false);
        assert_eq!((taken.level, taken.fix), (Level::Warn, vec!["ss -ltnp 'sport = :7440'".to_owned()]));
    }
}
