//! A link's epoch, and what is said when it opens.

use ::sqlite::rusqlite::{Connection, params};
use model::Timestamp;

use super::row::{all, at_option, change, count, id, member, one};
use super::store::World;
use super::{mesh, received, sql, status};
use crate::rules::{InboxFile, Speaker, Testimony, borne_out, plain};
use crate::types::accept::Via;
use crate::types::mesh::kind_code;
use crate::types::wayin::{InboxWentBack, Link, LinkMember, LinkOpened, LinkOpening, Witness};
use crate::{LinkError, LinkRefused, StorageError};

/// A link's node, as its transactions need it.
pub(super) struct LinkNode {
    pub number: i64,
    /// Messages up to this number may have been in an inbox that was lost.
    pub redelivered_upto: i64,
    pub inbox_epoch: Option<String>,
    /// The highest place of its inbox that it told.
    pub received_upto: u64,
    /// The last time its inbox was found older than it had been; how much is left to send is not looked up.
    pub went_back: Option<InboxWentBack>,
}

/// The node behind a link, unless the link is fenced. Part of every transaction a link asks for.
pub(super) fn check(conn: &Connection, link: &Link) -> Result<LinkNode, LinkError> {
    let found = one(conn, sql!("node_link"), [link.node.as_str()], |row| {
        let went_back = match at_option(row, 6)? {
            Some(noticed_at) => {
                Some(InboxWentBack { noticed_at, from: count(row, 7)?, to: count(row, 8)?, left: 0 })
            }
            None => None,
        };
        let node = LinkNode {
            number: row.get(0)?,
            redelivered_upto: row.get(2)?,
            inbox_epoch: row.get(3)?,
            received_upto: count(row, 5)?,
            went_back,
        };
        Ok((node, count(row, 1)?, at_option(row, 4)?))
    })?;
    match found {
        None => Err(LinkRefused::UnknownNode.into()),
        Some((_, _, Some(_))) => Err(LinkRefused::Revoked.into()),
        Some((_, epoch, None)) if epoch != link.epoch => Err(LinkRefused::Replaced.into()),
        Some((node, _, None)) => Ok(node),
    }
}

/// Who speaks, with the link checked.
pub(super) fn speaker(conn: &Connection, via: &Via) -> Result<Speaker, LinkError> {
    match via {
        Via::Link(link) => Ok(Speaker::Node(check(conn, link)?.number)),
        Via::Broker => Ok(Speaker::Broker),
    }
}

pub(super) fn open(conn: &Connection, world: &World, opening: &LinkOpening) -> Result<LinkOpened, LinkError> {
    let (node, now) = (check(conn, &opening.link)?, world.now());
    let epoch = plain(&opening.inbox_epoch);
    let file = InboxFile::of(node.inbox_epoch.as_deref(), &epoch, opening.inbox_epoch_before.as_deref());
    note_inbox(conn, now, &node, &epoch, file)?;
    let inbox_went_back = received::note_inbox(conn, now, &node, file, opening.received)?;
    for listed in &opening.members {
        restore_member(conn, now, node.number, listed)?;
    }
    let mut testimony = Testimony::default();
    for witness in &opening.done {
        testimony = testimony.heard(witness, holds(conn, witness)?);
    }
    let ledger_went_back = received::note_books(conn, world, &testimony, opening.link.node.as_str())?;
    let members = all(conn, sql!("members_at_node"), [node.number], |row| member(row, 0))?;
    let (restored, mesh) = (testimony.is_missing, mesh::read(conn)?);
    Ok(LinkOpened { restored, members, mesh, now, inbox_went_back, ledger_went_back })
}

/// Another inbox than last time: whatever was accepted until now may be seen twice by the node.
fn note_inbox(
    conn: &Connection,
    now: Timestamp,
    node: &LinkNode,
    epoch: &str,
    file: InboxFile,
) -> Result<(), StorageError> {
    let upto = match file {
        InboxFile::Restored | InboxFile::Another => {
            one(conn, sql!("message_last_number"), [], |row| row.get(0))?.unwrap_or(0)
        }
        InboxFile::Same => node.redelivered_upto,
    };
    change(conn, sql!("node_seen"), params![node.number, epoch, upto, now.as_micros()])?;
    Ok(())
}

/// Gives a restored ledger a member back. The home says which id its member has; a name that lives
/// elsewhere by now stays there.
fn restore_member(
    conn: &Connection,
    now: Timestamp,
    node: i64,
    listed: &LinkMember,
) -> Result<(), StorageError> {
    if one(conn, sql!("member_facts_by_id"), [listed.id.as_bytes()], |_| Ok(()))?.is_some() {
        return Ok(());
    }
    let renamed = params![listed.id.as_bytes(), listed.name.as_str(), kind_code(listed.kind), node];
    if change(conn, sql!("member_set_id"), renamed)? == 1 {
        return Ok(());
    }
    let role = crate::Role::Member.code();
    let fresh = params![
        listed.id.as_bytes(),
        listed.name.as_str(),
        kind_code(listed.kind),
        node,
        role,
        now.as_micros()
    ];
    change(conn, sql!("member_insert"), fresh)?;
    Ok(())
}

fn holds(conn: &Connection, witness: &Witness) -> Result<bool, StorageError> {
    let known = status::known_of(conn, witness.sender, &witness.client_message_id)?;
    Ok(borne_out(known.as_ref(), witness))
}

/// Members at home at a node: number and id.
pub(super) fn at_home(conn: &Connection, node: i64) -> Result<Vec<(i64, model::MemberId)>, StorageError> {
    Ok(all(conn, sql!("members_at_node_ids"), [node], |row| {
        Ok((row.get(0)?, id(row, 1, model::MemberId::from_bytes)?))
    })?)
}
