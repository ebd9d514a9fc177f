//! What a process finds around itself, read once at its start.

use std::path::{Path, PathBuf};

use model::id::sanitise_name;

/// Names and places of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The host's name, for a node that is given none.
    pub host: String,
    /// The account's name, for a person that is given none.
    pub account: String,
    /// Where short-lived sockets may live.
    pub runtime_dir: Option<PathBuf>,
    /// Whether others may share this loopback: then only the socket is opened.
    pub container: bool,
    /// What tells this machine from a copy of its disk.
    pub machine_id: Option<String>,
}

impl Surroundings {
    /// Looks around. The environment comes in as `variable`, so that it is read in one place.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let account =
            variable("USER").or_else(|| variable("LOGNAME")).or_else(account_of_uid).unwrap_or_default();
        Self {
            host: host_name(),
            account,
            runtime_dir: variable("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from),
            container: is_container(&variable),
            machine_id: machine_id(),
        }
    }

    /// A node's name made from the host's.
    pub fn node_name(&self) -> String {
        // A host's domain says nothing its first part does not.
        sanitise_name(self.host.split('.').next().unwrap_or_default(), "node")
    }

    /// A person's name made from the account's.
    pub fn person_name(&self) -> String {
        sanitise_name(&self.account, "person")
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The account's name as the system lists it, for a process that was started without a login.
fn account_of_uid() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

fn machine_id() -> Option<String> {
    let places = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let read = |place: &str| std::fs::read_to_string(place).ok().map(|text| text.trim().to_owned());
    let id = places.into_iter().filter_map(read).find(|id| !id.is_empty())?;
    Some(format!("linux:{id}"))
}

/// Whether loopback may be somebody else's too. `POSTRIDER_TCP` settles it where the look is wrong, or the sharing
/// is wanted.
fn is_container(variable: &impl Fn(&str) -> Option<String>) -> bool {
    match variable("POSTRIDER_TCP").as_deref() {
        Some("on") => return false,
        Some("off") => return true,
        Some(_) | None => {}
    }
    let told = variable("KUBERNETES_SERVICE_HOST").is_some() || Path::new("/.dockerenv").exists();
    let groups = std::fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    told || ["docker", "kubepods", "containerd", "libpod"].iter().any(|mark| groups.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_the_last_word_about_loopback() {
        let told = |word: &'static str| {
            Surroundings::read(|name| (name == "POSTRIDER_TCP").then(|| word.to_owned())).container
        };
        assert_eq!((told("on"), told("off")), (false, true));
    }

    #[test]
    fn names_are_made_from_host_and_account() {
        let around = |host: &str, account: &str| Surroundings {
            host: host.to_owned(),
            account: account.to_owned(),
            ..Surroundings::default()
        };
        let jane = around("MBP-Jane.local", "Jane Doe");
        assert_eq!((jane.node_name().as_str(), jane.person_name().as_str()), ("mbp-jane", "jane-doe"));
        let nobody = around("", "");
        assert_eq!((nobody.node_name().as_str(), nobody.person_name().as_str()), ("node", "person"));
    }

    #[test]
    fn a_cluster_tells_its_containers() {
        let inside =
            Surroundings::read(|name| (name == "KUBERNETES_SERVICE_HOST").then(|| "10.0.0.1".into()));
        assert!(inside.container);
    }
}
