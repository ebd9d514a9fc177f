//! `postrider mesh`: the meshes of this home, and what their owner decides.

use wire::ask::{Policies, PolicyChange, Question};
use wire::local::MeshList;

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};

pub async fn run(asked: args::Mesh, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    match asked {
        args::Mesh::List => {
            let list: MeshList = door.get("/v1/meshes").await?;
            for mesh in &list.meshes {
                let default = list.default_mesh.as_deref() == Some(mesh.mesh.as_str());
                match output.form() {
                    Form::Json => output.json(mesh),
                    Form::Quiet => output.text(&mesh.mesh),
                    Form::Text => {
                        let note = if default { "default" } else { "" };
                        let line = format!("{} on {}, {}", mesh.person, mesh.node, mesh.link);
                        output.text(format!("{:<16} {line:<44} {note}", mesh.mesh).trim_end());
                    }
                }
            }
        }
        args::Mesh::Leave { name } => {
            let _: serde_json::Value = door.delete(&format!("/v1/meshes/{name}")).await?;
            output.text(&format!("left mesh {name}; its files stay in this home"));
        }
        args::Mesh::Resume { name } => {
            let _: serde_json::Value =
                door.post(&format!("/v1/meshes/{name}/resume"), &serde_json::json!({})).await?;
            output.text(&format!("mesh {name} is tried again"));
        }
        args::Mesh::Policy { topics, dedupe, connections } => {
            let asks_change = topics.is_some() || dedupe.is_some() || connections.is_some();
            let question = if asks_change {
                Question::PoliciesSet(PolicyChange { topics, dedupe, connections })
            } else {
                Question::Policies
            };
            print_policies(&door.ask_broker(&question).await?, output);
        }
    }
    Ok(Exit::Done)
}

fn print_policies(policies: &Policies, output: &Output) {
    match output.form() {
        Form::Json | Form::Quiet => output.json(policies),
        Form::Text => {
            let days =
                policies.dedupe_days.map_or_else(|| "for ever".to_owned(), |days| format!("{days} days"));
            output.fact("topics", &policies.topics);
            output.fact("ids", &format!("remembered {days}"));
            output.fact("links", &policies.connections);
        }
    }
}
