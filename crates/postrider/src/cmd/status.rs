//! `postrider status`: what this home's daemon knows now.

use model::{Clock, SystemClock, Timestamp};
use wire::local::{Health, MeshHealth};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output, age, clock_time};

pub async fn run(context: &Context) -> Result<Exit, Failure> {
    let door = context.door()?;
    let output = &context.output;
    let health: Health = door.get("/v1/health").await?;
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
        print_mesh(mesh, now, output);
    }
    for problem in &health.problems {
        output.fact("act", problem);
    }
    output.fact(
        "runs",
        &format!("{}, up {}, {}", health.roles.join(", "), uptime(health.uptime_s), health.daemon_version),
    );
    if let Some(page) = &health.page {
        output.fact("broker", page);
    }
}

fn print_mesh(mesh: &MeshHealth, now: Timestamp, output: &Output) {
    let reason = mesh.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let since = clock_time(mesh.link_since);
    output
        .fact(&mesh.link, &format!("{}, {} on {}, since {since}{reason}", mesh.mesh, mesh.person, mesh.node));
    let waiting = mesh.outbox.pending + mesh.outbox.inflight;
    let oldest = mesh.oldest_queued_at.map(|at| format!(", oldest {}", age(at, now))).unwrap_or_default();
    output.fact("queued", &format!("{waiting} here{oldest}       dead {}", mesh.outbox.dead));
    output.fact("inbox", &format!("{} unread of {}", mesh.inbox_unread, mesh.inbox_total));
}

fn uptime(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
