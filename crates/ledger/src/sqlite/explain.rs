//! All facts about one id, as they were written with the facts.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::{ClientMessageId, DeliveryRung, MemberId, MessageId};

use super::row::{all, at, at_option, code, count, member, one, text};
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

pub(super) fn explain(conn: &Connection, wanted: &Wanted) -> Result<Vec<Explained>, StorageError> {
    let found = match wanted {
        Wanted::Message(id) => all(conn, sql!("explain_by_message"), [id.as_bytes()], found)?,
        Wanted::Client(id) => all(conn, sql!("explain_by_client_id"), [id.as_str()], found)?,
    };
    found.into_iter().map(|found| facts(conn, found)).collect()
}

pub(super) fn rungs(conn: &Connection, id: MessageId) -> Result<Vec<(MemberId, DeliveryRung)>, StorageError> {
    Ok(all(conn, sql!("rungs"), [id.as_bytes()], |row| {
        Ok((super::row::id(row, 0, MemberId::from_bytes)?, code(row, 1, DeliveryRung::from_code)?))
    })?)
}

fn found(row: &Row<'_>) -> ::sqlite::rusqlite::Result<Found> {
    let message = row.get::<_, Option<[u8; 16]>>(2)?.map(MessageId::from_bytes);
    Ok(Found { sender: row.get(0)?, client_message_id: text(row, 1)?, message })
}

fn facts(conn: &Connection, found: Found) -> Result<Explained, StorageError> {
    let Found { sender, client_message_id, message } = found;
    let dedupe = one(conn, sql!("explain_dedupe"), params![sender, client_message_id.as_str()], |row| {
        Ok(DedupeFacts {
            known: status::read(row, 0)?,
            first_seen_at: at(row, 5)?,
            expires_at: at_option(row, 7)?,
        })
    })?;
    let dedupe = dedupe.filter(|facts| speaks_of(&facts.known, message));
    let accepted = match message {
        Some(id) => one(conn, sql!("explain_message"), [id.as_bytes()], |row| accepted_facts(row, id))?,
        None => None,
    };
    let accepted = match accepted {
        Some((number, accepted)) => {
            let deliveries = all(conn, sql!("explain_deliveries"), [number], delivery_facts)?;
            Some(AcceptedFacts { deliveries, ..accepted })
        }
        None => None,
    };
    let sender = one(conn, sql!("member_by_number"), [sender], |row| member(row, 0))?
        .ok_or_else(|| StorageError::Broken { what: "a message whose sender is no member".into() })?;
    Ok(Explained { sender, client_message_id, dedupe, accepted })
}

fn accepted_facts(row: &Row<'_>, id: MessageId) -> ::sqlite::rusqlite::Result<(i64, AcceptedFacts)> {
    let facts = AcceptedFacts {
        id,
        place: history::place_of(row, 4)?,
        history_id: count(row, 1)?,
        accepted_at: at(row, 2)?,
        deliver_by: at_option(row, 3)?,
        deliveries: Vec::new(),
    };
    Ok((row.get(0)?, facts))
}

fn delivery_facts(row: &Row<'_>) -> ::sqlite::rusqlite::Result<DeliveryFacts> {
    let rung_told = match row.get::<_, Option<i64>>(1)? {
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
        ended_code: row.get(7)?,
        read_at: at_option(row, 8)?,
        recipient: member(row, 9)?,
    })
}
