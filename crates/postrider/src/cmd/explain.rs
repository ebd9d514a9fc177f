//! `postrider explain`: where a message is and why, from everyone who may know. It changes nothing.

use wire::ask::{BrokerExplained, ExplainedRecord, Question};
use wire::local::MessageLife;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Output, clock_time};

/// What each observer said, or that it could not be asked.
struct Asked {
    here: Option<MessageLife>,
    broker: Result<BrokerExplained, Failure>,
}

pub async fn run(id: &str, context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.door()?, &context.output);
    let here = match door.get::<MessageLife>(&format!("/v1/messages/{id}")).await {
        Ok(life) => Some(life),
        Err(failure) if failure.code == model::ErrorCode::NotFound.code() => None,
        Err(failure) => return Err(failure),
    };
    // The broker knows full ids only; a tail was resolved here.
    let full = match &here {
        Some(MessageLife::Out(item)) => item.client_message_id.to_string(),
        Some(MessageLife::In(item)) => item.message.id.to_string(),
        None => id.to_owned(),
    };
    let broker = door.ask_broker(&Question::Explain { id: full }).await;
    let asked = Asked { here, broker };
    match output.form() {
        Form::Json | Form::Quiet => output.json(&serde_json::json!({
            "id": id,
            "here": asked.here,
            "broker": asked.broker.as_ref().ok(),
            "unasked": asked.broker.as_ref().err().map(|failure| vec![format!("broker: {}", failure.code)]),
        })),
        Form::Text => print(id, &asked, output),
    }
    Ok(if asked.is_known() { Exit::Done } else { Exit::Refused })
}

impl Asked {
    fn is_known(&self) -> bool {
        self.here.is_some() || self.broker.as_ref().is_ok_and(|broker| !broker.records.is_empty())
    }
}

fn print(id: &str, asked: &Asked, output: &Output) {
    if !asked.is_known() {
        output.text("never seen: no outbox, inbox or broker record holds this id");
    }
    if let Some(life) = &asked.here {
        print_here(life, output);
    }
    match &asked.broker {
        Ok(broker) => broker.records.iter().for_each(|record| print_record(record, output)),
        Err(failure) => output.fact("unasked", &format!("the broker ({})", failure.code)),
    }
    if !asked.is_known() {
        output.fact("asked", if asked.broker.is_ok() { "this host, the broker" } else { "this host" });
        let means = "Asking again with the same id cannot double it.";
        output.fact("means", &format!("nobody asked stored {id}. {means}"));
    }
}

fn print_here(life: &MessageLife, output: &Output) {
    match life {
        MessageLife::Out(item) => {
            output.fact_with_id(
                &item.receipt.rung,
                &format!("{} to {}", item.sender, item.to),
                item.client_message_id.as_str(),
            );
            for receipt in &item.rungs {
                output.fact("", &format!("{:<10} {}  {}", receipt.rung, clock_time(receipt.at), receipt.by));
            }
            if let Some(error) = &item.last_error {
                output.fact("why", &format!("{error}, {} tries", item.attempts));
            }
            if let Some(outcome) = &item.outcome {
                output.fact("broker", super::outbox::outcome_sentence(outcome));
            }
        }
        MessageLife::In(item) => {
            let from = format!("from {}, received {}", item.message.sender, clock_time(item.received_at));
            output.fact_with_id(&item.rung, &from, &item.message.id.to_string());
        }
    }
}

fn print_record(record: &ExplainedRecord, output: &Output) {
    let place = match (record.history_id, &record.conversation_name) {
        (Some(place), Some(name)) => format!(", place {place} in {name}"),
        (Some(place), None) => format!(", place {place}"),
        (None, _) => String::new(),
    };
    let when = record.accepted_at.map(|at| format!(" {}", clock_time(at))).unwrap_or_default();
    output.fact("broker", &format!("{}{when}{place}", record.state));
    for recipient in &record.recipients {
        let home = recipient.home.as_deref().unwrap_or("the broker");
        let why = recipient.ended_code.as_deref().map(|code| format!(": {code}")).unwrap_or_default();
        output.fact("", &format!("{:<10} {} at {home}{why}", recipient.rung.to_string(), recipient.name));
    }
}
