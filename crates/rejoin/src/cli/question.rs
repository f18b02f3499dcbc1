//! A question of an agent, as people see it and as they answer it.

use std::collections::BTreeMap;

use rejoin_core::{AnswerRequest, Choice, FileChange, QuestionItem, QuestionKind, QuestionState};
use rejoin_hub::{QuestionView, climb_facts};
use serde_json::Value;

use crate::output::{Line, Tone, without_floods};

/// Most lines of a call's input that are shown.
const LINES: usize = 12;
/// Most lines of a change that are shown where something is typed below.
pub(super) const CHANGED_LINES: usize = 40;

/// The question in lines of safe text, with at most `most` lines of a change to files.
pub(super) fn lines(agent: &str, question: &QuestionView, width: usize, most: usize) -> Vec<Line> {
    let mut lines = vec![];
    match question.kind {
        QuestionKind::Approval if !question.diff.is_empty() => {
            for file in &question.diff {
                lines.push(file_head(agent, file));
            }
            lines.truncate(LINES);
            lines.extend(changed_lines(&question.diff, width, most));
            lines.extend(reason(&question.input, width));
        }
        QuestionKind::Approval if question.climb().is_some() => {
            lines.push(climb_head(agent, question));
            let facts = climb_facts(&question.input);
            lines.extend(facts.iter().flat_map(|fact| {
                let fact = Line::faint(&without_floods(fact)).wrap(width.saturating_sub(4));
                fact.into_iter().map(|line| Line::plain("    ").then(line))
            }));
        }
        QuestionKind::Approval if question.about_step().is_some() => {
            let text = question.about_step().unwrap_or_default();
            let text = Line::new().with(Tone::Strong, &without_floods(text));
            let text = text.wrap(width.saturating_sub(2));
            lines.extend(text.into_iter().map(|line| Line::plain("  ").then(line)));
        }
        QuestionKind::Approval => {
            let head = Line::plain("  ")
                .with(Tone::Strong, agent)
                .with(Tone::Plain, " asks to use ")
                .with(Tone::Strong, &question.tool);
            lines.push(head);
            lines.extend(subject(&question.input, width));
            lines.extend(reason(&question.input, width));
        }
        QuestionKind::Question => {
            for item in &question.questions {
                lines.extend(item_lines(item, width));
            }
        }
    }
    if question.state == QuestionState::Gone {
        let gone = "  its process is gone: the answer is sent as a new message";
        lines.push(Line::faint(gone));
    }
    lines
}

/// `claude asks to climb to remediate`
fn climb_head(agent: &str, question: &QuestionView) -> Line {
    let to = question.climb().unwrap_or_default();
    Line::plain("  ")
        .with(Tone::Strong, agent)
        .with(Tone::Plain, " asks to climb to ")
        .with(Tone::Strong, &without_floods(to))
}

/// `claude wants to edit main.rs`
fn file_head(agent: &str, file: &FileChange) -> Line {
    Line::plain("  ")
        .with(Tone::Strong, agent)
        .with(Tone::Plain, &format!(" wants to {} ", file.change.as_str()))
        .with(Tone::Strong, &without_floods(&file.path))
}

/// Lines of the changes to files, each behind its sign.
pub(super) fn changed_lines(files: &[FileChange], width: usize, most: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = vec![];
    for file in files {
        if files.len() > 1 {
            lines.push(Line::plain("    ").with(Tone::Strong, &without_floods(&file.path)));
        }
        for (at, hunk) in file.hunks.iter().enumerate() {
            if at > 0 {
                lines.push(Line::faint("    …"));
            }
            for text in &hunk.lines {
                lines.extend(changed_line(text, width));
            }
        }
        if file.left_out > 0 {
            lines.push(Line::faint(&format!("    … {} more lines", file.left_out)));
        }
    }
    if lines.len() > most {
        let more = lines.len() - most;
        lines.truncate(most);
        lines.push(Line::faint(&format!(
            "    … {more} more lines: rejoin inbox"
        )));
    }
    lines
}

