//! `rejoin set`

use clap::Args;
use rejoin_core::{AgentName, Scope};
use rejoin_hub::{Continues, ConversationView, NameKind, Setting, fields};

use super::change::{doing, report};
use super::rename::one_line;
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use rejoin_errors::{CommandError, Result};

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

/// Change settings of a conversation: model, tools, permission, scope, …
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: agent permission model tools deny_tools scope resume continue workdir key title\nmodel, tools, deny_tools: of its agent, or of the one before the dot\n\nExamples:\n  rejoin set tmqx permission=full\n  rejoin set tmqx codex.model=gpt-5.2 scope=agent\n  rejoin set tmqx resume=false"
)]
pub(crate) struct SetArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: String,
    /// Settings to change
    #[arg(value_name = "KEY=VALUE", required = true)]
    values: Vec<String>,
    /// Show the effect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for SetArgs {
    const NAME: &'static str = "set";
    const HELP: Help = Help::Change("settings");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &SetArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let wishes: Result<Vec<Setting>> = args
        .values
        .iter()
        .map(|pair| wish(hub, &found.conversation, pair))
        .collect();
    let wishes = wishes?;
    let id = found.conversation.id;
    let changed = hub.set(id, &wishes, doing(args.dry_run)).await?;
    let name = &found.conversation.handle;
    let sentence = format!("{name}: {}", args.values.join(", "));
    report(hub.out(), &changed, &sentence);
    Ok(0)
}

fn wish(hub: HubClient<'_>, c: &ConversationView, pair: &str) -> Result<Setting> {
    let Some((key, value)) = pair.split_once('=') else {
        return Err(CommandError::usage(format!("`{pair}` is not KEY=VALUE"))
            .try_this("rejoin set CONV permission=full"));
    };
    let (agent, key) = match key.rsplit_once('.') {
        Some((agent, key)) => (hub.agent(agent)?, key),
        None => (own(c)?, key),
    };
    let wrong =
        |what: &str| CommandError::usage(format!("{key}: {what}")).try_this("rejoin set --help");
    let list = |value: &str| -> Vec<String> {
        let parts = value.split(',').map(str::trim).filter(|p| !p.is_empty());
        parts.map(str::to_owned).collect()
    };
    let some = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    Ok(match key {
        "agent" => Setting::Agent(hub.agent(value)?),
        "permission" => {
            let mode = value.parse();
            Setting::Permission(mode.map_err(|_| wrong("one of read-only, edit, full, ask"))?)
        }
        "scope" => Setting::Scope(match value {
            "full" => Scope::Full,
            "agent" => Scope::Agent,
            _ => return Err(wrong("one of full, agent")),
        }),
        "resume" => Setting::Fresh(match value {
            "true" => false,
            "false" => true,
            _ => return Err(wrong("true or false")),
        }),
        "continue" => Setting::Continues(match value {
            "auto" => Continues::Auto,
            "ask" => Continues::Ask,
            "never" => Continues::Never,
            _ => return Err(wrong("one of auto, ask, never")),
        }),
        "model" => Setting::Model(agent, some(value)),
        "tools" => Setting::Tools(agent, some(value).map(|v| list(&v))),
        "deny_tools" => Setting::DenyTools(agent, list(value)),
        "workdir" => {
            let folder = hub.folder_text(std::path::Path::new(value));
            let next = format!("rejoin set {} workdir=.", c.handle);
            Setting::Workdir(folder.map_err(|e| e.try_this(next))?)
        }
        "key" => Setting::Key(some(value).map(|v| fields::key(&v)).transpose()?),
        "title" => Setting::Title(one_line(value)?),
        other => return Err(unknown(other)),
    })
}

/// The conversation's agent.
fn own(c: &ConversationView) -> Result<AgentName> {
    AgentName::new(c.agent.as_str()).map_err(|e| CommandError::usage(e.to_string()))
}

fn unknown(key: &str) -> CommandError {
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
    CommandError::usage(format!("there is no setting `{key}`{hint}")).try_this("rejoin set --help")
}
