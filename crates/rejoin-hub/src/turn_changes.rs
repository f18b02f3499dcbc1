//! Changes that a turn made to files, as differences, from the input of its tool calls.

use std::collections::BTreeMap;

use rejoin_core::{EventBody, ToolKind, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hub;
use crate::error::Result;

/// Number of events to read at once.
const STRETCH: i64 = 500;
/// Number of lines of one text up to which the common lines of two are found.
const COMPARED: usize = 2000;
/// Number of lines after which a file's differences are left out.
const LINES: usize = 5000;

/// Files that a turn changed, in the order of their first change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnChangesView {
    pub files: Vec<FileChangeView>,
}

/// A file that a turn changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileChangeView {
    pub path: String,
    /// `added`, `changed`, `deleted` or `renamed`; null: the agent does not report it.
    pub change: Option<String>,
    pub added: usize,
    pub removed: usize,
    /// Parts of the file, in the order of the calls. Empty: the agent reports only that it changed the file.
    pub hunks: Vec<HunkView>,
    /// True if hunks were left out because there are too many lines.
    pub too_long: bool,
}

/// A part of a file that one call changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HunkView {
    /// The call: `id` of its event.
    pub tool_id: String,
    /// Number of the call's event.
    pub seq: i64,
    pub lines: Vec<DiffLine>,
}

/// A line, and whether it stayed (a space), was added (`+`) or removed (`-`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DiffLine {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub op: char,
    pub text: String,
}

/// A change to one file as a call's input describes it.
#[derive(Debug, PartialEq)]
struct Edit {
    path: String,
    change: Option<&'static str>,
    lines: Vec<DiffLine>,
}

impl Hub {
    /// Returns the changes that a turn made to files. Calls that failed, and those without a
    /// result, count as no change.
    pub async fn turn_changes(&self, turn: TurnId) -> Result<TurnChangesView> {
        let mut read = self.store.read_consistent().await?;
        let (mut after, mut open) = (0, BTreeMap::new());
        let mut files: Vec<FileChangeView> = vec![];
        loop {
            let stretch = read.events().of_turn(turn, after, STRETCH).await?;
            let full = stretch.len() as i64 == STRETCH;
            for row in stretch {
                after = row.seq;
                if let EventBody::ToolCall {
                    id, tool, input, ..
                } = row.body
                {
                    if ToolKind::of(&tool) == ToolKind::Edit {
                        open.insert(id, (row.seq, edits(&input)));
                    }
                } else if let EventBody::ToolResult { id, is_error, .. } = row.body {
                    let call = open.remove(&id).filter(|_| !is_error);
                    if let Some((seq, edits)) = &call {
                        for edit in edits {
                            add(&mut files, edit, &id, *seq);
                        }
                    }
                } else if let EventBody::FileChanged { path, .. } = row.body {
                    let edit = Edit {
                        path,
                        change: None,
                        lines: vec![],
                    };
                    add(&mut files, &edit, "", row.seq);
                }
            }
            if !full {
                break;
            }
        }
        read.finish().await;
        Ok(TurnChangesView { files })
    }
}

fn add(files: &mut Vec<FileChangeView>, edit: &Edit, tool_id: &str, seq: i64) {
    let at = files.iter().position(|file| file.path == edit.path);
    let at = at.unwrap_or_else(|| {
        files.push(FileChangeView {
            path: edit.path.clone(),
            change: None,
            added: 0,
            removed: 0,
            hunks: vec![],
            too_long: false,
        });
        files.len() - 1
    });
    let file = &mut files[at];
    if file.change.is_none() {
        file.change = edit.change.map(str::to_owned);
    }
    if edit.lines.is_empty() {
        return;
    }
    let of = |op: char| edit.lines.iter().filter(|line| line.op == op).count();
    file.added += of('+');
    file.removed += of('-');
    let lines: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    if lines + edit.lines.len() > LINES {
        file.too_long = true;
        return;
    }
    file.hunks.push(HunkView {
        tool_id: tool_id.to_owned(),
        seq,
        lines: edit.lines.clone(),
    });
}

/// Reads the input of an editing tool: of Claude Code 2.1, Gemini CLI 0.61, OpenCode 1.18, or a
/// patch as Codex writes it. Codex 0.166 reports only paths and kinds.
fn edits(input: &Value) -> Vec<Edit> {
    let text = |field: &str| input[field].as_str();
    let path = text("file_path")
        .or_else(|| text("filePath"))
        .or_else(|| text("notebook_path"));
    if let Some(patch) = text("patchText").or_else(|| text("patch")) {
        return patched(patch);
    }
    if let Some(changes) = input["changes"].as_array() {
        return changes.iter().filter_map(reported).collect();
    }
    let Some(path) = path else { return vec![] };
    let edit = |change, lines| Edit {
        path: path.to_owned(),
        change,
        lines,
    };
    if let Some(content) = text("content") {
        // A write replaces the file; its former text is not known.
        return vec![edit(None, marked('+', content))];
    }
    let one = |value: &Value| {
        let field = |a: &str, b: &str| value[a].as_str().or_else(|| value[b].as_str());
        let old = field("old_string", "oldString")?;
        let new = field("new_string", "newString").unwrap_or_default();
        Some(edit(Some("changed"), difference(old, new)))
    };
    match input["edits"].as_array() {
        Some(all) => all.iter().filter_map(one).collect(),
        None => one(input)
            .or_else(|| text("new_source").map(|new| edit(Some("changed"), marked('+', new))))
            .into_iter()
            .collect(),
    }
}

