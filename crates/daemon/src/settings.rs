//! `config.toml`: which meshes this home is in. People edit it too, so their comments and order are kept.

use std::io;
use std::path::{Path, PathBuf};

use model::NodeName;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::home::write_durably;

/// What the file says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Which mesh is meant when none is named.
    pub default_mesh: Option<String>,
    /// In the file's order.
    pub meshes: Vec<MeshEntry>,
    document: DocumentMut,
}

/// `[mesh.<slug>]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshEntry {
    /// The local alias, and the folder's name.
    pub slug: String,
    /// Where the carrier is.
    pub url: String,
    /// What carries.
    pub carrier: Carrier,
    /// This home's node there.
    pub node: NodeName,
    /// Whether a plain address off this machine is meant.
    pub insecure_lan: bool,
    /// Certificates to believe beside the public ones.
    pub ca: Option<PathBuf>,
}

/// What carries a mesh's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A broker.
    Broker,
    /// The nodes themselves.
    Pipes,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// It is not TOML.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml_edit::TomlError>,
    },
    /// An entry makes no sense.
    #[error("{}: {key} must be {expected}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// Which entry.
        key: String,
        /// What would have been right.
        expected: &'static str,
    },
}

impl Settings {
    /// Reads the file; an absent one says nothing.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(SettingsError::Io { path: path.to_owned(), source }),
        };
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let document: DocumentMut = text
            .parse()
            .map_err(|source| SettingsError::Syntax { path: path.to_owned(), source: Box::new(source) })?;
        let wrong =
            |key: &str, expected| SettingsError::Entry { path: path.to_owned(), key: key.into(), expected };
        let default_mesh = match document.get("default_mesh") {
            None => None,
            Some(item) => {
                Some(item.as_str().ok_or_else(|| wrong("default_mesh", "a mesh's name"))?.to_owned())
            }
        };
        let mut meshes = Vec::new();
        if let Some(item) = document.get("mesh") {
            let tables = item.as_table_like().ok_or_else(|| wrong("mesh", "a table per mesh"))?;
            for (slug, item) in tables.iter() {
                meshes.push(MeshEntry::parse(slug, item).map_err(|(key, expected)| wrong(&key, expected))?);
            }
        }
        Ok(Self { default_mesh, meshes, document })
    }

    /// The entry named `slug`.
    pub fn mesh(&self, slug: &str) -> Option<&MeshEntry> {
        self.meshes.iter().find(|entry| entry.slug == slug)
    }

    /// Adds or replaces an entry; the first one becomes the default.
    pub fn put(&mut self, entry: MeshEntry) {
        let mut table = Table::new();
        table.insert("url", value(&entry.url));
        table.insert("carrier", value(entry.carrier.word()));
        table.insert("node", value(entry.node.as_str()));
        if entry.insecure_lan {
            table.insert("insecure_lan", value(true));
        }
        if let Some(ca) = &entry.ca {
            table.insert("ca", value(ca.to_string_lossy().as_ref()));
        }
        let meshes = self.document.entry("mesh").or_insert_with(|| {
            let mut parent = Table::new();
            parent.set_implicit(true);
            Item::Table(parent)
        });
        meshes[entry.slug.as_str()] = Item::Table(table);
        if self.default_mesh.is_none() {
            self.document.insert("default_mesh", value(&entry.slug));
            self.default_mesh = Some(entry.slug.clone());
        }
        self.meshes.retain(|known| known.slug != entry.slug);
        self.meshes.push(entry);
    }

    /// Takes an entry out; a default that named it names another.
    pub fn remove(&mut self, slug: &str) {
        if let Some(meshes) = self.document.get_mut("mesh").and_then(Item::as_table_like_mut) {
            meshes.remove(slug);
        }
        self.meshes.retain(|entry| entry.slug != slug);
        if self.default_mesh.as_deref() == Some(slug) {
            self.default_mesh = self.meshes.first().map(|entry| entry.slug.clone());
            match &self.default_mesh {
                Some(next) => self.document.insert("default_mesh", value(next)),
                None => self.document.remove("default_mesh"),
            };
        }
    }

    /// Writes the file durably.
    pub fn write(&self, path: &Path) -> Result<(), SettingsError> {
        write_durably(path, self.document.to_string().as_bytes(), 0o600)
            .map_err(|source| SettingsError::Io { path: path.to_owned(), source })
    }
}

