//! `postrider signin`: a link with which this person's browser signs in, once.

use wire::ask::Question;
use wire::local::Health;
use wire::session::SignIn;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::output::Form;

pub async fn run(context: &Context) -> Result<Exit, Failure> {
    let (door, output) = (context.own_door()?, &context.output);
    let made: SignIn = door.ask_broker(&Question::SignIn).await?;
    let health: Health = door.get("/v1/health").await?;
    let page = health.page.or(made.url.clone());
    let page = page.ok_or_else(|| {
        Failure::usage("the broker runs elsewhere and does not say where its page is")
            .fix("postrider broker serve --public-url URL")
    })?;
    let link = link(&page, &made.key);
    match output.form() {
        Form::Json => {
            output.json(&serde_json::json!({"url": link, "expires_at": made.expires_at.to_string()}))
        }
        Form::Quiet => output.text(&link),
        Form::Text => {
            output.fact("page", &link);
            output.fact("", "Signs one browser in, within 15 minutes.");
        }
    }
    Ok(Exit::Done)
}

/// The key stands in the fragment, which no request and no log carries.
pub fn link(page: &str, key: &str) -> String {
    format!("{}/#key={key}", page.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::link;

    #[test]
    fn the_key_stands_in_the_fragment() {
        assert_eq!(link("http://127.0.0.1:7440/", "abc"), "http://127.0.0.1:7440/#key=abc");
        assert_eq!(link("https://post.example.org", "abc"), "https://post.example.org/#key=abc");
    }
}
