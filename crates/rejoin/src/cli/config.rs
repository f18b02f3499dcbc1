//! `rejoin config`

mod change;

use clap::{Args, Subcommand};
use rejoin_runner::trust::TrustState;
use serde_json::{Value, json};

use crate::app::{Invocation, here};
use crate::cli::command::{Help, Run, Task};
use crate::config::{Loaded, Role, Setting, Source, schema, sources};
use crate::output::{Line, Output, Tone, table};
use rejoin_errors::Result;

/// Show or change the configuration
///
/// set, unset and edit change your own file, or the one of --config. Comments stay.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin config show                        every value and its source\n  rejoin config set default_agent codex\n  rejoin config set notify.on waiting,failed"
)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: What,
}

impl Run for ConfigArgs {
    const NAME: &'static str = "config";
    const HELP: Help = Help::SetUp("values");

    fn task(self) -> Task {
        Task::machine(self, async |on, args| run(on, args))
    }
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Print every value and its source: default, file and line, or variable
    Show,
    /// Print the files that are read, in order
    Path,
    /// Print a JSON Schema of the file, for your editor
    Schema,
    /// Set a key; a list is written a,b
    Set {
        /// Key, e.g. resume.breaker
        #[arg(value_name = "SETTING")]
        name: String,
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a key
    Unset {
        /// Key, e.g. resume.breaker
        #[arg(value_name = "SETTING")]
        name: String,
    },
    /// Open the file in your $EDITOR; a wrong file is refused
    Edit,
}

fn run(on: &Invocation, args: &ConfigArgs) -> Result<u8> {
    let (out, explicit) = (on.out, on.config_file());
    match &args.what {
        What::Set { name, value } => return change::set(on, name, value),
        What::Unset { name } => return change::unset(on, name),
        What::Edit => return change::edit(on),
        What::Show => show(out, &Loaded::load(explicit, &here()?)?),
        What::Path => {
            // Where they lie is worth knowing above all when something is wrong in them.
            let looked = sources(explicit, &here()?);
            let sources = Loaded::load(explicit, &here()?).map_or(looked, |l| l.sources);
            path(out, &sources);
        }
        What::Schema if out.json => out.json(&schema()),
        What::Schema => out.text(&serde_json::to_string_pretty(&schema()).unwrap_or_default()),
    }
    Ok(0)
}

fn show(out: Output, loaded: &Loaded) {
    if out.json {
        let one = |setting: &Setting, counts: bool| {
            let mut value =
                json!({"key": setting.path, "value": setting.shown(), "counts": counts});
            if let (Some(map), Value::Object(origin)) =
                (value.as_object_mut(), setting.origin.json())
            {
                map.extend(origin);
            }
            value
        };
        let mut settings: Vec<Value> = loaded.all().iter().map(|s| one(s, true)).collect();
        settings.extend(loaded.ignored.iter().map(|s| one(s, false)));
        let files: Vec<Value> = loaded.sources.iter().map(Source::json).collect();
        out.json(&json!({"settings": settings, "files": files}));
        return;
    }
    let fit = out.screen().then(|| out.width());
    let row = |setting: &Setting, note: &str| {
        let value = Line::plain(&setting.shown_words());
        let value = fit.map_or(value.clone(), |width| value.cut((width / 3).max(20)));
        let from = format!("{}{note}", setting.origin.words());
        vec![
            Line::new().with(Tone::Name, &setting.path),
            value,
            Line::faint(&from),
        ]
    };
    let mut rows: Vec<_> = loaded.all().iter().map(|s| row(s, "")).collect();
    rows.extend(
        loaded
            .ignored
            .iter()
            .map(|s| row(s, "  left out: not trusted (rejoin trust)")),
    );
    // Where a value came from is what one asks for: it is never cut.
    out.lines(&table(&rows, None));
}

fn path(out: Output, sources: &[Source]) {
    if out.json {
        let files: Vec<Value> = sources.iter().map(Source::json).collect();
        out.json(&json!({ "files": files }));
        return;
    }
    let rows: Vec<_> = sources
        .iter()
        .map(|source| {
            let path = source.path.display().to_string();
            vec![
                Line::new().with(Tone::Name, &path),
                Line::faint(&state(source)),
            ]
        })
        .collect();
    out.lines(&table(&rows, None));
}

/// The state of a configuration file in a few words.
pub(super) fn state(source: &Source) -> String {
    let role = match source.role {
        Role::Yours => "yours",
        Role::Named => "named with --config",
        Role::Repository => "repository",
    };
    let state = match source.trust {
        _ if !source.exists => "not there",
        None => "there",
        Some(TrustState::NotNeeded) => "there, needs no trust",
        Some(TrustState::Trusted) => "there, trusted",
        Some(TrustState::Untrusted) => "there, not trusted",
        Some(TrustState::Changed) => "there, changed since it was trusted",
    };
    format!("{role}: {state}")
}
