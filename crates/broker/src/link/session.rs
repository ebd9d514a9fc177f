//! One link from its 101 to its close.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ledger::{Link, LinkError, LinkOpened, LinkRefused, Via};
use model::{MemberId, MemberName, limits};
use net::socket::{Reader, Socket, Text, Writer};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::link::{BadFrame, ToBroker, ToNode};

use super::end::End;
use super::lanes::Lanes;
use super::push::{Mail, Pushed, Receipts};
use super::questions::Questions;
use super::registry::{Seat, ToAsk};
use super::{acks, negotiate, push, questions, send};
use crate::ask;
use crate::broker::Shared;

/// What every task of one link shares.
pub(crate) struct Ctx {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Link,
    pub(crate) mail: Pushed,
    pub(crate) receipts: Pushed,
    pub(crate) questions: Questions,
    writer: Writer,
    over: CancellationToken,
    at_home: Mutex<HashMap<MemberId, MemberName>>,
    /// Frames being answered: the reader waits when all are taken, so a node cannot pile up work here.
    places: Arc<Semaphore>,
}

/// Serves the link until it ends.
pub(crate) async fn run(shared: Arc<Shared>, mut seat: Seat, socket: Socket, stop: CancellationToken) {
    let (mut reader, writer) = socket.split();
    let asked = seat.take_questions();
    let ctx = Arc::new(Ctx::new(shared, seat.link().clone(), writer));
    let metrics = &ctx.shared.metrics;
    metrics.connections.add_one();
    metrics.connections_active.add(1);
    tracing::info!(node = %ctx.link.node, epoch = ctx.link.epoch, "link open");
    let mut answering = JoinSet::new();
    let end = tokio::select! {
        end = serve(&ctx, &mut reader, &mut answering, asked) => end,
        () = seat.replaced().cancelled() => Some(End::Replaced),
        () = stop.cancelled() => Some(End::Stopping),
    };
    if end == Some(End::Stopping) {
        // Messages already read are answered; the door's drain bounds how long that may take.
        while answering.join_next().await.is_some() {}
    }
    answering.shutdown().await;
    if let Some(end) = end {
        ctx.end(&end);
    }
    drop(seat);
    metrics.connections_active.add(-1);
    // Reading on until the other end has heard the close: unread bytes would reset the connection under it.
    while reader.next().await.is_ok() {}
    tracing::info!(node = %ctx.link.node, epoch = ctx.link.epoch, "link closed");
}

/// Until the link ends; nothing when the other end left.
async fn serve(
    ctx: &Arc<Ctx>,
    reader: &mut Reader,
    answering: &mut JoinSet<()>,
    asked: Option<mpsc::Receiver<ToAsk>>,
) -> Option<End> {
    match negotiate::negotiate(ctx, reader).await {
        Ok(opened) => ctx.learn(opened),
        Err(end) => return Some(end),
    }
    tokio::select! {
        end = read_frames(ctx, reader, answering) => end,
        end = push::push::<Mail>(ctx) => Some(end),
        end = push::push::<Receipts>(ctx) => Some(end),
        () = questions::put_all(ctx, asked) => None,
        () = ctx.over.cancelled() => None,
    }
}

async fn read_frames(ctx: &Arc<Ctx>, reader: &mut Reader, answering: &mut JoinSet<()>) -> Option<End> {
    let mut lanes = Lanes::new();
    loop {
        let text = match reader.next().await {
            Ok(text) => text,
            Err(ended) => {
                tracing::debug!(node = %ctx.link.node, %ended, "link ended by the other end");
                return None;
            }
        };
        while answering.try_join_next().is_some() {}
        if let Err(end) = hear(ctx, &text, &mut lanes, answering).await {
            return Some(end);
        }
    }
}

