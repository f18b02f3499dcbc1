//! Workflow files: format, checks with positions, templates, plan and answers.
//!
//! Everything here is a pure function or a plain value: no clock, no files, no environment, no
//! async. [`parse`] reads a file and returns the [`Workflow`] or all its mistakes.
//!
//! ```
//! let text = "name: hello\nsteps:\n  greet:\n    prompt: Say hello.\n";
//! let workflow = rejoin_workflow::parse(text, &|file| Err(format!("no file {file}")))
//!     .map_err(|mistakes| mistakes[0].clone())?;
//! assert_eq!(workflow.steps[0].id, "greet");
//! # Ok::<(), rejoin_workflow::Mistake>(())
//! ```

mod answer;
mod bind;
mod duration;
mod graph;
mod keys;
mod mistake;
mod parse;
mod schema;
mod template;
mod workflow;
mod yaml;

pub use answer::AnswerSchema;
pub use keys::RETRY_CAUSES;
pub use mistake::Mistake;
pub use parse::parse;
pub use schema::json_schema;
pub use template::{Expression, MAX_RENDERED, Scope, StepValues, Template};
pub use workflow::{
    AgentWork, CommandWork, Continuity, Input, InputKind, Repeat, Retry, Session, ShellWork, Step,
    Work, Workflow,
};

/// Example of a workflow file, with comments.
pub const EXAMPLE: &str = include_str!("example.yaml");
