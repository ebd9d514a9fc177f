//! Members, topics and conversations, as their owners change them.

use ::sqlite::rusqlite::{Connection, params};
use model::{ConversationId, MemberId, MemberKind, MemberName, Timestamp, TopicName};

use super::row::{all, change, one};
use super::store::World;
use super::{accept, link, list, sql, webhook};
use crate::rules::MemberFacts;
use crate::types::manage::Registered;
use crate::types::mesh::{Member, Role, kind_code};
use crate::types::read::{ConversationState, TopicRow};
use crate::types::wayin::Link;
use crate::{LinkError, ManageError, StorageError};

pub(super) fn register(
    conn: &Connection,
    world: &World,
    link: &Link,
    name: &MemberName,
    kind: MemberKind,
) -> Result<Registered, ManageError> {
    let node = link::check(conn, link).map_err(|error| match error {
        LinkError::Refused(refused) => ManageError::Link(refused),
        LinkError::Storage(error) => ManageError::Storage(error),
    })?;
    place(conn, world, name, kind, Some(node.number))
}

pub(super) fn host(
    conn: &Connection,
    world: &World,
    name: &MemberName,
    kind: MemberKind,
) -> Result<Registered, ManageError> {
    place(conn, world, name, kind, None)
}

/// A name is one member's for ever; only its own home may ask for it again.
fn place(
    conn: &Connection,
    world: &World,
    name: &MemberName,
    kind: MemberKind,
    home: Option<i64>,
) -> Result<Registered, ManageError> {
    let now = world.now();
    let id = MemberId::mint(now, &*world.entropy);
    let role = Role::Member.code();
    let params = params![id.as_bytes(), name.as_str(), kind_code(kind), home, role, now.as_micros()];
    if change(conn, sql!("member_insert"), params)? == 1 {
        return Ok(Registered::New(named(conn, name)?));
    }
    let member = named(conn, name)?;
    match accept::member_by_name(conn, name)? {
        Some(facts) if facts.home == home && !facts.removed && member.kind == kind => {
            Ok(Registered::Known(member))
        }
        Some(_) | None => Err(ManageError::NameTaken(name.clone())),
    }
}

pub(super) fn remove(conn: &Connection, now: Timestamp, name: &MemberName) -> Result<(), ManageError> {
    let facts = accept::member_by_name(conn, name)?.filter(|member| !member.removed);
    let facts = facts.ok_or_else(|| ManageError::MemberNotFound(name.to_string()))?;
    let member = named(conn, name)?;
    if member.role == Role::Owner && other_owners(conn, &facts)? == 0 {
        return Err(ManageError::LastOwner(name.clone()));
    }
    let going = match (member.kind, facts.home) {
        // Without its person a node has no address and nobody to answer for it.
        (MemberKind::Person, Some(node)) => {
            change(conn, sql!("node_remove"), params![node, now.as_micros()])?;
            link::at_home(conn, node)?.into_iter().map(|(number, _)| number).collect()
        }
        (MemberKind::Person | MemberKind::Agent | MemberKind::Service, _) => vec![facts.number],
    };
    for number in going {
        change(conn, sql!("member_remove"), params![number, now.as_micros()])?;
        change(conn, sql!("subscription_delete_all"), [number])?;
        change(conn, sql!("token_revoke_all"), params![number, now.as_micros()])?;
        webhook::forget(conn, number)?;
    }
    Ok(())
}

fn other_owners(conn: &Connection, member: &MemberFacts) -> Result<usize, StorageError> {
    let owners =
        all(conn, sql!("member_numbers_with_role"), [Role::Owner.code()], |row| row.get::<_, i64>(0))?;
    Ok(owners.into_iter().filter(|number| *number != member.number).count())
}

pub(super) fn create_topic(
    conn: &Connection,
    world: &World,
    creator: MemberId,
    topic: &TopicName,
) -> Result<TopicRow, ManageError> {
    let creator_facts = live(conn, creator)?;
    if accept::topic(conn, topic)?.is_none() {
        let log = accept::create_topic(conn, world, topic)?;
        accept::subscribe(conn, world.now(), log.number, creator_facts.number)?;
    }
    list::topic(conn, creator, topic)?.ok_or_else(|| ManageError::TopicNotFound(topic.clone()))
}

pub(super) fn subscribe(
    conn: &Connection,
    now: Timestamp,
    member: MemberId,
    topic: &TopicName,
) -> Result<(), ManageError> {
    let member = live(conn, member)?;
    let log = accept::topic(conn, topic)?.ok_or_else(|| ManageError::TopicNotFound(topic.clone()))?;
    Ok(accept::subscribe(conn, now, log.number, member.number)?)
}

pub(super) fn unsubscribe(conn: &Connection, member: MemberId, topic: &TopicName) -> Result<(), ManageError> {
    let member = live(conn, member)?;
    let log = accept::topic(conn, topic)?.ok_or_else(|| ManageError::TopicNotFound(topic.clone()))?;
    change(conn, sql!("subscription_delete"), params![log.number, member.number])?;
    Ok(())
}

pub(super) fn set_state(
    conn: &Connection,
    id: ConversationId,
    state: ConversationState,
) -> Result<(), ManageError> {
    match change(conn, sql!("conversation_set_state"), params![id.as_bytes(), state.code()])? {
        0 => Err(ManageError::ConversationNotFound),
        _ => Ok(()),
    }
}

/// A member that was not removed.
pub(super) fn live(conn: &Connection, id: MemberId) -> Result<MemberFacts, ManageError> {
    let found = accept::member_by_id(conn, id)?.filter(|member| !member.removed);
    found.ok_or_else(|| ManageError::MemberNotFound(id.to_string()))
}

fn named(conn: &Connection, name: &MemberName) -> Result<Member, ManageError> {
    let found = one(conn, sql!("member_by_name"), [name.as_str()], |row| super::row::member(row, 0))?;
    found.ok_or_else(|| ManageError::MemberNotFound(name.to_string()))
}
