//! Using a ticket: everything a join consists of, in the one transaction that makes it true.

use model::{MemberId, MemberKind, MemberName, NodeKey, NodeName, Timestamp};
use tokio_postgres::Row;

use super::row::{at, at_option, bytes, code, count, member, small, text, text_option};
use super::session::Tx;
use super::{mesh, sql, wayin};
use crate::rules::person_names;
use crate::types::mesh::{Member, Role, kind_code};
use crate::types::wayin::{Entered, Joined, Link, SecretHash};
use crate::{StorageError, WayInError, WayInRefused};

struct Ticket {
    invite: Option<Vec<u8>>,
    node: NodeName,
    public_key: NodeKey,
    aud: String,
    person: Option<MemberName>,
    expires_at: Timestamp,
    used_at: Option<Timestamp>,
}

/// A node whose ticket is used.
pub(super) struct Inside {
    number: i64,
    pub(super) entered: Entered,
}

/// A node inside its transaction.
struct Node {
    number: i64,
    first_join: bool,
    /// The role the invite gives; a return gives none.
    role: Option<Role>,
}

pub(super) async fn redeem(tx: &Tx, hash: SecretHash, aud: &str) -> Result<Joined, WayInError> {
    let Inside { number, entered: Entered { node, person, first_join } } = enter(tx, hash, aud).await?;
    let row = tx.one(sql!("node_raise_epoch"), &[&number, &tx.now.as_micros()]).await?;
    let epoch = count(&row.ok_or(WayInRefused::UnknownNode)?, 0)?;
    Ok(Joined { link: Link { node, epoch }, person, mesh: mesh::read(tx).await?, first_join, now: tx.now })
}

/// Uses the ticket; the node's link stays what it is.
pub(super) async fn enter(tx: &Tx, hash: SecretHash, aud: &str) -> Result<Inside, WayInError> {
    // Locked: of two users of one ticket the second waits and then reads that it was used.
    let row = tx.one(sql!("ticket_lock"), &[&hash.0.as_slice()]).await?;
    let ticket = usable(row.as_ref().map(read_ticket).transpose()?, aud, tx.now)?;
    tx.change(sql!("ticket_use"), &[&hash.0.as_slice(), &tx.now.as_micros()]).await?;
    let node = match &ticket.invite {
        Some(invite) => join(tx, &ticket, invite).await?,
        None => come_back(tx, &ticket).await?,
    };
    let person = person_of(tx, &node, &ticket).await?;
    let entered = Entered { node: ticket.node, person, first_join: node.first_join };
    Ok(Inside { number: node.number, entered })
}

/// Whose ticket it is; nothing is used.
pub(super) async fn ticket_node(tx: &Tx, hash: SecretHash, aud: &str) -> Result<NodeName, WayInError> {
    let row = tx.one(sql!("ticket"), &[&hash.0.as_slice()]).await?;
    Ok(usable(row.as_ref().map(read_ticket).transpose()?, aud, tx.now)?.node)
}

fn usable(ticket: Option<Ticket>, aud: &str, now: Timestamp) -> Result<Ticket, WayInRefused> {
    match ticket {
        None => Err(WayInRefused::InvalidTicket),
        Some(ticket) if ticket.aud != aud => Err(WayInRefused::InvalidTicket),
        Some(Ticket { used_at: Some(_), .. }) => Err(WayInRefused::TicketAlreadyUsed),
        Some(ticket) if now >= ticket.expires_at => Err(WayInRefused::ExpiredTicket),
        Some(ticket) => Ok(ticket),
    }
}

/// Consumes the invite and registers the node under the key bound to the ticket.
async fn join(tx: &Tx, ticket: &Ticket, invite: &[u8]) -> Result<Node, WayInError> {
    let Some(row) = tx.one(sql!("invite_use"), &[&invite, &tx.now.as_micros()]).await? else {
        // Another ticket of the same invite was faster, or its owner took it back.
        let used = tx.one(sql!("invite_is_used"), &[&invite]).await?;
        let used = used.map_or(Ok(false), |row| row.try_get::<_, bool>(0)).map_err(StorageError::from)?;
        let refused = if used { WayInRefused::TokenAlreadyUsed } else { WayInRefused::InvalidToken };
        return Err(refused.into());
    };
    let role = Some(code(&row, 0, Role::from_code)?);
    if let Some(known) = wayin::check_registration(tx, &ticket.node, &ticket.public_key).await? {
        return Ok(Node { number: known.number, first_join: false, role });
    }
    let key = ticket.public_key.as_bytes().as_slice();
    let made = tx.one(sql!("node_insert"), &[&ticket.node.as_str(), &key, &tx.now.as_micros()]).await?;
    // Two nodes may ask for one name at once, by two invites.
    let made = made.ok_or(WayInRefused::NodeNameTaken)?;
    let number = made.try_get(0).map_err(StorageError::from)?;
    Ok(Node { number, first_join: true, role })
}

async fn come_back(tx: &Tx, ticket: &Ticket) -> Result<Node, WayInError> {
    let known = wayin::live(wayin::node_with_key(tx, &ticket.public_key).await?)?;
    Ok(Node { number: known.number, first_join: false, role: None })
}

/// The node's one person, made under the first free name; a join by an owner's invite makes it an owner.
async fn person_of(tx: &Tx, node: &Node, ticket: &Ticket) -> Result<Member, WayInError> {
    if let Some(role @ Role::Owner) = node.role {
        tx.change(sql!("person_set_role"), &[&node.number, &small(role.code())]).await?;
    }
    if let Some(person) = person_at(tx, node.number).await? {
        return Ok(person);
    }
    let role = small(node.role.unwrap_or(Role::Member).code());
    let kind = small(kind_code(MemberKind::Person));
    for name in person_names(ticket.person.as_ref(), &ticket.node) {
        let id = MemberId::mint(tx.now, tx.entropy()).as_uuid();
        let home = Some(node.number);
        let made = tx
            .change(sql!("member_insert"), &[&id, &name.as_str(), &kind, &home, &role, &tx.now.as_micros()])
            .await?;
        if made == 1 {
            break;
        }
    }
    let lost = || StorageError::Broken { what: "a node whose new person cannot be read back".into() };
    Ok(person_at(tx, node.number).await?.ok_or_else(lost)?)
}

async fn person_at(tx: &Tx, node: i64) -> Result<Option<Member>, StorageError> {
    tx.one(sql!("person_at_node"), &[&node]).await?.map(|row| member(&row, 0)).transpose()
}

fn read_ticket(row: &Row) -> Result<Ticket, StorageError> {
    Ok(Ticket {
        invite: row.try_get(0)?,
        node: text(row, 1)?,
        public_key: NodeKey::from_bytes(bytes(row, 2)?),
        aud: row.try_get(3)?,
        person: text_option(row, 4)?,
        expires_at: at(row, 5)?,
        used_at: at_option(row, 6)?,
    })
}
