//! Every key of the configuration, once: what is checked, explained, offered as a schema and asked
//! trust for all comes from this table.

use super::kind::Kind;

/// A key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Dotted; `*` stands for a name of the user's choosing, `[]` for the tables of a list.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// As JSON; empty: none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
    pub(crate) trust: Trust,
}

/// Tells whether a key counts in a repository's file before `rejoin trust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    Free,
    Needed,
    /// Only these values need it.
    NeededFor(&'static [&'static str]),
    /// These values never do, nor does what applies without the file; everything else does.
    NeededBeyond(&'static [&'static str]),
}

use Kind::{Bool, Limits, Map, Money, OneOf, Share, SomeOf, Span, Text, Texts, Whole, Word};
use Trust::{Free, Needed, NeededBeyond, NeededFor};

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    trust: Trust,
    about: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        about,
        trust,
    }
}

const WINDOW: Kind = Whole {
    least: 1_000,
    most: 100_000_000,
};

/// In the order in which they are shown.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    key("default_agent", Word, "\"claude\"", NeededFor(&["demo"]),
        "Agent of a new conversation"),
    key("permission", OneOf(&["read-only", "edit", "full", "ask"]), "\"edit\"", NeededBeyond(&["read-only"]),
        "Permission of a new conversation"),
    key("agents.*.bin", Text, "", Needed,
        "Program, by name or path; a relative path starts at the file's folder. An unknown agent name defines an agent of your own"),
    key("agents.*.kind", OneOf(&["command"]), "", Needed,
        "`command`: a CLI that rejoin has no adapter for, described by the following keys"),
    key("agents.*.start_args", Texts, "", Needed, "Arguments of a first turn; {session}, {model} and {folder} are replaced"),
    key("agents.*.resume_args", Texts, "", Needed, "Arguments that resume {session}"),
    key("agents.*.prompt", OneOf(&["stdin", "argument"]), "\"stdin\"", Needed, "Where the program reads the prompt"),
    key("agents.*.stdout", OneOf(&["file", "pty"]), "\"file\"", Needed, "`pty`: give the program a terminal, if it prints only to one"),
    key("agents.*.permission.read-only", Texts, "", Needed, "Arguments that restrict it to reading; a mode without arguments cannot be used"),
    key("agents.*.permission.edit", Texts, "", Needed, "Arguments that allow changes in the folder"),
    key("agents.*.permission.full", Texts, "", Needed, "Arguments that allow everything"),
    key("agents.*.permission.ask", Texts, "", Needed, "Arguments that make it ask a person a person"),
    key("agents.*.session_from", Text, "", Needed, "JSON line and path of the session id: `TYPE /key/key`; default: rejoin chooses the id, {session}"),
    key("agents.*.text_from", Texts, "", Needed, "Paths of the answer; default: the whole output"),
    key("agents.*.error_from", Text, "", Needed, "Path of the error message"),
    key("agents.*.input_from", Text, "", Needed, "Path of the input token count"),
    key("agents.*.output_from", Text, "", Needed, "Path of the output token count"),
    key("agents.*.cost_from", Text, "", Needed, "Path of the cost, in US dollars"),
    key("agents.*.totals", OneOf(&["run", "session"]), "", Needed, "Scope of these counts; default: a resumed turn has no cost"),
    key("agents.*.done_on", Word, "", Needed, "Type of the line that marks success; without that line a run has failed"),
    key("agents.*.refused", Text, "", Needed, "Text of its error for an unknown session"),
    key("agents.*.session_file", Text, "", Needed, "Session file, `~/folder/{session}.jsonl`; a folder may be `*`. Without it rejoin resumes nothing"),
    key("agents.*.session_user", Text, "", Needed, "Path of a prompt in the lines of that file"),
    key("agents.*.session_assistant", Text, "", Needed, "Path of an answer in the lines of that file"),
    key("agents.*.args", Texts, "", Needed, "Arguments added to every run"),
    key("agents.*.env", Map, "", Needed, "Variables set for every run"),
    key("agents.*.pass_env", Texts, "", Needed, "Variables to pass on that rejoin otherwise withholds from the agent"),
    key("agents.*.model", Word, "", Free, "Model, if neither the command nor the conversation names one"),
    key("agents.*.resume", Bool, "true", Free, "`false`: start every turn in a new session with the transcript"),
    key("agents.*.enabled", Bool, "true", NeededBeyond(&["false"]), "`false`: refuse to run this agent"),
    key("agents.*.idle_timeout", Span("never"), "", Free,
        "Stop a turn whose agent prints nothing for this time, unless a tool call or a question is open; default: 30m, demo 2h, an agent of your own 6h"),
    key("resume.context_threshold", Share, "0.8", Free,
        "Share of the context window beyond which a session is replaced by a new one with the transcript"),
    key("resume.breaker", Whole { least: 1, most: 1_000 }, "2", Free,
        "Failed turns in a row after which a session is retired"),
    key("resume.scope", OneOf(&["full", "agent"]), "\"full\"", Free,
        "Messages that an agent sees in a new conversation: all, or those after the last answer of another agent"),
    key("resume.after_compaction", OneOf(&["resume", "reseed"]), "\"resume\"", Free,
        "How to continue after the agent compacted its session"),
    key("resume.model_change", OneOf(&["resume", "reseed"]), "\"resume\"", Free,
        "How to continue a session of another model"),
    key("questions.ask", OneOf(&["terminal", "always", "never"]), "\"terminal\"", Free,
        "When a turn waits for a person to answer a question: if one is at the terminal, always (`rejoin inbox`), or never"),
    key("questions.defer_after", Span("never"), "\"20s\"", Free,
        "Time for which an agent that can resume later keeps its process while it waits for an answer"),
    key("snapshots.enabled", Bool, "true", NeededBeyond(&[]),
        "`false`: rejoin saves no copies of sessions"),
    key("snapshots.keep_latest", Span("forever"), "\"forever\"", NeededBeyond(&[]),
        "Lifetime of the newest snapshot of each session"),
    key("snapshots.keep_older", Span("forever"), "\"30d\"", NeededBeyond(&[]), "Lifetime of older snapshots"),
    key("snapshots.key", Kind::Key, "", Needed, "Key that encrypts snapshots"),
    key("snapshots.key_file", Text, "", Needed,
        "File with keys, one per line: the first encrypts, the others decrypt older snapshots. No other user may be able to read it"),
    key("retention.deltas", Span("forever"), "\"7d\"", NeededBeyond(&[]),
        "Time after which the streamed pieces of a succeeded turn's text (`text.delta`) are removed; the text itself stays"),
    key("serve.listen", Text, "\"127.0.0.1:7377\"", Needed, "Address that the daemon listens on"),
    key("serve.allow_hosts", Texts, "[]", Needed, "Host names of the daemon, besides those of loopback"),
    key("serve.public_url", Text, "", Needed, "Public address behind a proxy: `https://rejoin.example.org`"),
    key("serve.roots", Texts, "[]", NeededBeyond(&[]),
        "Working folders that the daemon allows; empty: any on loopback, and no start on other addresses"),
    key("serve.max_permission", OneOf(&["read-only", "ask", "edit", "full"]), "\"edit\"", NeededBeyond(&["read-only"]),
        "Highest permission that a token may request, unless it was created with its own ceiling"),
    key("serve.max_running", Whole { least: 1, most: 10_000 }, "64", Needed,
        "Number of agents that run at the same time; more messages wait in the queue"),
    key("serve.max_queued", Whole { least: 0, most: 1_000_000 }, "10000", Needed,
        "Length of the queue; more messages are refused with 429 `rate_limited`, and not stored"),
    key("serve.warm", Whole { least: 0, most: 1_000 }, "4", Free,
        "Number of agent processes kept between turns, for agents that support it; 0: none"),
    key("serve.warm_for", Span("never"), "\"5m\"", Free, "Time that each of them waits for the next message"),
    key("serve.warm_mib", Whole { least: 1, most: 1_000_000 }, "1024", Free, "Memory limit of each of them, in MiB"),
    key("workflows.dir", Text, "", Needed,
        "Folder of the workflows that `POST /api/workflows` can name"),
    key("notify.on", SomeOf(&["waiting", "failed", "reseeded", "succeeded", "cancelled", "lost", "done", "escalated", "refused"]),
        "[\"waiting\",\"failed\",\"reseeded\"]", Free, "Events that send a notification"),
    key("notify.command", Texts, "", Needed, "Program and arguments to run for a notification"),
    key("notify.webhook", Text, "", Needed, "URL that receives signed notifications"),
    key("notify.secret", Text, "", Needed, "Signing secret (Standard Webhooks, HMAC-SHA256); `whsec_…` is decoded as base64"),
    key("notify.done_after", Span("never"), "\"1m\"", Free, "`done` means: a turn succeeded after this time or longer"),
    key("notify.urls", Texts, "[]", Needed, "URL prefixes allowed in the `notify_url` of a request"),
    key("wall.mode", OneOf(&["auto", "off", "required"]), "\"auto\"", NeededBeyond(&["required"]),
        "Kernel wall between agents and rejoin's data and configuration folders: if the machine supports it, never, or always (a turn without a wall is refused)"),
    key("log.level", OneOf(&["off", "error", "warn", "info", "debug"]), "", Free,
        "Log level on stderr; default: `info` in the daemon, `off` in commands"),
    key("log.format", OneOf(&["text", "json"]), "\"text\"", Free, "Log lines as text or JSON"),
    key("models.*.window", WINDOW, "", Free, "Context window in tokens"),
    key("models.*.price.input", Money, "", Free, "US dollars per million input tokens"),
    key("models.*.price.output", Money, "", Free, "US dollars per million output tokens"),
    key("models.*.price.cache_read", Money, "", Free, "US dollars per million tokens read from the cache"),
    key("models.*.price.cache_write", Money, "", Free, "US dollars per million tokens written to the cache"),
    key("database.url", Text, "", Needed, "Store, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; default: rejoin.db in REJOIN_HOME"),
    key("blobs.url", Text, "\"db:\"", NeededBeyond(&[]), "Storage of snapshots: `db:`, `file:PATH`, `s3://BUCKET/PREFIX`"),
    key("blobs.endpoint", Text, "", Needed, "Address of the server, if not Amazon's: `https://host:port`"),
    key("blobs.region", Word, "", Needed, "Region of the bucket; default: `us-east-1`"),
    key("blobs.access_key_id", Word, "", Needed, "Access key of the bucket"),
    key("blobs.secret_access_key", Word, "", Needed, "Secret key of the bucket"),
    key("tier[].name", Word, "", Needed, "Name of the tier. The order of the tables is the order of the tiers, lowest first"),
    key("tier[].role", Text, "", Needed, "Name of the tier in prompts; default: its name"),
    key("tier[].agent", Word, "", Needed, "Agent; default: the agent of the conversation"),
    key("tier[].model", Word, "", Needed, "Model; default: the model of the conversation"),
    key("tier[].permission", OneOf(&["read-only", "edit", "full", "ask"]), "", Needed, "Permission; default: that of the conversation"),
    key("tier[].tools", Texts, "", Needed, "Exactly these tools. A read-only tier may name a tool for commands; what its commands do is limited by `deny_tools` alone"),
    key("tier[].deny_tools", Texts, "", Needed, "Denied tools. The list replaces the conversation's for the turns of the tier"),
    key("tier[].may", Texts, "", Needed, "Categories of actions that the tier is authorised to take"),
    key("tier[].dry_run", Bool, "", Needed, "`true`: deny tools that write or run commands"),
    key("tier[].timeout", Span("never"), "", Needed, "Time limit of one turn"),
    key("tier[].max_cost_usd", Money, "", Needed, "Cost limit of one turn, in US dollars"),
    key("tier[].cooldown", Span("none"), "", Needed, "Minimum time between two climbs into the tier, per conversation"),
    key("tier[].approval", Bool, "", Needed, "`true`: a person must approve each climb into the tier (`rejoin inbox`)"),
    key("tier[].limit", Limits, "", Needed, "Calls of tools that the tier may make within a time: `[{ tool = \"Bash(docker restart:*)\", max = 2, per = \"4h\" }]`"),
    key("tier[].prompt", Text, "", Needed, "Template that replaces the built-in escalation prompt; a relative path starts at the file's folder"),
    key("climb.max_tier", Word, "", Needed, "Highest tier that a climb may reach"),
    key("climb.max_cost_usd", Money, "", Needed, "Cost of a chain beyond which it does not climb, in US dollars"),
    key("climb.hold", Bool, "false", NeededBeyond(&["true"]), "`true`: allow no climb"),
    key("schedule[].name", Word, "", Needed, "Name of the schedule"),
    key("schedule[].every", Span("never"), "", Needed, "Interval, counted from 1970, so that it is the same on every machine; one second at least"),
    key("schedule[].cron", Text, "", Needed, "Times instead of an interval: minute, hour, day, month, day of week"),
    key("schedule[].timezone", Text, "", Needed, "Time zone of `cron` and of `{date}`; default: UTC"),
    key("schedule[].tier", Word, "", Needed, "Tier of the turn"),
    key("schedule[].climb", Bool, "", Needed, "`true`: climb to higher tiers by policy, as long as the agent asks for one"),
    key("schedule[].prompt", Text, "", Needed, "Message that is sent"),
    key("schedule[].prompt_file", Text, "", Needed, "File with the message; a relative path starts at the file's folder"),
    key("schedule[].workdir", Text, "", Needed, "Working folder; a relative path starts at the file's folder. Default: the conversation's, or that of the daemon"),
    key("schedule[].key", Text, "", Needed, "Key of the conversation that is continued; `{date}` begins one a day. Default: a new conversation each time"),
    key("schedule[].overlap", OneOf(&["skip", "queue"]), "", Needed, "Behaviour while the turns of the occurrence before run, or wait for an approval; default: skip"),
];