fn changed_line(text: &str, width: usize) -> Vec<Line> {
    let (sign, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    let tone = match sign {
        "-" => Tone::Bad,
        "+" => Tone::Good,
        _ => Tone::Faint,
    };
    let mut sign = Some(sign);
    let wrapped = Line::new().with(tone, &without_floods(rest));
    let wrapped = wrapped.wrap(width.saturating_sub(6));
    let line = |line: Line| {
        let before = Line::plain("    ").with(tone, sign.take().unwrap_or(" "));
        before.with(tone, " ").then(line)
    };
    wrapped.into_iter().map(line).collect()
}

/// An item of a question, with numbered choices.
pub(super) fn item_lines(item: &QuestionItem, width: usize) -> Vec<Line> {
    let text = without_floods(&item.text);
    let mut lines: Vec<Line> = Line::new()
        .with(Tone::Strong, &text)
        .wrap(width.saturating_sub(2))
        .into_iter()
        .map(|line| Line::plain("  ").then(line))
        .collect();
    for (at, option) in item.options.iter().enumerate() {
        let number = Line::plain("  ").with(Tone::Name, &format!("{:>3}", at + 1));
        let mut what = Line::plain("  ").with(Tone::Plain, &without_floods(&option.label));
        if !option.description.is_empty() {
            let description = format!("  {}", without_floods(&option.description));
            what.push(Tone::Faint, &description);
        }
        let mut number = Some(number);
        for line in what.wrap(width.saturating_sub(5)) {
            let before = number.take().unwrap_or_else(|| Line::plain("       "));
            lines.push(before.then(line));
        }
    }
    lines
}

/// The command or file, or the whole input.
fn subject(input: &Value, width: usize) -> Vec<Line> {
    let known = [
        "command",
        "plan",
        "file_path",
        "filePath",
        "path",
        "url",
        "query",
    ];
    let text = known.iter().find_map(|key| input[*key].as_str());
    let text = text.map_or_else(|| input.to_string(), str::to_owned);
    let text = without_floods(&text);
    let mut lines: Vec<Line> = text
        .lines()
        .flat_map(|line| Line::plain(line).wrap(width.saturating_sub(4)))
        .map(|line| Line::plain("    ").then(line))
        .collect();
    if lines.len() > LINES {
        let more = lines.len() - LINES;
        lines.truncate(LINES);
        lines.push(Line::faint(&format!("    … {more} more lines")));
    }
    // Where a command would run, say.
    let details = input["details"].as_str().map(without_floods);
    lines.extend(details.iter().flat_map(|text| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = Line::faint(&line).wrap(width.saturating_sub(4));
        lines.into_iter().map(|line| Line::plain("    ").then(line))
    }));
    lines
}

/// Why it wants that, where it says so.
fn reason(input: &Value, width: usize) -> Vec<Line> {
    let Some(reason) = input["reason"].as_str() else {
        return vec![];
    };
    let text = format!("because: {}", without_floods(reason));
    let lines = Line::faint(&text).wrap(width.saturating_sub(4)).into_iter();
    lines
        .take(LINES)
        .map(|line| Line::plain("    ").then(line))
        .collect()
}

/// The question in a line.
pub(super) fn in_short(agent: &str, question: &QuestionView) -> String {
    match question.kind {
        QuestionKind::Approval if !question.diff.is_empty() => {
            let one = |file: &FileChange| format!("{} {}", file.change.as_str(), file.path);
            let files: Vec<_> = question.diff.iter().map(one).collect();
            format!("{agent} wants to {}", files.join(", "))
        }
        QuestionKind::Approval if question.climb().is_some() => {
            climb_head(agent, question).render(false).trim().to_owned()
        }
        QuestionKind::Approval if question.about_step().is_some() => {
            question.about_step().unwrap_or_default().to_owned()
        }
        QuestionKind::Approval => {
            let about = subject(&question.input, usize::MAX);
            let about = about.first().map(|line| line.render(false));
            let about = about.unwrap_or_default();
            format!("{agent} asks to use {}: {}", question.tool, about.trim())
        }
        QuestionKind::Question => {
            let items = question.questions.iter();
            items.map(|q| q.text.as_str()).collect::<Vec<_>>().join(" ")
        }
    }
}

/// The input expected, in a few words.
pub(super) fn hint(question: &QuestionView, handle: &str) -> String {
    let name = handle.split(':').next().unwrap_or_default();
    match (question.kind, question.questions.as_slice()) {
        (QuestionKind::Approval, _)
            if question.climb().is_some() || question.about_step().is_some() =>
        {
            format!("rejoin answer {name} allow|deny")
        }
        (QuestionKind::Approval, _) => format!("rejoin answer {name} allow|always|deny"),
        (QuestionKind::Question, [one]) if one.multi => {
            format!("rejoin answer {name} N…, or --text \"…\"")
        }
        (QuestionKind::Question, [_]) => format!("rejoin answer {name} N, or --text \"…\""),
        (QuestionKind::Question, several) => {
            let each = vec!["N"; several.len()].join(" ");
            format!("rejoin answer {name} {each}")
        }
    }
}

