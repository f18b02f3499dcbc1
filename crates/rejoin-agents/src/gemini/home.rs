//! The CLI's home: an overlay of the user's own. With the user's settings the CLI deletes sessions
//! that were resumed (4 of 4, 0.61.0), and only its settings file can prevent that.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value, json};

use crate::adapter::{Env, ReadHome};
use crate::overlay::Overlay;
use crate::repository::jsonc;
use crate::session::{Moving, SessionAt, SessionPath};

const OWN: &str = ".gemini";
const OURS: &str = "rejoin";

/// The CLI tries ten times by default, silently, for four minutes (0.61.0). Three attempts bridge
/// an outage of fifteen seconds and end a hopeless run soon. rejoin then reports that the turn may
/// be sent again.
const ATTEMPTS: u64 = 3;

/// Returns the folder that contains the user's own home. Within a run of rejoin the environment
/// names the overlay's folder instead.
fn base(env: Env<'_>) -> Option<PathBuf> {
    let set = |name| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = set("GEMINI_CLI_HOME").or_else(|| set("HOME"))?;
    let overlay = Path::new(OWN).join(OURS);
    if folder.ends_with(&overlay) {
        folder.ancestors().nth(2).map(Path::to_path_buf)
    } else {
        Some(folder)
    }
}

fn overlay_root(env: Env<'_>) -> Option<PathBuf> {
    base(env).map(|base| base.join(OWN).join(OURS))
}

/// Returns the user's own home.
pub(super) fn own(env: Env<'_>) -> Option<PathBuf> {
    base(env).map(|base| base.join(OWN))
}

pub(super) fn home(env: Env<'_>) -> Option<PathBuf> {
    overlay_root(env).map(|root| root.join(OWN))
}

pub(super) fn overlay(env: Env<'_>) -> Option<Overlay> {
    let base = base(env)?;
    let root = overlay_root(env)?;
    Some(Overlay {
        from: base.join(OWN),
        to: root.join(OWN),
        apart: &["history", "projects.json", OURS, "tmp"],
        mixed: &["commands"],
        rewritten: &[("settings.json", settings)],
        links: vec![(root.join(".agents"), base.join(".agents"))],
    })
}

/// Returns the value of `GEMINI_CLI_HOME` for this home.
pub(super) fn variable(home: &str) -> String {
    let root = Path::new(home).parent().unwrap_or(Path::new(home));
    root.to_string_lossy().into_owned()
}

/// Returns the user's settings, with the values that rejoin must control.
pub(super) fn settings(own: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let mut settings = parsed(own.unwrap_or_default())?;
    let all = &mut settings;
    // Policies of one run can only be passed in place of these.
    if all
        .get("policyPaths")
        .is_some_and(|paths| *paths != json!([]))
    {
        return Err(
            "`policyPaths` would not be kept to; move those files to ~/.gemini/policies".into(),
        );
    }
    let general = section(all, "general")?;
    let tries = general.get("maxAttempts").and_then(Value::as_u64);
    general.insert(
        "maxAttempts".into(),
        tries.unwrap_or(ATTEMPTS).clamp(1, ATTEMPTS).into(),
    );
    section(general, "sessionRetention")?.insert("enabled".into(), false.into());
    // Otherwise `@name` reads any file with a similar name, through links that lead out of the
    // folder.
    let filtering = section(section(all, "context")?, "fileFiltering")?;
    filtering.insert("enableRecursiveFileSearch".into(), false.into());
    serde_json::to_vec_pretty(&settings).map_err(|e| e.to_string())
}

/// Parses a file as the CLI does.
pub(super) fn parsed(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    jsonc(bytes, &AS_WRITTEN)
}

fn section<'a>(
    within: &'a mut Map<String, Value>,
    name: &str,
) -> Result<&'a mut Map<String, Value>, String> {
    let value = within.entry(name).or_insert_with(|| json!({}));
    value
        .as_object_mut()
        .ok_or_else(|| format!("`{name}` is not an object"))
}

/// Format that the CLI accepts: JSON with comments.
const AS_WRITTEN: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Returns a folder name for the sessions of a working folder. The CLI makes up a name, unless an
/// existing folder already names its owner (0.61.0), as this one does.
fn slug(folder: &str) -> String {
    let hash = blake3::hash(folder.as_bytes()).to_hex();
    format!("rejoin-{}", &hash[..16])
}

pub(super) fn owner_mark(folder: &str) -> (String, String) {
    (
        format!("tmp/{}/.project_root", slug(folder)),
        folder.to_owned(),
    )
}

