//! All facts about one id, as they were written with the facts.

use model::{ClientMessageId, DeliveryRung, MemberId, MessageId};
use tokio_postgres::Row;

use super::row::{at, at_option, code, count, id, id_option, member, text};
use super::session::Tx;
use super::{history, sql, status};
use crate::StorageError;
use crate::rules::speaks_of;
use crate::types::explain::{AcceptedFacts, DedupeFacts, DeliveryFacts, Explained, Wanted};

/// A (sender, id) to explain, and its message when that is known already.
struct Found {
    sender: i64,
    client_message_id: ClientMessageId,
    message: Option<MessageId>,
}

pub(super) async fn explain(tx: &Tx, wanted: &Wanted) -> Result<Vec<Explained>, StorageError> {
    let rows = match wanted {
        Wanted::Message(id) => tx.all(sql!("explain_by_message"), &[&id.as_uuid()]).await?,
        Wanted::Client(id) => tx.all(sql!("explain_by_client_id"), &[&id.as_str()]).await?,
    };
    let mut explained = Vec::with_capacity(rows.len());
    for row in &rows {
        let found =
            Found { sender: row.try_get(0)?, client_message_id: text(row, 1)?, message: id_option(row, 2)? };
        explained.push(facts(tx, found).await?);
    }
    Ok(explained)
}

pub(super) async fn rungs(
    tx: &Tx,
    message: MessageId,
) -> Result<Vec<(MemberId, DeliveryRung)>, StorageError> {
    let rows = tx.all(sql!("rungs"), &[&message.as_uuid()]).await?;
    rows.iter().map(|row| Ok((id(row, 0)?, code(row, 1, DeliveryRung::from_code)?))).collect()
}

async fn facts(tx: &Tx, found: Found) -> Result<Explained, StorageError> {
    let Found { sender, client_message_id, message } = found;
    let dedupe = tx.one(sql!("explain_dedupe"), &[&sender, &client_message_id.as_str()]).await?;
    let dedupe = dedupe.as_ref().map(dedupe_facts).transpose()?;
    let dedupe = dedupe.filter(|facts| speaks_of(&facts.known, message));
    let accepted = match message {
        Some(id) => accepted_facts(tx, id).await?,
        None => None,
    };
    let unknown = || StorageError::Broken { what: "a message whose sender is no member".into() };
    let row = tx.one(sql!("member_by_number"), &[&sender]).await?.ok_or_else(unknown)?;
    Ok(Explained { sender: member(&row, 0)?, client_message_id, dedupe, accepted })
}

fn dedupe_facts(row: &Row) -> Result<DedupeFacts, StorageError> {
    Ok(DedupeFacts {
        known: status::read(row, 0)?,
        first_seen_at: at(row, 5)?,
        expires_at: at_option(row, 7)?,
    })
}

async fn accepted_facts(tx: &Tx, id: MessageId) -> Result<Option<AcceptedFacts>, StorageError> {
    let Some(row) = tx.one(sql!("explain_message"), &[&id.as_uuid()]).await? else { return Ok(None) };
    let number: i64 = row.try_get(0)?;
    let deliveries = tx.all(sql!("explain_deliveries"), &[&number]).await?;
    Ok(Some(AcceptedFacts {
        id,
        place: history::place_of(&row, 4)?,
        history_id: count(&row, 1)?,
        accepted_at: at(&row, 2)?,
        deliver_by: at_option(&row, 3)?,
        deliveries: deliveries.iter().map(delivery_facts).collect::<Result<_, _>>()?,
    }))
}

fn delivery_facts(row: &Row) -> Result<DeliveryFacts, StorageError> {
    let rung_told = match row.try_get::<_, Option<i16>>(1)? {
        Some(_) => Some(code(row, 1, DeliveryRung::from_code)?),
        None => None,
    };
    Ok(DeliveryFacts {
        rung: code(row, 0, DeliveryRung::from_code)?,
        rung_told,
        delivered_at: at_option(row, 2)?,
        notified_at: at_option(row, 3)?,
        engaged_at: at_option(row, 4)?,
        processed_at: at_option(row, 5)?,
        ended_at: at_option(row, 6)?,
        ended_code: row.try_get(7)?,
        read_at: at_option(row, 8)?,
        recipient: member(row, 9)?,
    })
}
