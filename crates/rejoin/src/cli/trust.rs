//! `rejoin trust`

mod agent_files;

use std::path::{Path, PathBuf};

use clap::Args;
use rejoin_runner::repository::hash_of_target;
use rejoin_runner::trust::{TrustList, TrustState, TrustedFile, real_place};
use serde_json::{Value, json};

use self::agent_files::AgentFile;
use crate::app::{Invocation, data_home, here};
use crate::cli::command::{Help, Run, Task};
use crate::config::{ConfigFile, Loaded, Setting, repository_file, written};
use crate::output::{Line, Output, Tone, table};
use rejoin_errors::{CommandError, Result};

/// No file that can be trusted is larger.
const LONGEST: u64 = 1 << 20;

/// Trust a repository's files to choose programs, servers and permissions
///
/// Lists the keys of the repository's rejoin.toml that need trust, and its files that coding agents
/// obey (hooks, tool servers, plugins, helper commands). Trust covers exactly these files in this
/// folder: a changed file needs it again. Programs that the files name are the repository's code and
/// are not checked.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin trust --dry-run     shows what trust would allow\n  rejoin trust               allow it\n  rejoin trust --revoke      revoke the trust"
)]
pub(crate) struct TrustArgs {
    /// A folder, or the rejoin.toml in it; default: this folder
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Only show what trust would allow
    #[arg(short = 'n', long, conflicts_with_all = ["list", "revoke"])]
    dry_run: bool,
    /// List the files you trust
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Revoke the trust
    #[arg(long)]
    revoke: bool,
}

impl Run for TrustArgs {
    const NAME: &'static str = "trust";
    const HELP: Help = Help::SetUp("trust a repository");

    fn task(self) -> Task {
        Task::machine(self, async |on, args| run(on, args))
    }
}

fn run(on: &Invocation, args: &TrustArgs) -> Result<u8> {
    let (out, explicit) = (on.out, on.config_file());
    let home = data_home()?;
    if args.list {
        list(out, &TrustList::load(&home));
        return Ok(0);
    }
    if rejoin_runner::descent::own_turn().is_some() && !args.dry_run {
        return Err(CommandError::untrusted(
            "an agent cannot decide what you trust; this is a turn's process",
        )
        .try_this("rejoin trust, in a terminal of your own"));
    }
    if args.revoke {
        return revoke(args, out, &home);
    }
    let trust = TrustList::load(&home);
    let Subject { folder, toml } = Subject::of(args.path.as_deref())?;
    let agent_files = agent_files::find(&folder, &trust);
    if toml.is_none() && agent_files.is_empty() {
        return Err(nothing_here(&folder));
    }
    let toml = toml
        .map(|path| RejoinToml::read(&path, &trust, explicit))
        .transpose()?;
    if !out.json {
        if let Some(toml) = &toml {
            show(out, &toml.path, &toml.needing(), toml.was);
        }
        for file in &agent_files {
            file.show(out);
        }
    }
    let mut entries: Vec<_> = agent_files
        .iter()
        .filter(|file| !file.was.counts())
        .filter_map(AgentFile::entry)
        .collect();
    entries.extend(toml.as_ref().and_then(RejoinToml::entry));
    let store = !entries.is_empty() && !args.dry_run;
    if store {
        TrustList::add(&home, entries.clone())?;
    }
    if out.json {
        let trusted = |was: TrustState, known: bool| was.counts() || (store && known);
        let files: Vec<Value> = agent_files
            .iter()
            .map(|file| file.json(trusted(file.was, file.found.hash.is_some())))
            .collect();
        let all = files.iter().all(|file| file["trusted"] == true);
        let was = toml.as_ref().map_or(TrustState::NotNeeded, |toml| toml.was);
        let allows = toml.as_ref().map(RejoinToml::allows).unwrap_or_default();
        out.json(&json!({
            "path": toml.as_ref().map(|toml| &toml.path), "hash": toml.as_ref().map(|toml| &toml.file.hash),
            "was": was.word(), "trusted": all && trusted(was, true), "allows": allows, "agent_files": files,
        }));
    } else if store {
        out.text("trusted, as it is now; take it back with: rejoin trust --revoke");
    } else if args.dry_run && !entries.is_empty() {
        out.text("not stored; allow it with: rejoin trust");
    }
    Ok(0)
}

/// The folder that is asked about, and the rejoin.toml that applies in it.
struct Subject {
    folder: PathBuf,
    toml: Option<PathBuf>,
}

impl Subject {
    fn of(path: Option<&Path>) -> Result<Self> {
        let folder = match path {
            None => here()?,
            Some(path) if path.is_dir() => path.to_path_buf(),
            Some(path) if path.file_name().is_some_and(|n| n == "rejoin.toml") => {
                let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
                return Ok(Self {
                    folder: resolved(folder.unwrap_or(Path::new("."))),
                    toml: Some(path.to_path_buf()),
                });
            }
            Some(path) => {
                return Err(CommandError::usage(format!(
                    "{} is neither a rejoin.toml nor a folder",
                    path.display()
                ))
                .try_this("rejoin trust PATH/rejoin.toml"));
            }
        };
        let absolute = std::path::absolute(&folder).unwrap_or(folder);
        Ok(Self {
            folder: resolved(&absolute),
            toml: repository_file(&absolute),
        })
    }
}

fn resolved(folder: &Path) -> PathBuf {
    fs_err::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}

fn nothing_here(folder: &Path) -> CommandError {
    CommandError::not_found(format!(
        "there is no rejoin.toml that applies in {}, and no file that an agent would obey",
        folder.display()
    ))
    .try_this("rejoin config path")
}

/// A repository's rejoin.toml, as far as trust is concerned.
struct RejoinToml {
    file: ConfigFile,
    path: PathBuf,
    settings: Vec<Setting>,
    own: Loaded,
    was: TrustState,
}

