//! What the threads of a run share.

use super::KillsError;
use super::audience::{Member, Row, TOPIC, text_of};
use super::door::Door;
use super::follower::Follower;
use super::told::Told;
use super::writer::{Way, Writer};
use crate::bin::{Home, Options, Product};
use crate::history::Recorder;
use crate::wait::wait_for;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The agents beside the home's person.
const AGENTS: [&str; 2] = ["scribe", "porter"];
/// How long a client waits for the product to listen again: a start that recovers, on a busy machine.
const LISTEN_BOUND: Duration = Duration::from_secs(60);

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Writers write, the product dies.
    Killing,
    /// Writers bring what they began to an answer, and begin nothing.
    Closing,
    /// Nobody waits for anything.
    Over,
}

/// The ground of a run.
pub(super) struct Stage<'home> {
    pub home: &'home Home,
    pub members: Vec<Member>,
    pub tally: Tally,
    pub told: Told,
    history: PathBuf,
    socket: PathBuf,
    seed: u64,
    phase: Mutex<Phase>,
    amiss: Mutex<Vec<String>>,
}

/// What only clients can count.
#[derive(Debug, Default)]
pub(super) struct Tally {
    acked: AtomicU64,
    unanswered: AtomicU64,
    asked_again: AtomicU64,
}

impl<'home> Stage<'home> {
    /// A home with its members, all subscribed to the topic; the product is not running.
    pub(super) fn open(home: &'home Home, history: &Path, seed: u64) -> Result<Self, KillsError> {
        let product = Product::up(home, &Options::default())?;
        product.cli(&["topic", "create", TOPIC])?.done();
        let status = product.cli(&["--json", "status"])?.done().json();
        let person = status.first().and_then(|health| health["meshes"][0]["person"].as_str());
        let person = person.ok_or_else(|| KillsError::Unreadable {
            asked: "the person in `postrider status`".to_owned(),
            answered: format!("{status:?}"),
        })?;
        let mut members = vec![Member { name: person.to_owned(), acting_as: None }];
        for agent in AGENTS {
            product.cli(&["agent", "add", agent])?.done();
            product.cli(&["topic", "subscribe", TOPIC, "--as", agent])?.done();
            members.push(Member { name: agent.to_owned(), acting_as: Some(agent.to_owned()) });
        }
        let socket = product.ready().socket.clone();
        product.kill9();
        Ok(Self {
            home,
            members,
            tally: Tally::default(),
            told: Told::default(),
            history: history.to_owned(),
            socket,
            seed,
            phase: Mutex::new(Phase::Killing),
            amiss: Mutex::default(),
        })
    }

    /// One writer a member on the socket; two more as the person, so that lanes are shared, one of them with the
    /// command line.
    pub(super) fn writers(&self) -> Result<Vec<Writer<'_>>, KillsError> {
        let person = &self.members[0];
        let on_socket = self.members.iter().chain([person]).map(|member| (member, Way::Socket));
        let all = on_socket.chain([(person, Way::CommandLine)]).enumerate();
        all.map(|(n, (member, way))| Writer::new(self, n, member, way, self.seed)).collect()
    }

    /// How many writers there are; further clients count on from here.
    pub(super) fn writers_max(&self) -> usize {
        self.members.len() + 2
    }

    /// One follower a member.
    pub(super) fn followers(&self) -> Result<Vec<Follower<'_>>, KillsError> {
        self.members.iter().map(|member| Follower::new(self, member)).collect()
    }

    /// A client's own connection as `member`.
    pub(super) fn door(&self, member: &Member) -> Door {
        Door::new(self.socket.clone(), member.acting_as.clone())
    }

    /// A client's pen.
    pub(super) fn pen(&self, proc: &str) -> Result<Recorder, KillsError> {
        Ok(Recorder::open(&self.history, proc)?)
    }

    /// Waits until the product listens, or nobody needs to wait any more; true when connected.
    pub(super) fn await_listening(&self, door: &mut Door) -> Result<bool, KillsError> {
        let look = || match door.connect() {
            Ok(()) => Some(true),
            Err(_) => (self.phase() == Phase::Over).then_some(false),
        };
        Ok(wait_for("the product to listen", LISTEN_BOUND, look)?)
    }

    /// Where the clients' files are.
    pub(super) fn history(&self) -> &Path {
        &self.history
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// Something that must not be and that the history cannot say.
    pub(super) fn note_amiss(&self, sentence: String) {
        self.amiss.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
    }

    pub(super) fn amiss(&self) -> Vec<String> {
        self.amiss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A reader looks at a row: its text must be the one that belongs to its id.
    pub(super) fn look_at(&self, reader: &str, row: &Row) {
        if row.body != text_of(&row.client_message_id) {
            self.note_amiss(format!("changed: {reader} read {:?} as {:?}", row.client_message_id, row.body));
        }
    }
}

impl Tally {
    pub(super) fn note_acked(&self) {
        self.acked.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn note_unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn note_asked_again(&self) {
        self.asked_again.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn acked(&self) -> u64 {
        self.acked.load(Ordering::SeqCst)
    }

    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::SeqCst)
    }

    pub(super) fn asked_again(&self) -> u64 {
        self.asked_again.load(Ordering::SeqCst)
    }
}
