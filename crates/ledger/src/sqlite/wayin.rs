//! Invites, challenges and exchanges, in the order the handshake promises: invite → expiry → node → (proof,
//! checked by the broker) → nonce with ticket.

use ::sqlite::rusqlite::{Connection, params};
use model::limits::{CHALLENGE_TTL, NONCE_KEPT, TICKET_TTL, TICKETS_PER_INVITE_MAX};
use model::{NodeKey, NodeName, Timestamp};

use super::row::{all, at, at_option, change, code, member, one, text_option};
use super::sql;
use crate::types::mesh::{Member, Role};
use crate::types::wayin::{Exchange, Exchanged, InviteRow, KnownNode, NewInvite, Secret, SecretHash};
use crate::{StorageError, WayInError, WayInRefused};

/// A registered node.
pub(super) struct NodeRow {
    pub number: i64,
    pub name: String,
    pub public_key: NodeKey,
    pub removed: bool,
}

pub(super) fn create_invite(
    conn: &Connection,
    now: Timestamp,
    invite: &NewInvite,
) -> Result<(), StorageError> {
    let NewInvite { hash, expected_node, role, expires_at } = invite;
    let expected_node = expected_node.as_ref().map(NodeName::as_str);
    let params = params![hash.0, expected_node, role.code(), now.as_micros(), expires_at.as_micros()];
    change(conn, sql!("invite_insert"), params)?;
    Ok(())
}

pub(super) fn invites(conn: &Connection) -> Result<Vec<InviteRow>, StorageError> {
    Ok(all(conn, sql!("invites"), [], |row| {
        Ok(InviteRow {
            hash: SecretHash(row.get(0)?),
            expected_node: text_option(row, 1)?,
            role: code(row, 2, Role::from_code)?,
            expires_at: at(row, 3)?,
            used_at: at_option(row, 4)?,
            revoked_at: at_option(row, 5)?,
        })
    })?)
}

pub(super) fn revoke_invite(
    conn: &Connection,
    now: Timestamp,
    hash: SecretHash,
) -> Result<bool, StorageError> {
    Ok(change(conn, sql!("invite_revoke"), params![hash.0, now.as_micros()])? == 1)
}

/// The invite's part of the order; answers with the role it gives.
pub(super) fn check_invite(
    conn: &Connection,
    now: Timestamp,
    hash: SecretHash,
    node: &NodeName,
) -> Result<Role, WayInError> {
    let found = one(conn, sql!("invite"), [hash.0], |row| {
        Ok((
            text_option::<NodeName>(row, 0)?,
            code(row, 1, Role::from_code)?,
            at(row, 2)?,
            at_option(row, 3)?,
            at_option(row, 4)?,
        ))
    })?;
    let refused = match found {
        None | Some((_, _, _, None, Some(_))) => WayInRefused::InvalidToken,
        Some((_, _, _, Some(_), _)) => WayInRefused::TokenAlreadyUsed,
        Some((_, _, expires_at, ..)) if now >= expires_at => WayInRefused::ExpiredToken,
        Some((Some(expected), ..)) if expected != *node => WayInRefused::NodeMismatch,
        Some((_, role, ..)) => return Ok(role),
    };
    Err(refused.into())
}

pub(super) fn issue_challenge(
    conn: &Connection,
    now: Timestamp,
    node: &NodeName,
    hash: SecretHash,
) -> Result<Timestamp, WayInError> {
    let node = live(node_named(conn, node)?)?;
    let expires_at = now + CHALLENGE_TTL;
    change(conn, sql!("challenge_insert"), params![hash.0, node.number, expires_at.as_micros()])?;
    Ok(now)
}

/// The challenge's part of the order; answers with the node's registered key.
pub(super) fn check_challenge(
    conn: &Connection,
    now: Timestamp,
    hash: SecretHash,
    node: &NodeName,
) -> Result<KnownNode, WayInError> {
    let found = one(conn, sql!("challenge"), [hash.0], |row| {
        Ok((row.get::<_, i64>(0)?, at(row, 1)?, at_option(row, 2)?))
    })?;
    let of = match found {
        None => return Err(WayInRefused::InvalidToken.into()),
        Some((_, _, Some(_))) => return Err(WayInRefused::ReplayDetected.into()),
        Some((_, expires_at, None)) if now >= expires_at => return Err(WayInRefused::ExpiredToken.into()),
        Some((of, _, None)) => of,
    };
    let known = live(node_named(conn, node)?)?;
    if known.number != of {
        return Err(WayInRefused::NodeMismatch.into());
    }
    Ok(KnownNode { name: node.clone(), public_key: known.public_key })
}

