//! What a running daemon says of its meshes: links, clocks, and what waits for a person.

use std::time::Duration;

use ::http::{HeaderName, Method};
use daemon::home::Home;
use daemon::settings::Settings;
use model::{Clock, MemberKind, Timestamp, limits};
use net::client::{Ask, Client, Target};
use serde_json::json;
use wire::ask::{BrokerExplained, MemberRow};
use wire::health::{BrokerHealth, BrokerProblem};
use wire::local::{ACT_AS_HEADER, Health, MeshHealth, Notice, StoppedStore, TurnPage};

use super::finding::Finding;
use crate::clock::clock;
use crate::fabric::OWN_MESH;
use crate::output::{age, clock_time};

/// Apart by more, two clocks make people misread their logs.
const SKEW_WARN: Duration = Duration::from_secs(5);
/// A row that waits longer is worth a look.
const WAITING_WARN: Duration = Duration::from_secs(3_600);
/// Agents asked for turns that were given up.
const AGENTS_MAX: usize = 64;

/// Every check of a daemon that answers.
pub async fn look(home: &Home, door: &Client, health: &Health) -> Vec<Finding> {
    let clock = clock();
    let mut findings = Vec::new();
    findings.push(judge_stores(&health.stopped_stores));
    let told: Vec<String> = health.stopped_stores.iter().map(StoppedStore::problem).collect();
    for problem in health.problems.iter().filter(|problem| !told.contains(problem)) {
        findings.push(Finding::act("daemon", problem.clone()).fix("postrider status"));
    }
    for mesh in &health.meshes {
        findings.push(judge_link(mesh));
        findings.push(judge_waiting(mesh, clock.now()));
        findings.push(judge_dead(mesh));
        findings.extend(mesh.notices.iter().map(judge_notice));
        if mesh.connected {
            findings.push(broker_clock(door, mesh, &*clock).await);
            findings.push(judge_given_up(mesh, &given_up(door, mesh).await));
        }
    }
    findings.extend(brokers(home, health).await);
    for problem in broker_problems(home, health).await {
        findings.push(Finding::act("broker", problem));
    }
    findings
}

fn judge_stores(stopped: &[StoppedStore]) -> Finding {
    let Some(first) = stopped.first() else { return Finding::fine("stores", "stores take writes") };
    let names: Vec<&str> = stopped.iter().map(|store| store.store.as_str()).collect();
    Finding::act("stores", format!("the {} has stopped after a storage error", names.join(" and the ")))
        .line(first.cause.clone())
        .line("The process ends by itself with exit code 5; what was acknowledged is on disk.")
        .fix("dmesg | tail")
        .fix("postrider up")
}

/// What the brokers that this home's links are open to say an operator has to look at.
pub async fn broker_problems(home: &Home, health: &Health) -> Vec<String> {
    let Ok(settings) = Settings::read(&home.config()) else { return Vec::new() };
    let mut problems = Vec::new();
    for mesh in health.meshes.iter().filter(|mesh| mesh.connected) {
        let entry = settings.meshes.iter().find(|entry| entry.slug == mesh.mesh && entry.ca.is_none());
        // The broker of the daemon's own process listens where its page is, whatever the file says.
        let own = health.page.as_deref().filter(|_| mesh.mesh == OWN_MESH);
        let Some(url) = own.or(entry.map(|entry| entry.url.as_str())) else { continue };
        let Ok(target) = Target::of_url(url) else { continue };
        let client = Client::new(target).with_timeout(limits::ASK_TIMEOUT);
        let Ok(told) = client.get::<BrokerHealth>("/healthz").await else { continue };
        let named = |found: BrokerProblem| format!("broker of mesh {}: {}", mesh.mesh, found.message);
        problems.extend(told.problems.into_iter().map(named));
    }
    problems
}

fn judge_link(mesh: &MeshHealth) -> Finding {
    let (name, since) = (&mesh.mesh, clock_time(mesh.link_since));
    let reason = mesh.reason.as_deref().unwrap_or("no reason known");
    match mesh.link.as_str() {
        "live" => Finding::fine("link", format!("{name} live since {since}")),
        "parked" => Finding::act("link", format!("mesh {name} is parked since {since}"))
            .line(reason.to_owned())
            .fix(format!("postrider mesh resume {name}")),
        "shut" => Finding::act("link", format!("the mailbox of mesh {name} cannot be used"))
            .line(reason.to_owned())
            .fix("postrider down && postrider daemon recover"),
        _ => Finding::warn("link", format!("mesh {name} is away since {since}"))
            .line(format!("{reason}. It is tried again by itself; sends are taken and kept."))
            .fix("postrider status"),
    }
}

