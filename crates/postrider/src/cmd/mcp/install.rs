//! `postrider mcp install`: a client's settings, shown before they are written.
//!
//! - Nothing is written that was not shown, and nothing over a file that changed meanwhile.
//! - The file is replaced whole; what it held is kept beside it.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use daemon::home::{make_private, write_durably};
use model::ErrorCode;
use similar::TextDiff;
use wire::local::{AgentAnswer, AgentRequest, Health};

use super::client::Places;
use super::edit::{Entry, with_entry};
use crate::args::{Client, Install};
use crate::cmd::Context;
use crate::cmd::doctor::quoted;
use crate::failure::{Exit, Failure};
use crate::home::shown;
use crate::local::read_token;
use crate::output::{Form, Output};

/// After the name of the file it keeps.
const BACKUP_SUFFIX: &str = ".before-postrider";
/// Lines shown around a change.
const AROUND: usize = 3;

/// A change that was not made yet.
struct Change {
    client: Client,
    file: PathBuf,
    /// What the file holds; nothing when there is none.
    before: Option<String>,
    after: String,
}

pub async fn run(asked: Install, context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    let token = asked.agent.as_deref().map(|name| token_file(context, name)).transpose()?;
    let change = Change::of(&asked, entry(context, token.as_deref())?)?;
    change.show(output);
    if asked.print {
        return Ok(Exit::Done);
    }
    if change.is_none() {
        make_agent(&asked, token.as_deref(), context).await?;
        return Ok(Exit::Done);
    }
    if !asked.yes && !agreed(asked.client, output)? {
        return Err(Failure::refused(ErrorCode::InvalidRequest, "not wanted; nothing was written"));
    }
    make_agent(&asked, token.as_deref(), context).await?;
    let backup = change.write()?;
    change.told(backup.as_deref(), output);
    Ok(Exit::Done)
}

/// How the client starts us: by the whole path, because a desktop application's PATH is not the shell's.
fn entry(context: &Context, token: Option<&Path>) -> Result<Entry, Failure> {
    let program = std::env::current_exe().map_err(anyhow::Error::from)?;
    let mut args = vec!["mcp".to_owned()];
    let usual = std::env::home_dir().map(|home| home.join(".postrider"));
    if usual.as_deref() != Some(context.home.root()) {
        args.extend(["--home".to_owned(), text_of(context.home.root())?]);
    }
    if let Some(mesh) = &context.mesh {
        args.extend(["--mesh".to_owned(), mesh.clone()]);
    }
    if let Some(token) = token {
        args.extend(["--token-file".to_owned(), text_of(token)?]);
    } else if let Some(name) = &context.act_as {
        args.extend(["--as".to_owned(), name.clone()]);
    }
    Ok(Entry { command: text_of(&program)?, args })
}

/// Settings are text, so a path that is none cannot stand in them.
fn text_of(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::usage(format!("{} cannot be written as text", path.display())))
}

/// Where an agent's token is kept for the programs that act as it.
fn token_file(context: &Context, name: &str) -> Result<PathBuf, Failure> {
    let name: model::MemberName = name
        .trim_start_matches('@')
        .parse()
        .map_err(|error: model::error::Malformed| Failure::usage(error.to_string()))?;
    let file = match &context.mesh {
        Some(mesh) => format!("{mesh}.{name}.token"),
        None => format!("{name}.token"),
    };
    Ok(context.home.daemon().join("agents").join(file))
}

/// Gives the agent its address and its token, unless the token that is there still opens the door: another client
/// may be using it.
async fn make_agent(asked: &Install, token: Option<&Path>, context: &Context) -> Result<(), Failure> {
    let (Some(name), Some(file)) = (&asked.agent, token) else { return Ok(()) };
    if let Ok(token) = read_token(file)
        && context.own_door()?.with_token(&token).get::<Health>("/v1/health").await.is_ok()
    {
        return Ok(());
    }
    let door = context.own_door()?;
    let made: AgentAnswer =
        door.post("/v1/agents", &AgentRequest { name: name.clone(), mesh: door.mesh() }).await?;
    let kept = || -> io::Result<()> {
        make_private(&context.home.daemon().join("agents"))?;
        write_durably(file, made.token.as_bytes(), 0o600)
    };
    kept().map_err(|error| unwritable(file, &error))?;
    if context.output.form() == Form::Text {
        context.output.fact("agent", &format!("{} in mesh {}, at home here", made.name, made.mesh));
    }
    Ok(())
}

