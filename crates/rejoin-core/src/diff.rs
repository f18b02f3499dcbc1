//! Changes to files that a tool call would make, from the input of the call. The same code serves the
//! tools of every agent: it goes by the names of the input's fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Unchanged lines that are shown around a change.
const AROUND: usize = 3;
/// Maximum number of lines of one file.
const LINES: usize = 2_000;
/// Maximum size of the table that compares two texts.
const TABLE: usize = 4_000_000;

/// Change to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileChange {
    /// Path as the agent wrote it.
    pub path: String,
    pub change: ChangeKind,
    /// Changed parts of the file, in order.
    pub hunks: Vec<Hunk>,
    /// Number of lines that were left out, because the change is too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// Effect of a tool call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ChangeKind {
    /// Parts of the file are replaced.
    Edit,
    /// The file is made, or replaced as a whole.
    Write,
    Delete,
}

impl ChangeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

/// Lines that belong together, as in a unified diff: each begins with ` `, `-` or `+`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Hunk {
    pub lines: Vec<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Returns the changes to files in the input of a tool call. Empty for a call that changes none, or
/// of an unknown form.
pub fn file_changes(input: &Value) -> Vec<FileChange> {
    let text = |names: &[&str]| names.iter().find_map(|name| input[*name].as_str());
    if let Some(patch) = text(&["patchText", "patch"]).filter(|it| it.contains("*** Begin Patch")) {
        return of_patch(patch);
    }
    if let Some(changes) = input["changes"].as_array() {
        return changes.iter().filter_map(of_codex).collect();
    }
    let path = text(&[
        "file_path",
        "filePath",
        "filepath",
        "notebook_path",
        "absolute_path",
        "path",
    ]);
    let Some(path) = path else { return vec![] };
    let one = |change, hunks| vec![shortened(path, change, hunks)];
    if let Some(edits) = input["edits"].as_array() {
        let hunks = edits.iter().filter_map(replaced).flatten();
        return one(ChangeKind::Edit, hunks.collect());
    }
    if let Some(hunks) = replaced(input) {
        return one(ChangeKind::Edit, hunks);
    }
    if let Some(diff) = text(&["diff"]) {
        return one(ChangeKind::Edit, of_unified(diff));
    }
    match (text(&["content"]), text(&["new_source"])) {
        (Some(content), _) => one(ChangeKind::Write, whole('+', content)),
        (None, Some(cell)) => one(ChangeKind::Edit, whole('+', cell)),
        (None, None) => vec![],
    }
}

/// Returns the hunks of a replaced text.
fn replaced(edit: &Value) -> Option<Vec<Hunk>> {
    let text = |names: [&str; 2]| names.iter().find_map(|name| edit[*name].as_str());
    let new = text(["new_string", "newString"])?;
    let old = text(["old_string", "oldString"]).unwrap_or_default();
    Some(compare(old, new))
}

/// Reads an entry of Codex: a whole file, or a unified diff.
fn of_codex(entry: &Value) -> Option<FileChange> {
    let (path, diff) = (entry["path"].as_str()?, entry["diff"].as_str()?);
    let kind = entry["kind"]["type"].as_str().or(entry["kind"].as_str());
    Some(match kind {
        Some("add") => shortened(path, ChangeKind::Write, whole('+', diff)),
        Some("delete") => shortened(path, ChangeKind::Delete, whole('-', diff)),
        Some(_) | None => shortened(path, ChangeKind::Edit, of_unified(diff)),
    })
}

