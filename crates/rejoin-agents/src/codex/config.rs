//! Reads the user's `config.toml`. rejoin never writes it.

use toml::Table;

use super::Codex;
use crate::adapter::ReadHome;
use crate::capability::Providers;

/// Providers that every Codex knows without configuration.
const BUILT_IN: &[&str] = &["openai", "amazon-bedrock", "ollama", "lmstudio"];

fn section(read: ReadHome<'_>, name: &str) -> Table {
    let text = read("config.toml").and_then(|bytes| String::from_utf8(bytes).ok());
    let config: Option<Table> = text.and_then(|text| text.parse().ok());
    let section = config.and_then(|mut config| config.remove(name));
    match section {
        Some(toml::Value::Table(section)) => section,
        Some(_) | None => Table::new(),
    }
}

impl Providers for Codex {
    /// The CLI does not load a session whose provider is not configured.
    fn has_provider(&self, provider: &str, read: ReadHome<'_>) -> bool {
        BUILT_IN.contains(&provider) || section(read, "model_providers").contains_key(provider)
    }
}

/// Lists the MCP servers, which run outside the sandbox. A server whose tools are approved in the
/// configuration wrote into the folder in read-only mode.
pub(super) fn mcp_servers(read: ReadHome<'_>) -> Vec<String> {
    section(read, "mcp_servers").keys().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_and_servers() {
        let text = "[model_providers.own]\nname = \"x\"\n[mcp_servers.files]\ncommand = \"y\"\n";
        let read = |file: &str| (file == "config.toml").then(|| text.as_bytes().to_vec());
        assert!(Codex.has_provider("own", &read) && Codex.has_provider("openai", &read));
        assert!(!Codex.has_provider("other", &read));
        assert_eq!(mcp_servers(&read), ["files"]);
        for broken in [&b"\xff"[..], b"mcp_servers = 1", b"[model_providers", b""] {
            let read = |_: &str| Some(broken.to_vec());
            assert!(!Codex.has_provider("own", &read) && Codex.has_provider("ollama", &read));
            assert_eq!(mcp_servers(&read), Vec::<String>::new());
        }
        assert!(!Codex.has_provider("own", &|_| None));
    }
}
