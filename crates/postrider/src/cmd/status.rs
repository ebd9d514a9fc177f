//! `postrider status`: what this home's daemon knows now.

use model::{Clock, SystemClock, Timestamp};
use wire::local::{Health, MeshHealth};

use super::Context;
use super::doctor::broker_problems;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output, age, clock_time, harmless};

pub async fn run(context: &Context) -> Result<Exit, Failure> {
    let door = context.door()?;
    let output = &context.output;
    let mut health: Health = door.get("/v1/health").await?;
    health.problems.extend(broker_problems(&context.home, &health).await);
    match output.form() {
        Form::Json => output.json(&health),
        Form::Quiet => {
            health.meshes.iter().for_each(|mesh| output.text(&format!("{} {}", mesh.mesh, mesh.link)))
        }
        Form::Text => print(&health, SystemClock::start().now(), output),
    }
    Ok(Exit::Done)
}

fn print(health: &Health, now: Timestamp, output: &Output) {
    for mesh in &health.meshes {
        print_mesh(mesh, health, now, output);
    }
    for problem in &health.problems {
        output.fact("act", problem);
    }
    if let Some(page) = &health.page {
        output.fact("page", page);
    }
}

fn print_mesh(mesh: &MeshHealth, health: &Health, now: Timestamp, output: &Output) {
    let standing = if mesh.link == "live" {
        format!("up {}, {}", uptime(health.uptime_s), health.daemon_version)
    } else {
        let reason =
            mesh.reason.as_deref().map(|reason| format!(": {}", harmless(reason))).unwrap_or_default();
        format!("since {}{reason}", clock_time(mesh.link_since))
    };
    output.fact(&mesh.link, &format!("{}, {} on {}, {standing}", mesh.mesh, mesh.person, mesh.node));
    let waiting = mesh.outbox.pending + mesh.outbox.inflight;
    let oldest = mesh.oldest_queued_at.map(|at| format!(", oldest {}", age(at, now))).unwrap_or_default();
    output.fact("queued", &format!("{waiting} here{oldest}       dead {}", mesh.outbox.dead));
    output.fact("inbox", &format!("{} unread of {}", mesh.inbox_unread, mesh.inbox_total));
    for notice in &mesh.notices {
        output.fact("warn", &harmless(&notice.message));
        notice.more.iter().for_each(|line| output.fact("", &harmless(line)));
    }
}

fn uptime(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
