//! `postrider token`: credentials for direct HTTP callers.

use wire::ask::{Done, Question, Scope, Token, TokenRow};

use super::Context;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output};

pub async fn run(asked: args::Token, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    match asked {
        args::Token::Create { scope } => {
            let member = context.act_as.as_deref().ok_or_else(|| {
                Failure::usage("say as whom the token acts").fix("postrider token create --as NAME")
            })?;
            let member =
                member.parse().map_err(|error: model::error::Malformed| Failure::usage(error.to_string()))?;
            let scopes = scope.into_iter().map(scope_of).collect();
            let made: Token = door.ask_broker(&Question::TokenCreate { member, scopes }).await?;
            match output.form() {
                Form::Json => output.json(&made),
                Form::Quiet => output.text(&made.token),
                Form::Text => {
                    output.fact("token", &made.token);
                    output.fact(
                        "",
                        &format!("Number {}, acts as {}. Shown once.", made.row.id, made.row.member),
                    );
                }
            }
        }
        args::Token::List => {
            let tokens: Vec<TokenRow> = door.ask_broker(&Question::Tokens).await?;
            tokens.iter().for_each(|token| print_row(token, output));
        }
        args::Token::Revoke { id } => {
            let _: Done = door.ask_broker(&Question::TokenRevoke { id }).await?;
            match output.form() {
                Form::Json => output.json(&serde_json::json!({"id": id, "revoked": true})),
                Form::Quiet => output.text(&id.to_string()),
                Form::Text => output.text(&format!("token {id} is taken back")),
            }
        }
    }
    Ok(Exit::Done)
}

fn scope_of(asked: args::Scope) -> Scope {
    match asked {
        args::Scope::Send => Scope::Send,
        args::Scope::Read => Scope::Read,
        args::Scope::Hub => Scope::Hub,
    }
}

fn print_row(row: &TokenRow, output: &Output) {
    match output.form() {
        Form::Json => output.json(row),
        Form::Quiet => output.text(&row.id.to_string()),
        Form::Text => {
            let scopes: Vec<String> =
                row.scopes.iter().map(|scope| format!("{scope:?}").to_lowercase()).collect();
            let ended = if row.revoked_at.is_some() { "taken back" } else { "" };
            output.text(
                format!("{:>4}  {:<20} {:<16} {ended}", row.id, row.member.as_str(), scopes.join(","))
                    .trim_end(),
            );
        }
    }
}