/// Returns the names of the agents that need no `bin` to be known.
pub(crate) fn agents<'a>() -> impl Iterator<Item = &'a str> {
    let name = |adapter: &&dyn rejoin_agents::Adapter| -> &'a str { adapter.name() };
    rejoin_agents::ADAPTERS.iter().map(name)
}

/// Position of a name in a file.
pub(crate) enum Place {
    Leaf(&'static Key),
    /// A section, by its pattern.
    Section(String),
    /// A section whose name the user chose.
    Named(String),
    /// A list of sections.
    List(String),
    Unknown,
}

/// The position of `name` beneath the section of that pattern (empty: the top).
pub(crate) fn place(pattern: &str, name: &str) -> Place {
    let full = join(pattern, name);
    let any = |prefix: &str| KEYS.iter().any(|k| k.name.starts_with(prefix));
    if let Some(key) = KEYS.iter().find(|k| k.name == full) {
        Place::Leaf(key)
    } else if any(&format!("{full}.")) {
        Place::Section(full)
    } else if any(&format!("{full}[].")) {
        Place::List(format!("{full}[]"))
    } else if any(&format!("{}.", join(pattern, "*"))) {
        Place::Named(join(pattern, "*"))
    } else {
        Place::Unknown
    }
}

/// The names that can stand in the section of that pattern.
pub(crate) fn names_in(pattern: &str) -> Vec<&'static str> {
    let prefix = if pattern.is_empty() {
        String::new()
    } else {
        format!("{pattern}.")
    };
    let mut names: Vec<&str> = KEYS
        .iter()
        .filter_map(|k| k.name.strip_prefix(prefix.as_str()))
        .map(|rest| rest.split('.').next().unwrap_or(rest))
        .map(|name| name.trim_end_matches("[]"))
        .collect();
    names.dedup();
    names
}

