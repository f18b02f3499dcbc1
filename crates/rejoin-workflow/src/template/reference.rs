//! Names that a template or an expression refers to.

/// Name of the file's vocabulary in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// `inputs.NAME`
    Input(String),
    /// `steps.ID`, and the attribute behind it.
    Step {
        id: String,
        attribute: Option<String>,
    },
    /// `failed(ID)`
    Failed(String),
    /// `item` or `index`
    Item(&'static str),
    /// Any other name.
    Unknown(String),
}

/// Fault of a text, at a byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) text: String,
    pub(crate) suggestion: Option<String>,
}

/// Attributes of a step.
pub(crate) const STEP_ATTRIBUTES: &[&str] = &[
    "text",
    "output",
    "verdict",
    "cost_usd",
    "exit_code",
    "status",
    "items",
];

/// Names that a text always knows.
pub(crate) const ROOTS: &[&str] = &["inputs", "steps", "item", "index", "run"];
