//! Where each client keeps its settings, and how it writes servers down.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::edit::Shape;
use crate::args::Client;

const MCP_SERVERS: Shape = Shape::Json { key: "mcpServers", typed: false };

/// What of the surroundings decides where files are.
pub struct Places {
    /// The account's folder.
    pub home: PathBuf,
    /// Reads an environment variable.
    pub env: fn(&str) -> Option<OsString>,
    /// Whether applications keep their settings in `Library`.
    pub library: bool,
}

impl Places {
    /// Those of this process.
    pub fn here() -> Option<Self> {
        let home = std::env::home_dir()?;
        Some(Self { home, env: |name| std::env::var_os(name), library: cfg!(target_os = "macos") })
    }

    fn named_or(&self, name: &str, below_home: &str) -> PathBuf {
        let named = (self.env)(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        named.unwrap_or_else(|| self.home.join(below_home))
    }

    /// Where desktop applications keep their settings.
    fn applications(&self) -> PathBuf {
        match self.library {
            true => self.home.join("Library/Application Support"),
            false => self.named_or("XDG_CONFIG_HOME", ".config"),
        }
    }
}

impl Client {
    /// The name people know it by.
    pub fn title(self) -> &'static str {
        match self {
            Client::ClaudeCode => "Claude Code",
            Client::ClaudeDesktop => "Claude Desktop",
            Client::Codex => "Codex",
            Client::Cursor => "Cursor",
            Client::GeminiCli => "Gemini CLI",
            Client::Vscode => "Visual Studio Code",
            Client::Windsurf => "Windsurf",
            Client::Zed => "Zed",
        }
    }

    /// How it writes servers down.
    pub fn shape(self) -> Shape {
        match self {
            Client::ClaudeCode => Shape::Json { key: "mcpServers", typed: true },
            Client::ClaudeDesktop | Client::Cursor | Client::GeminiCli | Client::Windsurf => MCP_SERVERS,
            Client::Codex => Shape::Toml { key: "mcp_servers" },
            Client::Vscode => Shape::Json { key: "servers", typed: true },
            Client::Zed => Shape::Json { key: "context_servers", typed: false },
        }
    }

    /// The account's own settings.
    pub fn user_file(self, places: &Places) -> PathBuf {
        match self {
            Client::ClaudeCode => match (places.env)("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty()) {
                Some(dir) => PathBuf::from(dir).join(".claude.json"),
                None => places.home.join(".claude.json"),
            },
            Client::ClaudeDesktop => places.applications().join("Claude/claude_desktop_config.json"),
            Client::Codex => places.named_or("CODEX_HOME", ".codex").join("config.toml"),
            Client::Cursor => places.home.join(".cursor/mcp.json"),
            Client::GeminiCli => places.home.join(".gemini/settings.json"),
            Client::Vscode => places.applications().join("Code/User/mcp.json"),
            Client::Windsurf => places.home.join(".codeium/windsurf/mcp_config.json"),
            Client::Zed => match places.library {
                true => places.home.join(".config/zed/settings.json"),
                false => places.applications().join("zed/settings.json"),
            },
        }
    }

    /// The settings of the project in `folder`; some clients have none.
    pub fn project_file(self, folder: &Path) -> Option<PathBuf> {
        let file = match self {
            Client::ClaudeCode => ".mcp.json",
            Client::ClaudeDesktop | Client::Windsurf => return None,
            Client::Codex => ".codex/config.toml",
            Client::Cursor => ".cursor/mcp.json",
            Client::GeminiCli => ".gemini/settings.json",
            Client::Vscode => ".vscode/mcp.json",
            Client::Zed => ".zed/settings.json",
        };
        Some(folder.join(file))
    }

    /// How its user sees that it worked.
    pub fn look(self) -> &'static str {
        match self {
            Client::ClaudeCode => "claude mcp list, or /mcp inside Claude Code",
            Client::ClaudeDesktop => "start Claude Desktop again; the tools menu lists postrider",
            Client::Codex => "codex mcp list, or /mcp inside Codex",
            Client::Cursor => "Cursor Settings, Tools & MCP",
            Client::GeminiCli => "gemini mcp list, or /mcp inside Gemini CLI",
            Client::Vscode => "MCP: List Servers in the command palette",
            Client::Windsurf => "Windsurf Settings, Cascade, MCP servers",
            Client::Zed => "the agent panel's settings list postrider",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn places(library: bool, env: fn(&str) -> Option<OsString>) -> Places {
        Places { home: "/h".into(), env, library }
    }

    #[test]
    fn each_client_keeps_its_settings_in_its_own_place() {
        for (client, linux, mac) in [
            (Client::ClaudeCode, "/h/.claude.json", "/h/.claude.json"),
            (
                Client::ClaudeDesktop,
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (Client::Codex, "/h/.codex/config.toml", "/h/.codex/config.toml"),
            (Client::Cursor, "/h/.cursor/mcp.json", "/h/.cursor/mcp.json"),
            (Client::GeminiCli, "/h/.gemini/settings.json", "/h/.gemini/settings.json"),
            (
                Client::Vscode,
                "/h/.config/Code/User/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
            ),
            (
                Client::Windsurf,
                "/h/.codeium/windsurf/mcp_config.json",
                "/h/.codeium/windsurf/mcp_config.json",
            ),
            (Client::Zed, "/h/.config/zed/settings.json", "/h/.config/zed/settings.json"),
        ] {
            assert_eq!(client.user_file(&places(false, |_| None)), Path::new(linux), "{client:?}");
            assert_eq!(client.user_file(&places(true, |_| None)), Path::new(mac), "{client:?}");
        }
        assert_eq!(Client::value_variants().len(), 8, "a new client gets a line above");
    }

    #[test]
    fn a_clients_own_variable_moves_its_settings_and_an_empty_one_does_not() {
        let moved = places(false, |_| Some("/m".into()));
        assert_eq!(Client::Codex.user_file(&moved), Path::new("/m/config.toml"));
        assert_eq!(Client::ClaudeCode.user_file(&moved), Path::new("/m/.claude.json"));
        assert_eq!(Client::Zed.user_file(&moved), Path::new("/m/zed/settings.json"));
        let empty = places(false, |_| Some("".into()));
        assert_eq!(Client::Codex.user_file(&empty), Path::new("/h/.codex/config.toml"));
        assert_eq!(Client::ClaudeCode.user_file(&empty), Path::new("/h/.claude.json"));
    }
}
