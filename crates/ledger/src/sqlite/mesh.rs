//! The mesh, its policies and its key.

use ::sqlite::rusqlite::{Connection, Row, params};
use model::MeshId;
use model::outbox::DedupeWindow;
use zeroize::Zeroizing;

use super::row::{change, code, id, one};
use super::sql;
use super::store::World;
use crate::types::mesh::{ConnectionPolicy, IssuerSeed, Mesh, MeshSetup, Policies, TopicPolicy};
use crate::{Role, StorageError};

pub(super) fn setup(conn: &Connection, world: &World, setup: &MeshSetup) -> Result<Mesh, StorageError> {
    match read(conn) {
        Err(StorageError::NoMesh) => {}
        found => return found,
    }
    let now = world.now();
    let Policies { topics, dedupe, connections } = setup.policies;
    change(
        conn,
        sql!("mesh_insert"),
        params![
            MeshId::mint(now, &*world.entropy).as_bytes(),
            setup.slug,
            topics.code(),
            days(dedupe),
            connections.code(),
            now.as_micros()
        ],
    )?;
    let mut secret = Zeroizing::new([0; 32]);
    world.entropy.fill(&mut *secret);
    change(conn, sql!("issuer_insert"), params![&*secret, now.as_micros()])?;
    read(conn)
}

pub(super) fn read(conn: &Connection) -> Result<Mesh, StorageError> {
    one(conn, sql!("mesh"), [], mesh)?.ok_or(StorageError::NoMesh)
}

pub(super) fn set_policies(conn: &Connection, policies: Policies) -> Result<Mesh, StorageError> {
    let Policies { topics, dedupe, connections } = policies;
    change(conn, sql!("mesh_set_policies"), params![topics.code(), days(dedupe), connections.code()])?;
    read(conn)
}

pub(super) fn issuer(conn: &Connection) -> Result<IssuerSeed, StorageError> {
    let seed = one(conn, sql!("issuer"), [], |row| row.get(0).map(Zeroizing::new))?;
    seed.map(IssuerSeed).ok_or(StorageError::NoMesh)
}

pub(super) fn has_owner(conn: &Connection) -> Result<bool, StorageError> {
    Ok(one(conn, sql!("member_any_with_role"), [Role::Owner.code()], |_| Ok(()))?.is_some())
}

fn mesh(row: &Row<'_>) -> ::sqlite::rusqlite::Result<Mesh> {
    Ok(Mesh {
        id: id(row, 0, MeshId::from_bytes)?,
        slug: row.get(1)?,
        policies: Policies {
            topics: code(row, 2, TopicPolicy::from_code)?,
            dedupe: row.get::<_, Option<u32>>(3)?.map_or(DedupeWindow::Permanent, DedupeWindow::Days),
            connections: code(row, 4, ConnectionPolicy::from_code)?,
        },
    })
}

/// The stored form of a window.
fn days(window: DedupeWindow) -> Option<u32> {
    match window {
        DedupeWindow::Days(days) => Some(days),
        DedupeWindow::Permanent => None,
    }
}
