//! One link from its negotiation to its end.
//!
//! Order: re-drive what a restored broker lost, ask about rows whose end is not known, repeat acks the broker
//! has not confirmed, and only then send. Mail is taken from the first moment on.

use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use model::limits;
use net::socket::{Close, Reader};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wire::link::{BadFrame, NodeAsk, ToNode};

use super::explain;
use super::live::Live;
use super::negotiate::{Negotiated, closed};
use super::verdict::LinkEnd;
use crate::courier::{self, Courier};
use crate::inbox::{self, Delivery};
use crate::mesh::{LinkState, Mesh};
use crate::{questions, refetch};

/// Serves the link until it ends, and says why it did.
pub(super) async fn serve(mesh: &Arc<Mesh>, link: Negotiated, stop: &CancellationToken) -> LinkEnd {
    let Negotiated { reader, writer, live, restored, broker_version } = link;
    let live = Arc::new(live);
    mesh.set_live(Some(live.clone()));
    mesh.set_link(LinkState::Live);
    tracing::info!(mesh = mesh.slug, epoch = live.epoch(), broker_version, "the link is open");
    let (deliveries, arriving) = mpsc::channel(limits::WINDOW_ROWS_MAX);
    let no_more = CancellationToken::new();
    let (questions, asked) = mpsc::channel(limits::NODE_QUESTIONS_MAX);
    let mut reading = pin!(read(mesh, &live, reader, deliveries, questions));
    let mut explaining = pin!(explain::answer_all(mesh, &live, asked));
    let mut receiving = pin!(inbox::receive(mesh, &live, arriving));
    let mut carrying = pin!(carry(mesh, &live, restored, no_more.clone()).fuse());
    let end = tokio::select! {
        end = &mut reading => end,
        end = &mut receiving => end,
        end = &mut carrying => end,
        end = &mut explaining => end,
        () = stop.cancelled() => {
            no_more.cancel();
            // Answers on their way still arrive, and what they say is kept.
            tokio::select! {
                _ = &mut carrying => {}
                _ = &mut reading => {}
                _ = &mut receiving => {}
                () = tokio::time::sleep(limits::DRAIN_TIMEOUT) => {
                    tracing::warn!(mesh = mesh.slug, "answers did not come in time; their rows are sent again");
                }
            }
            LinkEnd::Stopped
        }
    };
    finish(mesh, &live, &end);
    no_more.cancel();
    // Frames on the wire are settled as lost; only the store could make this wait.
    if !carrying.is_terminated() && timeout(limits::DRAIN_TIMEOUT, carrying).await.is_err() {
        tracing::error!(mesh = mesh.slug, "the store did not settle the last frames in time");
    }
    let code = if end == LinkEnd::Stopped { Close::GOING_AWAY } else { Close::NORMAL };
    writer.close(Close::new(code, ""));
    end
}

/// Nobody may ask over it any more, and nobody waits for it.
fn finish(mesh: &Mesh, live: &Live, end: &LinkEnd) {
    let refused = match end {
        LinkEnd::Closed { code, .. } => courier::refused_frame(*code),
        LinkEnd::Lost(_)
        | LinkEnd::Refused { .. }
        | LinkEnd::AnswerLate
        | LinkEnd::IssuerChanged
        | LinkEnd::Terms(_)
        | LinkEnd::Storage(_)
        | LinkEnd::StorageStopped(_)
        | LinkEnd::Stopped => None,
    };
    if refused.is_some() {
        mesh.suspicion.raise();
    }
    mesh.set_live(None);
    live.abandon(refused);
}

async fn carry(mesh: &Arc<Mesh>, live: &Arc<Live>, restored: bool, no_more: CancellationToken) -> LinkEnd {
    let opened = async {
        if restored {
            questions::redrive(mesh, live).await?;
        }
        questions::ask_about_ended(mesh, live).await?;
        inbox::repeat_acks(mesh, live).await
    };
    if let Err(end) = opened.await {
        return end;
    }
    let courier = Courier::new(mesh.clone(), live.clone()).run(no_more.clone());
    let beside = async {
        tokio::select! {
            end = questions::keep_asking(mesh, live) => end,
            end = inbox::keep_telling(mesh, live) => end,
            end = fetch_again(mesh, live) => end,
        }
    };
    let mut courier = pin!(courier);
    tokio::select! {
        ended = &mut courier => ended.err().unwrap_or(LinkEnd::Stopped),
        end = beside => {
            no_more.cancel();
            live.abandon(None);
            let _settled = courier.await;
            end
        }
    }
}

/// What a rebuilt inbox lacks is fetched beside everything else; after that there is nothing more to do.
async fn fetch_again(mesh: &Mesh, live: &Live) -> LinkEnd {
    match refetch::refetch(mesh, live).await {
        Ok(()) => std::future::pending().await,
        Err(end) => end,
    }
}

async fn read(
    mesh: &Mesh,
    live: &Live,
    mut reader: Reader,
    deliveries: mpsc::Sender<Delivery>,
    questions: mpsc::Sender<NodeAsk>,
) -> LinkEnd {
    let mut said = None;
    loop {
        let text = match reader.next().await {
            Ok(text) => text,
            Err(ended) => return explained(closed(ended), said),
        };
        let delivery = match ToNode::parse(&text) {
            Ok(ToNode::Sent(sent)) => {
                live.sent(sent);
                continue;
            }
            Ok(ToNode::Answer(answer)) => {
                live.answered(answer);
                continue;
            }
            Ok(ToNode::Ask(asked)) => {
                // A broker that asks faster than it is answered hears nothing, and says so to its asker.
                if questions.try_send(asked).is_err() {
                    tracing::debug!(mesh = mesh.slug, "a question of the broker was passed over");
                }
                continue;
            }
            Ok(ToNode::Mail(mail)) => Delivery::Mail { rows: mail.rows, poison: Vec::new() },
            Ok(ToNode::Acked(acked)) => Delivery::Acked(acked.rows),
            Ok(ToNode::Receipts(receipts)) => Delivery::Receipts(receipts.rows),
            Ok(ToNode::Error(error)) => {
                said = Some(format!("{}: {}", error.error, error.message));
                continue;
            }
            Ok(ToNode::FeatureNegotiationResponse(_))
            | Err(BadFrame::UnknownType(_) | BadFrame::Question { .. }) => continue,
            Err(BadFrame::Shape(error)) => {
                mesh.tally.invalid_inbound();
                match inbox::salvage(&text) {
                    Some(delivery) => delivery,
                    None => return LinkEnd::Lost(format!("a frame cannot be read: {error}")),
                }
            }
        };
        if deliveries.send(delivery).await.is_err() {
            return LinkEnd::Storage("the inbox stopped".to_owned());
        }
    }
}

/// A close holds 123 bytes; the frame before it the whole.
fn explained(end: LinkEnd, said: Option<String>) -> LinkEnd {
    match (end, said) {
        (LinkEnd::Closed { code, .. }, Some(reason)) => LinkEnd::Closed { code, reason },
        (end, _) => end,
    }
}
