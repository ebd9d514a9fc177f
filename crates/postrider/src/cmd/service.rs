//! `postrider service`: a role as a systemd unit.
//!
//! - A file that this command did not write is never changed and never removed.
//! - Repeating a command changes nothing that is already as asked.

mod systemctl;
mod unit;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Parser;
use daemon::home::{make_private, write_durably};
use model::ErrorCode;
use serde_json::json;

use super::Context;
use crate::args::{self, Args, Command, InstallService, NamedService, ServiceRole};
use crate::failure::{Exit, Failure};
use crate::home::shown;
use crate::output::Form;
use systemctl::Manager;
use unit::{Existing, Scope, Unit};

/// Where the machine's units are.
const SYSTEM_UNITS: &str = "/etc/systemd/system";
/// Ports below it are root's.
const LOW_PORTS: u16 = 1024;
/// Values of a shell's environment that a unit does not see.
const ENVIRONMENT: [&str; 4] =
    ["POSTRIDER_STORE", "POSTRIDER_LIMITER", "POSTRIDER_UPSTREAM_URL", "POSTRIDER_RELAY_OUTBOX"];

pub fn run(asked: args::Service, context: &Context) -> Result<Exit, Failure> {
    match asked {
        args::Service::Install(asked) => install(&asked, context),
        args::Service::Uninstall(named) => uninstall(&named, context),
        args::Service::Status(named) => status(&named, context),
    }
}

/// A unit's place.
struct Place {
    name: String,
    file: PathBuf,
    manager: Manager,
}

impl Place {
    fn of(named: &NamedService) -> Result<Self, Failure> {
        if let Some(suffix) = &named.name
            && (suffix.is_empty() || !suffix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
        {
            return Err(Failure::usage("--name takes letters, digits and -"));
        }
        let name = named.role.unit_name(named.name.as_deref());
        let (folder, manager) = if named.system {
            (PathBuf::from(SYSTEM_UNITS), Manager::System)
        } else {
            (user_units()?, Manager::User)
        };
        Ok(Self { file: folder.join(&name), name, manager })
    }

    fn existing(&self) -> Result<(Existing, Option<String>), Failure> {
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // Whatever cannot be read as text is not ours.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Some(String::new()),
            Err(error) => return Err(unwritable(&self.file, &error)),
        };
        Ok((Existing::of(text.as_deref()), text))
    }

    fn foreign(&self, named: &NamedService) -> Failure {
        let file = shown(&self.file);
        Failure::refused(ErrorCode::NameTaken, format!("{file} was not written by postrider service install"))
            .line("It was not touched.")
            .fix(format!("postrider service install {} --name OTHER", role_word(named.role)))
    }
}

fn install(asked: &InstallService, context: &Context) -> Result<Exit, Failure> {
    let (place, output) = (Place::of(&asked.named)?, &context.output);
    let unit = unit_of(asked, context)?;
    let text = unit.text();
    if asked.print {
        match output.form() {
            Form::Json => output.json(&json!({"unit": place.name, "file": place.file, "text": text})),
            Form::Text | Form::Quiet => output.text(text.trim_end()),
        }
        return Ok(Exit::Done);
    }
    let print = format!("postrider service install {} --print", role_word(asked.named.role));
    place.manager.check(&print)?;
    let (existing, before) = place.existing()?;
    match existing {
        Existing::Foreign => return Err(place.foreign(&asked.named)),
        Existing::Ours { home } if home != unit.home.display().to_string() => {
            return Err(Failure::refused(
                ErrorCode::NameTaken,
                format!("{} runs the home {home}", place.name),
            )
            .line("It was not touched.")
            .fix(format!("postrider service install {} --name OTHER", role_word(asked.named.role))));
        }
        Existing::Ours { .. } | Existing::Nothing => {}
    }
    let did = match before {
        Some(before) if before == text => "unchanged",
        Some(_) => "updated",
        None => "installed",
    };
    if did != "unchanged" {
        prepare_folders(&unit, &place)?;
        write_durably(&place.file, text.as_bytes(), 0o644)
            .map_err(|error| unwritable(&place.file, &error))?;
        place.manager.act(&["daemon-reload"])?;
    }
    place.manager.act(&["enable", &place.name])?;
    place.manager.act(&[if did == "updated" { "restart" } else { "start" }, &place.name])?;
    told_installed(did, &place, &unit, context);
    Ok(Exit::Done)
}

