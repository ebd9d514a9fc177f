//! A link's epoch, and what is said when it opens.

use model::MemberId;

use super::row::{at_option, count, id, member, small};
use super::session::Tx;
use super::{mesh, received, sql, status};
use crate::rules::{InboxFile, Speaker, Testimony, borne_out, fenced, plain};
use crate::types::accept::Via;
use crate::types::mesh::{Role, kind_code};
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

/// The node behind a link, unless the link is fenced. Part of every transaction a link asks for. In a writing
/// one the row is locked, so that a newer link opens before it or after it and never in between.
pub(super) async fn check(tx: &Tx, link: &Link) -> Result<LinkNode, LinkError> {
    let row = tx.one(sql!("node_link"), &[&link.node.as_str()]).await?;
    let row = row.ok_or(LinkRefused::UnknownNode)?;
    fenced(count(&row, 1)?, at_option(&row, 4)?.is_some(), link)?;
    let node = || -> Result<LinkNode, StorageError> {
        let went_back = match at_option(&row, 6)? {
            Some(noticed_at) => {
                Some(InboxWentBack { noticed_at, from: count(&row, 7)?, to: count(&row, 8)?, left: 0 })
            }
            None => None,
        };
        Ok(LinkNode {
            number: row.try_get(0)?,
            redelivered_upto: row.try_get(2)?,
            inbox_epoch: row.try_get(3)?,
            received_upto: count(&row, 5)?,
            went_back,
        })
    };
    Ok(node()?)
}

/// [`check`] in a writing transaction.
pub(super) async fn check_locked(tx: &Tx, link: &Link) -> Result<LinkNode, LinkError> {
    tx.one(sql!("node_lock"), &[&link.node.as_str()]).await?;
    check(tx, link).await
}

/// Who speaks in a writing transaction, with the link checked.
pub(super) async fn speaker(tx: &Tx, via: &Via) -> Result<Speaker, LinkError> {
    match via {
        Via::Link(link) => Ok(Speaker::Node(check_locked(tx, link).await?.number)),
        Via::Broker => Ok(Speaker::Broker),
    }
}

pub(super) async fn open(tx: &Tx, opening: &LinkOpening) -> Result<LinkOpened, LinkError> {
    let node = check_locked(tx, &opening.link).await?;
    let epoch = plain(&opening.inbox_epoch);
    let file = InboxFile::of(node.inbox_epoch.as_deref(), &epoch, opening.inbox_epoch_before.as_deref());
    note_inbox(tx, &node, &epoch, file).await?;
    let inbox_went_back = received::note_inbox(tx, &node, file, opening.received).await?;
    for listed in &opening.members {
        restore_member(tx, node.number, listed).await?;
    }
    let mut testimony = Testimony::default();
    for witness in &opening.done {
        testimony = testimony.heard(witness, holds(tx, witness).await?);
    }
    let ledger_went_back = received::note_books(tx, &testimony, opening.link.node.as_str()).await?;
    let rows = tx.all(sql!("members_at_node"), &[&node.number]).await?;
    let members = rows.iter().map(|row| member(row, 0)).collect::<Result<_, _>>()?;
    let (restored, mesh) = (testimony.is_missing, mesh::read(tx).await?);
    Ok(LinkOpened { restored, members, mesh, now: tx.now, inbox_went_back, ledger_went_back })
}

/// Another inbox than last time: whatever was accepted until now may be seen twice by the node.
async fn note_inbox(tx: &Tx, node: &LinkNode, epoch: &str, file: InboxFile) -> Result<(), StorageError> {
    let upto = match file {
        InboxFile::Restored | InboxFile::Another => {
            let last = tx.one(sql!("message_last_number"), &[]).await?;
            last.map_or(Ok(0), |row| row.try_get(0))?
        }
        InboxFile::Same => node.redelivered_upto,
    };
    tx.change(sql!("node_seen"), &[&node.number, &epoch, &upto, &tx.now.as_micros()]).await?;
    Ok(())
}

/// Gives a restored ledger a member back. The home says which id its member has; a name that lives
/// elsewhere by now stays there.
async fn restore_member(tx: &Tx, node: i64, listed: &LinkMember) -> Result<(), StorageError> {
    let id = listed.id.as_uuid();
    if tx.one(sql!("member_facts_by_id"), &[&id]).await?.is_some() {
        return Ok(());
    }
    let (name, kind) = (listed.name.as_str(), small(kind_code(listed.kind)));
    if tx.change(sql!("member_set_id"), &[&id, &name, &kind, &node]).await? == 1 {
        return Ok(());
    }
    let role = small(Role::Member.code());
    tx.change(sql!("member_insert"), &[&id, &name, &kind, &Some(node), &role, &tx.now.as_micros()]).await?;
    Ok(())
}

async fn holds(tx: &Tx, witness: &Witness) -> Result<bool, StorageError> {
    let known = status::known_of(tx, witness.sender, &witness.client_message_id).await?;
    Ok(borne_out(known.as_ref(), witness))
}

/// Members at home at a node: number and id.
pub(super) async fn at_home(tx: &Tx, node: i64) -> Result<Vec<(i64, MemberId)>, StorageError> {
    let rows = tx.all(sql!("members_at_node_ids"), &[&node]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, id(row, 1)?))).collect()
}
