//! Templates and expressions: one language, strict about unknown names, without files, environment
//! or includes. Values are inserted as text and are never parsed again.

mod check;
mod engine;
mod filters;
mod reference;
mod scan;
mod scope;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

pub use engine::MAX_RENDERED;
pub use scope::{Scope, StepValues};

pub(crate) use check::{Facts, Use, check};
pub(crate) use reference::{Fault, Reference};
pub(crate) use scan::Scan;

/// Template of a text: `{{ value }}`, filters, `{% if %}` and `{% for %}`.
#[derive(Clone, Default)]
pub struct Template {
    source: String,
    names: Names,
}

/// Expression of `when`, `for_each` and `loop.while`.
#[derive(Clone)]
pub struct Expression {
    source: String,
    names: Names,
    at_failures: bool,
}

/// Steps that a text refers to. A scope passes only these, so the cost of a text does not grow with
/// the number of steps.
#[derive(Debug, Clone, Default)]
struct Names {
    steps: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// The text asks for values that may be absent: `default` or `is defined`.
    tolerant: bool,
}

impl Names {
    fn of(scan: &Scan) -> Self {
        let mut names = Self {
            tolerant: scan.tolerant,
            ..Self::default()
        };
        for (reference, _) in &scan.references {
            match reference {
                Reference::Step { id, .. } => {
                    names.steps.insert(id.clone());
                }
                Reference::Failed(id) => {
                    names.failed.insert(id.clone());
                }
                Reference::Input(_) | Reference::Item(_) | Reference::Unknown(_) => {}
            }
        }
        names
    }
}

impl Template {
    /// Returns the template and the names it refers to, or its faults.
    pub(crate) fn new(source: &str) -> Result<(Self, Scan), Vec<Fault>> {
        let scan = scan::template(source)?;
        let template = Self {
            source: source.to_owned(),
            names: Names::of(&scan),
        };
        Ok((template, scan))
    }

    /// Returns the text of the file.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the text with the scope's values. Fails on unknown names and beyond 16 MiB.
    pub fn render(&self, scope: &Scope) -> Result<String, String> {
        engine::render(&self.source, scope.context(&self.names))
    }
}

impl Expression {
    /// Returns the expression and the names it refers to, or its faults. The text may be enclosed
    /// in `{{ }}`.
    pub(crate) fn new(text: &str) -> Result<(Self, Scan), Vec<Fault>> {
        let (source, skipped) = unwrapped(text);
        let at = |mut fault: Fault| {
            fault.offset += skipped;
            fault
        };
        let mut scan = scan::expression(source)
            .map_err(|faults| faults.into_iter().map(at).collect::<Vec<_>>())?;
        for (_, offset) in &mut scan.references {
            *offset += skipped;
        }
        let at_failures = scan.always
            || scan
                .references
                .iter()
                .any(|(name, _)| matches!(name, Reference::Failed(_)));
        let expression = Self {
            source: source.to_owned(),
            names: Names::of(&scan),
            at_failures,
        };
        Ok((expression, scan))
    }

    /// Returns the text of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the expression's value. Fails on unknown names.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, String> {
        engine::evaluate(&self.source, scope.context(&self.names))
    }

    /// Returns true if the value is true: not false, zero, empty or null.
    pub fn is_true(&self, scope: &Scope) -> Result<bool, String> {
        engine::is_true(&self.source, scope.context(&self.names))
    }

    /// Returns true if the expression calls `always()` or `failed()`. It is then evaluated even if
    /// a needed step failed or was skipped.
    pub fn looks_at_failures(&self) -> bool {
        self.at_failures
    }
}

/// Returns the text within `{{ }}`, and where it begins.
fn unwrapped(text: &str) -> (&str, usize) {
    let inner = text
        .trim()
        .strip_prefix("{{")
        .and_then(|text| text.strip_suffix("}}"));
    let source = inner
        .filter(|inner| !inner.contains("{{"))
        .unwrap_or(text)
        .trim();
    (source, source.as_ptr() as usize - text.as_ptr() as usize)
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
