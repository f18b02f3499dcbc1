//! Mistakes of a file: position, text and suggestion.

use std::fmt;

/// Mistake of a workflow file. Line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub column: usize,
    pub text: String,
    pub suggestion: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Mistake {}

/// Position in a file, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// Mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Mistakes(Vec<Mistake>);

impl Mistakes {
    pub(crate) fn add(&mut self, place: Place, text: impl Into<String>) {
        self.push(place, text.into(), None);
    }

    pub(crate) fn suggest(
        &mut self,
        place: Place,
        text: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        self.push(place, text.into(), Some(suggestion.into()));
    }

    pub(crate) fn push(&mut self, place: Place, text: String, suggestion: Option<String>) {
        self.0.push(Mistake {
            line: place.line.max(1),
            column: place.column.max(1),
            text,
            suggestion,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the mistakes by position, each once.
    pub(crate) fn sorted(mut self) -> Vec<Mistake> {
        self.0
            .sort_by(|a, b| (a.line, a.column, &a.text).cmp(&(b.line, b.column, &b.text)));
        self.0.dedup();
        self.0
    }
}

/// Returns the known name that is most like the given one, if one is near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = if name.len() > 64 { return None } else { name };
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| {
            let longer = name.len().max(candidate.len());
            *distance < longer && *distance <= 1.max(longer / 3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the suggestion for an unknown name: the nearest known name, else the list of all.
pub(crate) fn instead(name: &str, known: &[&str]) -> String {
    nearest(name, known.iter().copied()).map_or_else(
        || format!("known: {}", known.join(", ")),
        |near| format!("did you mean `{near}`?"),
    )
}