/// Parses the words of a command line as an answer to a question.
pub(super) fn wish(
    question: &QuestionView,
    words: &[String],
    text: Option<&str>,
) -> Result<AnswerRequest, String> {
    let mut wish = AnswerRequest {
        question_id: Some(question.id),
        ..AnswerRequest::default()
    };
    if let [word] = words
        && let Ok(choice) = word.parse::<Choice>()
    {
        wish.decision = Some(choice);
        wish.message = text.map(str::to_owned);
        return Ok(wish);
    }
    if question.kind == QuestionKind::Approval {
        return Err("it asks for permission: the answer is allow, always or deny".into());
    }
    let items = &question.questions;
    let answers: Vec<Vec<String>> = match (items.as_slice(), text) {
        ([_], Some(text)) if words.is_empty() => vec![vec![text.to_owned()]],
        (_, Some(_)) => {
            return Err("--text answers a single question, and takes the place of a number".into());
        }
        ([one], None) => vec![chosen(one, &words.join(",")).map_err(with_text)?],
        (several, None) if several.len() == words.len() => several
            .iter()
            .zip(words)
            .map(|(item, word)| chosen(item, word).map_err(with_text))
            .collect::<Result<_, _>>()?,
        (several, None) => {
            let n = several.len();
            return Err(format!(
                "it asks {n} things: give {n} numbers, one for each (2,3 where several may be chosen)"
            ));
        }
    };
    let ids = items.iter().map(|item| item.id.clone());
    wish.answers = Some(ids.zip(answers).collect::<BTreeMap<_, _>>());
    Ok(wish)
}

/// Adds the way to answer in other words.
fn with_text(why: String) -> String {
    why + "; other words go with --text"
}

/// The options with these numbers.
pub(super) fn chosen(item: &QuestionItem, numbers: &str) -> Result<Vec<String>, String> {
    let most = item.options.len();
    let words = numbers
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter(|word| !word.is_empty());
    words
        .map(|word| {
            let number = word.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let option = number.and_then(|n| item.options.get(n));
            option
                .map(|option| option.label.clone())
                .ok_or_else(|| format!("`{word}` is none of its {most} options"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rejoin_core::{QuestionId, QuestionOption};
    use serde_json::json;

    use super::*;

    fn question(items: &[(&str, bool)]) -> QuestionView {
        let option = |label: &str| QuestionOption {
            label: label.into(),
            description: "about\u{1b}[2J".into(),
        };
        let item = |(at, (text, multi)): (usize, &(&str, bool))| QuestionItem {
            id: (at + 1).to_string(),
            text: (*text).into(),
            options: ["Red", "Blue"].map(option).to_vec(),
            multi: *multi,
        };
        QuestionView {
            id: QuestionId::nil(),
            kind: if items.is_empty() {
                QuestionKind::Approval
            } else {
                QuestionKind::Question
            },
            tool: "Bash".into(),
            input: json!({"command": "rm \u{1b}[2J x"}),
            diff: vec![],
            questions: items.iter().enumerate().map(item).collect(),
            state: QuestionState::Pending,
            asked_at: String::new(),
            answer: None,
            by: None,
        }
    }

    #[test]
    fn words_become_answers() {
        let said = |q: &QuestionView, words: &[&str], text: Option<&str>| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            let wish = wish(q, &words, text)?;
            let answers = wish.answers.unwrap_or_default();
            let answers: Vec<String> = answers.values().map(|a| a.join("+")).collect();
            Ok::<_, String>((wish.decision, answers.join(" / ")))
        };
        let approval = question(&[]);
        assert_eq!(
            said(&approval, &["always"], None),
            Ok((Some(Choice::Always), String::new()))
        );
        assert!(said(&approval, &["1"], None).is_err());
        assert!(said(&approval, &[], Some("yes")).is_err());
        let one = question(&[("Which?", true)]);
        assert_eq!(said(&one, &["2", "1"], None), Ok((None, "Blue+Red".into())));
        assert_eq!(said(&one, &[], Some("green")), Ok((None, "green".into())));
        assert_eq!(
            said(&one, &["deny"], Some("later")),
            Ok((Some(Choice::Deny), String::new()))
        );
        for bad in ["0", "3", "x", "-1", "99999999999999999999"] {
            assert!(said(&one, &[bad], None).is_err(), "{bad}");
        }
        let two = question(&[("Which?", false), ("Sizes?", true)]);
        assert_eq!(
            said(&two, &["1", "1,2"], None),
            Ok((None, "Red / Red+Blue".into()))
        );
        assert!(said(&two, &["1"], None).is_err());
        assert!(said(&two, &[], Some("x")).is_err());
    }

    #[test]
    fn nothing_an_agent_says_acts_on_the_terminal() {
        for question in [question(&[]), question(&[("Q\u{1b}[2J?", false)])] {
            let shown: String = lines("claude", &question, 80, 40)
                .iter()
                .map(|line| line.render(false) + "\n")
                .collect();
            assert!(!shown.contains('\u{1b}'), "{shown}");
            assert!(shown.contains("[2J"), "{shown}");
        }
    }
}
