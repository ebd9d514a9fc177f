//! The two windows of a link at work: read what is not acknowledged and not out, push it, wait for a wake, an ack or
//! the safety poll, read again. Catch-up and live are one path.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ledger::{LinkError, Nack};
use model::limits;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use wire::link;

use super::end::End;
use super::frames::frames;
use super::session::Ctx;
use super::window::{DeliveryKey, Window};
use crate::message;

/// A window that the pusher fills and acks empty.
pub(crate) struct Pushed {
    window: Mutex<Window>,
    released: Notify,
    opened_at: Instant,
}

/// What a window carries.
#[async_trait]
pub(crate) trait Cargo {
    /// The window of this cargo.
    fn window(ctx: &Ctx) -> &Pushed;

    /// The next rows as frames, with the keys they carry.
    async fn read(ctx: &Ctx, unacked: &[DeliveryKey], limit: usize) -> Result<Batch, LinkError>;
}

/// Messages for members at home on the node.
pub(crate) struct Mail;

/// Rungs of messages that members at home on the node sent.
pub(crate) struct Receipts;

/// Rows ready to go.
#[derive(Default)]
pub(crate) struct Batch {
    keys: Vec<DeliveryKey>,
    frames: Vec<String>,
}

/// Pushes until the link must end.
pub(crate) async fn push<C: Cargo>(ctx: &Ctx) -> End {
    let pushed = C::window(ctx);
    let mut stirred = ctx.shared.ledger.stirred();
    let mut quiet_until = Instant::now();
    loop {
        // Before the read: what was committed by now will be seen by it.
        stirred.mark_unchanged();
        let (room, unacked) = pushed.state();
        if room > 0 {
            let limit = room.min(limits::FRAME_MESSAGES_MAX);
            let batch = match C::read(ctx, &unacked, limit).await {
                Ok(batch) => batch,
                Err(error) => return ctx.link_end(&error),
            };
            let full = batch.keys.len() == limit;
            if batch.keys.is_empty() {
                quiet_until = Instant::now() + limits::QUIET_READ_PAUSE;
            }
            pushed.push(&batch.keys);
            for frame in batch.frames {
                ctx.say_text(frame).await;
            }
            if full {
                continue;
            }
        }
        let poll_at = Instant::now() + limits::SAFETY_POLL_EVERY;
        tokio::select! {
            // A full window reads nothing, so commits need not wake it.
            changed = stirred.changed(), if room > 0 => {
                if changed.is_err() {
                    return End::Unavailable;
                }
            }
            () = pushed.released.notified() => {}
            () = sleep_until(poll_at) => {}
        }
        if pushed.is_stalled() {
            return End::Stalled;
        }
        // Commits of others come in thousands a second; a node that got nothing from the last read can wait for
        // several of them together.
        sleep_until(quiet_until).await;
    }
}

impl Pushed {
    pub(crate) fn new() -> Self {
        Self { window: Mutex::new(Window::new()), released: Notify::new(), opened_at: Instant::now() }
    }

    /// Makes room for what was acknowledged.
    pub(crate) fn release(&self, keys: impl IntoIterator<Item = DeliveryKey>) {
        self.lock().release(keys);
        self.released.notify_one();
    }

    fn state(&self) -> (usize, Vec<DeliveryKey>) {
        let window = self.lock();
        (window.room(), window.unacked())
    }

    /// Entered before the frames go out: an ack may be back before the last of them is written.
    fn push(&self, keys: &[DeliveryKey]) {
        let now = self.opened_at.elapsed();
        let mut window = self.lock();
        keys.iter().for_each(|key| window.push(*key, now));
    }

    fn is_stalled(&self) -> bool {
        self.lock().stalls_at().is_some_and(|stalls_at| self.opened_at.elapsed() >= stalls_at)
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Cargo for Mail {
    fn window(ctx: &Ctx) -> &Pushed {
        &ctx.mail
    }

    async fn read(ctx: &Ctx, unacked: &[DeliveryKey], limit: usize) -> Result<Batch, LinkError> {
        let rows = ctx.shared.ledger.mail(&ctx.link, unacked, limit).await?;
        let mut batch = Batch::default();
        let (mut mail, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in &rows {
            match message::of_mail(row) {
                Ok(message) => mail.push(link::MailRow {
                    recipient: row.recipient,
                    sender_id: row.sender,
                    deliver_by: row.deliver_by,
                    read_at: row.read_at,
                    again: row.again,
                    message,
                }),
                Err(error) => {
                    tracing::error!(id = %row.id, %error, "a stored envelope cannot be read; its row is given up");
                    unreadable.push(Nack {
                        id: row.id,
                        recipient: row.recipient,
                        code: "unreadable".to_owned(),
                    });
                }
            }
        }
        if !unreadable.is_empty() {
            ctx.shared.ledger.nack(&ctx.link, unreadable).await?;
        }
        batch.keys = mail.iter().map(|row| (row.message.id, row.recipient)).collect();
        batch.frames = frames("mail", &mail);
        Ok(batch)
    }
}

#[async_trait]
impl Cargo for Receipts {
    fn window(ctx: &Ctx) -> &Pushed {
        &ctx.receipts
    }

    async fn read(ctx: &Ctx, unacked: &[DeliveryKey], limit: usize) -> Result<Batch, LinkError> {
        let rows = ctx.shared.ledger.receipts(&ctx.link, unacked, limit).await?;
        let rows: Vec<_> = rows.into_iter().map(receipt_row).collect();
        let keys = rows.iter().map(|row| (row.row.id, row.row.recipient)).collect();
        Ok(Batch { keys, frames: frames("receipts", &rows) })
    }
}

fn receipt_row(row: ledger::ReceiptRow) -> link::ReceiptRow {
    link::ReceiptRow {
        row: link::AckRef { id: row.id, recipient: row.recipient, rung: row.rung },
        sender: row.sender,
        client_message_id: row.client_message_id,
        at: row.at,
        ended_code: row.ended_code,
    }
}
