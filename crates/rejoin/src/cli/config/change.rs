//! `rejoin config set`, `unset` and `edit`: changes of the user's own file, or of the one that `--config` names.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::app::{Invocation, here};
use crate::cli::text_editor;
use crate::config::{Edit, KeyPath, Loaded, Origin, Source, save, sources};
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

/// Returns the file that is changed.
fn target(on: &Invocation) -> Result<PathBuf> {
    let own = sources(on.config_file(), &here()?).into_iter().next();
    let own = own.filter(Source::is_own);
    own.map(|source| source.path).ok_or_else(|| {
        CommandError::usage("there is no place for a configuration file: HOME is not set")
            .try_this("the same with --config FILE")
    })
}

pub(super) fn set(on: &Invocation, name: &str, text: &str) -> Result<u8> {
    let file = target(on)?;
    let path = KeyPath::parse(name)?;
    let Some(value) = path.key.kind.parse(text) else {
        let must = path.key.kind.words();
        let shown = if path.key.all_secret() { "that" } else { text };
        let why = format!("`{name}` cannot be `{shown}`: it must be {must}");
        return Err(CommandError::usage(why).try_this(format!("rejoin config set {name} VALUE")));
    };
    let mut edit = Edit::open(&file)?;
    edit.set(&path, &value);
    edit.save()?;
    let shown = if path.key.secret() {
        json!("…")
    } else {
        value
    };
    report(on, &file, name, Some(&shown));
    Ok(0)
}

pub(super) fn unset(on: &Invocation, name: &str) -> Result<u8> {
    let file = target(on)?;
    let path = KeyPath::parse(name)?;
    let mut edit = Edit::open(&file)?;
    if !edit.unset(&path) {
        let text = format!("{} does not set `{name}`", file.display());
        return Err(CommandError::not_found(text).try_this("rejoin config show"));
    }
    edit.save()?;
    report(on, &file, name, None);
    Ok(0)
}

/// Opens the file in the user's editor, on a copy: a wrong file is not put into place, and not lost.
pub(super) fn edit(on: &Invocation) -> Result<u8> {
    let file = target(on)?;
    let before = match fs_err::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(CommandError::config(e.to_string())),
    };
    let Some(written) = text_editor::write(before.trim_end_matches('\n'))? else {
        let text = "`config edit` needs a terminal, and an editor in VISUAL or EDITOR";
        return Err(CommandError::usage(text).try_this("rejoin config set KEY VALUE"));
    };
    if written.text == before.trim_end_matches('\n') {
        written.done();
        on.out.note(&format!("{} is unchanged", file.display()));
        return Ok(0);
    }
    let text = format!("{}\n", written.text);
    save(&file, &text).map_err(|failure| {
        let mut failure = written.kept(failure);
        failure.message += "; the file itself is unchanged";
        failure
    })?;
    written.done();
    on.out.note(&format!("{} is changed", file.display()));
    Ok(0)
}

/// Prints the change, and the place of a value that counts instead.
fn report(on: &Invocation, file: &Path, name: &str, value: Option<&Value>) {
    let out: Output = on.out;
    if out.json {
        out.json(&json!({"key": name, "value": value, "file": file}));
        return;
    }
    let place = file.display();
    out.text(&match value {
        Some(value) => format!("{name} = {value} in {place}"),
        None => format!("{name} is not set any more in {place}"),
    });
    let Ok(loaded) = here().and_then(|here| Loaded::load(on.config_file(), &here)) else {
        return;
    };
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let counts = loaded
        .all()
        .into_iter()
        .find(|setting| setting.path == name);
    if let Some(setting) = counts {
        let elsewhere = match &setting.origin {
            Origin::Default => false,
            Origin::Environment(_) => true,
            Origin::File { path, .. } => real(path) != real(file),
        };
        if elsewhere {
            out.note(&format!(
                "here {} counts: {}",
                setting.shown_words(),
                setting.origin.words()
            ));
        }
    }
}