fn judge_waiting(mesh: &MeshHealth, now: Timestamp) -> Finding {
    let waiting = mesh.outbox.pending + mesh.outbox.inflight;
    match mesh.oldest_queued_at {
        Some(at) if waiting > 0 && now.since(at) >= WAITING_WARN => Finding::warn(
            "outbox",
            format!("{waiting} rows of mesh {} wait, the oldest {}", mesh.mesh, age(at, now)),
        )
        .fix("postrider daemon outbox list"),
        Some(_) | None => Finding::fine("outbox", format!("{waiting} queued in {}", mesh.mesh)),
    }
}

fn judge_dead(mesh: &MeshHealth) -> Finding {
    match mesh.outbox.dead {
        0 => Finding::fine("dead", format!("no dead letters in {}", mesh.mesh)),
        1 => Finding::act("dead", format!("1 dead letter of mesh {} waits for a person", mesh.mesh))
            .fix("postrider daemon outbox list --status dead"),
        several => {
            Finding::act("dead", format!("{several} dead letters of mesh {} wait for a person", mesh.mesh))
                .fix("postrider daemon outbox list --status dead")
        }
    }
}

/// What happened to files; a newer daemon may know more kinds than this program.
fn judge_notice(notice: &Notice) -> Finding {
    let check = match notice.check.as_str() {
        "inbox_restored" => "inbox_restored",
        "inbox_went_back" => "inbox_went_back",
        "ledger_went_back" => "ledger_went_back",
        _ => "notice",
    };
    let found = Finding::warn(check, notice.message.clone());
    notice.more.iter().fold(found, |found, line| found.line(line.clone()))
}

/// The broker's time comes with any of its answers; this one is about an id nobody has.
async fn broker_clock(door: &Client, mesh: &MeshHealth, clock: &dyn Clock) -> Finding {
    let question = json!({"what": "explain", "id": "doctor", "mesh": mesh.mesh});
    let asked = clock.now();
    let answer: Result<BrokerExplained, _> = door.post("/v1/ask", &question).await;
    match answer {
        Ok(answer) => judge_clock(mesh, asked, clock.now(), answer.now),
        Err(error) => {
            Finding::warn("broker", format!("the broker of mesh {} does not answer: {error}", mesh.mesh))
                .fix("postrider status")
        }
    }
}

/// The broker's instant lies somewhere between question and answer; what is outside of both is skew.
fn judge_clock(mesh: &MeshHealth, asked: Timestamp, answered: Timestamp, broker: Timestamp) -> Finding {
    let (behind, ahead) = (broker.since(answered), asked.since(broker));
    let (skew, word) = if behind > ahead { (behind, "behind") } else { (ahead, "ahead of") };
    let took = answered.since(asked).as_millis();
    if skew < SKEW_WARN {
        return Finding::fine("clock", format!("broker of {} {took} ms, clocks agree", mesh.mesh));
    }
    Finding::warn(
        "clock",
        format!("this clock is {} s {word} the broker of mesh {}", skew.as_secs(), mesh.mesh),
    )
    .line("Leases and deliver-by follow broker time; local logs read early or late.")
    .fix("sudo timedatectl set-ntp true")
}

/// What waits for a person at one agent.
struct GivenUp {
    agent: String,
    messages: usize,
    oldest: String,
}

/// Messages of agents at home here whose turns were interrupted once too often.
async fn given_up(door: &Client, mesh: &MeshHealth) -> Vec<GivenUp> {
    let question = json!({"what": "members", "mesh": mesh.mesh});
    let Ok(members) = door.post::<Vec<MemberRow>>("/v1/ask", &question).await else { return Vec::new() };
    let ours = members.into_iter().filter(|row| row.home.as_deref() == Some(&mesh.node));
    let agents = ours.filter(|row| row.member.kind == MemberKind::Agent.word());
    let mut found = Vec::new();
    for agent in agents.take(AGENTS_MAX) {
        let name = agent.member.name.to_string();
        let ask = Ask::new(Method::GET, format!("/v1/turns?mesh={}", mesh.mesh))
            .header(HeaderName::from_static(ACT_AS_HEADER), &name);
        let Ok(page) = door.ask(ask).await.and_then(|answer| answer.json::<TurnPage>()) else { continue };
        if let Some(oldest) = page.given_up.first() {
            let oldest = oldest.message.message.id.to_string();
            found.push(GivenUp { agent: name, messages: page.given_up.len(), oldest });
        }
    }
    found
}

fn judge_given_up(mesh: &MeshHealth, found: &[GivenUp]) -> Finding {
    let Some(GivenUp { agent, oldest, .. }) = found.first() else {
        return Finding::fine("turns", format!("no turn given up in {}", mesh.mesh));
    };
    let count: usize = found.iter().map(|found| found.messages).sum();
    Finding::act("turns", format!("{count} messages to agents were interrupted once too often"))
        .line("Each may have had effects; it is run again only when somebody asks for it.")
        .fix(format!("postrider agent retry {agent} {oldest}"))
}

