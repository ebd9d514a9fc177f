//! Members, topics and conversations, as their owners change them.

use model::{ConversationId, MemberId, MemberKind, MemberName, TopicName};

use super::accept::{log_facts, member_by_id, member_facts};
use super::row::{member, small};
use super::session::Tx;
use super::{link, list, sql, webhook};
use crate::rules::{LogFacts, MemberFacts};
use crate::types::manage::Registered;
use crate::types::mesh::{Member, Role, kind_code};
use crate::types::read::{ConversationState, TopicRow};
use crate::types::wayin::Link;
use crate::{LinkError, ManageError, StorageError};

pub(super) async fn register(
    tx: &Tx,
    link: &Link,
    name: &MemberName,
    kind: MemberKind,
) -> Result<Registered, ManageError> {
    let node = link::check_locked(tx, link).await.map_err(|error| match error {
        LinkError::Refused(refused) => ManageError::Link(refused),
        LinkError::Storage(error) => ManageError::Storage(error),
    })?;
    place(tx, name, kind, Some(node.number)).await
}

pub(super) async fn host(tx: &Tx, name: &MemberName, kind: MemberKind) -> Result<Registered, ManageError> {
    place(tx, name, kind, None).await
}

/// A name is one member's for ever; only its own home may ask for it again.
async fn place(
    tx: &Tx,
    name: &MemberName,
    kind: MemberKind,
    home: Option<i64>,
) -> Result<Registered, ManageError> {
    let id = MemberId::mint(tx.now, tx.entropy()).as_uuid();
    let (code, role) = (small(kind_code(kind)), small(Role::Member.code()));
    let made = tx
        .change(sql!("member_insert"), &[&id, &name.as_str(), &code, &home, &role, &tx.now.as_micros()])
        .await?;
    let (member, facts) = named(tx, name).await?;
    if made == 1 {
        Ok(Registered::New(member))
    } else if facts.home == home && !facts.removed && member.kind == kind {
        Ok(Registered::Known(member))
    } else {
        Err(ManageError::NameTaken(name.clone()))
    }
}

pub(super) async fn remove(tx: &Tx, name: &MemberName) -> Result<(), ManageError> {
    // One removal at a time: two at once could each take the other for the remaining owner.
    tx.all(sql!("owners_lock"), &[&small(Role::Owner.code())]).await?;
    let (member, facts) = named(tx, name).await?;
    if facts.removed {
        return Err(ManageError::MemberNotFound(name.to_string()));
    }
    if member.role == Role::Owner && other_owners(tx, &facts).await? == 0 {
        return Err(ManageError::LastOwner(name.clone()));
    }
    let now = tx.now.as_micros();
    let going = match (member.kind, facts.home) {
        // Without its person a node has no address and nobody to answer for it.
        (MemberKind::Person, Some(node)) => {
            tx.change(sql!("node_remove"), &[&node, &now]).await?;
            link::at_home(tx, node).await?.into_iter().map(|(number, _)| number).collect()
        }
        (MemberKind::Person | MemberKind::Agent | MemberKind::Service, _) => vec![facts.number],
    };
    for number in going {
        tx.change(sql!("member_remove"), &[&number, &now]).await?;
        tx.change(sql!("subscription_delete_all"), &[&number]).await?;
        tx.change(sql!("token_revoke_all"), &[&number, &now]).await?;
        webhook::forget(tx, number).await?;
    }
    Ok(())
}

async fn other_owners(tx: &Tx, member: &MemberFacts) -> Result<usize, StorageError> {
    let rows = tx.all(sql!("member_numbers_with_role"), &[&small(Role::Owner.code())]).await?;
    let numbers = rows.iter().map(|row| row.try_get::<_, i64>(0)).collect::<Result<Vec<_>, _>>()?;
    Ok(numbers.into_iter().filter(|number| *number != member.number).count())
}

pub(super) async fn create_topic(
    tx: &Tx,
    creator: MemberId,
    topic: &TopicName,
) -> Result<TopicRow, ManageError> {
    let member = live(tx, creator).await?;
    let id = ConversationId::mint(tx.now, tx.entropy()).as_uuid();
    let now = tx.now.as_micros();
    let made = tx.change(sql!("accept_create_topics"), &[&vec![id], &vec![topic.as_str()], &now]).await?;
    if made == 1 {
        let log = found(tx, topic).await?;
        tx.change(sql!("subscription_insert"), &[&log.number, &member.number, &now]).await?;
    }
    list::topic(tx, creator, topic).await?.ok_or_else(|| ManageError::TopicNotFound(topic.clone()))
}

pub(super) async fn subscribe(tx: &Tx, member: MemberId, topic: &TopicName) -> Result<(), ManageError> {
    let member = live(tx, member).await?;
    let log = found(tx, topic).await?;
    tx.change(sql!("subscription_insert"), &[&log.number, &member.number, &tx.now.as_micros()]).await?;
    Ok(())
}

pub(super) async fn unsubscribe(tx: &Tx, member: MemberId, topic: &TopicName) -> Result<(), ManageError> {
    let member = live(tx, member).await?;
    let log = found(tx, topic).await?;
    tx.change(sql!("subscription_delete"), &[&log.number, &member.number]).await?;
    Ok(())
}

pub(super) async fn set_state(
    tx: &Tx,
    id: ConversationId,
    state: ConversationState,
) -> Result<(), ManageError> {
    match tx.change(sql!("conversation_set_state"), &[&id.as_uuid(), &small(state.code())]).await? {
        0 => Err(ManageError::ConversationNotFound),
        _ => Ok(()),
    }
}

/// A member that was not removed.
pub(super) async fn live(tx: &Tx, id: MemberId) -> Result<MemberFacts, ManageError> {
    let found = member_by_id(tx, id).await?.filter(|member| !member.removed);
    found.ok_or_else(|| ManageError::MemberNotFound(id.to_string()))
}

pub(super) async fn found(tx: &Tx, topic: &TopicName) -> Result<LogFacts, ManageError> {
    let row = tx.one(sql!("accept_topics"), &[&vec![topic.as_str()]]).await?;
    let row = row.ok_or_else(|| ManageError::TopicNotFound(topic.clone()))?;
    Ok(log_facts(&row, 0)?.1)
}

async fn named(tx: &Tx, name: &MemberName) -> Result<(Member, MemberFacts), ManageError> {
    let unknown = || ManageError::MemberNotFound(name.to_string());
    let row = tx.one(sql!("member_by_name"), &[&name.as_str()]).await?.ok_or_else(unknown)?;
    let facts = tx.one(sql!("member_facts_by_name"), &[&name.as_str()]).await?.ok_or_else(unknown)?;
    Ok((member(&row, 0)?, member_facts(&facts, 0)?))
}
