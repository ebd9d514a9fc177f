//! `postrider agent run`: the command adapter. One message, one turn, one process.
//!
//! - The turn is committed before the program starts, and ended after it ended: its receipts are true.
//! - One adapter an agent, one program an adapter. Killed anywhere and started again, it gives the turn it held
//!   back, so that the message is run once more, marked.
//! - The daemon may go and come back at any moment; what was not answered is asked again with the same ids.

use std::time::Duration;

use daemon::home::Home;
use model::{Clock, Entropy, ErrorCode, OsEntropy, SystemClock, TurnId, limits};
use net::local::{Lock, LockError, lock_exclusive, private_folder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use wire::local::{
    AgentAnswer, AgentRequest, TurnAnswer, TurnEnd, TurnEnded, TurnExtend, TurnInterrupt, TurnRequest,
};

use super::program::{Programs, locks};
use super::verdict::{Verdict, refused, verdict};
use crate::args::RunAgent;
use crate::cmd::Context;
use crate::cmd::up::stop_on_signal;
use crate::failure::{Exit, Failure};
use crate::local::LocalDoor;
use crate::output::{Form, Output, short_id};

/// How an open turn of this adapter, or of one before it, is known.
const HOLDER: &str = "postrider agent run";
/// How long one look for a message waits.
const WAIT: Duration = Duration::from_secs(30);
/// A daemon that was restarted is back within moments.
const AWAY_PAUSE: Duration = Duration::from_millis(250);
/// A program of an adapter that was killed is ended by its keeper at once; a busy machine takes a little longer.
const KEEPER_BOUND: Duration = Duration::from_secs(10);

struct Adapter {
    door: LocalDoor,
    output: Output,
    programs: Programs,
    drain: bool,
    stop: CancellationToken,
    _lock: Lock,
}

/// What a look for a message found.
enum Look {
    Turn(Box<TurnAnswer>),
    Nothing,
    /// A turn that somebody else holds, or held.
    Open {
        turn: String,
        own: bool,
    },
}

pub async fn run(asked: RunAgent, context: &Context) -> Result<(), Failure> {
    let adapter = Adapter::of(asked, context).await?;
    tokio::spawn(stop_on_signal(adapter.stop.clone()));
    adapter.make_known(context).await?;
    adapter.say("waiting", &format!("for messages to {}; Ctrl-C ends", adapter.programs.agent));
    while !adapter.stop.is_cancelled() {
        match adapter.look().await? {
            Some(Look::Turn(turn)) => adapter.take(*turn).await?,
            Some(Look::Open { turn, own: true }) => adapter.give_back(&turn).await?,
            Some(Look::Open { own: false, .. }) => adapter.pause(limits::SAFETY_POLL_EVERY).await,
            Some(Look::Nothing) if adapter.drain => return Ok(()),
            Some(Look::Nothing) | None => {}
        }
    }
    Ok(())
}

impl Adapter {
    async fn of(asked: RunAgent, context: &Context) -> Result<Self, Failure> {
        let name = asked.name.trim_start_matches('@').to_owned();
        name.parse::<model::MemberName>().map_err(|error| Failure::usage(error.to_string()))?;
        let folder = agents_folder(&context.home, context.mesh.as_deref());
        private_folder(&folder).map_err(anyhow::Error::from)?;
        let (run, keep) = locks(&folder, &name);
        let lock = lock_exclusive(&run).map_err(|error| lock_failure(&error, &name))?;
        until_free(&keep, &name).await?;
        let door = LocalDoor::of(&context.home)?.with(Some(name.clone()), context.mesh.clone());
        let home = context.home.root().to_owned();
        let programs =
            Programs { agent: name, home, lock: keep, program: asked.program, timeout: asked.timeout };
        let stop = CancellationToken::new();
        Ok(Self { door, output: context.output, programs, drain: asked.drain, stop, _lock: lock })
    }

    /// Gives the agent its address, when it has none yet.
    async fn make_known(&self, context: &Context) -> Result<(), Failure> {
        let known: Result<serde_json::Value, Failure> = self.patiently(|| self.door.get("/v1/turns")).await;
        match known {
            Ok(_) => Ok(()),
            Err(failure) if failure.code == ErrorCode::NotAtHome.code() => {
                let operator = context.own_door()?;
                let request = AgentRequest { name: self.programs.agent.clone(), mesh: operator.mesh() };
                // Its token is for whoever acts as it over HTTP; the adapter needs none.
                operator.post::<AgentAnswer>("/v1/agents", &request).await.map(|_| ())
            }
            Err(failure) => Err(failure),
        }
    }

    /// One look for a message; `None` when the adapter is to end.
    async fn look(&self) -> Result<Option<Look>, Failure> {
        let (now, entropy): (_, &dyn Entropy) = (SystemClock::start().now(), &OsEntropy);
        let wait = if self.drain { 0 } else { WAIT.as_secs() };
        let request = TurnRequest {
            wait: Some(wait),
            turn_id: Some(TurnId::mint(now, entropy).to_string()),
            holder: Some(HOLDER.to_owned()),
            mesh: self.door.mesh(),
            ..TurnRequest::default()
        };
        let ask = || self.door.post_within("/v1/turns", &request, WAIT + limits::ANSWER_TIMEOUT);
        let looked = tokio::select! {
            looked = self.patiently::<Option<TurnAnswer>, _>(ask) => looked,
            () = self.stop.cancelled() => return Ok(None),
        };
        match looked {
            Ok(Some(turn)) => Ok(Some(Look::Turn(Box::new(turn)))),
            Ok(None) => Ok(Some(Look::Nothing)),
            Err(failure) if failure.code == ErrorCode::TurnOpen.code() => {
                let text = |name: &str| failure.more.get(name).and_then(|value| value.as_str());
                let own = text("holder") == Some(HOLDER);
                Ok(Some(Look::Open { turn: text("turn_id").unwrap_or_default().to_owned(), own }))
            }
            // The turn began, its answer was lost, and the daemon restarted past its end.
            Err(failure) if failure.code == ErrorCode::TurnOver.code() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn take(&self, turn: TurnAnswer) -> Result<(), Failure> {
        let id = turn.turn_id.to_string();
        self.tell("engaged", &turn, None);
        let left = self.programs.run(&turn, self.keep(&id)).await?;
        match verdict(left) {
            Verdict::End(end) => {
                let end = TurnEnd { mesh: self.door.mesh(), ..*end };
                self.end(&turn, end).await
            }
            Verdict::GiveBack(why) => {
                self.tell("interrupted", &turn, Some(&why));
                self.give_back(&id).await
            }
            Verdict::Drop => {
                self.tell("lost", &turn, None);
                Ok(())
            }
        }
    }

    /// Extends the lease while the program runs; resolves when the turn is lost.
    async fn keep(&self, id: &str) {
        let (path, request) =
            (format!("/v1/turns/{id}/extend"), TurnExtend { lease: None, mesh: self.door.mesh() });
        loop {
            sleep(limits::TURN_LEASE_DEFAULT / 4).await;
            match self.door.post::<serde_json::Value>(&path, &request).await {
                Ok(_) => {}
                Err(failure) if failure.exit == Exit::Unreachable => {}
                Err(failure) => {
                    tracing::warn!(code = failure.code, "the turn cannot be kept");
                    return;
                }
            }
        }
    }

    async fn end(&self, turn: &TurnAnswer, end: TurnEnd) -> Result<(), Failure> {
        let path = format!("/v1/turns/{}/end", turn.turn_id);
        let ended: Result<TurnEnded, Failure> = self.patiently(|| self.door.post(&path, &end)).await;
        match ended {
            Ok(_) => {
                self.tell(end.outcome.word(), turn, end.error.as_deref());
                Ok(())
            }
            Err(failure) if is_lost(&failure) => {
                self.tell("lost", turn, None);
                Ok(())
            }
            Err(failure) if end.reply.is_some() => {
                // Too long a chain, too long a body: the work is done, its answer cannot leave, and that is told.
                let refused = TurnEnd { mesh: end.mesh, ..refused(&failure.code, &failure.lines.join(" ")) };
                Box::pin(self.end(turn, refused)).await
            }
            Err(failure) => Err(failure),
        }
    }

    async fn give_back(&self, turn: &str) -> Result<(), Failure> {
        let path = format!("/v1/turns/{turn}/interrupt");
        let request = TurnInterrupt { mesh: self.door.mesh() };
        let back: Result<serde_json::Value, Failure> =
            self.patiently(|| self.door.post(&path, &request)).await;
        match back {
            Ok(_) => Ok(()),
            Err(failure) if is_lost(&failure) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Asks until the daemon answers, whatever it answers.
    async fn patiently<T, F>(&self, mut ask: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
        T: DeserializeOwned,
    {
        let mut away = false;
        loop {
            match ask().await {
                Err(failure) if is_away(&failure) => {
                    if !std::mem::replace(&mut away, true) {
                        self.say("waiting", "for the daemon, which is away");
                    }
                    sleep(AWAY_PAUSE).await;
                }
                answered => return answered,
            }
        }
    }

    async fn pause(&self, span: Duration) {
        tokio::select! {
            () = sleep(span) => {}
            () = self.stop.cancelled() => {}
        }
    }

    fn say(&self, word: &str, text: &str) {
        match self.output.form() {
            Form::Text => self.output.fact(word, text),
            Form::Json | Form::Quiet => {}
        }
    }

    fn tell(&self, event: &str, turn: &TurnAnswer, why: Option<&str>) {
        #[derive(Serialize)]
        struct Line<'a> {
            event: &'a str,
            turn_id: String,
            id: String,
            client_message_id: &'a str,
            attempt: u32,
            redelivered: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a str>,
        }
        let message = &turn.message.message;
        let id = message.id.to_string();
        match self.output.form() {
            Form::Json => self.output.json(&Line {
                event,
                turn_id: turn.turn_id.to_string(),
                id,
                client_message_id: message.fields.client_message_id.as_str(),
                attempt: turn.attempt,
                redelivered: turn.redelivered,
                error: why,
            }),
            Form::Quiet => self.output.text(&id),
            Form::Text => {
                let again = if turn.redelivered { ", again" } else { "" };
                let why = why
                    .map(|why| format!(": {}", crate::output::headline(why, Some(48))))
                    .unwrap_or_default();
                self.output.fact(event, &format!("{} from {}{again}{why}", short_id(&id), message.sender));
            }
        }
    }
}

/// Whether the same request may be answered a moment later.
fn is_away(failure: &Failure) -> bool {
    let transient =
        [ErrorCode::Unavailable, ErrorCode::StorageBusy, ErrorCode::DaemonBusy, ErrorCode::StorageStopped];
    let stored = [ErrorCode::InsufficientStorage, ErrorCode::Internal];
    failure.exit == Exit::Unreachable
        || transient.iter().chain(&stored).any(|code| failure.code == code.code())
}

fn is_lost(failure: &Failure) -> bool {
    let over = [ErrorCode::TurnLost, ErrorCode::TurnOver, ErrorCode::NotFound];
    over.iter().any(|code| failure.code == code.code())
}

fn agents_folder(home: &Home, mesh: Option<&str>) -> std::path::PathBuf {
    home.daemon().join("agents").join(mesh.unwrap_or("default"))
}

/// The program of an adapter that was killed is gone.
async fn until_free(lock: &std::path::Path, name: &str) -> Result<(), Failure> {
    let free = async {
        loop {
            match lock_exclusive(lock) {
                Ok(_) => return Ok(()),
                Err(LockError::Held { .. }) => sleep(AWAY_PAUSE / 5).await,
                Err(error) => return Err(lock_failure(&error, name)),
            }
        }
    };
    tokio::time::timeout(KEEPER_BOUND, free).await.unwrap_or_else(|_| {
        Err(Failure::refused(ErrorCode::Unavailable, format!("an earlier program of {name} does not end")))
    })
}

fn lock_failure(error: &LockError, name: &str) -> Failure {
    match error {
        LockError::Held { .. } => {
            Failure::refused(ErrorCode::Unavailable, format!("another adapter answers for {name}"))
                .line("Nothing was begun.")
                .fix("stop the other one, or choose another agent")
        }
        LockError::Unusable { .. } => Failure::refused(ErrorCode::Internal, error.to_string()),
    }
}
