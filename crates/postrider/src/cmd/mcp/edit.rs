//! A client's settings with our entry in them: text in, text out.
//!
//! - Only the entry's own fields change; other servers, other settings, comments and order stay as they are.
//! - Of an entry that is there already, fields we do not write (an `env`, a `timeout`) stay.
//! - What cannot be read as the client would read it is refused, never replaced.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// Under which name the server is entered.
pub const NAME: &str = "postrider";

/// How a client writes its servers down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON, perhaps with comments: servers by name under a key.
    Json {
        /// The key.
        key: &'static str,
        /// Whether an entry says that it is spoken to over stdin and stdout.
        typed: bool,
    },
    /// TOML: servers by name under a table.
    Toml {
        /// The table.
        key: &'static str,
    },
}

/// The server as a client starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

/// Why there is no new text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file is not what its client could read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Something else stands where servers should be.
    #[error("`{0}` is there and is no table of servers")]
    Occupied(String),
}

/// `text` with `entry` in it; the very same text when it says so already.
pub fn with_entry(text: &str, shape: Shape, entry: &Entry) -> Result<String, EditError> {
    match shape {
        Shape::Json { key, typed } => json(text, key, typed, entry),
        Shape::Toml { key } => toml(text, key, entry),
    }
}

fn json(text: &str, key: &str, typed: bool, entry: &Entry) -> Result<String, EditError> {
    let source = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(source, &ParseOptions::default())
        .map_err(|error| EditError::Unreadable(error.to_string()))?;
    let settings =
        root.object_value_or_create().ok_or_else(|| EditError::Unreadable("it is no object".to_owned()))?;
    let occupied = |name: &str| EditError::Occupied(name.to_owned());
    let servers = settings.object_value_or_create(key).ok_or_else(|| occupied(key))?;
    let ours = servers.object_value_or_create(NAME).ok_or_else(|| occupied(&format!("{key}.{NAME}")))?;
    if typed {
        put(&ours, "type", "stdio".into());
    }
    put(&ours, "command", entry.command.as_str().into());
    let args = entry.args.iter().map(|arg| CstInputValue::String(arg.clone())).collect();
    put(&ours, "args", CstInputValue::Array(args));
    Ok(root.to_string())
}

/// Sets a field, and leaves one that says so already as it is written.
fn put(object: &CstObject, name: &str, wanted: CstInputValue) {
    match object.get(name) {
        Some(field) if field.to_serde_value() == Some(plain(&wanted)) => {}
        Some(field) => field.set_value(wanted),
        None => {
            object.append(name, wanted);
        }
    }
}

fn plain(value: &CstInputValue) -> serde_json::Value {
    match value {
        CstInputValue::String(text) => text.as_str().into(),
        CstInputValue::Array(items) => items.iter().map(plain).collect(),
        CstInputValue::Null
        | CstInputValue::Bool(_)
        | CstInputValue::Number(_)
        | CstInputValue::Object(_) => serde_json::Value::Null,
    }
}

fn toml(text: &str, key: &str, entry: &Entry) -> Result<String, EditError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| EditError::Unreadable(error.to_string()))?;
    let occupied = |name: &str| EditError::Occupied(name.to_owned());
    let servers =
        document.entry(key).or_insert_with(implicit).as_table_like_mut().ok_or_else(|| occupied(key))?;
    let ours = servers.entry(NAME).or_insert_with(|| Item::Table(Table::new()));
    let ours = ours.as_table_like_mut().ok_or_else(|| occupied(&format!("{key}.{NAME}")))?;
    if ours.get("command").and_then(Item::as_str) != Some(&entry.command) {
        ours.insert("command", value(&entry.command));
    }
    let written = ours.get("args").and_then(Item::as_array);
    let same = written.is_some_and(|args| {
        args.iter().map(|arg| arg.as_str()).eq(entry.args.iter().map(|arg| Some(arg.as_str())))
    });
    if !same {
        ours.insert("args", value(entry.args.iter().collect::<Array>()));
    }
    Ok(document.to_string())
}

