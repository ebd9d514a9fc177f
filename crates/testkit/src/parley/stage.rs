//! The product, the two adapters and their programs.

use super::judge::{Note, Side, judge};
use super::{Outcome, Plan};
use crate::bin::{Home, Options, Product};
use crate::kills::KillsError;
use crate::kills::door::Door;
use crate::process::Process;
use crate::wait::wait_for;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const AGENTS: [&str; 2] = ["ping", "pong"];
/// A chain of messages, with a kill of everything inside, on a busy machine.
const CHAIN_BOUND: Duration = Duration::from_secs(180);

pub(super) struct Stage<'home> {
    home: &'home Home,
    options: Options,
    folder: TempDir,
    program: PathBuf,
    chain: u64,
    last: u64,
    lives: Option<Lives<'home>>,
    kills: u64,
    /// Numbers said again after the door had named a message as given up.
    resumed: BTreeSet<u64>,
}

struct Lives<'home> {
    product: Product<'home>,
    adapters: Vec<Process>,
}

impl<'home> Stage<'home> {
    pub(super) fn open(home: &'home Home, plan: &Plan, chain: u64) -> Result<Self, KillsError> {
        let folder = TempDir::new()?;
        let program = folder.path().join("program");
        // The number stands in the envelope; the last one of a chain is not answered.
        let text = format!(
            r#"#!/bin/sh
n=$(sed -n 's/.*"body":"\([0-9]*\)".*/\1/p')
log="{}/$POSTRIDER_AGENT"
printf '%s %s %s\n' "$n" "$POSTRIDER_ATTEMPT" "$POSTRIDER_REDELIVERED" >> "$log"
sync "$log"
next=$((n + 1))
if [ $((next % {chain})) -ne 0 ] && [ "$next" -lt {} ]; then echo "$next"; fi
"#,
            folder.path().display(),
            plan.messages
        );
        std::fs::write(&program, text)?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
        let options = Options { faults: plan.faults.clone(), ..Options::default() };
        let last = plan.messages - 1;
        let (lives, resumed) = (None, BTreeSet::new());
        let mut stage = Self { home, options, folder, program, chain, last, lives, kills: 0, resumed };
        let product = Product::up(home, &Options::default())?;
        for agent in AGENTS {
            product.cli(&["agent", "add", agent])?.done();
        }
        product.kill9();
        stage.start()?;
        Ok(stage)
    }

    fn start(&mut self) -> Result<(), KillsError> {
        let product = Product::up(self.home, &self.options)?;
        let program = self.program.display().to_string();
        let adapter = |agent: &&str| self.home.spawn(&["--json", "agent", "run", agent, "--", &program], &[]);
        let adapters = AGENTS.iter().map(adapter).collect::<Result<_, _>>()?;
        self.lives = Some(Lives { product, adapters });
        Ok(())
    }