/// The unit's own folder for an account that has none yet, and its home.
fn prepare_folders(unit: &Unit, place: &Place) -> Result<(), Failure> {
    if unit.scope == Scope::User {
        make_private(&unit.home).map_err(|error| unwritable(&unit.home, &error))?;
    }
    if let Some(folder) = place.file.parent() {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    Ok(())
}

fn told_installed(did: &str, place: &Place, unit: &Unit, context: &Context) {
    let output = &context.output;
    let account = match &unit.scope {
        Scope::User => None,
        Scope::System { account, .. } => Some(account),
    };
    match output.form() {
        Form::Json => output.json(&json!({
            "event": did, "unit": place.name, "file": place.file, "home": unit.home, "account": account,
        })),
        Form::Quiet => output.text(&place.name),
        Form::Text => {
            output.fact(did, &format!("{} in {}", place.name, shown(&place.file)));
            output.fact("home", &shown(&unit.home));
            if let Some(account) = account {
                output.fact("account", account);
            }
            let unseen: Vec<&str> =
                ENVIRONMENT.into_iter().filter(|name| std::env::var_os(name).is_some()).collect();
            if !unseen.is_empty() && unit.env_file.is_none() {
                output.fact("warn", &format!("the unit does not see {}: use --env-file", unseen.join(", ")));
            }
            if account.is_none() {
                output.fact("try", "loginctl enable-linger       to keep it while you are not logged in");
            }
            let words = [&["journalctl"][..], place.manager.words(), &["-u", &place.name]].concat();
            output.fact("log", &words.join(" "));
        }
    }
}

fn uninstall(named: &NamedService, context: &Context) -> Result<Exit, Failure> {
    let (place, output) = (Place::of(named)?, &context.output);
    let (existing, _) = place.existing()?;
    let did = match existing {
        Existing::Foreign => return Err(place.foreign(named)),
        Existing::Nothing => "absent",
        Existing::Ours { .. } => {
            place.manager.check(&format!("rm {}", shown(&place.file)))?;
            place.manager.act(&["disable", "--now", &place.name])?;
            fs::remove_file(&place.file).map_err(|error| unwritable(&place.file, &error))?;
            place.manager.act(&["daemon-reload"])?;
            "removed"
        }
    };
    match output.form() {
        Form::Json => output.json(&json!({"event": did, "unit": place.name, "file": place.file})),
        Form::Quiet => {}
        Form::Text => output.fact(did, &format!("{}; the home and what is queued stay", place.name)),
    }
    Ok(Exit::Done)
}

fn status(named: &NamedService, context: &Context) -> Result<Exit, Failure> {
    let (place, output) = (Place::of(named)?, &context.output);
    let (existing, _) = place.existing()?;
    let file = match &existing {
        Existing::Nothing => "absent",
        Existing::Ours { .. } => "installed",
        Existing::Foreign => "foreign",
    };
    let print = format!("postrider service install {} --print", role_word(named.role));
    place.manager.check(&print)?;
    let state = place.manager.state(&place.name)?;
    match output.form() {
        Form::Json => output.json(&json!({
            "unit": place.name, "file": place.file, "written": file, "enabled": state.enabled,
            "active": state.active, "pid": state.pid, "restarts": state.restarts, "exit": state.exit,
        })),
        Form::Quiet => output.text(&state.active),
        Form::Text => {
            output.fact("unit", &format!("{}, {file}, {} {}", place.name, state.active, state.enabled));
            let pid = state.pid.map_or_else(|| "no process".to_owned(), |pid| format!("process {pid}"));
            let exit = state.exit.map_or_else(String::new, |exit| format!(", last exit {exit}"));
            output.fact("runs", &format!("{pid}, {} restarts{exit}", state.restarts));
        }
    }
    Ok(if state.active == "active" { Exit::Done } else { Exit::Refused })
}

fn unit_of(asked: &InstallService, context: &Context) -> Result<Unit, Failure> {
    let arguments = arguments(&asked.arguments)?;
    let served = served(asked.named.role, &arguments)?;
    let home = context.home.root().to_owned();
    let program = std::env::current_exe().map_err(anyhow::Error::from)?;
    let env_file =
        asked.env_file.as_deref().map(std::path::absolute).transpose().map_err(anyhow::Error::from)?;
    for path in [&home, &program].into_iter().chain(&env_file) {
        if path.to_str().is_none_or(|text| text.contains(char::is_control)) {
            return Err(Failure::usage(format!("{} cannot stand in a unit", path.display())));
        }
    }
    let scope = if asked.named.system { account_of(&home, asked.run_as.as_deref())? } else { Scope::User };
    let Served { writes, low_port } = served;
    Ok(Unit { role: asked.named.role, scope, program, home, arguments, env_file, writes, low_port })
}

/// The role's own arguments as text. A unit is read by everybody, so a password may not stand in it.
fn arguments(asked: &[OsString]) -> Result<Vec<String>, Failure> {
    let text = asked.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    let words = text.ok_or_else(|| Failure::usage("an argument cannot be written as text"))?;
    for word in &words {
        if word.contains(char::is_control) {
            return Err(Failure::usage("an argument holds a control character"));
        }
        if holds_password(word) {
            return Err(Failure::usage("an argument holds a password, and every account may read a unit")
                .line("Write POSTRIDER_STORE=… or POSTRIDER_LIMITER=… to a file with mode 0600 instead.")
                .fix("postrider service install broker --env-file FILE"));
        }
    }
    Ok(words)
}

fn holds_password(word: &str) -> bool {
    let address = word.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let speaker = address.and_then(|address| address.rsplit_once('@')).map(|(speaker, _)| speaker);
    speaker.is_some_and(|speaker| speaker.contains(':')) || word.contains("password=")
}

/// What a role's arguments ask of its unit.
#[derive(Debug, Default, PartialEq, Eq)]
struct Served {
    writes: Vec<PathBuf>,
    low_port: bool,
}

/// Reads the arguments as the role will, so that wrong usage is refused here and not at every start.
fn served(role: ServiceRole, arguments: &[String]) -> Result<Served, Failure> {
    let words = ["postrider"].iter().chain(role.words()).map(|word| (*word).to_owned());
    let parsed = Args::try_parse_from(words.chain(arguments.iter().cloned()))
        .map_err(|error| Failure::usage(error.to_string().trim().to_owned()))?;
    let (paths, writes, port) = match parsed.command {
        Command::Up(up) => {
            if up.detach {
                return Err(Failure::usage("a unit does not detach: systemd holds the process"));
            }
            let paths = [up.relay.relay_routes.clone(), up.relay.relay_token_file.clone()];
            (paths.into_iter().flatten().collect(), Vec::new(), up.listen.map(|listen| listen.port()))
        }
        Command::Daemon(args::Daemon::Up { detach: true }) => {
            return Err(Failure::usage("a unit does not detach: systemd holds the process"));
        }
        Command::Broker(args::Broker::Serve(serve)) => {
            let store =
                serve.store.as_deref().and_then(|store| store.strip_prefix("sqlite:")).map(PathBuf::from);
            let paths: Vec<PathBuf> =
                [&serve.tls_cert, &serve.tls_key].into_iter().flatten().cloned().collect();
            (paths, store.into_iter().collect(), Some(serve.listen.port()))
        }
        Command::Relay(args::Relay::Serve(serve)) => {
            let paths = [&serve.routes, &serve.upstream_token_file].into_iter().flatten().cloned();
            (paths.collect(), serve.outbox.iter().cloned().collect(), Some(serve.listen.port()))
        }
        _ => (Vec::new(), Vec::new(), None),
    };
    if let Some(relative) = paths.iter().chain(&writes).find(|path| path.is_relative()) {
        return Err(Failure::usage(format!(
            "{} is relative, and a unit has no folder of yours",
            relative.display()
        )));
    }
    let folders = writes.iter().filter_map(|file| file.parent().map(Path::to_owned)).collect();
    Ok(Served { writes: folders, low_port: port.is_some_and(|port| port != 0 && port < LOW_PORTS) })
}

/// As whom a unit of the machine runs: whom the home belongs to, unless an account is named.
fn account_of(home: &Path, named: Option<&str>) -> Result<Scope, Failure> {
    let found = fs::metadata(home).map_err(|error| {
        Failure::usage(format!("the home {} cannot be looked at: {error}", shown(home)))
            .line("A unit of the machine runs as the owner of its home, which must be there.")
            .fix("sudo install -d -m 700 -o ACCOUNT /var/lib/postrider")
            .fix("sudo postrider --home /var/lib/postrider service install --system")
    })?;
    match named {
        None => Ok(Scope::System { account: found.uid().to_string(), group: Some(found.gid().to_string()) }),
        Some(name) => {
            let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            if name.is_empty() || name.starts_with('-') || !fits {
                return Err(Failure::usage(format!("{name} is no name of an account")));
            }
            Ok(Scope::System { account: name.to_owned(), group: None })
        }
    }
}

fn user_units() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = named.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    let config = config.ok_or_else(|| Failure::usage("this account has no home folder for its units"))?;
    Ok(config.join("systemd").join("user"))
}