/// Takes one frame; its answer comes from a task of its own.
async fn hear(
    ctx: &Arc<Ctx>,
    text: &Text,
    lanes: &mut Lanes<send::Lane>,
    answering: &mut JoinSet<()>,
) -> Result<(), End> {
    let frame = match ToBroker::parse(text) {
        Ok(frame) => frame,
        Err(BadFrame::UnknownType(name)) => {
            tracing::debug!(name, "a frame of an unknown type was passed over");
            return Ok(());
        }
        Err(BadFrame::Question { n, source }) => {
            ctx.say(ask::unreadable(n, &source)).await;
            return Ok(());
        }
        Err(BadFrame::Shape(error)) => return Err(End::Unreadable { detail: error.to_string() }),
    };
    let place = ctx.places.clone().acquire_owned().await.expect("the semaphore is never closed");
    let task_ctx = ctx.clone();
    match frame {
        ToBroker::FeatureNegotiationRequest(_) => return Err(End::NotNegotiated),
        ToBroker::Answer(answer) => ctx.questions.answered(answer),
        ToBroker::Send(frame) => {
            let frame = send::Frame::enter(ctx, frame, lanes).await?;
            answering.spawn(async move { task_ctx.answer(frame.answer(&task_ctx).await, place).await });
        }
        ToBroker::Ack(rows) => {
            answering
                .spawn(async move { task_ctx.answer(acks::ack(&task_ctx, rows.rows).await, place).await });
        }
        ToBroker::Nack(rows) => {
            answering
                .spawn(async move { task_ctx.answer(acks::nack(&task_ctx, rows.rows).await, place).await });
        }
        ToBroker::ReceiptsAck(rows) => {
            answering.spawn(async move {
                task_ctx.answer(acks::receipts(&task_ctx, rows.rows).await, place).await
            });
        }
        ToBroker::Ask(question) => {
            answering.spawn(async move {
                let answer = ask::answer(&task_ctx.shared, &task_ctx.link, question).await;
                task_ctx.answer(Ok(vec![answer.text()]), place).await;
            });
        }
    }
    Ok(())
}

impl Ctx {
    fn new(shared: Arc<Shared>, link: Link, writer: Writer) -> Self {
        Self {
            shared,
            link,
            mail: Pushed::new(),
            receipts: Pushed::new(),
            questions: Questions::default(),
            writer,
            over: CancellationToken::new(),
            at_home: Mutex::default(),
            places: Arc::new(Semaphore::new(limits::LANES_IN_FLIGHT_MAX)),
        }
    }

    pub(crate) fn via(&self) -> Via {
        Via::Link(self.link.clone())
    }

    /// Sends a frame, waiting for room. A socket that is gone ends the link through its reader.
    pub(crate) async fn say(&self, frame: ToNode) {
        self.say_text(frame.text()).await;
    }

    pub(crate) async fn say_text(&self, text: String) {
        if let Err(error) = self.writer.send(text).await {
            tracing::debug!(node = %self.link.node, %error, "a frame was not sent");
        }
    }

    /// Sends what a task answers, or ends the link with its refusal. The place is free when the answer is on its
    /// way: a node that does not read its answers gets no more.
    async fn answer<P>(&self, answer: Result<Vec<String>, LinkError>, place: P) {
        match answer {
            Ok(texts) => {
                for text in texts {
                    self.say_text(text).await;
                }
            }
            Err(error) => {
                let end = self.link_end(&error);
                self.end(&end);
            }
        }
        drop(place);
    }

    /// What a refused link transaction means for the link.
    pub(crate) fn link_end(&self, error: &LinkError) -> End {
        match error {
            LinkError::Refused(LinkRefused::Replaced) => End::Replaced,
            LinkError::Refused(LinkRefused::Revoked | LinkRefused::UnknownNode) => End::Revoked,
            LinkError::Storage(error) => {
                tracing::error!(node = %self.link.node, %error, "the ledger did not serve a link");
                End::Unavailable
            }
        }
    }

    /// Says why and closes; the first end counts.
    pub(crate) fn end(&self, end: &End) {
        if !self.over.is_cancelled() {
            tracing::info!(node = %self.link.node, ?end, "link ends");
            // Best effort: the close says the same, shorter.
            let _ = self.writer.try_send(end.error_frame().text());
            self.writer.close(end.close());
            self.over.cancel();
        }
    }

    fn learn(&self, opened: LinkOpened) {
        let members = opened.members.into_iter().map(|member| (member.id, member.name));
        self.at_home.lock().unwrap_or_else(PoisonError::into_inner).extend(members);
    }

    /// The name of a member this link may speak for. A home never changes, so a known one is not asked again;
    /// a removal is noticed by the transaction.
    pub(crate) async fn at_home(&self, id: MemberId) -> Result<Option<MemberName>, LinkError> {
        if let Some(name) = self.at_home.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(Some(name.clone()));
        }
        let member = self.shared.ledger.member(id).await?;
        let at_home = member
            .filter(|member| member.home.as_ref() == Some(&self.link.node) && member.removed_at.is_none());
        Ok(at_home.map(|member| {
            let mut known = self.at_home.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(member.id, member.name.clone());
            member.name
        }))
    }
}
