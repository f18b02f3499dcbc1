//! `rejoin config`

use std::path::Path;

use clap::{Args, Subcommand};
use rejoin_runner::trust::TrustState;
use serde_json::{Value, json};

use crate::app::here;
use crate::config::{Loaded, Role, Setting, Source, page, schema, sources};
use crate::failure::Result;
use crate::output::{Line, Output, Tone, table};

/// Show the configuration, and where each value comes from
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Print every value with where it came from: default, file and line, or variable
    Show,
    /// Print the files that are read, in order
    Path,
    /// Print a JSON Schema of the file, for your editor
    Schema,
    /// Print the page docs/configuration.md
    #[command(hide = true)]
    Docs,
}

pub(crate) fn run(args: &ConfigArgs, out: Output, explicit: Option<&Path>) -> Result<u8> {
    match args.what {
        What::Show => show(out, &Loaded::load(explicit, &here()?)?),
        What::Path => {
            // Where they lie is worth knowing above all when something is wrong in them.
            let looked = sources(explicit, &here()?);
            let sources = Loaded::load(explicit, &here()?).map_or(looked, |l| l.sources);
            path(out, &sources);
        }
        What::Schema if out.json => out.json(&schema()),
        What::Schema => out.text(&serde_json::to_string_pretty(&schema()).unwrap_or_default()),
        What::Docs => out.text(&page()),
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

/// What became of a file, in a few words.
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