/// Reads a change of which only path and kind are reported.
fn reported(change: &Value) -> Option<Edit> {
    let kind = change["kind"]
        .as_str()
        .or_else(|| change["kind"]["type"].as_str());
    Some(Edit {
        path: change["path"].as_str()?.to_owned(),
        change: match kind {
            Some("add") => Some("added"),
            Some("delete") => Some("deleted"),
            Some("update") => Some("changed"),
            Some(_) | None => None,
        },
        lines: vec![],
    })
}

/// Reads a patch: `*** Update File: a.rs`, then lines that begin with a space, `+` or `-`.
fn patched(patch: &str) -> Vec<Edit> {
    let kinds = [
        ("*** Add File: ", "added"),
        ("*** Update File: ", "changed"),
        ("*** Delete File: ", "deleted"),
    ];
    let mut edits: Vec<Edit> = vec![];
    for line in patch.lines() {
        let begun = kinds
            .iter()
            .find_map(|(head, change)| Some((line.strip_prefix(head)?, *change)));
        if let Some((path, change)) = begun {
            edits.push(Edit {
                path: path.trim().to_owned(),
                change: Some(change),
                lines: vec![],
            });
            continue;
        }
        let Some(edit) = edits.last_mut() else {
            continue;
        };
        if line.starts_with("*** Move to: ") {
            edit.change = Some("renamed");
        }
        let op = line.chars().next().unwrap_or(' ');
        if matches!(op, ' ' | '+' | '-') {
            let text = line.get(1..).unwrap_or_default().to_owned();
            edit.lines.push(DiffLine { op, text });
        }
    }
    edits
}

fn marked(op: char, text: &str) -> Vec<DiffLine> {
    let line = |text: &str| DiffLine {
        op,
        text: text.to_owned(),
    };
    text.lines().map(line).collect()
}

/// Returns the lines of both texts, common lines once.
fn difference(old: &str, new: &str) -> Vec<DiffLine> {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.lines().collect(), new.lines().collect());
    let pairs = old_lines.iter().zip(&new_lines);
    let head = pairs.take_while(|(a, b)| a == b).count();
    let ends = old_lines[head..]
        .iter()
        .rev()
        .zip(new_lines[head..].iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    let (a, b) = (
        &old_lines[head..old_lines.len() - tail],
        &new_lines[head..new_lines.len() - tail],
    );
    let mut lines: Vec<(char, &str)> = old_lines[..head].iter().map(|l| (' ', *l)).collect();
    if a.len().max(b.len()) > COMPARED || a.len() * b.len() > COMPARED * COMPARED / 4 {
        lines.extend(a.iter().map(|l| ('-', *l)));
        lines.extend(b.iter().map(|l| ('+', *l)));
    } else {
        lines.extend(common(a, b));
    }
    lines.extend(
        old_lines[old_lines.len() - tail..]
            .iter()
            .map(|l| (' ', *l)),
    );
    let line = |(op, text): (char, &str)| DiffLine {
        op,
        text: text.to_owned(),
    };
    lines.into_iter().map(line).collect()
}

/// Returns the lines of both, by their longest common subsequence.
fn common<'t>(a: &[&'t str], b: &[&'t str]) -> Vec<(char, &'t str)> {
    let width = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, vec![]);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.push((' ', a[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < a.len()
            && (j == b.len() || longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            lines.push(('-', a[i]));
            i += 1;
        } else {
            lines.push(('+', b[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(lines: &[DiffLine]) -> Vec<String> {
        let line = |line: &DiffLine| format!("{}{}", line.op, line.text);
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_difference_keeps_common_lines() {
        let lines = difference("a\nb\nc\nd", "a\nx\nc\ny\nd");
        assert_eq!(told(&lines), [" a", "-b", "+x", " c", "+y", " d"]);
        assert_eq!(told(&difference("", "a")), ["+a"]);
        assert_eq!(told(&difference("a", "")), ["-a"]);
        assert_eq!(told(&difference("a", "a")), [" a"]);
        let (old, new) = ("x\n".repeat(3000), "y\n".repeat(3000));
        assert_eq!(difference(&old, &new).len(), 6000);
    }

    #[test]
    fn every_agents_input_is_read() {
        let of = |input| {
            let edits = edits(&input);
            let one = |edit: &Edit| (edit.path.clone(), edit.change, told(&edit.lines));
            edits.iter().map(one).collect::<Vec<_>>()
        };
        let changed = vec![(
            "a".to_owned(),
            Some("changed"),
            vec!["-x".to_owned(), "+y".to_owned()],
        )];
        let claude = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
        let opencode = json!({"filePath": "a", "oldString": "x", "newString": "y"});
        let patch =
            json!({"patchText": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch"});
        for input in [claude, opencode, patch] {
            assert_eq!(of(input), changed);
        }
        let several = json!({"file_path": "a", "edits": [
            {"old_string": "x", "new_string": "y"}, {"old_string": "1", "new_string": "2"}]});
        assert_eq!(of(several).len(), 2);
        let written = json!({"file_path": "a", "content": "one\ntwo"});
        assert_eq!(
            of(written),
            [("a".to_owned(), None, vec!["+one".into(), "+two".into()])]
        );
        let codex = json!({"changes": [{"path": "a", "kind": "add"}]});
        assert_eq!(of(codex), [("a".to_owned(), Some("added"), vec![])]);
        for nothing in [json!({}), json!(null), json!({"file_path": 3}), json!("x")] {
            assert_eq!(of(nothing), []);
        }
    }
}
