//! Using a ticket: everything a join consists of, in the one transaction that makes it true.

use ::sqlite::rusqlite::{Connection, params};
use model::{MemberId, MemberKind, MemberName, NodeKey, NodeName, Timestamp};

use super::row::{at, at_option, change, code, member, one, text, text_option};
use super::store::World;
use super::{mesh, sql, wayin};
use crate::rules::person_names;
use crate::types::mesh::{Member, Role, kind_code};
use crate::types::wayin::{Entered, Joined, Link, SecretHash};
use crate::{StorageError, WayInError, WayInRefused};

struct Ticket {
    invite: Option<[u8; 32]>,
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
    now: Timestamp,
}

/// A node inside its transaction.
struct Node {
    number: i64,
    first_join: bool,
    /// The role the invite gives; a return gives none.
    role: Option<Role>,
}

pub(super) fn redeem(
    conn: &Connection,
    world: &World,
    hash: SecretHash,
    aud: &str,
) -> Result<Joined, WayInError> {
    let Inside { number, entered: Entered { node, person, first_join }, now } =
        enter(conn, world, hash, aud)?;
    let epoch = conn
        .prepare_cached(sql!("node_raise_epoch"))?
        .query_row(params![number, now.as_micros()], |row| super::row::count(row, 0))?;
    Ok(Joined { link: Link { node, epoch }, person, mesh: mesh::read(conn)?, first_join, now })
}

/// Uses the ticket; the node's link stays what it is.
pub(super) fn enter(
    conn: &Connection,
    world: &World,
    hash: SecretHash,
    aud: &str,
) -> Result<Inside, WayInError> {
    let now = world.now();
    let ticket = usable(one(conn, sql!("ticket"), [hash.0], read_ticket)?, aud, now)?;
    change(conn, sql!("ticket_use"), params![hash.0, now.as_micros()])?;
    let node = match ticket.invite {
        Some(invite) => join(conn, now, &ticket, invite)?,
        None => come_back(conn, &ticket)?,
    };
    let person = person_of(conn, world, &node, &ticket)?;
    let entered = Entered { node: ticket.node, person, first_join: node.first_join };
    Ok(Inside { number: node.number, entered, now })
}

/// Whose ticket it is; nothing is used.
pub(super) fn ticket_node(
    conn: &Connection,
    now: Timestamp,
    hash: SecretHash,
    aud: &str,
) -> Result<NodeName, WayInError> {
    let ticket = usable(one(conn, sql!("ticket"), [hash.0], read_ticket)?, aud, now)?;
    Ok(ticket.node)
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
fn join(conn: &Connection, now: Timestamp, ticket: &Ticket, invite: [u8; 32]) -> Result<Node, WayInError> {
    let Some(role) =
        one(conn, sql!("invite_use"), params![invite, now.as_micros()], |row| code(row, 0, Role::from_code))?
    else {
        // Another ticket of the same invite was faster, or its owner took it back.
        let used = one(conn, sql!("invite_is_used"), [invite], |row| row.get::<_, bool>(0))?;
        return Err(match used {
            Some(true) => WayInRefused::TokenAlreadyUsed,
            Some(false) | None => WayInRefused::InvalidToken,
        }
        .into());
    };
    if let Some(known) = wayin::check_registration(conn, &ticket.node, &ticket.public_key)? {
        return Ok(Node { number: known.number, first_join: false, role: Some(role) });
    }
    let params = params![ticket.node.as_str(), ticket.public_key.as_bytes(), now.as_micros()];
    change(conn, sql!("node_insert"), params)?;
    Ok(Node { number: conn.last_insert_rowid(), first_join: true, role: Some(role) })
}

fn come_back(conn: &Connection, ticket: &Ticket) -> Result<Node, WayInError> {
    let known = wayin::live(wayin::node_with_key(conn, &ticket.public_key)?)?;
    Ok(Node { number: known.number, first_join: false, role: None })
}

/// The node's one person, made under the first free name; a join by an owner's invite makes it an owner.
fn person_of(conn: &Connection, world: &World, node: &Node, ticket: &Ticket) -> Result<Member, WayInError> {
    if let Some(role @ Role::Owner) = node.role {
        change(conn, sql!("person_set_role"), params![node.number, role.code()])?;
    }
    if let Some(person) = person_at(conn, node.number)? {
        return Ok(person);
    }
    let now = world.now();
    for name in person_names(ticket.person.as_ref(), &ticket.node) {
        let id = MemberId::mint(now, &*world.entropy);
        let role = node.role.unwrap_or(Role::Member).code();
        let kind = kind_code(MemberKind::Person);
        let params = params![id.as_bytes(), name.as_str(), kind, node.number, role, now.as_micros()];
        if change(conn, sql!("member_insert"), params)? == 1 {
            break;
        }
    }
    person_at(conn, node.number)?.ok_or_else(|| WayInError::Storage(lost_person()))
}

fn lost_person() -> StorageError {
    StorageError::Broken { what: "a node whose new person cannot be read back".into() }
}

fn person_at(conn: &Connection, node: i64) -> Result<Option<Member>, StorageError> {
    Ok(one(conn, sql!("person_at_node"), [node], |row| member(row, 0))?)
}

fn read_ticket(row: &::sqlite::rusqlite::Row<'_>) -> ::sqlite::rusqlite::Result<Ticket> {
    Ok(Ticket {
        invite: row.get(0)?,
        node: text(row, 1)?,
        public_key: NodeKey::from_bytes(row.get(2)?),
        aud: row.get(3)?,
        person: text_option(row, 4)?,
        expires_at: at(row, 5)?,
        used_at: at_option(row, 6)?,
    })
}
