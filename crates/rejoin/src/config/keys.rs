//! Every key of the configuration, once: what is checked, explained, offered as a schema and asked
//! trust for all comes from this table.

use super::kind::Kind;

/// A key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Dotted; `*` stands for a name of the user's choosing.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// As JSON; empty: none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
    pub(crate) trust: Trust,
}

/// Does it count in a repository's file before `rejoin trust`?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    Free,
    Needed,
    /// Only these values need it.
    NeededFor(&'static [&'static str]),
    /// These values never do, nor does what applies without the file; everything else does.
    NeededBeyond(&'static [&'static str]),
}

use Kind::{Bool, Map, Money, OneOf, Share, SomeOf, Span, Text, Texts, Whole, Word};
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
        "Agent that answers in a new conversation"),
    key("permission", OneOf(&["read-only", "edit", "full", "ask"]), "\"edit\"", NeededBeyond(&["read-only"]),
        "What an agent may do in a new conversation"),
    key("agents.*.bin", Text, "", Needed,
        "Program, by name or path; a relative path is taken from the file's folder. A name rejoin does not know becomes an agent of your own"),
    key("agents.*.kind", OneOf(&["command"]), "", Needed,
        "`command`: a CLI that rejoin does not know, described by the keys that follow"),
    key("agents.*.start_args", Texts, "", Needed, "Its arguments for a first turn; {session}, {model} and {folder} are filled in"),
    key("agents.*.resume_args", Texts, "", Needed, "Its arguments for going on with {session}"),
    key("agents.*.prompt", OneOf(&["stdin", "argument"]), "\"stdin\"", Needed, "How it gets the prompt"),
    key("agents.*.stdout", OneOf(&["file", "pty"]), "\"file\"", Needed, "`pty`: it prints only to a terminal"),
    key("agents.*.permission.read-only", Texts, "", Needed, "Arguments that hold it to reading; none of these four: it cannot be run so"),
    key("agents.*.permission.edit", Texts, "", Needed, "Arguments that let it change files in the folder"),
    key("agents.*.permission.full", Texts, "", Needed, "Arguments that let it do anything"),
    key("agents.*.permission.ask", Texts, "", Needed, "Arguments that make it ask"),
    key("agents.*.session_from", Text, "", Needed, "Where it says its session: `TYPE /key/key` in a line of JSON; none: it is told {session}"),
    key("agents.*.text_from", Texts, "", Needed, "Where its answer stands; none: all it prints"),
    key("agents.*.error_from", Text, "", Needed, "Where it says what went wrong"),
    key("agents.*.input_from", Text, "", Needed, "Where it says how many tokens it read"),
    key("agents.*.output_from", Text, "", Needed, "Where it says how many tokens it wrote"),
    key("agents.*.cost_from", Text, "", Needed, "Where it says what it cost, in US dollars"),
    key("agents.*.totals", OneOf(&["run", "session"]), "", Needed, "What those cover; none: nothing is charged for a resumed turn"),
    key("agents.*.done_on", Word, "", Needed, "Type of the line without which it has not succeeded"),
    key("agents.*.refused", Text, "", Needed, "What it says when it does not know a session"),
    key("agents.*.session_file", Text, "", Needed, "Its session, `~/folder/{session}.jsonl`; a folder may be `*`. Without it nothing is resumed"),
    key("agents.*.session_user", Text, "", Needed, "Where a prompt stands in the lines of that file"),
    key("agents.*.session_assistant", Text, "", Needed, "Where an answer stands in the lines of that file"),
    key("agents.*.args", Texts, "", Needed, "Arguments added to every run"),
    key("agents.*.env", Map, "", Needed, "Variables set for every run"),
    key("agents.*.pass_env", Texts, "", Needed, "Variables handed on although rejoin would keep them from the agent"),
    key("agents.*.model", Word, "", Free, "Model, where neither the command nor the conversation names one"),
    key("agents.*.resume", Bool, "true", Free, "`false`: start a new session for every turn and tell it what was said"),
    key("agents.*.enabled", Bool, "true", NeededBeyond(&["false"]), "`false`: refuse to run this agent"),
    key("agents.*.idle_timeout", Span("never"), "", Free,
        "Stop a turn whose agent prints nothing for this time, while no tool call is open and nobody is asked; default: 30m, demo 2h, an agent of your own 6h"),
    key("resume.context_threshold", Share, "0.8", Free,
        "How full a session's context may be before a new session is told what was said"),
    key("resume.breaker", Whole { least: 1, most: 1_000 }, "2", Free,
        "Failed turns in a row after which a session is not used again"),
    key("resume.scope", OneOf(&["full", "agent"]), "\"full\"", Free,
        "What an agent sees in a new conversation: everything, or what follows the last answer of another agent"),
    key("resume.after_compaction", OneOf(&["resume", "reseed"]), "\"resume\"", Free,
        "What to do with a session that its agent compacted"),
    key("resume.model_change", OneOf(&["resume", "reseed"]), "\"resume\"", Free,
        "What to do with a session of another model"),
    key("questions.ask", OneOf(&["terminal", "always", "never"]), "\"terminal\"", Free,
        "When a turn waits for a person to answer what its agent asks: if one sits at the terminal, always (`rejoin inbox`), or never"),
    key("questions.defer_after", Span("never"), "\"20s\"", Free,
        "How long an agent that can go on later keeps its process while it waits for an answer"),
    key("snapshots.enabled", Bool, "true", NeededBeyond(&[]),
        "`false`: sessions are kept nowhere but where their agent keeps them"),
    key("snapshots.keep_latest", Span("forever"), "\"forever\"", NeededBeyond(&[]),
        "How long the newest snapshot of each session is kept"),
    key("snapshots.keep_older", Span("forever"), "\"30d\"", NeededBeyond(&[]), "How long older snapshots are kept"),
    key("snapshots.key", Kind::Key, "", Needed, "Snapshots are encrypted with it"),
    key("snapshots.key_file", Text, "", Needed,
        "File with such keys instead, one per line: the first is used, those below open what they once encrypted. Nobody else may read it"),
    key("serve.listen", Text, "\"127.0.0.1:7377\"", Needed, "Address that the daemon listens on"),
    key("serve.allow_hosts", Texts, "[]", Needed, "Names by which the daemon is reached, besides those of loopback"),
    key("serve.public_url", Text, "", Needed, "Where browsers see it, behind a proxy: `https://rejoin.example.org`"),
    key("serve.roots", Texts, "[]", NeededBeyond(&[]),
        "Working folders the daemon allows; none: any on loopback, and a refusal to start elsewhere"),
    key("serve.max_permission", OneOf(&["read-only", "ask", "edit", "full"]), "\"edit\"", NeededBeyond(&["read-only"]),
        "The most that a token may ask an agent to do, unless it was created with a ceiling of its own"),
    key("serve.max_running", Whole { least: 1, most: 10_000 }, "64", Needed,
        "How many agents the daemon runs at the same time; further messages wait in the queue"),
    key("serve.max_queued", Whole { least: 0, most: 1_000_000 }, "10000", Needed,
        "How many messages may wait in the queue; further ones are refused with 429 `rate_limited`, and not kept"),
    key("serve.warm", Whole { least: 0, most: 1_000 }, "4", Free,
        "How many agents' processes may stay up between turns, where the agent can do that; 0: none"),
    key("serve.warm_for", Span("never"), "\"5m\"", Free, "How long each of them waits for the next message"),
    key("serve.warm_mib", Whole { least: 1, most: 1_000_000 }, "1024", Free, "How much memory each of them may hold, in MiB"),
    key("notify.on", SomeOf(&["waiting", "failed", "reseeded", "succeeded", "cancelled", "lost", "done"]),
        "[\"waiting\",\"failed\",\"reseeded\"]", Free, "What is worth a notification"),
    key("notify.command", Texts, "", Needed, "Program and arguments that are run for one"),
    key("notify.webhook", Text, "", Needed, "Address that one is sent to, signed"),
    key("notify.secret", Text, "", Needed, "What it is signed with (Standard Webhooks, HMAC-SHA256); `whsec_…` is taken as base64"),
    key("notify.done_after", Span("never"), "\"1m\"", Free, "`done`: a turn has succeeded after this time or longer"),
    key("notify.urls", Texts, "[]", Needed, "Addresses at or below which a message over HTTP may name a notify_url"),
    key("wall.mode", OneOf(&["auto", "off", "required"]), "\"auto\"", NeededBeyond(&["required"]),
        "Wall of the kernel between agents and rejoin's data and configuration folders: if the machine can build one, never, or always (a turn without one is refused)"),
    key("log.level", OneOf(&["off", "error", "warn", "info", "debug"]), "", Free,
        "What is written to stderr about what goes on; the daemon: `info`, commands: nothing"),
    key("log.format", OneOf(&["text", "json"]), "\"text\"", Free, "As lines for people, or as JSON objects"),
    key("models.*.window", WINDOW, "", Free, "Context window in tokens"),
    key("models.*.price.input", Money, "", Free, "US dollars for a million tokens read"),
    key("models.*.price.output", Money, "", Free, "US dollars for a million tokens written"),
    key("models.*.price.cache_read", Money, "", Free, "US dollars for a million tokens read from the cache"),
    key("models.*.price.cache_write", Money, "", Free, "US dollars for a million tokens put into the cache"),
    key("database.url", Text, "", Needed, "Store, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; default: rejoin.db in REJOIN_HOME"),
    key("blobs.url", Text, "\"db:\"", NeededBeyond(&[]), "Where snapshots lie: `db:`, `file:PATH`, `s3://BUCKET/PREFIX`"),
    key("blobs.endpoint", Text, "", Needed, "Address of the server, where it is not Amazon's: `https://host:port`"),
    key("blobs.region", Word, "", Needed, "Region of the bucket; none: `us-east-1`"),
    key("blobs.access_key_id", Word, "", Needed, "Key for the bucket"),
    key("blobs.secret_access_key", Word, "", Needed, "Its secret half"),
];