pub(super) fn exchange(conn: &Connection, now: Timestamp, asked: &Exchange) -> Result<Exchanged, WayInError> {
    let invite = match asked.by {
        Secret::Invite(hash) => {
            check_invite(conn, now, hash, &asked.node)?;
            check_registration(conn, &asked.node, &asked.public_key)?;
            check_live_tickets(conn, now, hash)?;
            Some(hash.0)
        }
        Secret::Challenge(hash) => {
            let known = check_challenge(conn, now, hash, &asked.node)?;
            if known.public_key != asked.public_key {
                return Err(WayInRefused::NodeMismatch.into());
            }
            change(conn, sql!("challenge_use"), params![hash.0, now.as_micros()])?;
            None
        }
    };
    let until = now + NONCE_KEPT;
    if change(conn, sql!("nonce_claim"), params![asked.nonce.0, until.as_micros()])? == 0 {
        return Err(WayInRefused::ReplayDetected.into());
    }
    let expires_at = now + TICKET_TTL;
    change(
        conn,
        sql!("ticket_insert"),
        params![
            asked.ticket.0,
            invite,
            asked.node.as_str(),
            asked.public_key.as_bytes(),
            asked.aud,
            asked.person.as_ref().map(|name| name.as_str()),
            expires_at.as_micros()
        ],
    )?;
    Ok(Exchanged { expires_at, person: person_by_key(conn, &asked.public_key)?, now })
}

/// A joining node is new, or the very node that has this name and key already.
pub(super) fn check_registration(
    conn: &Connection,
    name: &NodeName,
    key: &NodeKey,
) -> Result<Option<NodeRow>, WayInError> {
    match (node_named(conn, name)?, node_with_key(conn, key)?) {
        (None, None) => Ok(None),
        (_, Some(known)) if known.removed => Err(WayInRefused::Revoked.into()),
        (_, Some(known)) if known.name == name.as_str() => Ok(Some(known)),
        (_, Some(_)) => Err(WayInRefused::NodeMismatch.into()),
        (Some(_), None) => Err(WayInRefused::NodeNameTaken.into()),
    }
}

/// The node, unless it is unknown or was removed.
pub(super) fn live(node: Option<NodeRow>) -> Result<NodeRow, WayInRefused> {
    match node {
        None => Err(WayInRefused::UnknownNode),
        Some(NodeRow { removed: true, .. }) => Err(WayInRefused::Revoked),
        Some(node) => Ok(node),
    }
}

pub(super) fn node_with_key(conn: &Connection, key: &NodeKey) -> Result<Option<NodeRow>, StorageError> {
    Ok(one(conn, sql!("node_by_key"), [key.as_bytes()], node_row)?)
}

fn node_named(conn: &Connection, name: &NodeName) -> Result<Option<NodeRow>, StorageError> {
    Ok(one(conn, sql!("node_by_name"), [name.as_str()], node_row)?)
}

fn node_row(row: &::sqlite::rusqlite::Row<'_>) -> ::sqlite::rusqlite::Result<NodeRow> {
    Ok(NodeRow {
        number: row.get(0)?,
        name: row.get(1)?,
        public_key: NodeKey::from_bytes(row.get(2)?),
        removed: at_option(row, 3)?.is_some(),
    })
}

fn check_live_tickets(conn: &Connection, now: Timestamp, invite: SecretHash) -> Result<(), WayInError> {
    let live: u32 = conn
        .prepare_cached(sql!("ticket_count_live"))?
        .query_row(params![invite.0, now.as_micros()], |row| row.get(0))?;
    if live >= TICKETS_PER_INVITE_MAX { Err(WayInRefused::RateLimited.into()) } else { Ok(()) }
}

fn person_by_key(conn: &Connection, key: &NodeKey) -> Result<Option<Member>, StorageError> {
    Ok(one(conn, sql!("person_by_key"), [key.as_bytes()], |row| member(row, 0))?)
}