impl RejoinToml {
    fn read(path: &Path, trust: &TrustList, explicit: Option<&Path>) -> Result<Self> {
        let file = ConfigFile::read(path)?;
        let settings = file.settings()?;
        let own = Loaded::own(explicit)?;
        let was = if own.needing_trust(&settings).is_empty() {
            TrustState::NotNeeded
        } else {
            trust.state(&file.path, &file.hash)
        };
        let path = real_place(&file.path).unwrap_or_else(|| file.path.clone());
        Ok(Self {
            file,
            path,
            settings,
            own,
            was,
        })
    }

    fn needing(&self) -> Vec<&Setting> {
        self.own.needing_trust(&self.settings)
    }

    fn allows(&self) -> Vec<Value> {
        self.needing().iter().map(|s| described(s)).collect()
    }

    /// Path, hash and keys for the trust list. None: the file needs no trust, or has it.
    fn entry(&self) -> Option<(PathBuf, String, Vec<String>)> {
        let keys = self.needing().iter().map(|s| s.path.clone()).collect();
        let new = !self.was.counts();
        new.then(|| (self.file.path.clone(), self.file.hash.clone(), keys))
    }
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
            let text = format!("nothing in {path} needs trust");
            return out.lines(&whole(out, &Line::plain(&visible(&text))));
        }
        TrustState::Trusted => format!("{path} is trusted and may set"),
        TrustState::Untrusted => format!("{path} would be allowed to set"),
        TrustState::Changed => format!("{path} has changed since you trusted it, and would set"),
    };
    out.lines(&whole(out, &Line::plain(&visible(&head))));
    let rows: Vec<_> = needing
        .iter()
        .map(|setting| {
            vec![
                Line::plain("  ").with(Tone::Name, &visible(&setting.path)),
                Line::plain(&visible(&written(&setting.value))),
            ]
        })
        .collect();
    for line in table(&rows, None) {
        out.lines(&whole(out, &line));
    }
}

/// Replaces line breaks and tabs by signs, so that foreign text cannot pass for a line of ours.
fn visible(text: &str) -> String {
    text.replace('\n', "␊").replace('\t', "␉")
}

/// Returns the whole of a line: on a screen broken to its width and indented, elsewhere as it is.
fn whole(out: Output, line: &Line) -> Vec<Line> {
    if out.screen() {
        broken(line, out.width())
    } else {
        vec![line.clone()]
    }
}

/// Breaks a line after `width` columns. The further lines are indented.
fn broken(line: &Line, width: usize) -> Vec<Line> {
    let indent = "    ";
    let lines = line.wrap(width.saturating_sub(indent.len())).into_iter();
    lines
        .enumerate()
        .map(|(at, line)| {
            if at == 0 {
                line
            } else {
                Line::plain(indent).then(line)
            }
        })
        .collect()
}

fn revoke(args: &TrustArgs, out: Output, home: &Path) -> Result<u8> {
    let trust = TrustList::load(home);
    // Also of a file that is gone, or one agent's file alone, named as it is listed.
    let named = args.path.clone().filter(|path| !path.is_dir());
    let paths: Vec<PathBuf> = match named {
        Some(path) => vec![path],
        None => {
            let Subject { folder, toml } = Subject::of(args.path.as_deref())?;
            let agent_files = agent_files::find(&folder, &trust).into_iter();
            let paths: Vec<PathBuf> = toml
                .into_iter()
                .chain(agent_files.map(|f| f.found.path))
                .collect();
            if paths.is_empty() {
                return Err(nothing_here(&folder));
            }
            paths
        }
    };
    let paths: Vec<PathBuf> = paths
        .into_iter()
        .map(|path| real_place(&path).unwrap_or(path))
        .collect();
    let removed = TrustList::remove(home, &paths)?;
    let Some(first) = removed.first() else {
        let text = format!("{} was not trusted", paths[0].display());
        return Err(CommandError::not_found(text).try_this("rejoin trust --list"));
    };
    if out.json {
        out.json(&json!({"path": first, "paths": removed, "trusted": false}));
    } else {
        for path in &removed {
            out.text(&format!("{} is no longer trusted", path.display()));
        }
    }
    Ok(0)
}

fn list(out: Output, list: &TrustList) {
    let now = |file: &TrustedFile| match fs_err::metadata(&file.path) {
        Ok(meta) if !meta.is_file() || meta.len() > LONGEST => "changed",
        Ok(_) => match fs_err::read(&file.path) {
            Ok(bytes) if blake3::hash(&bytes).to_hex().as_str() == file.hash => "trusted",
            // Of a link out of the repository the place is trusted.
            _ if hash_of_target(&file.path).as_ref() == Some(&file.hash) => "trusted",
            // The hash may cover templates, too.
            Ok(_) if ConfigFile::read(&file.path).is_ok_and(|now| now.hash == file.hash) => {
                "trusted"
            }
            Ok(_) => "changed",
            Err(_) => "gone",
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_command_is_shown() {
        let command = format!("{}\n/w/x is trusted\x1b[2K; evil", "true;".repeat(100));
        let line = Line::plain("  ").with(Tone::Name, &visible(&command));
        let lines = broken(&line, 40);
        assert!(lines.iter().all(|line| line.width() <= 40));
        let shown: Vec<String> = lines.iter().map(|line| line.render(false)).collect();
        assert!(shown[1..].iter().all(|line| line.starts_with("    ")));
        let joined: String = shown.iter().map(|line| line.trim_start()).collect();
        assert!(joined.replace(' ', "").ends_with("␛[2K;evil"), "{joined}");
        assert!(joined.contains("true;␊/w/x"), "{joined}");
    }
}