/// Sections that a later version fills, with the reason why this one refuses them.
pub(crate) const RESERVED: &[(&str, &str)] = &[(
    "tier",
    "this version of rejoin has no tiers; use `--permission`, `--tools`, `--deny-tools` and `-m`",
)];

/// Agents that need no `bin` to be known.
pub(crate) const AGENTS: &[&str] = &["claude", "codex", "gemini", "opencode", "demo"];

/// Where a name stands in a file.
pub(crate) enum Place {
    Leaf(&'static Key),
    /// A section, by its pattern.
    Section(String),
    /// A section whose name the user chose.
    Named(String),
    /// A section of [`RESERVED`]; the reason.
    Reserved(&'static str),
    Unknown,
}

/// What `name` is beneath the section of that pattern (empty: the top).
pub(crate) fn place(pattern: &str, name: &str) -> Place {
    let full = join(pattern, name);
    let any = |prefix: &str| KEYS.iter().any(|k| k.name.starts_with(prefix));
    if let Some(key) = KEYS.iter().find(|k| k.name == full) {
        Place::Leaf(key)
    } else if any(&format!("{full}.")) {
        Place::Section(full)
    } else if let Some((_, why)) = RESERVED.iter().find(|(section, _)| *section == full) {
        Place::Reserved(why)
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
    /// The environment variable that sets it.
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
                "serve",
                "notify",
                "wall",
                "log",
                "models",
                "database",
                "blobs"
            ]
        );
        assert_eq!(names_in("models.*"), ["window", "price"]);
    }
}