fn role_word(role: ServiceRole) -> &'static str {
    match role {
        ServiceRole::Up => "up",
        ServiceRole::Daemon => "daemon",
        ServiceRole::Broker => "broker",
        ServiceRole::Relay => "relay",
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::refused(ErrorCode::Forbidden, format!("{} cannot be used: {error}", shown(path)))
        .fix(format!("ls -ld {}", super::doctor::quoted(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(role: ServiceRole, words: &[&str]) -> Result<Served, Failure> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        served(role, &arguments(&words)?)
    }

    #[test]
    fn a_password_in_an_argument_is_refused_and_an_address_without_one_is_not() {
        for bad in ["postgres://u:secret@db/mesh", "--store=postgresql://u:x@h/d", "postgres:///d?password=x"]
        {
            assert!(holds_password(bad), "{bad}");
        }
        for good in ["postgres://u@db/mesh", "http://127.0.0.1:8000", "https://a/b:c@d", "--listen=[::1]:1"] {
            assert!(!holds_password(good), "{good}");
        }
    }

    #[test]
    fn arguments_that_the_role_would_refuse_are_refused_at_once() {
        for (role, words) in [
            (ServiceRole::Up, &["--lisen", "x"][..]),
            (ServiceRole::Up, &["--detach"]),
            (ServiceRole::Daemon, &["--detach"]),
            (ServiceRole::Broker, &["--tls-cert", "/a"]),
            (ServiceRole::Broker, &["--tls-cert", "a.pem", "--tls-key", "/b"]),
            (ServiceRole::Relay, &["--outbox", "x.db"]),
        ] {
            assert_eq!(of(role, words).unwrap_err().exit, Exit::Usage, "{words:?}");
        }
        assert_eq!(of(ServiceRole::Up, &["--listen", "127.0.0.1:7440"]).unwrap(), Served::default());
    }

    #[test]
    fn a_role_may_write_where_its_store_is_and_take_the_port_it_was_told() {
        let broker =
            of(ServiceRole::Broker, &["--store", "sqlite:/srv/db/ledger.db", "--listen", "0.0.0.0:443"]);
        assert_eq!(broker.unwrap(), Served { writes: vec!["/srv/db".into()], low_port: true });
        let relay = of(ServiceRole::Relay, &["--outbox", "/srv/relay/outbox.db"]).unwrap();
        assert_eq!(relay.writes, [PathBuf::from("/srv/relay")]);
    }
}
