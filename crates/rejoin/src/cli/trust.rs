//! `rejoin trust`

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::app::{data_home, here};
use crate::config::{
    ConfigFile, Loaded, Setting, TrustList, TrustState, TrustedFile, real_place, repository_file,
    written,
};
use crate::failure::{Failure, Result};
use crate::output::{Line, Output, Tone, table};

/// As much of a value as is shown: the rest of a long one must not push others off the screen.
const SHOWN: usize = 240;

/// Let a repository's rejoin.toml choose programs, arguments, environment and permissions
///
/// Shows what the file sets that needs trust, and stores that you trust exactly this file in exactly
/// this folder. A changed file asks again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin trust --dry-run     see what it would allow\n  rejoin trust               allow it\n  rejoin trust --revoke      take it back"
)]
pub(crate) struct TrustArgs {
    /// The file, or a folder in which it applies; default: the one that applies here
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Only show what it would allow
    #[arg(short = 'n', long, conflicts_with_all = ["list", "revoke"])]
    dry_run: bool,
    /// List the files you trust
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Trust it no longer
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(args: &TrustArgs, out: Output, explicit: Option<&Path>) -> Result<u8> {
    let home = data_home()?;
    if args.list {
        list(out, &TrustList::load(&home));
        return Ok(0);
    }
    if std::env::var_os(rejoin_agents::MARKER).is_some() && !args.dry_run {
        return Err(Failure::untrusted(
            "an agent cannot decide what you trust; this is a turn's process",
        )
        .try_this("rejoin trust, in a terminal of your own"));
    }
    if args.revoke {
        return revoke(args, out, &home);
    }
    let file = ConfigFile::read(&found(args.path.as_deref())?)?;
    let settings = file.settings()?;
    let needing = Loaded::own(explicit)?.needing_trust(&settings);
    let before = if needing.is_empty() {
        TrustState::NotNeeded
    } else {
        TrustList::load(&home).state(&file)
    };
    let path = real_place(&file.path).unwrap_or_else(|| file.path.clone());
    if !out.json {
        show(out, &path, &needing, before);
    }
    let store = !before.counts() && !args.dry_run;
    if store {
        let keys = needing.iter().map(|s| s.path.clone()).collect();
        TrustList::add(&home, &file, keys)?;
    }
    if out.json {
        let allows: Vec<Value> = needing.iter().map(|s| described(s)).collect();
        out.json(&json!({
            "path": path, "hash": file.hash, "was": before.word(),
            "trusted": store || before.counts(), "allows": allows,
        }));
    } else if store {
        out.text("trusted, as it is now; take it back with: rejoin trust --revoke");
    } else if args.dry_run && !before.counts() {
        out.text("not stored; allow it with: rejoin trust");
    }
    Ok(0)
}

fn described(setting: &Setting) -> Value {
    let mut value = json!({
        "key": setting.path, "value": setting.value, "about": setting.key.about,
    });
    if let (Some(map), Value::Object(origin)) = (value.as_object_mut(), setting.origin.json()) {
        map.extend(origin);
    }
    value
}

fn show(out: Output, path: &Path, needing: &[&Setting], before: TrustState) {
    let path = path.display();
    let head = match before {
        TrustState::NotNeeded => {
            out.text(&format!("nothing in {path} needs trust"));
            return;
        }
        TrustState::Trusted => format!("{path} is trusted and may set"),
        TrustState::Untrusted => format!("{path} would be allowed to set"),
        TrustState::Changed => format!("{path} has changed since you trusted it, and would set"),
    };
    out.text(&head);
    let rows: Vec<_> = needing
        .iter()
        .map(|setting| {
            let value = written(&setting.value);
            let long = value.chars().count();
            let value = if long > SHOWN {
                let start: String = value.chars().take(SHOWN).collect();
                let place = setting.origin.words();
                format!("{start}… ({long} characters; read it: {place})")
            } else {
                value
            };
            vec![
                Line::plain("  ").with(Tone::Name, &setting.path),
                Line::plain(&value),
            ]
        })
        .collect();
    out.lines(&table(&rows, None));
}

/// The file that is meant.
fn found(path: Option<&Path>) -> Result<PathBuf> {
    let folder = match path {
        None => here()?,
        Some(path) if path.is_dir() => path.to_path_buf(),
        Some(path) if path.file_name().is_some_and(|n| n == "rejoin.toml") => {
            return Ok(path.to_path_buf());
        }
        Some(path) => {
            return Err(Failure::usage(format!(
                "{} is neither a rejoin.toml nor a folder",
                path.display()
            ))
            .try_this("rejoin trust PATH/rejoin.toml"));
        }
    };
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    repository_file(&folder).ok_or_else(|| {
        Failure::not_found(format!(
            "there is no rejoin.toml that applies in {}",
            folder.display()
        ))
        .try_this("rejoin config path")
    })
}

fn revoke(args: &TrustArgs, out: Output, home: &Path) -> Result<u8> {
    // Also of a file that is gone, named as it is listed.
    let named = args.path.clone().filter(|p| !p.exists());
    let path = match named {
        Some(path) => path,
        None => found(args.path.as_deref())?,
    };
    let path = real_place(&path).unwrap_or(path);
    if !TrustList::remove(home, &path)? {
        let text = format!("{} was not trusted", path.display());
        return Err(Failure::not_found(text).try_this("rejoin trust --list"));
    }
    if out.json {
        out.json(&json!({"path": path, "trusted": false}));
    } else {
        out.text(&format!("{} is no longer trusted", path.display()));
    }
    Ok(0)
}

fn list(out: Output, list: &TrustList) {
    let now = |file: &TrustedFile| match ConfigFile::read(&file.path) {
        Ok(read) if read.hash == file.hash => "trusted",
        Ok(_) => "changed",
        Err(_) => "gone",
    };
    if out.json {
        let files: Vec<Value> = list
            .files
            .iter()
            .map(|f| json!({"path": f.path, "hash": f.hash, "keys": f.keys, "at": f.at, "state": now(f)}))
            .collect();
        out.json(&json!({ "files": files }));
        return;
    }
    if list.files.is_empty() {
        out.note("no file is trusted");
    }
    let rows: Vec<_> = list
        .files
        .iter()
        .map(|f| {
            let day = f.at.get(..10).unwrap_or(&f.at);
            vec![
                Line::plain(now(f)),
                Line::new().with(Tone::Name, &f.path.display().to_string()),
                Line::faint(&format!("{day}  {}", f.keys.join(", "))),
            ]
        })
        .collect();
    out.lines(&table(&rows, None));
}