/// Returns the place of a session. A resume in a later minute leaves a stub with a newer name
/// beside it.
pub(super) fn place(at: &SessionAt<'_>) -> SessionPath {
    let id = at.session.as_str();
    SessionPath::Find {
        folders: vec![
            format!("tmp/{}/chats", slug(at.folder)),
            "tmp/*/chats".into(),
        ],
        begins: "session-".into(),
        ends: format!("-{}.jsonl", id.get(..8).unwrap_or(id)),
        copy: None,
    }
}

/// Returns a path without a minute for a session. Before the CLI loads a session over the protocol,
/// it writes an empty one with the same id to a file that is named by the minute. In the minute in
/// which the session began, that is the session's own file (0.61.0), and the session is lost. A
/// name without a minute is safe, and the first by name. None if the path has no minute.
pub(super) fn undated_path(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let (_, ends) = name.strip_prefix("session-")?.rsplit_once('-')?;
    let moved = format!("{folder}/session-0-{ends}");
    (moved != path).then_some(moved)
}

/// Returns the folder in which the CLI will search for sessions of this working folder.
pub(super) fn moving(at: &SessionAt<'_>, read: ReadHome<'_>) -> Moving {
    let known = read("projects.json").and_then(|bytes| {
        let known: Value = serde_json::from_slice(&bytes).ok()?;
        let slug = known["projects"][at.folder].as_str()?.to_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!slug.is_empty() && slug.chars().all(plain)).then_some(slug)
    });
    let slug = known.unwrap_or_else(|| slug(at.folder));
    Moving::Into(format!("tmp/{slug}/chats"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(own: &str) -> String {
        match settings(Some(own.as_bytes())) {
            Ok(made) => {
                let made: Value = serde_json::from_slice(&made).unwrap();
                made.to_string()
            }
            Err(why) => why,
        }
    }

    #[test]
    fn settings_keep_the_rest() {
        insta::assert_snapshot!(told(""), @r#"{"context":{"fileFiltering":{"enableRecursiveFileSearch":false}},"general":{"maxAttempts":3,"sessionRetention":{"enabled":false}}}"#);
        insta::assert_snapshot!(told(r#"// mine
            {"a": "/* no */ // comment \" \\", /* b */ "general": {"maxAttempts": 1,
             "sessionRetention": {"maxAge": "1d", "enabled": true}}} // end"#), @r#"{"a":"/* no */ // comment \" \\","context":{"fileFiltering":{"enableRecursiveFileSearch":false}},"general":{"maxAttempts":1,"sessionRetention":{"enabled":false,"maxAge":"1d"}}}"#);
        insta::assert_snapshot!(told(r#"{"general": {"maxAttempts": 10}}"#), @r#"{"context":{"fileFiltering":{"enableRecursiveFileSearch":false}},"general":{"maxAttempts":3,"sessionRetention":{"enabled":false}}}"#);
        insta::assert_snapshot!(told("[]"), @"it is not a JSON object");
        insta::assert_snapshot!(told("{"), @"it is not JSON: Unterminated object on line 1 column 2");
        insta::assert_snapshot!(told(r#"{"general": 1}"#), @"`general` is not an object");
        assert!(told(r#"{"policyPaths": ["x"]}"#).contains("policyPaths"));
        assert!(settings(Some(b"\xff")).is_err());
    }

    #[test]
    fn a_session_is_named_without_its_minute() {
        let path = "tmp/x/chats/session-2026-11-16T03-18-90d39934.jsonl";
        let moved = "tmp/x/chats/session-0-90d39934.jsonl";
        assert_eq!(undated_path(path).as_deref(), Some(moved));
        assert_eq!(undated_path(moved), None);
        assert_eq!(undated_path("session-x"), None);
    }

    #[test]
    fn the_home_is_an_overlay_of_the_users_own() {
        let of = |pairs: &'static [(&str, &str)]| {
            home(&move |name| {
                let pair = pairs.iter().find(|(n, _)| *n == name);
                pair.map(|(_, v)| (*v).to_owned())
            })
        };
        let expected = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of(&[("HOME", "/h")]), expected("/h/.gemini/rejoin/.gemini"));
        let moved = [("HOME", "/h"), ("GEMINI_CLI_HOME", "/g")];
        assert_eq!(
            of(Box::leak(Box::new(moved))),
            expected("/g/.gemini/rejoin/.gemini")
        );
        // An agent that calls rejoin already uses the overlay as its home.
        assert_eq!(
            of(&[("GEMINI_CLI_HOME", "/h/.gemini/rejoin")]),
            expected("/h/.gemini/rejoin/.gemini")
        );
        assert_eq!(of(&[]), None);
        assert_eq!(variable("/h/.gemini/rejoin/.gemini"), "/h/.gemini/rejoin");
    }
}
