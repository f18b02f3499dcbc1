//! What the user's `config.toml` says. It is read, never written.

use toml::Table;

/// Known to every Codex, whatever is configured.
const BUILT_IN: &[&str] = &["openai", "amazon-bedrock", "ollama", "lmstudio"];

type Read<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

fn section(read: Read<'_>, name: &str) -> Table {
    let text = read("config.toml").and_then(|bytes| String::from_utf8(bytes).ok());
    let config: Option<Table> = text.and_then(|text| text.parse().ok());
    let section = config.and_then(|mut config| config.remove(name));
    match section {
        Some(toml::Value::Table(section)) => section,
        Some(_) | None => Table::new(),
    }
}

/// The CLI does not load a session whose provider is not configured.
pub(super) fn provider_here(provider: &str, read: Read<'_>) -> bool {
    BUILT_IN.contains(&provider) || section(read, "model_providers").contains_key(provider)
}

/// MCP servers run outside the sandbox; one whose tools are approved in the configuration wrote
/// into the folder in read-only mode.
pub(super) fn tool_servers(read: Read<'_>) -> Vec<String> {
    section(read, "mcp_servers").keys().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_and_servers() {
        let text = "[model_providers.own]\nname = \"x\"\n[mcp_servers.files]\ncommand = \"y\"\n";
        let read = |file: &str| (file == "config.toml").then(|| text.as_bytes().to_vec());
        assert!(provider_here("own", &read) && provider_here("openai", &read));
        assert!(!provider_here("other", &read));
        assert_eq!(tool_servers(&read), ["files"]);
        for broken in [&b"\xff"[..], b"mcp_servers = 1", b"[model_providers", b""] {
            let read = |_: &str| Some(broken.to_vec());
            assert!(!provider_here("own", &read) && provider_here("ollama", &read));
            assert_eq!(tool_servers(&read), Vec::<String>::new());
        }
        assert!(!provider_here("own", &|_| None));
    }
}
