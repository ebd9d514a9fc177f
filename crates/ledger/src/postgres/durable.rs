//! Which settings of a server do not keep what it acknowledged, by name.
//!
//! Sessions that answer before the server's own disk does are refused (`session::not_durable`). What stands here is
//! told and not refused: whether it matters depends on what the operator does at a fail-over.

use tokio_postgres::Row;

use super::session::Tx;
use super::sql;
use crate::StorageError;
use crate::types::durable::DurabilityWarning;

/// A server's settings and its standbys, as far as this role may see them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServerSettings {
    synchronous_commit: String,
    full_page_writes: String,
    synchronous_standby_names: String,
    standbys: Vec<Standby>,
}

/// A server that streams from this one. A role without `pg_monitor` sees that it is there and nothing else of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standby {
    name: Option<String>,
    sync_state: Option<String>,
}

/// Looks at the server.
pub(super) async fn warnings(tx: &Tx) -> Result<Vec<DurabilityWarning>, StorageError> {
    let Some(row) = tx.one(sql!("durability_settings"), &[]).await? else { return Ok(Vec::new()) };
    let standbys = tx.all(sql!("standbys"), &[]).await?.iter().map(standby).collect::<Result<_, _>>()?;
    Ok(judge(&ServerSettings {
        synchronous_commit: row.try_get(0)?,
        full_page_writes: row.try_get(1)?,
        synchronous_standby_names: row.try_get(2)?,
        standbys,
    }))
}

fn standby(row: &Row) -> Result<Standby, StorageError> {
    Ok(Standby { name: row.try_get(0)?, sync_state: row.try_get(1)? })
}

fn judge(server: &ServerSettings) -> Vec<DurabilityWarning> {
    let mut found = Vec::new();
    let mut warn = |setting, value: &str, message: String| {
        found.push(DurabilityWarning { setting, value: value.to_owned(), message });
    };
    if server.full_page_writes == "off" {
        let message = "a power loss in the middle of a page leaves it damaged, with what it held; only a file system \
                       that writes pages whole may go without it";
        warn("full_page_writes", &server.full_page_writes, message.to_owned());
    }
    let waits_for_standbys = !server.synchronous_standby_names.trim().is_empty();
    let waited_for = |standby: &&Standby| matches!(standby.sync_state.as_deref(), Some("sync" | "quorum"));
    let unsynced: Vec<&str> = server
        .standbys
        .iter()
        .filter(|standby| !waited_for(standby))
        .map(|standby| standby.name.as_deref().unwrap_or("a standby this role may not see"))
        .collect();
    match (waits_for_standbys, unsynced.as_slice()) {
        (false, [_, ..]) => {
            let message = format!(
                "no commit waits for a standby: promoting {} loses what was acknowledged last; name it here, or never \
                 promote it",
                unsynced.join(", ")
            );
            warn("synchronous_standby_names", "", message);
        }
        (true, [_, ..]) if server.standbys.iter().any(|standby| standby.sync_state.is_some()) => {
            let message = format!(
                "no commit waits for {}: promoting it loses what was acknowledged last; promote a synchronous one",
                unsynced.join(", ")
            );
            warn("synchronous_standby_names", &server.synchronous_standby_names, message);
        }
        (true, []) if server.standbys.is_empty() => {
            let message = "no standby that it names is there: commits wait until one comes".to_owned();
            warn("synchronous_standby_names", &server.synchronous_standby_names, message);
        }
        (true | false, _) => {}
    }
    let quorum =
        server.standbys.iter().filter(|standby| standby.sync_state.as_deref() == Some("quorum")).count();
    if let Some(acks) = quorum_acks(&server.synchronous_standby_names).filter(|acks| *acks < quorum) {
        let message = format!(
            "a commit waits for {acks} of {quorum} standbys, so any one of them may lack what was acknowledged last: \
             promote the one with the highest pg_last_wal_receive_lsn(), or name them with FIRST"
        );
        warn("synchronous_standby_names", &server.synchronous_standby_names, message);
    }
    let early = match server.synchronous_commit.as_str() {
        "local" => Some("a commit does not wait for the standbys of synchronous_standby_names"),
        "remote_write" => Some("a commit does not wait until the standby's disk has it"),
        _ => None,
    };
    if let Some(early) = early.filter(|_| waits_for_standbys) {
        let message = format!("{early}: promoting one may lose what was acknowledged last; set it to on");
        warn("synchronous_commit", &server.synchronous_commit, message);
    }
    found
}

/// Of how many standbys a commit waits for any, if the setting is of that form.
fn quorum_acks(names: &str) -> Option<usize> {
    let (method, rest) = names.trim().split_at_checked(3)?;
    let (acks, _) = rest.split_once('(')?;
    method.eq_ignore_ascii_case("any").then(|| acks.trim().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standby(name: &str, sync_state: &str) -> Standby {
        Standby { name: Some(name.to_owned()), sync_state: Some(sync_state.to_owned()) }
    }

    #[test]
    fn each_setting_that_loses_acknowledged_commits_at_a_fail_over_is_told_by_name() {
        let hidden = Standby { name: None, sync_state: None };
        let (names, commit) = ("synchronous_standby_names", "synchronous_commit");
        for (synchronous_commit, full_page_writes, standby_names, standbys, expected) in [
            ("on", "on", "", vec![], vec![]),
            ("on", "off", "", vec![], vec!["full_page_writes"]),
            ("on", "on", "", vec![standby("b", "async")], vec![names]),
            ("on", "on", "", vec![hidden.clone()], vec![names]),
            ("on", "on", "b", vec![standby("b", "sync")], vec![]),
            ("on", "on", "b", vec![hidden], vec![]),
            ("on", "on", "ANY 1 (b, c)", vec![standby("b", "quorum"), standby("c", "quorum")], vec![names]),
            ("on", "on", "any 2(b, c)", vec![standby("b", "quorum"), standby("c", "quorum")], vec![]),
            ("on", "on", "ANY 1 (b)", vec![standby("b", "quorum")], vec![]),
            ("on", "on", "anyone", vec![standby("anyone", "sync")], vec![]),
            ("on", "on", "b", vec![standby("b", "sync"), standby("c", "async")], vec![names]),
            ("on", "on", "b, c", vec![standby("b", "sync"), standby("c", "potential")], vec![names]),
            ("on", "on", "b", vec![], vec![names]),
            ("local", "on", "", vec![], vec![]),
            ("local", "on", "b", vec![standby("b", "sync")], vec![commit]),
            ("remote_write", "on", "b", vec![standby("b", "sync")], vec![commit]),
            ("remote_apply", "on", "b", vec![standby("b", "sync")], vec![]),
        ] {
            let server = ServerSettings {
                synchronous_commit: synchronous_commit.to_owned(),
                full_page_writes: full_page_writes.to_owned(),
                synchronous_standby_names: standby_names.to_owned(),
                standbys,
            };
            let found = judge(&server);
            let settings: Vec<_> = found.iter().map(|warning| warning.setting).collect();
            assert_eq!(settings, expected, "{server:?}");
            let named =
                server.standbys.iter().filter(|standby| standby.sync_state.as_deref() == Some("async"));
            for standby in named {
                let name = standby.name.as_deref().unwrap();
                assert!(found.iter().any(|warning| warning.message.contains(name)), "{found:?}");
            }
        }
    }
}
