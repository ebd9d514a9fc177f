//! The mesh, its policies and its key.

use model::MeshId;
use model::outbox::DedupeWindow;
use tokio_postgres::Row;
use zeroize::Zeroizing;

use super::row::{bytes, code, id, small};
use super::session::Tx;
use super::sql;
use crate::types::mesh::{ConnectionPolicy, IssuerSeed, Mesh, MeshSetup, Policies, TopicPolicy};
use crate::{Role, StorageError};

/// Two brokers may start on one empty database; the rows of the first stand.
pub(super) async fn setup(tx: &Tx, setup: &MeshSetup) -> Result<Mesh, StorageError> {
    let Policies { topics, dedupe, connections } = setup.policies;
    let id = MeshId::mint(tx.now, tx.entropy()).as_uuid();
    let (topics, days, connections) = (small(topics.code()), days(dedupe), small(connections.code()));
    let now = tx.now.as_micros();
    tx.change(sql!("mesh_insert"), &[&id, &setup.slug, &topics, &days, &connections, &now]).await?;
    let mut secret = Zeroizing::new([0; 32]);
    tx.entropy().fill(&mut *secret);
    tx.change(sql!("issuer_insert"), &[&secret.as_slice(), &now]).await?;
    read(tx).await
}

pub(super) async fn read(tx: &Tx) -> Result<Mesh, StorageError> {
    mesh(&tx.one(sql!("mesh"), &[]).await?.ok_or(StorageError::NoMesh)?)
}

pub(super) async fn set_policies(tx: &Tx, policies: Policies) -> Result<Mesh, StorageError> {
    let Policies { topics, dedupe, connections } = policies;
    let (topics, days, connections) = (small(topics.code()), days(dedupe), small(connections.code()));
    tx.change(sql!("mesh_set_policies"), &[&topics, &days, &connections]).await?;
    read(tx).await
}

pub(super) async fn issuer(tx: &Tx) -> Result<IssuerSeed, StorageError> {
    let row = tx.one(sql!("issuer"), &[]).await?.ok_or(StorageError::NoMesh)?;
    Ok(IssuerSeed(Zeroizing::new(bytes(&row, 0)?)))
}

pub(super) async fn has_owner(tx: &Tx) -> Result<bool, StorageError> {
    Ok(tx.one(sql!("member_any_with_role"), &[&small(Role::Owner.code())]).await?.is_some())
}

pub(super) fn mesh(row: &Row) -> Result<Mesh, StorageError> {
    let days = row.try_get::<_, Option<i32>>(3)?;
    let dedupe = days.map_or(DedupeWindow::Permanent, |days| DedupeWindow::Days(days.unsigned_abs()));
    Ok(Mesh {
        id: id(row, 0)?,
        slug: row.try_get(1)?,
        policies: Policies {
            topics: code(row, 2, TopicPolicy::from_code)?,
            dedupe,
            connections: code(row, 4, ConnectionPolicy::from_code)?,
        },
    })
}

/// The stored form of a window.
fn days(window: DedupeWindow) -> Option<i32> {
    match window {
        DedupeWindow::Days(days) => Some(i32::try_from(days).unwrap_or(i32::MAX)),
        DedupeWindow::Permanent => None,
    }
}