impl MeshEntry {
    fn parse(slug: &str, item: &Item) -> Result<Self, (String, &'static str)> {
        let key = |name: &str| format!("mesh.{slug}.{name}");
        // A slug is a folder's name; whatever a member may be called is safe as one.
        slug.parse::<NodeName>().map_err(|_| (format!("mesh.{slug}"), "named with a-z 0-9 . _ -"))?;
        let table = item.as_table_like().ok_or((format!("mesh.{slug}"), "a table"))?;
        let text =
            |name: &str| table.get(name).map(|item| item.as_str().ok_or((key(name), "a text"))).transpose();
        let url = text("url")?.ok_or((key("url"), "an http or https address"))?;
        let carrier = match text("carrier")? {
            None | Some("broker") => Carrier::Broker,
            Some("pipes") => Carrier::Pipes,
            Some(_) => return Err((key("carrier"), "broker or pipes")),
        };
        let node = text("node")?.and_then(|name| name.parse().ok()).ok_or((key("node"), "a node's name"))?;
        let insecure_lan = match table.get("insecure_lan") {
            None => false,
            Some(item) => item.as_bool().ok_or((key("insecure_lan"), "true or false"))?,
        };
        let ca = text("ca")?.map(PathBuf::from);
        Ok(Self { slug: slug.to_owned(), url: url.to_owned(), carrier, node, insecure_lan, ca })
    }
}

impl Carrier {
    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Carrier::Broker => "broker",
            Carrier::Pipes => "pipes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, SettingsError> {
        Settings::parse(Path::new("config.toml"), text)
    }

    fn entry(slug: &str) -> MeshEntry {
        MeshEntry {
            slug: slug.into(),
            url: "http://127.0.0.1:7440".into(),
            carrier: Carrier::Broker,
            node: "mbp".parse().unwrap(),
            insecure_lan: false,
            ca: Some("/etc/ssl/own.pem".into()),
        }
    }

    #[test]
    fn what_is_put_is_read_back_and_the_first_mesh_is_the_default() {
        let mut settings = Settings::default();
        settings.put(entry("home"));
        settings.put(entry("work"));
        let back = parse(&settings.document.to_string()).unwrap();
        assert_eq!(back.meshes, [entry("home"), entry("work")]);
        assert_eq!(back.default_mesh.as_deref(), Some("home"));
    }

    #[test]
    fn a_persons_words_stay() {
        let mut settings = parse(
            "# mine\ndefault_mesh = \"work\" # really\n\n[mesh.work]\nurl = \"http://a\"\nnode = \"n\"\n",
        )
        .unwrap();
        settings.put(entry("home"));
        let text = settings.document.to_string();
        assert!(text.starts_with("# mine\ndefault_mesh = \"work\" # really\n"), "{text}");
        assert_eq!(parse(&text).unwrap().default_mesh.as_deref(), Some("work"));
    }

    #[test]
    fn a_removed_default_makes_room_for_the_next() {
        let mut settings = Settings::default();
        settings.put(entry("home"));
        settings.put(entry("work"));
        settings.remove("home");
        let back = parse(&settings.document.to_string()).unwrap();
        assert_eq!((back.default_mesh.as_deref(), back.meshes.len()), (Some("work"), 1));
        settings.remove("work");
        let back = parse(&settings.document.to_string()).unwrap();
        assert_eq!((back.default_mesh, back.meshes.len()), (None, 0));
    }

    #[test]
    fn a_wrong_entry_is_named() {
        for (text, key) in [
            ("default_mesh = 3", "default_mesh"),
            ("mesh = 3", "mesh"),
            ("[mesh.a]\nnode = \"n\"", "mesh.a.url"),
            ("[mesh.a]\nurl = \"http://x\"", "mesh.a.node"),
            ("[mesh.a]\nurl = \"http://x\"\nnode = \"N N\"", "mesh.a.node"),
            ("[mesh.a]\nurl = \"http://x\"\nnode = \"n\"\ncarrier = \"pigeon\"", "mesh.a.carrier"),
            ("[mesh.a]\nurl = \"http://x\"\nnode = \"n\"\ninsecure_lan = 1", "mesh.a.insecure_lan"),
            ("[mesh.\"../x\"]\nurl = \"http://x\"\nnode = \"n\"", "mesh.../x"),
        ] {
            match parse(text).unwrap_err() {
                SettingsError::Entry { key: found, .. } => assert_eq!(found, key, "{text}"),
                other => panic!("{text}: {other}"),
            }
        }
        assert!(matches!(parse("= x"), Err(SettingsError::Syntax { .. })));
    }
}
