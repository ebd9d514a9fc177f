//! `postrider agent`: addresses with their home here, and programs that answer for them.

mod keeper;
mod program;
mod retry;
mod run;
mod verdict;

use wire::ask::{MemberRow, Question};
use wire::local::{AgentAnswer, AgentRequest};

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output::Form;

pub async fn run(asked: args::Agent, context: &Context) -> Result<Exit, Failure> {
    match asked {
        args::Agent::Add { name } => add(name, context).await?,
        args::Agent::List => list(context).await?,
        args::Agent::Run(asked) => run::run(asked, context).await?,
        args::Agent::Retry { name, id } => retry::run(&name, &id, context).await?,
        args::Agent::Keep(asked) => keeper::keep(&asked)?,
    }
    Ok(Exit::Done)
}

async fn add(name: String, context: &Context) -> Result<(), Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    let request = AgentRequest { name, mesh: door.mesh() };
    let made: AgentAnswer = door.post("/v1/agents", &request).await?;
    match output.form() {
        Form::Json => output.json(&made),
        Form::Quiet => output.text(&made.token),
        Form::Text => {
            output.fact("agent", &format!("{} in mesh {}, at home here", made.name, made.mesh));
            output.fact("token", &made.token);
            output.fact("", "Shown once. It acts as this agent and nobody else.");
            if made.replaced {
                output.fact("", "Its earlier token is taken for 60 s more.");
            }
        }
    }
    Ok(())
}

async fn list(context: &Context) -> Result<(), Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    let members: Vec<MemberRow> = door.ask_broker(&Question::Members).await?;
    for row in &members {
        match output.form() {
            Form::Json => output.json(row),
            Form::Quiet => output.text(row.member.name.as_str()),
            Form::Text => {
                let home = row.home.as_deref().unwrap_or("the broker");
                let (name, kind) = (row.member.name.as_str(), row.member.kind.to_string());
                output.text(format!("{name:<20} {kind:<8} {home:<20} {}", row.role).trim_end());
            }
        }
    }
    Ok(())
}
