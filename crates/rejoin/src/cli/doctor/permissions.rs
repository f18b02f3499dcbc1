//! What each permission comes to with each agent: for `doctor`, and as the page `docs/agents.md`.

use std::fmt::Write as _;

use rejoin_agents::{ADAPTERS, Adapter, Allows};
use serde_json::{Value, json};

use super::report::Report;

/// Of one agent; in words only for who wants to know everything.
pub(super) fn table(report: &mut Report, adapter: &dyn Adapter, in_words: bool) -> Value {
    for row in adapter.allows().iter().filter(|_| in_words) {
        let text = format!(
            "{}: read {}; write {}; run {}; network {}; held by {}",
            row.mode, row.read, row.write, row.run, row.network, row.by
        );
        report.note("", &text);
    }
    json!(adapter.allows())
}

/// The page, made from what the adapters say of themselves.
pub(super) fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for adapter in ADAPTERS.iter().filter(|a| !a.allows().is_empty()) {
        let _ = writeln!(page, "\n## {}\n", adapter.name());
        let _ = writeln!(page, "Install: `{}`", adapter.install());
        if let Some(login) = adapter.login() {
            let _ = writeln!(page, "\nLogin: {}", login.how);
        }
        page.push_str(
            "\n| mode | read | write | run | network | held by |\n|---|---|---|---|---|---|\n",
        );
        for row in adapter.allows() {
            let Allows {
                mode,
                read,
                write,
                run,
                network,
                by,
            } = row;
            let _ = writeln!(
                page,
                "| {mode} | {read} | {write} | {run} | {network} | {by} |"
            );
        }
    }
    page
}

const INTRODUCTION: &str = "\
# Agents and what they may do

Made by `rejoin doctor --docs`. A turn's permission is re-asserted on every run, also on a resumed
session; what an agent cannot be held to is refused (exit 5) with a sentence that says what it can. A
mode that is missing from an agent's table is one it cannot be held to.

`--tools` and `--deny-tools` take the agent's own names, or the aliases `shell`, `read`, `search`,
`edit`, `web`. A denial of a conversation is not lifted by one of a turn.

What a repository brings along does not widen a turn. Where the CLI would obey it whatever it is told
(Gemini: settings, hooks and servers in `.gemini`, variables in `.env`; OpenCode: plugins in
`.opencode`), the turn is refused unless its permission is `full`.
";