/// Each mesh's broker by its address; one that this process runs itself answered already.
async fn brokers(home: &Home, health: &Health) -> Vec<Finding> {
    let Ok(settings) = Settings::read(&home.config()) else { return Vec::new() };
    let mut findings = Vec::new();
    for entry in settings.meshes.iter().filter(|entry| entry.ca.is_none()) {
        let live = health.meshes.iter().any(|mesh| mesh.mesh == entry.slug && mesh.connected);
        if live {
            continue;
        }
        let Ok(target) = Target::of_url(&entry.url) else { continue };
        let client = Client::new(target).with_timeout(limits::CONNECT_TIMEOUT);
        let error = client.get::<serde_json::Value>("/healthz").await.err().map(|error| error.to_string());
        findings.push(judge_reach(&entry.slug, &entry.url, error));
    }
    findings
}

fn judge_reach(mesh: &str, url: &str, error: Option<String>) -> Finding {
    match error {
        None => Finding::fine("reach", format!("{url} answers")),
        Some(error) => Finding::warn("reach", format!("the broker of mesh {mesh} cannot be reached"))
            .line(error)
            .fix(format!("curl -sS {url}/healthz")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use wire::local::OutboxCounts;

    fn mesh(link: &str) -> MeshHealth {
        MeshHealth {
            mesh: "home".to_owned(),
            node: "n".to_owned(),
            person: "p".to_owned(),
            connected: link == "live",
            link: link.to_owned(),
            link_since: Timestamp::from_micros(0),
            reason: Some("why".to_owned()),
            outbox: OutboxCounts::default(),
            oldest_queued_at: None,
            inbox_unread: 0,
            inbox_total: 0,
            notices: Vec::new(),
        }
    }

    #[test]
    fn each_state_of_a_link_has_its_level_and_its_fix() {
        for (link, level, fix) in [
            ("live", Level::Fine, None),
            ("away", Level::Warn, Some("postrider status")),
            ("parked", Level::Act, Some("postrider mesh resume home")),
            ("shut", Level::Act, Some("postrider down && postrider daemon recover")),
        ] {
            let found = judge_link(&mesh(link));
            assert_eq!((found.level, found.fix.first().map(String::as_str)), (level, fix), "{link}");
        }
    }

    #[test]
    fn rows_that_wait_long_or_died_are_found() {
        let hour = Timestamp::from_micros(3_600_000_000);
        let mut waiting = mesh("live");
        waiting.outbox.pending = 2;
        waiting.oldest_queued_at = Some(Timestamp::from_micros(0));
        assert_eq!(judge_waiting(&waiting, hour).level, Level::Warn);
        assert_eq!(judge_waiting(&waiting, Timestamp::from_micros(1)).level, Level::Fine);
        assert_eq!(judge_waiting(&mesh("live"), hour).level, Level::Fine);
        assert_eq!(judge_dead(&mesh("live")).level, Level::Fine);
        waiting.outbox.dead = 2;
        assert_eq!(judge_dead(&waiting).level, Level::Act);
    }

    #[test]
    fn clocks_apart_are_found_and_a_slow_answer_is_not_taken_for_skew() {
        let at = |seconds: u64| Timestamp::from_micros((seconds * 1_000_000).try_into().unwrap());
        let judged =
            |asked, answered, broker| judge_clock(&mesh("live"), at(asked), at(answered), at(broker));
        assert_eq!(judged(100, 100, 100).level, Level::Fine);
        assert_eq!(judged(100, 110, 105).level, Level::Fine, "ten seconds on the way are no skew");
        assert_eq!(judged(100, 100, 147).message, "this clock is 47 s behind the broker of mesh home");
        assert_eq!(judged(100, 100, 53).message, "this clock is 47 s ahead of the broker of mesh home");
    }

    #[test]
    fn turns_given_up_and_brokers_out_of_reach_are_found() {
        assert_eq!(judge_given_up(&mesh("live"), &[]).level, Level::Fine);
        let found = judge_given_up(
            &mesh("live"),
            &[GivenUp { agent: "ci".to_owned(), messages: 2, oldest: "x".to_owned() }],
        );
        assert_eq!((found.level, found.fix), (Level::Act, vec!["postrider agent retry ci x".to_owned()]));
        assert_eq!(judge_reach("home", "http://a", None).level, Level::Fine);
        assert_eq!(judge_reach("home", "http://a", Some("no".to_owned())).level, Level::Warn);
    }
}
