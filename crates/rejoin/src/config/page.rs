//! docs/configuration.md, from the table of keys.

use std::fmt::Write;

use super::keys::{KEYS, Key, Trust};
use super::kind::{Kind, written};

const HEAD: &str = "\
# Configuration

<!-- Made by `rejoin config docs > docs/configuration.md`; the table stands in crates/rejoin/src/config/keys.rs. -->

rejoin reads, each over the one before:

1. `$XDG_CONFIG_HOME/rejoin/config.toml` (`~/.config/rejoin/config.toml`), or the file given with `--config`
2. `rejoin.toml`, looked for from the current folder up to the root of its git checkout; outside a
   checkout in the current folder only
3. environment variables: `REJOIN_SECTION_KEY`. Lists are written `a,b` or `[\"a\",\"b\"]`, tables
   `NAME=value,…` or as JSON. In the name of an agent or a model everything but letters and digits is
   `_`. An empty variable counts as none.

`rejoin config show` prints every value with where it came from, `rejoin config path` the files,
`rejoin config schema` a JSON Schema for your editor. A key that does not exist, or a value it cannot
have, is an error that names the line.

What a repository's file could abuse counts only after `rejoin trust`, for that file in that folder
and exactly as it then is; a changed file asks again. Until then commands that would run an agent, or
open a store named there, end with exit code 5; the others leave these keys out and say so. The last
column says which keys these are.

A time is a number with `s`, `m`, `h`, `d` or `w`.

What `[blobs]` does not say of a bucket is taken from `AWS_ACCESS_KEY_ID` with `AWS_SECRET_ACCESS_KEY`
and `AWS_SESSION_TOKEN`, `AWS_REGION` and `AWS_ENDPOINT_URL`.

Logins of the store do not reach agents: `DATABASE_URL`, every `PG…` variable that libpq reads, and
`AWS_*` except `AWS_REGION`, `AWS_DEFAULT_REGION`, `AWS_PROFILE`, `AWS_CA_BUNDLE` and
`AWS_BEARER_TOKEN_BEDROCK`. `pass_env` of an agent passes the variables that it names. An agent that logs
in to Bedrock receives all of `AWS_*` ([agents](agents.md#logins-and-variables)): give the bucket its own
key by `REJOIN_BLOBS_*`. No variable that begins with `REJOIN_` reaches an agent.
";

pub(crate) fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut open = None;
    for key in KEYS {
        let (section, name) = split(key);
        if open != Some(section) {
            let title = match section {
                "" => "At the top".to_owned(),
                section => format!("`[{}]`", section.replace('*', "NAME")),
            };
            let _infallible = write!(
                text,
                "\n## {title}\n\n| key | value | default | what it is for | needs trust |\n|---|---|---|---|---|\n"
            );
            open = Some(section);
        }
        let default = key
            .default()
            .map_or_else(String::new, |v| format!("`{}`", written(&v)));
        let _infallible = writeln!(
            text,
            "| `{name}` | {} | {default} | {} | {} |",
            value_words(key.kind),
            key.about,
            trust_words(key.trust)
        );
    }
    text
}

/// The section as it is written in a file, and the key in it.
fn split(key: &Key) -> (&'static str, &'static str) {
    let depth = if key.name.contains(".price.") { 2 } else { 1 };
    let at = key
        .name
        .rmatch_indices('.')
        .nth(depth - 1)
        .map(|(at, _)| at);
    at.map_or(("", key.name), |at| (&key.name[..at], &key.name[at + 1..]))
}

fn value_words(kind: Kind) -> String {
    match kind {
        Kind::OneOf(words) => code(words, " "),
        Kind::SomeOf(words) => format!("list of {}", code(words, " ")),
        Kind::Span(word) => format!("time, or `\"{word}\"`"),
        Kind::Map => "table of texts".into(),
        Kind::Word => "word".into(),
        Kind::Texts => "list of texts".into(),
        Kind::Money => "number, not negative".into(),
        Kind::Key => "64 hex letters".into(),
        Kind::Text | Kind::Bool | Kind::Whole { .. } | Kind::Share => kind.words(),
    }
}

fn trust_words(trust: Trust) -> String {
    match trust {
        Trust::Free => String::new(),
        Trust::Needed => "yes".into(),
        Trust::NeededFor(values) => format!("for {}", code(values, ", ")),
        Trust::NeededBeyond([]) => "if it differs from yours".into(),
        Trust::NeededBeyond(values) => {
            format!("if it differs from yours and is not {}", bare(values))
        }
    }
}

fn bare(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|w| format!("`{w}`")).collect();
    words.join(", ")
}

fn code(words: &[&str], between: &str) -> String {
    let words: Vec<_> = words.iter().map(|w| format!("`\"{w}\"`")).collect();
    words.join(between)
}