pub(crate) fn join(pattern: &str, name: &str) -> String {
    if pattern.is_empty() {
        name.to_owned()
    } else {
        format!("{pattern}.{name}")
    }
}

impl Key {
    /// Returns true if it belongs to the tables of a list.
    pub(crate) fn in_list(&self) -> bool {
        self.name.contains("[]")
    }

    /// The environment variable that sets it. No variable sets the keys of a list.
    pub(crate) fn variable(&self) -> String {
        let name = self.name.replace('*', "NAME").replace('.', "_");
        format!("REJOIN_{}", name.to_ascii_uppercase())
    }

    pub(crate) fn default(&self) -> Option<serde_json::Value> {
        serde_json::from_str(self.default).ok()
    }

    /// May its value be shown to anybody who looks at the screen?
    pub(crate) fn secret(&self) -> bool {
        let named = [
            "database.url",
            "blobs.url",
            "blobs.endpoint",
            "notify.webhook",
        ];
        matches!(self.kind, Map) || self.all_secret() || named.contains(&self.name)
    }

    /// Nothing of it may be.
    pub(crate) fn all_secret(&self) -> bool {
        let named = ["blobs.secret_access_key", "notify.secret"];
        matches!(self.kind, Kind::Key) || named.contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values_their_key_can_have() {
        for key in KEYS {
            assert_eq!(
                key.default().is_none(),
                key.default.is_empty(),
                "{}",
                key.name
            );
            if let Some(value) = key.default() {
                assert!(key.kind.fits(&value), "{}", key.name);
            }
        }
    }

    #[test]
    fn keys_of_a_section_stand_together() {
        assert_eq!(
            names_in(""),
            [
                "default_agent",
                "permission",
                "agents",
                "resume",
                "questions",
                "snapshots",
                "retention",
                "serve",
                "workflows",
                "notify",
                "wall",
                "log",
                "models",
                "database",
                "blobs",
                "tier",
                "climb",
                "schedule"
            ]
        );
        assert_eq!(names_in("models.*"), ["window", "price"]);
    }
}
