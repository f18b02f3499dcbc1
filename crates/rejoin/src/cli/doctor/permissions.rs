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

## Logins and variables

An agent receives the caller's environment, without these:

- variables that begin with `REJOIN_`, and those in which another session reports itself;
- keys of other vendors, for an agent with one vendor (claude, gemini);
- logins of a database: `DATABASE_URL` and every `PG…` variable that libpq reads;
- `AWS_*`, which may be the login of the store's bucket. `AWS_REGION`, `AWS_DEFAULT_REGION`, `AWS_PROFILE`,
  `AWS_CA_BUNDLE` and, for claude, codex, opencode and described agents, `AWS_BEARER_TOKEN_BEDROCK` stay.

`[agents.NAME] pass_env = [\"DATABASE_URL\"]` passes variables by name, and `env` sets them. An agent that
logs in to Amazon Bedrock receives all of `AWS_*`:

- claude: `CLAUDE_CODE_USE_BEDROCK`, `CLAUDE_CODE_USE_MANTLE` or `CLAUDE_CODE_USE_ANTHROPIC_AWS` is on in the
  environment, in `[agents.claude] env`, or in `env` of the user's `settings.json`;
- codex: `model_provider = \"amazon-bedrock\"` in the user's `config.toml`, also in a profile;
- opencode: the user's `opencode.json` names the provider `amazon-bedrock` or a model of it. A model that
  only `--model` names does not count: pass the variables by name.

If store and agent both use AWS, give the store's bucket its own key by `REJOIN_BLOBS_ACCESS_KEY_ID` and
`REJOIN_BLOBS_SECRET_ACCESS_KEY`.

## Sessions that another process has open

A turn does not touch a session that another process is writing (`in_use`). How rejoin finds that process:

| agent | found by |
|---|---|
| claude | the note that Claude Code keeps of each running process |
| codex | the lock that Codex holds for each open thread |
| opencode | the lock on the session's database |
| gemini, described agents | nothing: these CLIs leave no trace. Only a terminal that `rejoin open` started is found, by its marker |

With gemini and described agents the check `in_use` says `unknown`, and a turn does not wait for such a process. Turns that it
added before are found by the session's bytes and read into the history. A session is confirmed only if it holds the prompt and the
answer of the turn, so one that both wrote at the same time is cut back or not used again.
";