    /// A moment nobody chose.
    pub(super) fn let_run(&mut self, moment: Duration) -> Result<(), KillsError> {
        match self.lives.as_mut().map(|lives| lives.adapters[0].wait_exit(moment)) {
            Some(Ok(status)) => {
                let printed = "an adapter".to_owned();
                Err(KillsError::EndedByItself { how: status.to_string(), printed })
            }
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Adapters, with whatever program runs under them, and the product; then all of it again.
    pub(super) fn kill_everything(&mut self) -> Result<(), KillsError> {
        if let Some(Lives { product, adapters }) = self.lives.take() {
            let mut adapters = adapters;
            for adapter in &mut adapters {
                adapter.kill9();
            }
            product.kill9();
        }
        self.kills += 1;
        self.start()
    }

    /// Begins a chain, or goes on with one.
    pub(super) fn say(&self, number: u64) -> Result<(), KillsError> {
        let turn = usize::try_from(number % 2).unwrap_or(0);
        let (from, to) = (AGENTS[turn], AGENTS[1 - turn]);
        let (text, id) = (number.to_string(), format!("number-{number}"));
        let args = ["--json", "--as", from, "send", to, text.as_str(), "--id", id.as_str()];
        let said = wait_for("the chain to begin", CHAIN_BOUND, || {
            self.home.cli(&args).ok().filter(|ended| ended.code() == Some(0))
        });
        said.map(|_| ()).map_err(KillsError::from)
    }

    /// Until a program was handed this number, or a later one.
    pub(super) fn await_number(&self, number: u64) -> Result<(), KillsError> {
        wait_for("the conversation to go on", CHAIN_BOUND, || {
            let notes = self.notes().ok()?;
            notes.iter().flatten().any(|note| note.number >= number).then_some(())
        })?;
        Ok(())
    }

    /// Until the last number of a chain was ended; a message that was given up is passed over by the driver.
    pub(super) fn await_end(&mut self, last: u64) -> Result<(), KillsError> {
        loop {
            let mut stuck = None;
            wait_for("the chain to end", CHAIN_BOUND, || {
                let sides = self.sides().ok()?;
                let given_up = sides.iter().flat_map(|side| side.given_up.iter().copied());
                stuck = given_up.filter(|number| !self.resumed.contains(number)).max();
                (stuck.is_some() || self.is_processed(last)).then_some(())
            })?;
            let Some(number) = stuck else { return Ok(()) };
            self.resumed.insert(number);
            let next = number + 1;
            if next % self.chain != 0 && next <= self.last {
                self.say(next)?;
            } else {
                return Ok(());
            }
        }
    }

    fn is_processed(&self, number: u64) -> bool {
        let recipient = AGENTS[1 - usize::try_from(number % 2).unwrap_or(0)];
        let Ok(items) = self.inbox(recipient) else { return false };
        items.iter().any(|(received, rung)| *received == number && rung == "processed")
    }

    pub(super) fn close(mut self, messages: u64) -> Result<Outcome, KillsError> {
        let outcome = judge(&self.sides()?, messages);
        self.lives = None;
        Ok(Outcome { kills: self.kills, ..outcome })
    }

    fn sides(&self) -> Result<Vec<Side>, KillsError> {
        let notes = self.notes()?;
        AGENTS
            .iter()
            .zip(notes)
            .map(|(agent, notes)| {
                let received = self.inbox(agent)?.into_iter().map(|(number, _)| number).collect();
                Ok(Side { notes, received, given_up: self.given_up(agent)? })
            })
            .collect()
    }

    fn notes(&self) -> Result<Vec<Vec<Note>>, KillsError> {
        AGENTS
            .iter()
            .map(|agent| match std::fs::read_to_string(self.folder.path().join(agent)) {
                Ok(text) => Ok(text.lines().filter_map(Note::read).collect()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            })
            .collect()
    }

    fn inbox(&self, agent: &str) -> Result<Vec<(u64, String)>, KillsError> {
        let (mut received, mut after) = (Vec::new(), 0);
        loop {
            let page = self.door(agent)?.get(&format!("/v1/inbox?after={after}&limit=1000"))?.body;
            let items = page["items"].as_array().cloned().unwrap_or_default();
            let Some(last) = items.last() else { return Ok(received) };
            after = last["inbox_seq"].as_u64().unwrap_or(u64::MAX);
            received.extend(items.iter().filter_map(|item| {
                let number = item["body"].as_str()?.parse().ok()?;
                Some((number, item["rung"].as_str().unwrap_or_default().to_owned()))
            }));
        }
    }

    fn given_up(&self, agent: &str) -> Result<BTreeSet<u64>, KillsError> {
        let page = self.door(agent)?.get("/v1/turns")?.body;
        let turns = page["given_up"].as_array().cloned().unwrap_or_default();
        Ok(turns.iter().filter_map(|turn| turn["message"]["body"].as_str()?.parse().ok()).collect())
    }

    fn door(&self, agent: &str) -> Result<Door, KillsError> {
        let lives = self.lives.as_ref().ok_or_else(|| std::io::Error::other("nothing runs"))?;
        Ok(Door::new(lives.product.ready().socket.clone(), Some(agent.to_owned())))
    }
}
