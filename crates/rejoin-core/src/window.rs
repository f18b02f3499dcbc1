//! Context windows of well-known models, for a first turn or a transcript if no session of the
//! model has reported one yet.

/// Prefixes of model names and the window of each, in tokens. The longest matching prefix counts.
/// Aliases of Claude Code and of Codex are listed as their users type them.
const WINDOWS: &[(&str, u64)] = &[
    ("claude", 200_000),
    ("haiku", 200_000),
    ("opus", 200_000),
    ("sonnet", 200_000),
    ("gemini-1.0", 32_760),
    ("gemini", 1_048_576),
    ("gpt-3.5", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 272_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("codex-mini", 200_000),
    ("deepseek", 128_000),
    ("llama-3.1", 128_000),
    ("llama-3.2", 128_000),
    ("llama-3.3", 128_000),
    ("mistral-large", 128_000),
    ("qwen3-coder", 262_144),
];

/// Returns the context window of a model by its name, with or without `provider/` before it.
pub fn known_window(model: &str) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.to_ascii_lowercase();
    // Claude Code marks a model with the long window by this suffix.
    if name.ends_with("[1m]") {
        return Some(1_000_000);
    }
    let fits = |entry: &&(&str, u64)| name.starts_with(entry.0);
    let best = WINDOWS
        .iter()
        .filter(fits)
        .max_by_key(|(start, _)| start.len());
    best.map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_beginning_counts() {
        for (model, window) in [
            ("gpt-4", Some(8_192)),
            ("gpt-4-0613", Some(8_192)),
            ("gpt-4-turbo-2024-04-09", Some(128_000)),
            ("openai/gpt-4o-mini", Some(128_000)),
            ("openrouter/anthropic/claude-sonnet-4.5", Some(200_000)),
            ("Sonnet", Some(200_000)),
            ("claude-opus-4-8[1m]", Some(1_000_000)),
            ("gemini-2.5-pro", Some(1_048_576)),
            ("scripted/m1", None),
            ("", None),
        ] {
            assert_eq!(known_window(model), window, "{model}");
        }
    }
}