/// Asks the person at the terminal.
fn agreed(client: Client, output: &Output) -> Result<bool, Failure> {
    if !output.on_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("nobody is here to agree to the change; nothing was written")
            .fix(format!("{} --yes", again(client)))
            .fix(format!("{} --print", again(client))));
    }
    let mut stdout = io::stdout().lock();
    // A terminal that takes no question gives no answer either.
    let _ = write!(stdout, "write it? [y/N] ").and_then(|()| stdout.flush());
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(anyhow::Error::from)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// The command that begins this once more.
fn again(client: Client) -> String {
    let name = client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    format!("postrider mcp install --client {name}")
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::refused(ErrorCode::Internal, format!("{} cannot be written: {error}", shown(file)))
        .line("The settings are as they were.")
}

impl Change {
    fn of(asked: &Install, entry: Entry) -> Result<Self, Failure> {
        let client = asked.client;
        let file = match &asked.project {
            Some(folder) => client
                .project_file(folder)
                .ok_or_else(|| Failure::usage(format!("{} has no settings of a project", client.title())))?,
            None => {
                let places =
                    Places::here().ok_or_else(|| Failure::usage("this account has no home folder"))?;
                client.user_file(&places)
            }
        };
        // Behind a link the file itself is replaced, so that a folder of kept settings stays one.
        let file = fs::canonicalize(&file).unwrap_or(file);
        let before = read(&file)?;
        let after = with_entry(before.as_deref().unwrap_or_default(), client.shape(), &entry);
        let after = after.map_err(|error| {
            Failure::refused(ErrorCode::InvalidRequest, format!("{}: {error}", shown(&file)))
                .line("Nothing was written.")
                .fix(format!("${{EDITOR:-vi}} {}", quoted(&file)))
        })?;
        Ok(Self { client, file, before, after })
    }

    fn is_none(&self) -> bool {
        self.before.as_deref() == Some(&self.after)
    }

    fn diff(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let lines = TextDiff::from_lines(before, &self.after);
        lines.unified_diff().context_radius(AROUND).missing_newline_hint(false).to_string()
    }

    fn show(&self, output: &Output) {
        match output.form() {
            Form::Json => output.json(&serde_json::json!({
                "client": self.client.title(),
                "file": self.file,
                "changes": !self.is_none(),
                "diff": self.diff(),
            })),
            Form::Quiet => output.text(&self.file.display().to_string()),
            Form::Text if self.is_none() => {
                output
                    .fact("fine", &format!("{} has it already: {}", self.client.title(), shown(&self.file)));
            }
            Form::Text => {
                output.fact(if self.before.is_some() { "change" } else { "new" }, &shown(&self.file));
                self.diff().lines().for_each(|line| output.text(line));
                output.text("");
            }
        }
    }

    /// Writes what was shown; answers where the old content is kept.
    fn write(&self) -> Result<Option<PathBuf>, Failure> {
        if read(&self.file)? != self.before {
            let line = format!("{} changed meanwhile; nothing was written", shown(&self.file));
            return Err(Failure::refused(ErrorCode::Unavailable, line).fix(again(self.client)));
        }
        let failed = |error: io::Error| unwritable(&self.file, &error);
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let Some(before) = &self.before else {
            write_durably(&self.file, self.after.as_bytes(), 0o600).map_err(failed)?;
            return Ok(None);
        };
        let mode = fs::metadata(&self.file).map_err(failed)?.permissions().mode() & 0o777;
        let mut name = self.file.as_os_str().to_owned();
        name.push(BACKUP_SUFFIX);
        let backup = PathBuf::from(name);
        write_durably(&backup, before.as_bytes(), mode).map_err(failed)?;
        write_durably(&self.file, self.after.as_bytes(), mode).map_err(failed)?;
        Ok(Some(backup))
    }

    fn told(&self, backup: Option<&Path>, output: &Output) {
        match output.form() {
            Form::Json => output.json(&serde_json::json!({"written": self.file, "backup": backup})),
            Form::Quiet => {}
            Form::Text => {
                output.fact("written", &shown(&self.file));
                if let Some(backup) = backup {
                    output.fact("before", &format!("kept in {}", shown(backup)));
                }
                output.fact("look", self.client.look());
            }
        }
    }
}

fn read(file: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let line = format!("{} cannot be read: {error}", shown(file));
            Err(Failure::refused(ErrorCode::InvalidRequest, line).line("Nothing was written."))
        }
    }
}
