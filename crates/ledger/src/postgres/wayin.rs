//! Invites, challenges and exchanges, in the order the handshake promises: invite → expiry → node → (proof,
//! checked by the broker) → nonce with ticket.

use model::limits::{CHALLENGE_TTL, NONCE_KEPT, TICKET_TTL, TICKETS_PER_INVITE_MAX};
use model::{NodeKey, NodeName, Timestamp};
use tokio_postgres::Row;

use super::row::{at, at_option, bytes, code, member, small, text_option};
use super::session::Tx;
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

pub(super) async fn create_invite(tx: &Tx, invite: &NewInvite) -> Result<(), StorageError> {
    let NewInvite { hash, expected_node, role, expires_at } = invite;
    let expected_node = expected_node.as_ref().map(NodeName::as_str);
    let (role, now, expires_at) = (small(role.code()), tx.now.as_micros(), expires_at.as_micros());
    tx.change(sql!("invite_insert"), &[&hash.0.as_slice(), &expected_node, &role, &now, &expires_at]).await?;
    Ok(())
}

pub(super) async fn invites(tx: &Tx) -> Result<Vec<InviteRow>, StorageError> {
    let read = |row: &Row| {
        Ok(InviteRow {
            hash: SecretHash(bytes(row, 0)?),
            expected_node: text_option(row, 1)?,
            role: code(row, 2, Role::from_code)?,
            expires_at: at(row, 3)?,
            used_at: at_option(row, 4)?,
            revoked_at: at_option(row, 5)?,
        })
    };
    tx.all(sql!("invites"), &[]).await?.iter().map(read).collect()
}

pub(super) async fn revoke_invite(tx: &Tx, hash: SecretHash) -> Result<bool, StorageError> {
    Ok(tx.change(sql!("invite_revoke"), &[&hash.0.as_slice(), &tx.now.as_micros()]).await? == 1)
}

/// The invite's part of the order; answers with the role it gives.
pub(super) async fn check_invite(tx: &Tx, hash: SecretHash, node: &NodeName) -> Result<Role, WayInError> {
    let Some(row) = tx.one(sql!("invite"), &[&hash.0.as_slice()]).await? else {
        return Err(WayInRefused::InvalidToken.into());
    };
    let (used_at, revoked_at) = (at_option(&row, 3)?, at_option(&row, 4)?);
    let refused = match (used_at, revoked_at, text_option::<NodeName>(&row, 0)?) {
        (None, Some(_), _) => WayInRefused::InvalidToken,
        (Some(_), _, _) => WayInRefused::TokenAlreadyUsed,
        (None, None, _) if tx.now >= at(&row, 2)? => WayInRefused::ExpiredToken,
        (None, None, Some(expected)) if expected != *node => WayInRefused::NodeMismatch,
        (None, None, _) => return Ok(code(&row, 1, Role::from_code)?),
    };
    Err(refused.into())
}

pub(super) async fn issue_challenge(
    tx: &Tx,
    node: &NodeName,
    hash: SecretHash,
) -> Result<Timestamp, WayInError> {
    let node = live(node_named(tx, node).await?)?;
    let expires_at = (tx.now + CHALLENGE_TTL).as_micros();
    tx.change(sql!("challenge_insert"), &[&hash.0.as_slice(), &node.number, &expires_at]).await?;
    Ok(tx.now)
}

/// The challenge's part of the order; answers with the node's registered key.
pub(super) async fn check_challenge(
    tx: &Tx,
    hash: SecretHash,
    node: &NodeName,
) -> Result<KnownNode, WayInError> {
    let Some(row) = tx.one(sql!("challenge"), &[&hash.0.as_slice()]).await? else {
        return Err(WayInRefused::InvalidToken.into());
    };
    if at_option(&row, 2)?.is_some() {
        return Err(WayInRefused::ReplayDetected.into());
    }
    if tx.now >= at(&row, 1)? {
        return Err(WayInRefused::ExpiredToken.into());
    }
    let known = live(node_named(tx, node).await?)?;
    if known.number != row.try_get::<_, i64>(0).map_err(StorageError::from)? {
        return Err(WayInRefused::NodeMismatch.into());
    }
    Ok(KnownNode { name: node.clone(), public_key: known.public_key })
}