/// Reads the hunks of a unified diff of one file.
fn of_unified(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = vec![];
    for line in diff.lines() {
        let is_head = ["--- ", "+++ ", "Index: ", "=====", "diff --git "]
            .iter()
            .any(|head| line.starts_with(head));
        if line.starts_with("@@") {
            hunks.push(Hunk { lines: vec![] });
        } else if line.starts_with([' ', '-', '+']) && !(is_head && hunks.is_empty()) {
            if hunks.is_empty() {
                hunks.push(Hunk { lines: vec![] });
            }
            if let Some(hunk) = hunks.last_mut() {
                hunk.lines.push(line.to_owned());
            }
        }
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    hunks
}

/// Reads a patch in the form of `apply_patch`.
fn of_patch(patch: &str) -> Vec<FileChange> {
    let mut files: Vec<FileChange> = vec![];
    for line in patch.lines() {
        let heads = [
            ("*** Add File: ", ChangeKind::Write),
            ("*** Update File: ", ChangeKind::Edit),
            ("*** Delete File: ", ChangeKind::Delete),
        ];
        let head = heads
            .iter()
            .find_map(|(head, kind)| Some((line.strip_prefix(head)?, *kind)));
        if let Some((path, change)) = head {
            files.push(FileChange {
                path: path.to_owned(),
                change,
                hunks: vec![],
                left_out: 0,
            });
            continue;
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        if line.starts_with("@@") {
            file.hunks.push(Hunk { lines: vec![] });
        } else if line.starts_with([' ', '-', '+']) {
            if file.hunks.is_empty() {
                file.hunks.push(Hunk { lines: vec![] });
            }
            if let Some(hunk) = file.hunks.last_mut() {
                hunk.lines.push(line.to_owned());
            }
        }
    }
    let cut = |file: FileChange| shortened(&file.path, file.change, file.hunks);
    files.into_iter().map(cut).collect()
}

/// Returns every line of a text as added or removed.
fn whole(sign: char, text: &str) -> Vec<Hunk> {
    let lines: Vec<String> = text.lines().map(|line| format!("{sign}{line}")).collect();
    if lines.is_empty() {
        return vec![];
    }
    vec![Hunk { lines }]
}

/// Limits the number of lines.
fn shortened(path: &str, change: ChangeKind, mut hunks: Vec<Hunk>) -> FileChange {
    let (mut room, mut left_out) = (LINES, 0);
    for hunk in &mut hunks {
        let length = hunk.lines.len();
        hunk.lines.truncate(room);
        room -= hunk.lines.len();
        left_out += (length - hunk.lines.len()) as u64;
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    FileChange {
        path: path.to_owned(),
        change,
        hunks,
        left_out,
    }
}

/// Compares two texts line by line.
fn compare(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |a: &[&str], b: &[&str]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let before = same(&old, &new);
    let (left, right) = (&old[before..], &new[before..]);
    let backwards = left.iter().rev().zip(right.iter().rev());
    let after = backwards.take_while(|(a, b)| a == b).count();
    let (left, right) = (&left[..left.len() - after], &right[..right.len() - after]);
    let mut lines: Vec<(char, &str)> = old[..before].iter().map(|line| (' ', *line)).collect();
    lines.extend(middle(left, right));
    lines.extend(old[old.len() - after..].iter().map(|line| (' ', *line)));
    grouped(&lines)
}

/// Compares lines of which the first and the last differ, by their longest common subsequence.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let columns = new.len() + 1;
    if (old.len() + 1).saturating_mul(columns) > TABLE {
        let removed = old.iter().map(|line| ('-', *line));
        return removed.chain(new.iter().map(|line| ('+', *line))).collect();
    }
    let mut table = vec![0_u32; (old.len() + 1) * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            table[i * columns + j] = if old[i] == new[j] {
                table[(i + 1) * columns + j + 1] + 1
            } else {
                table[(i + 1) * columns + j].max(table[i * columns + j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, vec![]);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && table[(i + 1) * columns + j] >= table[i * columns + j + 1])
        {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
}

/// Splits compared lines into hunks with a few unchanged lines around each change.
fn grouped(lines: &[(char, &str)]) -> Vec<Hunk> {
    let changed: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].0 != ' ').collect();
    let mut ranges: Vec<(usize, usize)> = vec![];
    for at in changed {
        let (from, to) = (
            at.saturating_sub(AROUND),
            (at + AROUND + 1).min(lines.len()),
        );
        match ranges.last_mut() {
            Some((_, end)) if from <= *end => *end = to,
            Some(_) | None => ranges.push((from, to)),
        }
    }
    let line = |(sign, text): &(char, &str)| format!("{sign}{text}");
    let hunk = |(from, to): (usize, usize)| Hunk {
        lines: lines[from..to].iter().map(line).collect(),
    };
    ranges.into_iter().map(hunk).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;

    /// Formats changes as lines: the kind and the path, then the hunks, separated by `@@`.
    fn shown(input: &Value) -> String {
        let mut text = String::new();
        for file in file_changes(input) {
            let _ = writeln!(text, "{} {}", file.change.as_str(), file.path);
            for hunk in file.hunks {
                let _ = writeln!(text, "@@\n{}", hunk.lines.join("\n"));
            }
        }
        text
    }

    #[test]
    fn every_agents_tools_have_a_diff() {
        let replaced = "edit f\n@@\n a\n-b\n+c\n";
        for input in [
            json!({"file_path": "f", "old_string": "a\nb\n", "new_string": "a\nc\n"}),
            json!({"filePath": "f", "oldString": "a\nb", "newString": "a\nc"}),
            json!({"file_path": "f", "edits": [{"old_string": "a\nb", "new_string": "a\nc"}]}),
            json!({"path": "f", "changes": [{"path": "f", "kind": {"type": "update"}, "diff": "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}]}),
            json!({"filepath": "f", "diff": "Index: f\n===\n--- f\n+++ f\n@@ -1 +1 @@\n a\n-b\n+c\n"}),
            json!({"patchText": "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+c\n*** End Patch"}),
        ] {
            assert_eq!(shown(&input), replaced, "{input}");
        }
        let written = "write f\n@@\n+x\n+y\n";
        for input in [
            json!({"file_path": "f", "content": "x\ny\n"}),
            json!({"filePath": "f", "content": "x\ny"}),
            json!({"changes": [{"path": "f", "kind": {"type": "add"}, "diff": "x\ny\n"}]}),
            json!({"patchText": "*** Begin Patch\n*** Add File: f\n+x\n+y\n*** End Patch"}),
        ] {
            assert_eq!(shown(&input), written, "{input}");
        }
        let deleted =
            json!({"changes": [{"path": "f", "kind": {"type": "delete"}, "diff": "x\n"}]});
        assert_eq!(shown(&deleted), "delete f\n@@\n-x\n");
        for other in [
            json!({"command": "rm x"}),
            json!({"file_path": "f"}),
            json!({"url": "u", "content": "x"}),
            json!([1]),
            Value::Null,
        ] {
            assert_eq!(shown(&other), "", "{other}");
        }
    }

    #[test]
    fn removed_lines_that_look_like_heads_are_shown() {
        let input = json!({"filepath": "f", "diff": "@@ -1 +1 @@\n--- a comment\n+++ b\n"});
        assert_eq!(shown(&input), "edit f\n@@\n--- a comment\n+++ b\n");
    }

    #[test]
    fn far_changes_are_apart_and_every_line_appears_once() {
        let old: Vec<String> = (0..40).map(|n| format!("line {n}")).collect();
        let mut new = old.clone();
        new[2] = "two".into();
        new.insert(30, "thirty".into());
        let input =
            json!({"path": "f", "old_string": old.join("\n"), "new_string": new.join("\n")});
        let changes = file_changes(&input);
        let hunks = &changes[0].hunks;
        assert_eq!(hunks.len(), 2);
        assert_eq!(hunks[0].lines[2..4], ["-line 2", "+two"]);
        assert_eq!(hunks[1].lines[3], "+thirty");
        let signs = |sign| {
            hunks
                .iter()
                .flat_map(|h| &h.lines)
                .filter(|l| l.starts_with(sign))
                .count()
        };
        assert_eq!((signs('-'), signs('+')), (1, 2));
    }

    #[test]
    fn a_change_has_an_end() {
        let many = "x\n".repeat(LINES + 7);
        let change = &file_changes(&json!({"path": "f", "content": many}))[0];
        assert_eq!((change.hunks[0].lines.len(), change.left_out), (LINES, 7));
        // Too large for the table: everything removed, then everything added.
        let numbered = |word: &str| {
            let lines: Vec<_> = (0..2_500).map(|n| format!("{word}{n}")).collect();
            lines.join("\n")
        };
        let both = json!({"path": "f", "old_string": numbered("a"), "new_string": numbered("b")});
        let change = &file_changes(&both)[0];
        assert!(
            change.hunks[0]
                .lines
                .iter()
                .all(|line| line.starts_with('-'))
        );
        assert_eq!(change.left_out, 3_000);
    }
}
