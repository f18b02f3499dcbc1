//! Findings as lines: good, worth knowing, or a problem with its remedy.

use serde_json::{Value, json};

use crate::output::{Line, Output, Tone, table};

/// Column at which text begins, after the mark.
const INDENT: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Report {
    sections: Vec<(&'static str, Vec<Finding>)>,
}

#[derive(Debug)]
struct Finding {
    grade: Grade,
    what: String,
    text: String,
}

#[derive(Debug)]
enum Grade {
    Good,
    Note,
    /// With what to try.
    Bad(String),
}

impl Report {
    pub(super) fn section(&mut self, name: &'static str) {
        self.sections.push((name, vec![]));
    }

    pub(super) fn good(&mut self, what: &str, text: &str) {
        self.add(Grade::Good, what, text);
    }

    pub(super) fn note(&mut self, what: &str, text: &str) {
        self.add(Grade::Note, what, text);
    }

    pub(super) fn bad(&mut self, what: &str, text: &str, next: &str) {
        self.add(Grade::Bad(next.to_owned()), what, text);
    }

    fn add(&mut self, grade: Grade, what: &str, text: &str) {
        if let Some((_, findings)) = self.sections.last_mut() {
            findings.push(Finding {
                grade,
                what: what.to_owned(),
                text: text.to_owned(),
            });
        }
    }

    pub(super) fn then(mut self, other: Self) -> Self {
        self.sections.extend(other.sections);
        self
    }

    pub(super) fn healthy(&self) -> bool {
        self.problems().is_empty()
    }

    pub(super) fn problems(&self) -> Vec<Value> {
        let mut problems = vec![];
        for (section, findings) in &self.sections {
            for finding in findings {
                if let Grade::Bad(next) = &finding.grade {
                    problems.push(json!({
                        "section": section, "what": finding.what, "message": finding.text,
                        "try": next,
                    }));
                }
            }
        }
        problems
    }

    pub(super) fn print(&self, out: Output) {
        let mut lines = vec![];
        for (section, findings) in &self.sections {
            lines.push(Line::new().with(Tone::Strong, section));
            let rows: Vec<Vec<Line>> = findings.iter().map(Finding::row).collect();
            for (line, finding) in table(&rows, None).into_iter().zip(findings) {
                lines.push(line);
                if let Grade::Bad(next) = &finding.grade {
                    let hint = Line::new().to(INDENT).with(Tone::Strong, "try:");
                    lines.push(hint.with(Tone::Plain, &format!(" {next}")));
                }
            }
        }
        let problems = self.problems().len();
        lines.push(match problems {
            0 => Line::new().with(Tone::Good, "ready"),
            1 => Line::new().with(Tone::Bad, "1 problem"),
            n => Line::new().with(Tone::Bad, &format!("{n} problems")),
        });
        if out.screen() {
            lines = lines.iter().flat_map(|l| hanging(l, out.width())).collect();
        }
        out.lines(&lines);
    }
}

/// Broken where it is too long, what follows beneath the text.
fn hanging(line: &Line, width: usize) -> Vec<Line> {
    if line.width() <= width {
        return vec![line.clone()];
    }
    let broken = line.wrap(width.saturating_sub(INDENT)).into_iter();
    let indented = |(n, part): (usize, Line)| match n {
        0 => part,
        _ => Line::new().to(INDENT).then(part),
    };
    broken.enumerate().map(indented).collect()
}

impl Finding {
    fn row(&self) -> Vec<Line> {
        let mark = match self.grade {
            Grade::Good => Line::plain("  ").with(Tone::Good, "ok"),
            Grade::Note => Line::plain("  ").with(Tone::Faint, "-"),
            Grade::Bad(_) => Line::plain("  ").with(Tone::Bad, "FAIL"),
        };
        // All sections under each other, whether or not one of them has a problem.
        vec![
            mark.to(INDENT - 2),
            Line::plain(&self.what),
            Line::plain(&self.text),
        ]
    }
}

/// A size as people say it.
pub(super) fn bytes(count: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < units.len() {
        size /= 1000.0;
        unit += 1;
    }
    if unit == 0 || size >= 100.0 {
        format!("{size:.0} {}", units[unit])
    } else {
        format!("{size:.1} {}", units[unit])
    }
}