/// A table that is only the way to its members: no line of its own.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: Shape = Shape::Json { key: "mcpServers", typed: false };
    const TYPED: Shape = Shape::Json { key: "servers", typed: true };
    const TABLE: Shape = Shape::Toml { key: "mcp_servers" };

    fn entry() -> Entry {
        Entry { command: "/bin/postrider".to_owned(), args: vec!["mcp".to_owned()] }
    }

    /// The text after the edit, which must not change it again.
    fn edited(text: &str, shape: Shape) -> String {
        let once = with_entry(text, shape, &entry()).unwrap();
        assert_eq!(with_entry(&once, shape, &entry()).unwrap(), once, "a second edit changes nothing");
        once
    }

    #[test]
    fn an_empty_file_gets_the_entry_alone() {
        let json: serde_json::Value = serde_json::from_str(&edited("", SERVERS)).unwrap();
        let ours = serde_json::json!({"command": "/bin/postrider", "args": ["mcp"]});
        assert_eq!(json, serde_json::json!({"mcpServers": {"postrider": ours}}));
        let json: serde_json::Value = serde_json::from_str(&edited(" \n", TYPED)).unwrap();
        assert_eq!(json["servers"]["postrider"]["type"], "stdio");
        assert_eq!(
            edited("", TABLE),
            "[mcp_servers.postrider]\ncommand = \"/bin/postrider\"\nargs = [\"mcp\"]\n"
        );
    }

    #[test]
    fn other_servers_settings_comments_and_their_order_stay() {
        let text = "// mine\n{\n  \"theme\": \"dark\", // at night\n  \"mcpServers\": {\n    \"git\": {\"command\": \"uvx\"}\n  },\n  \"zoom\": 2\n}\n";
        let after = edited(text, SERVERS);
        for kept in
            ["// mine", "\"theme\": \"dark\", // at night", "\"git\": {\"command\": \"uvx\"}", "\"zoom\": 2"]
        {
            assert!(after.contains(kept), "{kept} is gone:\n{after}");
        }
        let before_git = after.find("git").unwrap();
        assert!(before_git < after.find("postrider").unwrap() && after.ends_with("}\n"), "{after}");
        let text =
            "# mine\nmodel = \"o\" # best\n\n[mcp_servers.git]\ncommand = \"uvx\"\n\n[tui]\nvim = true\n";
        let after = edited(text, TABLE);
        for kept in [
            "# mine\nmodel = \"o\" # best\n",
            "[mcp_servers.git]\ncommand = \"uvx\"\n",
            "[tui]\nvim = true\n",
        ] {
            assert!(after.contains(kept), "{kept} is gone:\n{after}");
        }
        assert!(
            after.contains("[mcp_servers.postrider]\ncommand = \"/bin/postrider\"\nargs = [\"mcp\"]\n"),
            "{after}"
        );
    }

    #[test]
    fn of_an_entry_that_is_there_only_our_fields_change() {
        let text = r#"{"mcpServers": {"postrider": {"command": "/old", "args": [], "env": {"A": "1"}, "timeout": 5}}}"#;
        let json: serde_json::Value = serde_json::from_str(&edited(text, SERVERS)).unwrap();
        let ours = &json["mcpServers"]["postrider"];
        assert_eq!((ours["command"].as_str(), ours["timeout"].as_u64()), (Some("/bin/postrider"), Some(5)));
        assert_eq!(ours["env"]["A"], "1");
        let text = "[mcp_servers.postrider]\ncommand = \"/old\"\nargs = [\"mcp\"]  # as it is\nstartup_timeout_sec = 9\n";
        let after = edited(text, TABLE);
        assert!(after.contains("command = \"/bin/postrider\"") && after.contains("# as it is"), "{after}");
        assert!(after.contains("startup_timeout_sec = 9"), "{after}");
    }

    #[test]
    fn what_says_so_already_is_left_to_the_letter() {
        let text = "{ \"mcpServers\" : { \"postrider\" :{ \"args\":[ \"mcp\" ] ,\"command\":\"/bin/postrider\" } } }";
        assert_eq!(with_entry(text, SERVERS, &entry()).unwrap(), text);
    }

    #[test]
    fn what_the_client_could_not_read_is_refused() {
        for (text, shape) in [
            ("{ \"mcpServers\": ", SERVERS),
            ("[1]", SERVERS),
            ("{\"mcpServers\": []}", SERVERS),
            ("{\"mcpServers\": {\"postrider\": 1}}", SERVERS),
            ("a = = 1", TABLE),
            ("mcp_servers = 3", TABLE),
            ("[mcp_servers]\npostrider = true\n", TABLE),
        ] {
            assert!(with_entry(text, shape, &entry()).is_err(), "{text}");
        }
    }
}
