//! One mesh of this home: its mailbox, its link as it stands, and the wakes between those who write and those
//! who wait. A mesh's failure stays its own.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use mailbox::{Mailbox, Member};
use model::{Clock, Entropy, MemberId, MemberKind, MemberName, NodeName, RowId, Timestamp};
use net::follow::Bell;
use sqlite::StorageError;
use tokio::sync::watch;

use crate::courier::Suspicion;
use crate::events::{Event, Events};
use crate::link::{Live, Terms};
use crate::metrics::Tally;

/// What a mesh's doors and tasks share.
pub(crate) struct Mesh {
    pub(crate) slug: String,
    pub(crate) node: NodeName,
    pub(crate) mailbox: Mailbox,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) bells: Bells,
    pub(crate) tally: Tally,
    pub(crate) suspicion: Suspicion,
    pub(crate) events: Events,
    link: watch::Sender<LinkView>,
    live: watch::Sender<Option<Arc<Live>>>,
    members: RwLock<Members>,
    terms: RwLock<Terms>,
}

/// Wakes, each rung after a commit. They carry nothing.
#[derive(Default)]
pub(crate) struct Bells {
    /// A row waits for the courier.
    pub(crate) queued: Bell,
    /// An outbox row stands elsewhere than before.
    pub(crate) moved: Bell,
    /// The inbox has a new row, or one that waits again.
    pub(crate) arrived: Bell,
    /// An inbox row climbed: the broker should hear of it.
    pub(crate) climbed: Bell,
    /// A row ended here while the broker may have it: the broker should be asked.
    pub(crate) ended: Bell,
}

/// The link as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkView {
    pub(crate) state: LinkState,
    pub(crate) since: Timestamp,
}

/// See [`LinkView`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// Being opened or waiting to be; the last end, when there was one.
    Away { reason: Option<String> },
    /// Open and negotiated.
    Live,
    /// Not tried until an operator acts or the probe is due.
    Parked { reason: String, detail: String },
}

impl LinkState {
    fn event(&self) -> Option<Event> {
        match self {
            LinkState::Away { reason } => reason.clone().map(|reason| Event::Disconnect { reason }),
            LinkState::Live => Some(Event::Reconnect),
            LinkState::Parked { reason, .. } => Some(Event::Parked { reason: reason.clone() }),
        }
    }
}

/// Who is at home here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    person: Option<MemberId>,
    all: Vec<Member>,
}

impl Mesh {
    /// The mesh over an open mailbox: what was on the wire when the last process ended is pending again.
    pub(crate) async fn over(
        slug: String,
        node: NodeName,
        mailbox: Mailbox,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Arc<Self>, StorageError> {
        let recovered = mailbox.recover().await?;
        if recovered > 0 {
            tracing::info!(
                mesh = slug,
                rows = recovered,
                "rows on the wire at the last end are pending again"
            );
        }
        let meta = mailbox.meta().await?;
        let members = Members { person: meta.person, all: mailbox.members().await? };
        let terms =
            meta.dedupe_window.map_or(Terms::default(), |dedupe| Terms { dedupe, ..Terms::default() });
        let since = clock.now();
        Ok(Arc::new(Self {
            slug,
            node,
            mailbox,
            clock,
            entropy,
            bells: Bells::default(),
            tally: Tally::default(),
            suspicion: Suspicion::default(),
            events: Events::default(),
            link: watch::Sender::new(LinkView { state: LinkState::Away { reason: None }, since }),
            live: watch::Sender::new(None),
            members: RwLock::new(members),
            terms: RwLock::new(terms),
        }))
    }

    /// The link as it stands.
    pub(crate) fn link(&self) -> LinkView {
        self.link.borrow().clone()
    }

    /// Follows the link's state.
    pub(crate) fn watch_link(&self) -> watch::Receiver<LinkView> {
        self.link.subscribe()
    }

    /// Records where the link stands; repeating the same state keeps its beginning.
    pub(crate) fn set_link(&self, state: LinkState) {
        let now = self.clock.now();
        let event = state.event();
        let turned = self.link.send_if_modified(|view| {
            let turned = std::mem::discriminant(&view.state) != std::mem::discriminant(&state);
            *view = LinkView { state, since: if turned { now } else { view.since } };
            turned
        });
        if let (true, Some(event)) = (turned, event) {
            self.events.tell(event);
        }
    }

    /// The open link.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.live.borrow().clone()
    }

    /// Follows the open link.
    pub(crate) fn watch_live(&self) -> watch::Receiver<Option<Arc<Live>>> {
        self.live.subscribe()
    }

    /// Shows or withdraws the open link.
    pub(crate) fn set_live(&self, live: Option<Arc<Live>>) {
        self.live.send_replace(live);
    }

    /// Outbox rows stand elsewhere than before: whoever waits or listens is told.
    pub(crate) fn moved<'a>(&self, rows: impl IntoIterator<Item = &'a RowId>) {
        self.bells.moved.ring();
        rows.into_iter().for_each(|row| self.events.tell(Event::RowMoved { row: *row }));
    }

    /// Broker time when a link is open, else this machine's.
    pub(crate) fn broker_now(&self) -> Timestamp {
        self.live().map_or_else(|| self.clock.now(), |live| live.broker_now(&*self.clock))
    }

    /// The home's person, once a join has told it.
    pub(crate) fn person(&self) -> Option<Member> {
        let members = self.members();
        members.person.and_then(|id| members.all.iter().find(|member| member.id == id).cloned())
    }

    /// The member of that name at home here.
    pub(crate) fn member(&self, name: &MemberName) -> Option<Member> {
        self.members().all.iter().find(|member| member.name == *name).cloned()
    }

    /// A member's name; an unknown one has only its id.
    pub(crate) fn name_of(&self, id: MemberId) -> Option<MemberName> {
        self.members().all.iter().find(|member| member.id == id).map(|member| member.name.clone())
    }

    /// Everybody at home here.
    pub(crate) fn everybody(&self) -> Vec<Member> {
        self.members().all.clone()
    }

    /// Keeps members the broker says are at home here; the first person among them is the home's.
    pub(crate) async fn learn_members(&self, told: Vec<Member>) -> Result<(), StorageError> {
        for member in told {
            match self.mailbox.put_member(member).await {
                Ok(()) => {}
                Err(mailbox::PutMemberError::Storage(error)) => return Err(error),
                // Names and ids never change, so one of the two sides was restored; what is here stays.
                Err(error) => tracing::warn!(mesh = self.slug, %error, "the broker names another member"),
            }
        }
        let all = self.mailbox.members().await?;
        let known = self.members().person;
        let person =
            known.or_else(|| all.iter().find(|member| member.kind == MemberKind::Person).map(|m| m.id));
        if let (None, Some(person)) = (known, person) {
            self.mailbox.put_meta(vec![mailbox::Fact::Person(person)]).await?;
        }
        *self.members_mut() = Members { person, all };
        Ok(())
    }

    /// What was agreed with the broker, now or at the last contact.
    pub(crate) fn terms(&self) -> Terms {
        *self.terms.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes new terms into force.
    pub(crate) fn set_terms(&self, terms: Terms) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = terms;
    }

    fn members(&self) -> RwLockReadGuard<'_, Members> {
        self.members.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn members_mut(&self) -> RwLockWriteGuard<'_, Members> {
        self.members.write().unwrap_or_else(PoisonError::into_inner)
    }
}