pub(super) async fn exchange(tx: &Tx, asked: &Exchange) -> Result<Exchanged, WayInError> {
    let invite = match asked.by {
        Secret::Invite(hash) => {
            // Locked, so that two exchanges at once cannot both count to the last live ticket.
            tx.one(sql!("invite_lock"), &[&hash.0.as_slice()]).await?;
            check_invite(tx, hash, &asked.node).await?;
            check_registration(tx, &asked.node, &asked.public_key).await?;
            check_live_tickets(tx, hash).await?;
            Some(hash.0.to_vec())
        }
        Secret::Challenge(hash) => {
            let known = check_challenge(tx, hash, &asked.node).await?;
            if known.public_key != asked.public_key {
                return Err(WayInRefused::NodeMismatch.into());
            }
            // Two exchanges may have read it unused; one of them takes it.
            let taken = tx.change(sql!("challenge_use"), &[&hash.0.as_slice(), &tx.now.as_micros()]).await?;
            if taken == 0 {
                return Err(WayInRefused::ReplayDetected.into());
            }
            None
        }
    };
    let until = (tx.now + NONCE_KEPT).as_micros();
    if tx.change(sql!("nonce_claim"), &[&asked.nonce.0.as_slice(), &until]).await? == 0 {
        return Err(WayInRefused::ReplayDetected.into());
    }
    let expires_at = tx.now + TICKET_TTL;
    let person = asked.person.as_ref().map(|name| name.as_str());
    let key = asked.public_key.as_bytes().as_slice();
    tx.change(
        sql!("ticket_insert"),
        &[
            &asked.ticket.0.as_slice(),
            &invite,
            &asked.node.as_str(),
            &key,
            &asked.aud,
            &person,
            &expires_at.as_micros(),
        ],
    )
    .await?;
    Ok(Exchanged { expires_at, person: person_by_key(tx, &asked.public_key).await?, now: tx.now })
}

/// A joining node is new, or the very node that has this name and key already.
pub(super) async fn check_registration(
    tx: &Tx,
    name: &NodeName,
    key: &NodeKey,
) -> Result<Option<NodeRow>, WayInError> {
    match (node_named(tx, name).await?, node_with_key(tx, key).await?) {
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

pub(super) async fn node_with_key(tx: &Tx, key: &NodeKey) -> Result<Option<NodeRow>, StorageError> {
    tx.one(sql!("node_by_key"), &[&key.as_bytes().as_slice()]).await?.as_ref().map(node_row).transpose()
}

async fn node_named(tx: &Tx, name: &NodeName) -> Result<Option<NodeRow>, StorageError> {
    tx.one(sql!("node_by_name"), &[&name.as_str()]).await?.as_ref().map(node_row).transpose()
}

fn node_row(row: &Row) -> Result<NodeRow, StorageError> {
    Ok(NodeRow {
        number: row.try_get(0)?,
        name: row.try_get(1)?,
        public_key: NodeKey::from_bytes(bytes(row, 2)?),
        removed: at_option(row, 3)?.is_some(),
    })
}

async fn check_live_tickets(tx: &Tx, invite: SecretHash) -> Result<(), WayInError> {
    let row = tx.one(sql!("ticket_count_live"), &[&invite.0.as_slice(), &tx.now.as_micros()]).await?;
    let live = row.map_or(Ok(0), |row| super::row::count(&row, 0))?;
    if live >= TICKETS_PER_INVITE_MAX.into() { Err(WayInRefused::RateLimited.into()) } else { Ok(()) }
}

async fn person_by_key(tx: &Tx, key: &NodeKey) -> Result<Option<Member>, StorageError> {
    let row = tx.one(sql!("person_by_key"), &[&key.as_bytes().as_slice()]).await?;
    row.map(|row| member(&row, 0)).transpose()
}
