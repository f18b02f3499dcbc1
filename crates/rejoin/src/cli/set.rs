//! `rejoin set`

use clap::Args;
use rejoin_core::{AgentName, Scope};
use rejoin_hub::{Continues, ConversationView, Want, Wish};

use super::change::{doing, report};
use super::rename::one_line;
use super::send::valid_key;
use crate::at::At;
use crate::failure::{Failure, Result};

/// Every key, with what it takes; those of an agent can be written `codex.model`.
const KEYS: &[(&str, &str)] = &[
    ("agent", "who answers when none is named"),
    ("permission", "read-only, edit, full or ask"),
    ("model", "of an agent; empty: its own choice"),
    ("tools", "of an agent: exactly these, A,B; empty: its own"),
    ("deny_tools", "of an agent: not these, A,B"),
    ("scope", "full or agent: what each agent sees"),
    (
        "resume",
        "true or false: false starts a new session with every turn",
    ),
    (
        "continue",
        "auto, ask or never: what a message over HTTP does that finds it idle",
    ),
    ("workdir", "the folder its turns run in"),
    ("key", "your own name for it; empty: none"),
    ("title", "its title"),
];

/// Change what belongs to a conversation: model, tools, permission, scope, …
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: agent permission model tools deny_tools scope resume continue workdir key title\nmodel, tools, deny_tools: of its agent, or of the one before the dot\n\nExamples:\n  rejoin set tmqx permission=full\n  rejoin set tmqx codex.model=gpt-5.2 scope=agent\n  rejoin set tmqx resume=false"
)]
pub(crate) struct SetArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: String,
    /// What is to be otherwise
    #[arg(value_name = "KEY=VALUE", required = true)]
    values: Vec<String>,
    /// Say what it would affect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(at: At<'_>, args: &SetArgs) -> Result<u8> {
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let wishes: Result<Vec<Wish>> = args
        .values
        .iter()
        .map(|pair| wish(at, &found.conversation, pair))
        .collect();
    let wishes = wishes?;
    let id = found.conversation.id;
    let changed = at.set(id, &wishes, doing(args.dry_run)).await?;
    let name = &found.conversation.handle;
    let sentence = format!("{name}: {}", args.values.join(", "));
    report(at.out(), &changed, &sentence);
    Ok(0)
}

fn wish(at: At<'_>, c: &ConversationView, pair: &str) -> Result<Wish> {
    let Some((key, value)) = pair.split_once('=') else {
        return Err(Failure::usage(format!("`{pair}` is not KEY=VALUE"))
            .try_this("rejoin set CONV permission=full"));
    };
    let (agent, key) = match key.rsplit_once('.') {
        Some((agent, key)) => (at.agent(agent)?, key),
        None => (own(c)?, key),
    };
    let wrong = |what: &str| Failure::usage(format!("{key}: {what}")).try_this("rejoin set --help");
    let list = |value: &str| -> Vec<String> {
        let parts = value.split(',').map(str::trim).filter(|p| !p.is_empty());
        parts.map(str::to_owned).collect()
    };
    let some = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    Ok(match key {
        "agent" => Wish::Agent(at.agent(value)?),
        "permission" => {
            let mode = value.parse();
            Wish::Permission(mode.map_err(|_| wrong("one of read-only, edit, full, ask"))?)
        }
        "scope" => Wish::Scope(match value {
            "full" => Scope::Full,
            "agent" => Scope::Agent,
            _ => return Err(wrong("one of full, agent")),
        }),
        "resume" => Wish::Fresh(match value {
            "true" => false,
            "false" => true,
            _ => return Err(wrong("true or false")),
        }),
        "continue" => Wish::Continues(match value {
            "auto" => Continues::Auto,
            "ask" => Continues::Ask,
            "never" => Continues::Never,
            _ => return Err(wrong("one of auto, ask, never")),
        }),
        "model" => Wish::Model(agent, some(value)),
        "tools" => Wish::Tools(agent, some(value).map(|v| list(&v))),
        "deny_tools" => Wish::DenyTools(agent, list(value)),
        "workdir" => Wish::Workdir(at.folder_text(std::path::Path::new(value))?),
        "key" => Wish::Key(some(value).map(|v| valid_key(&v)).transpose()?),
        "title" => Wish::Title(one_line(value)?),
        other => return Err(unknown(other)),
    })
}

/// Whoever answers in it.
fn own(c: &ConversationView) -> Result<AgentName> {
    AgentName::new(c.agent.as_str()).map_err(|e| Failure::usage(e.to_string()))
}

fn unknown(key: &str) -> Failure {
    let near = KEYS
        .iter()
        .min_by_key(|(known, _)| strsim::damerau_levenshtein(key, known))
        .filter(|(known, _)| strsim::damerau_levenshtein(key, known) <= 2);
    let hint = near.map_or_else(
        || {
            let all: Vec<_> = KEYS.iter().map(|(key, _)| *key).collect();
            format!("; there are {}", all.join(", "))
        },
        |(known, what)| format!("; did you mean `{known}` ({what})?"),
    );
    Failure::usage(format!("there is no setting `{key}`{hint}")).try_this("rejoin set --help")
}
